//! Fills a database before a benchmark.

use crate::site::BenchSite;
use crate::template::IdOrder;
use anyhow::anyhow;
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
use tributary_domain::vocabulary::id::{AppId, ClickId, EventId, LinkId};
use tributary_domain::vocabulary::money::Amount;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_domain::vocabulary::web_url::HttpsUrl;
use tributary_server::system::runtime;
use tributary_store::Store;

/// Number of concurrent requests, equal to the batch size of both stores.
const CONCURRENCY: usize = 500;
/// Period, ending now, over which events are spread.
const SPREAD: Duration = Duration::from_hours(30 * 24);
/// Time between the click and the first event.
const CLICK_LEAD: Duration = Duration::from_mins(1);

/// Stores `count` purchases directly in the store, without HTTP, each from a different device.
pub(crate) async fn web_events(
    store: Arc<dyn Store>,
    site: &BenchSite,
    count: u64,
    ids: IdOrder,
) -> anyhow::Result<()> {
    let click = click(site)?;
    let sample = Arc::new(sample(site, click.id)?);
    store.record_click(click).await?;
    let next = Arc::new(AtomicU64::new(0));
    let mut tasks = JoinSet::new();
    for _ in 0..CONCURRENCY {
        let (store, sample, next) = (store.clone(), sample.clone(), next.clone());
        tasks.spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= count {
                    return anyhow::Ok(());
                }
                let event = numbered(&sample, number, count, ids)?;
                store.accept_web_event(event).await?;
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
    let app = AppId::parse(&site.app).map_err(|_| anyhow!("invalid app id"))?;
    let link = LinkId::parse(&site.link).map_err(|_| anyhow!("invalid link id"))?;
    let id = ClickId::new(clicked_at, runtime().random_bytes());
    Ok(Click {
        network: Some(Network::D),
        destination_origin: Some(BenchSite::SHOP.to_owned()),
        ..Click::new(id, (app, link), clicked_at, Platform::Ios)
    })
}

fn sample(site: &BenchSite, click: ClickId) -> anyhow::Result<WebEvent> {
    let app = AppId::parse(&site.app).map_err(|_| anyhow!("invalid app id"))?;
    let url = HttpsUrl::parse_without_query(&BenchSite::payment_url()).map_err(problem_error)?;
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
