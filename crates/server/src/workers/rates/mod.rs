//! Fetches the day's exchange rates.
//!
//! They are published on working days in the afternoon, and nobody says when exactly, so the address is
//! asked every few hours: "has it changed since?" costs both sides next to nothing. Redirects are not
//! followed: whoever answers for another address is not who the operator named.

use super::periodic::{Activity, Worker};
use crate::metrics;
use crate::outbound::{self, Outbound, Reach};
use crate::rates::{self, RATES_FILE_BYTES_MAX};
use anyhow::Context as _;
use reqwest::header::{
    ETAG, HeaderMap, HeaderName, HeaderValue, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED,
};
use reqwest::{Method, Response, StatusCode};
use std::sync::Arc;
use std::time::Duration;
use tributary_domain::exchange::{Day, Staleness, latest_day, staleness};
use tributary_domain::forwarding::alert::AlertKind;
use tributary_domain::outside::Source;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::Store;
use url::Url;

/// For the whole file, also a long one on a slow line.
const FETCH_MAX: Duration = Duration::from_mins(1);
/// Rates of yesterday are the latest that can be expected at a start: today's come in the afternoon.
const FRESH_DAYS: i64 = 1;

/// How often operators are told that the rates are old.
const STALE_AGAIN: Duration = Duration::from_hours(24);

/// What the last answer is known by, as the headers of the next question.
type Validators = HeaderMap;

/// Fetches rates.
pub(super) struct RatesWorker {
    store: Arc<dyn Store>,
    source: Source,
    outbound: Outbound,
    /// None: nothing is fetched, but how old the rates are is still told.
    url: Option<Url>,
    has_run: bool,
    validators: Validators,
}

impl RatesWorker {
    pub(super) fn new(
        store: Arc<dyn Store>,
        source: Source,
        url: Option<Url>,
    ) -> anyhow::Result<Self> {
        Ok(Self {
            store,
            source,
            // A private address is as good as any: rates are no secret, and an operator may keep a copy.
            outbound: Outbound::new(Reach::Anywhere, FETCH_MAX)?,
            url,
            has_run: false,
            validators: Validators::new(),
        })
    }

    async fn latest(&self) -> anyhow::Result<Option<Day>> {
        let imported = rates::latest_imported(&*self.store).await?;
        let today = Day::of(self.source.now());
        metrics::rates_days_behind(today.days_since(latest_day(imported)).max(0));
        Ok(imported)
    }

    /// Tells operators that the rates are old, once a while.
    async fn tell_if_stale(&self, imported: Option<Day>) -> anyhow::Result<()> {
        let now = self.source.now();
        let latest = latest_day(imported);
        if let Staleness::Stale { days } = staleness(latest, Day::of(now)) {
            let message = format!(
                "The latest exchange rates are of {latest}, {days} days ago; amounts in other \
                 currencies are exchanged at these."
            );
            let since = i64::try_from(STALE_AGAIN.as_millis()).unwrap_or(i64::MAX);
            let since = Timestamp::from_millis(now.as_millis().saturating_sub(since));
            let kind = AlertKind::RatesStale;
            self.store
                .raise_alert_everywhere(kind, message, since, now, self.source.bytes())
                .await?;
        }
        Ok(())
    }

    /// A restart fetches nothing that was imported a moment ago.
    fn is_due(&self, imported: Option<Day>) -> bool {
        let today = Day::of(self.source.now());
        self.has_run || imported.is_none_or(|day| today.days_since(day) > FRESH_DAYS)
    }

    async fn fetch(&mut self, url: &Url) -> anyhow::Result<Activity> {
        let request = self
            .outbound
            .request(Method::GET, url)
            .headers(self.validators.clone());
        let answer = self
            .outbound
            .send(request)
            .await
            .context("rates.url cannot be fetched")?;
        match answer.status() {
            StatusCode::OK => {}
            StatusCode::NOT_MODIFIED => return Ok(Activity::Done),
            status if status.is_redirection() => anyhow::bail!(
                "rates.url answers {status}, which leads elsewhere: set it to the address of the file itself"
            ),
            status => anyhow::bail!("rates.url answers {status}"),
        }
        let validators = validators(&answer);
        let content = outbound::body(answer, RATES_FILE_BYTES_MAX)
            .await
            .context("rates.url cannot be fetched")?;
        let today = Day::of(self.source.now());
        let rates = tokio::task::spawn_blocking(move || rates::parse(&content, today))
            .await?
            .context("what rates.url answers cannot be used")?;
        let count = rates.len();
        let changed = rates::import(&*self.store, rates, self.source.now(), |_| {}).await?;
        // Not before everything is stored: otherwise a failure would be "not modified" for ever.
        self.validators = validators;
        tracing::info!(count, changed, "fetched exchange rates");
        Ok(Activity::Done)
    }
}

impl Worker for RatesWorker {
    const NAME: &'static str = "rates";
    const PERIOD: Duration = Duration::from_hours(3);

    async fn activate(&mut self) -> anyhow::Result<Activity> {
        let imported = self.latest().await?;
        let is_due = self.is_due(imported);
        self.has_run = true;
        let Some(url) = self.url.clone().filter(|_| is_due) else {
            self.tell_if_stale(imported).await?;
            return Ok(Activity::Idle);
        };
        let fetched = self.fetch(&url).await;
        let imported = self.latest().await?;
        self.tell_if_stale(imported).await?;
        fetched
    }
}

/// What an answer is asked for by next time.
fn validators(answer: &Response) -> Validators {
    let taken = |from: HeaderName, to: HeaderName| -> Option<(HeaderName, HeaderValue)> {
        Some((to, answer.headers().get(from)?.clone()))
    };
    let pairs = [
        taken(ETAG, IF_NONE_MATCH),
        taken(LAST_MODIFIED, IF_MODIFIED_SINCE),
    ];
    pairs.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests;
