//! Fetches the daily exchange rates.
//!
//! Rates are published on working days in the afternoon, at no fixed time, so the worker sends a
//! conditional request every few hours. Redirects are not followed, because only the configured
//! host is trusted.
//!
//! The first source takes precedence. The second source adds currencies that the first lacks, if
//! `domain::exchange::review` accepts its rates.

use super::periodic::{Worker, WorkerActivity};
use crate::config::RatesConfig as RatesSettings;
use crate::metrics;
use crate::outbound::{self, AddressPolicy, Outbound};
use crate::rates::{self, RATES_FILE_BYTES_MAX};
use anyhow::Context as _;
use reqwest::header::{
    ETAG, HeaderMap, HeaderName, HeaderValue, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED,
};
use reqwest::{Method, Response, StatusCode};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tributary_domain::exchange::{
    Rate, RateReview, Staleness, latest_day, review, review_query, staleness,
};
use tributary_domain::forwarding::alert::AlertKind;
use tributary_domain::runtime::Runtime;
use tributary_domain::vocabulary::currency::Currency;
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::Store;
use url::Url;

/// Timeout for the whole file, even on a slow connection.
const FETCH_MAX: Duration = Duration::from_mins(1);
/// Today's rates are published in the afternoon, so at startup yesterday's rates are recent enough.
const FRESH_DAYS: i64 = 1;

/// Interval between alerts about stale rates.
const STALE_ALERT_INTERVAL: Duration = Duration::from_hours(24);

/// Cache validators from the last response, as headers for the next request.
type Validators = HeaderMap;

/// Fetches rates.
pub(super) struct RatesWorker {
    store: Arc<dyn Store>,
    runtime: Runtime,
    outbound: Outbound,
    first: Feed,
    second: Feed,
    has_run: bool,
}

/// One source of rates.
struct Feed {
    /// Setting that names the source.
    setting: &'static str,
    /// `None` disables fetching; the age of the rates is still reported.
    url: Option<Url>,
    validators: Validators,
}

/// A file that changed since the last fetch.
struct FetchedFile {
    rates: Vec<Rate>,
    validators: Validators,
}

impl Feed {
    fn new(setting: &'static str, url: Option<&Url>) -> Self {
        Self {
            setting,
            url: url.cloned(),
            validators: Validators::new(),
        }
    }

    /// Fetches and parses the file; `None` if it has not changed.
    async fn fetch(
        &self,
        url: &Url,
        outbound: &Outbound,
        today: Day,
    ) -> anyhow::Result<Option<FetchedFile>> {
        let setting = self.setting;
        let request = outbound
            .request(Method::GET, url)
            .headers(self.validators.clone());
        let unfetched = || format!("cannot fetch {setting}");
        let response = outbound.send(request).await.with_context(unfetched)?;
        match response.status() {
            StatusCode::OK => {}
            StatusCode::NOT_MODIFIED => return Ok(None),
            status if status.is_redirection() => anyhow::bail!(
                "{setting} responds with {status}, a redirect: set it to the URL of the file itself"
            ),
            status => anyhow::bail!("{setting} responds with {status}"),
        }
        let validators = validators(&response);
        let content = outbound::read_body(response, RATES_FILE_BYTES_MAX)
            .await
            .with_context(unfetched)?;
        let rates = tokio::task::spawn_blocking(move || rates::parse(&content, today))
            .await?
            .with_context(|| format!("cannot parse the response from {setting}"))?;
        Ok(Some(FetchedFile { rates, validators }))
    }
}

impl RatesWorker {
    pub(super) fn new(
        store: Arc<dyn Store>,
        runtime: Runtime,
        settings: &RatesSettings,
    ) -> anyhow::Result<Self> {
        Ok(Self {
            store,
            runtime,
            // Private addresses are allowed: rates are not secret, and an operator may host a copy.
            outbound: Outbound::new(AddressPolicy::Anywhere, FETCH_MAX)?,
            first: Feed::new("rates.url", settings.url.as_ref()),
            second: Feed::new("rates.second_url", settings.second_url.as_ref()),
            has_run: false,
        })
    }

    fn today(&self) -> Day {
        Day::of(self.runtime.now())
    }

    /// Returns the day of the dollar's latest imported rate.
    async fn latest(&self) -> anyhow::Result<Option<Day>> {
        let imported = rates::latest_imported_day(&*self.store).await?;
        metrics::set_rates_age(self.today().days_since(latest_day(imported)).max(0));
        Ok(imported)
    }

    /// Returns the day of the second source's latest rates.
    async fn latest_second(&self) -> anyhow::Result<Day> {
        let latest = rates::latest_second_source_day(&*self.store, self.today()).await?;
        metrics::set_second_rates_age(self.today().days_since(latest).max(0));
        Ok(latest)
    }

    /// Alerts operators once a day while rates are stale.
    async fn alert_if_stale(&self) -> anyhow::Result<()> {
        let (latest, second) = (
            latest_day(self.latest().await?),
            self.latest_second().await?,
        );
        let today = self.today();
        let mut parts = Vec::new();
        if let Staleness::Stale { days } = staleness(latest, today) {
            parts.push(format!(
                "The latest exchange rates are from {latest}, {days} days ago; amounts in other \
                 currencies are converted with them."
            ));
        }
        // Without a URL the operator imports rates by hand.
        if self.second.url.is_some()
            && let Staleness::Stale { days } = staleness(second, today)
        {
            parts.push(format!(
                "The latest exchange rates from rates.second_url are {days} days old ({second}); \
                 amounts in currencies that only this source has are converted with them."
            ));
        }
        if parts.is_empty() {
            return Ok(());
        }
        let now = self.runtime.now();
        let since = i64::try_from(STALE_ALERT_INTERVAL.as_millis()).unwrap_or(i64::MAX);
        let since = Timestamp::from_millis(now.as_millis().saturating_sub(since));
        let (kind, message) = (AlertKind::RatesStale, parts.join(" "));
        self.store
            .raise_alert_everywhere(kind, message, since, now, self.runtime.random_bytes())
            .await?;
        Ok(())
    }

    /// Returns whether a source is due. A restart does not fetch rates that were imported recently.
    fn is_due(&self, latest: Option<Day>) -> bool {
        self.has_run || latest.is_none_or(|day| self.today().days_since(day) > FRESH_DAYS)
    }

    async fn fetch_first(&mut self) -> anyhow::Result<WorkerActivity> {
        let due = self.is_due(self.latest().await?);
        let Some(url) = self.first.url.as_ref().filter(|_| due) else {
            return Ok(WorkerActivity::Idle);
        };
        let fetched = self.first.fetch(url, &self.outbound, self.today()).await?;
        if let Some(FetchedFile { rates, validators }) = fetched {
            let count = rates.len();
            let changed = rates::import(&*self.store, rates, self.runtime.now(), |_| {}).await?;
            // Set only after everything is stored; otherwise a failed import would be "not
            // modified" forever.
            self.first.validators = validators;
            tracing::info!(count, changed, "fetched exchange rates");
        }
        Ok(WorkerActivity::Done)
    }

    async fn fetch_second(&mut self) -> anyhow::Result<WorkerActivity> {
        let due = self.is_due(Some(self.latest_second().await?));
        let Some(url) = self.second.url.as_ref().filter(|_| due) else {
            return Ok(WorkerActivity::Idle);
        };
        let fetched = self.second.fetch(url, &self.outbound, self.today()).await?;
        if let Some(FetchedFile { rates, validators }) = fetched {
            let accepted = self.review_figures(rates).await?;
            let count = accepted.len();
            let changed = rates::import(&*self.store, accepted, self.runtime.now(), |_| {}).await?;
            self.second.validators = validators;
            tracing::info!(
                count,
                changed,
                "fetched exchange rates from the second source"
            );
        }
        Ok(WorkerActivity::Done)
    }

    /// Returns the accepted rates from the second source.
    async fn review_figures(&self, figures: Vec<Rate>) -> anyhow::Result<Vec<Rate>> {
        let questions = figures.iter().map(review_query).collect();
        let imported = self.store.latest_rates(questions).await?;
        let mut imported: HashMap<Currency, Rate> = imported
            .into_iter()
            .map(|rate| (rate.currency, rate))
            .collect();
        let (mut accepted, mut refused) = (Vec::new(), Vec::new());
        for figure in figures {
            match review(&figure, imported.remove(&figure.currency)) {
                RateReview::Accept => accepted.push(figure),
                RateReview::Covered => {}
                RateReview::Jump => refused.push(figure.currency.as_str().to_owned()),
            }
        }
        if !refused.is_empty() {
            metrics::count_rejected_rates(refused.len());
            tracing::warn!(
                currencies = refused.join(" "),
                "rejected exchange rates that moved too far; keeping the last known rates"
            );
        }
        Ok(accepted)
    }
}

impl Worker for RatesWorker {
    const NAME: &'static str = "rates";
    const PERIOD: Duration = Duration::from_hours(3);

    async fn run_once(&mut self) -> anyhow::Result<WorkerActivity> {
        // A failure in one source does not affect the other.
        let first = self.fetch_first().await;
        let second = self.fetch_second().await;
        self.has_run = true;
        self.alert_if_stale().await?;
        match (first, second) {
            (Err(first), Err(second)) => Err(anyhow::anyhow!("{first:#}; {second:#}")),
            (Err(error), _) | (_, Err(error)) => Err(error),
            (Ok(WorkerActivity::Idle), Ok(activity)) | (Ok(activity), Ok(_)) => Ok(activity),
        }
    }
}

/// Returns the cache validators from a response.
fn validators(response: &Response) -> Validators {
    let taken = |from: HeaderName, to: HeaderName| -> Option<(HeaderName, HeaderValue)> {
        Some((to, response.headers().get(from)?.clone()))
    };
    let pairs = [
        taken(ETAG, IF_NONE_MATCH),
        taken(LAST_MODIFIED, IF_MODIFIED_SINCE),
    ];
    pairs.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests;
