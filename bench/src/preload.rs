//! Fills a database before a benchmark.

use crate::recent_clicks::{RecentClicks, app_id};
use crate::site::BenchSite;
use crate::template::IdOrder;
use anyhow::{Context as _, anyhow};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::task::JoinSet;
use tributary_domain::click::Click;
use tributary_domain::device::{DeviceKey, Platform};
use tributary_domain::event::web::{WebEvent, WebEventKind};
use tributary_domain::integration::Network;
use tributary_domain::vocabulary::currency::Currency;
use tributary_domain::vocabulary::fault::Problem;
use tributary_domain::vocabulary::id::{ClickId, EventId, LinkId};
use tributary_domain::vocabulary::money::Amount;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_domain::vocabulary::web_url::PageUrl;
use tributary_server::system::runtime;
use tributary_store::Store;

/// Number of concurrent requests, equal to the batch size of both stores.
const CONCURRENCY: usize = 500;
/// Period, ending now, over which events are spread.
const SPREAD: Duration = Duration::from_hours(30 * 24);
/// Time between the click and the first event.
const CLICK_LEAD: Duration = Duration::from_mins(1);

/// Stores `count` purchases directly in the store, without HTTP, each from a different device, of
/// the sites in turn.
pub(crate) async fn web_events(
    store: Arc<dyn Store>,
    sites: &[BenchSite],
    count: u64,
    ids: IdOrder,
) -> anyhow::Result<()> {
    let mut samples = Vec::new();
    for site in sites {
        let click = click(site)?;
        samples.push(sample(site, click.id)?);
        store.record_click(click).await?;
    }
    let samples = Arc::new(samples);
    for_each_number(count, move |number| {
        let (store, samples) = (store.clone(), samples.clone());
        async move {
            let sample = turn(&samples, number).context("no site")?;
            let event = numbered(sample, number, count, ids)?;
            store.accept_web_event(event).await?;
            Ok(())
        }
    })
    .await
}

/// Stores recent clicks on the install links of the sites in turn.
pub(crate) async fn clicks(
    store: Arc<dyn Store>,
    sites: &[BenchSite],
    clicks: RecentClicks,
) -> anyhow::Result<()> {
    let sites: Arc<[BenchSite]> = sites.into();
    for_each_number(clicks.count, move |number| {
        let (store, sites) = (store.clone(), sites.clone());
        async move {
            let site = turn(&sites, number).context("no site")?;
            store.record_click(clicks.click(site, number)?).await?;
            Ok(())
        }
    })
    .await
}

fn turn<T>(all: &[T], number: u64) -> Option<&T> {
    let index = number.checked_rem(all.len() as u64)?;
    all.get(usize::try_from(index).ok()?)
}

/// Runs an action for the numbers below `count`, many at a time.
async fn for_each_number<F>(
    count: u64,
    action: impl Fn(u64) -> F + Clone + Send + 'static,
) -> anyhow::Result<()>
where
    F: Future<Output = anyhow::Result<()>> + Send,
{
    let next = Arc::new(AtomicU64::new(0));
    let mut tasks = JoinSet::new();
    for _ in 0..CONCURRENCY {
        let (next, action) = (next.clone(), action.clone());
        tasks.spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= count {
                    return anyhow::Ok(());
                }
                action(number).await?;
            }
        });
    }
    while let Some(joined) = tasks.join_next().await {
        joined??;
    }
    Ok(())
}

/// Returns a click on the site's link that precedes all events.
fn click(site: &BenchSite) -> anyhow::Result<Click> {
    let before = i64::try_from((SPREAD + CLICK_LEAD).as_millis())?;
    let clicked_at = Timestamp::from_millis(runtime().now().as_millis() - before);
    let app = app_id(site)?;
    let link = LinkId::parse(&site.link).map_err(|_| anyhow!("invalid link id"))?;
    let id = ClickId::new(clicked_at, runtime().random_bytes());
    Ok(Click {
        network: Some(Network::D),
        destination_origin: Some(BenchSite::SHOP.to_owned()),
        ..Click::new(id, (app, link), clicked_at, Platform::Ios)
    })
}

fn sample(site: &BenchSite, click: ClickId) -> anyhow::Result<WebEvent> {
    let app = app_id(site)?;
    let url = PageUrl::parse_without_query(&BenchSite::payment_url()).map_err(problem_error)?;
    let now = runtime().now();
    Ok(WebEvent {
        app,
        id: EventId::new(now, runtime().random_bytes()),
        external_id: String::new(),
        click_text: site.click.clone(),
        click: Some(click),
        device: DeviceKey::parse("visitor").map_err(problem_error)?,
        occurred_at: now,
        kind: WebEventKind::Purchase,
        amount: Some(Amount::parse("49.99").map_err(problem_error)?),
        currency: Some(Currency::USD),
        origin: url.origin(),
        source_url: url.as_str().to_owned(),
        parent: None,
        email_sha256: None,
        received_at: now,
    })
}

fn numbered(sample: &WebEvent, number: u64, count: u64, ids: IdOrder) -> anyhow::Result<WebEvent> {
    let id = ids.text(number);
    let ago = u128::from(count - number) * SPREAD.as_millis() / u128::from(count);
    let at = sample.received_at.as_millis() - i64::try_from(ago)?;
    let at = Timestamp::from_millis(at);
    Ok(WebEvent {
        id: EventId::new(at, runtime().random_bytes()),
        device: DeviceKey::parse(&format!("visitor-{id}")).map_err(problem_error)?,
        external_id: id,
        occurred_at: at,
        received_at: at,
        ..sample.clone()
    })
}

fn problem_error(problem: Problem) -> anyhow::Error {
    anyhow!("{problem:?}")
}
