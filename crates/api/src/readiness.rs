//! Whether the database can commit, as of a moment ago.

use std::time::{Duration, Instant};
use tributary_domain::exchange::{euro_rate_currencies, latest_day};
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::{Store, StoreError};

/// How long a successful commit counts as proof that the next one will succeed.
const PROBE_INTERVAL: Duration = Duration::from_secs(1);

/// Asks the database to commit, once at a time and at most once a second, so that frequent checks do not become a load.
/// A failure is not remembered. The day of the latest rates is read along.
#[derive(Debug, Default)]
pub struct Readiness(tokio::sync::Mutex<Option<(Instant, Day)>>);

impl Readiness {
    /// Returns the day of the latest rates, if the database can commit.
    pub(crate) async fn probe(&self, store: &dyn Store, now: Timestamp) -> Result<Day, StoreError> {
        let mut worked = self.0.lock().await;
        if let Some((at, rates)) = *worked
            && at.elapsed() < PROBE_INTERVAL
        {
            return Ok(rates);
        }
        *worked = None;
        store.commit_probe(now).await?;
        // The rate between dollar and euro is enough: each file of the ECB has all its currencies of a day and is stored
        // as a whole, and every rate against the euro needs this one.
        let mut imported = None;
        for currency in euro_rate_currencies() {
            imported = imported.max(store.latest_rate_day(currency).await?);
        }
        let rates = latest_day(imported);
        *worked = Some((Instant::now(), rates));
        Ok(rates)
    }
}
