//! Exchange rates that were imported. The snapshot that is compiled in is not stored.

use crate::StoreResult;
use async_trait::async_trait;
use tributary_domain::exchange::{Rate, RateQuery};
use tributary_domain::vocabulary::currency::Currency;
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::time::Timestamp;

/// Exchange rates.
#[async_trait]
pub trait Rates: Send + Sync {
    /// Stores rates, one per currency and day; a later import replaces an earlier one. Events keep the rate
    /// they were recorded with. Gives how many rows are new or differ from what was stored.
    async fn import_rates(&self, rates: Vec<Rate>, at: Timestamp) -> StoreResult<u64>;

    /// Returns the answer to each question that has one, in no particular order.
    async fn latest_rates(&self, questions: Vec<RateQuery>) -> StoreResult<Vec<Rate>>;

    /// The latest day that a rate of the currency was imported for.
    async fn latest_rate_day(&self, currency: Currency) -> StoreResult<Option<Day>>;
}
