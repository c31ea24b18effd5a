//! Readiness check: whether the database can commit.

use std::time::{Duration, Instant};
use tributary_domain::exchange::{euro_rate_currencies, latest_day};
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::{Store, StoreError};

/// Lifetime of a successful probe.
const PROBE_INTERVAL: Duration = Duration::from_secs(1);

/// Commits a probe transaction, one at a time and at most once per second, to limit the load from
/// frequent checks. Failures are not cached. Also reads the day of the latest exchange rates.
#[derive(Debug, Default)]
pub struct Readiness(tokio::sync::Mutex<Option<(Instant, Day)>>);

impl Readiness {
    /// Returns the day of the latest rates if the database can commit.
    pub(crate) async fn probe(&self, store: &dyn Store, now: Timestamp) -> Result<Day, StoreError> {
        let mut worked = self.0.lock().await;
        if let Some((at, rates)) = *worked
            && at.elapsed() < PROBE_INTERVAL
        {
            return Ok(rates);
        }
        *worked = None;
        store.commit_probe(now).await?;
        // Reading the EUR/USD rate is enough. An ECB file contains all its currencies for a day and
        // is stored as a whole, and the EUR/USD rate is needed to convert each of them to US
        // dollars.
        let mut imported = None;
        for currency in euro_rate_currencies() {
            imported = imported.max(store.latest_rate_day(currency).await?);
        }
        let rates = latest_day(imported);
        *worked = Some((Instant::now(), rates));
        Ok(rates)
    }
}
