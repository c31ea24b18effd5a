//! Imported exchange rates. The compiled-in snapshot is not stored.

use crate::StoreResult;
use async_trait::async_trait;
use tributary_domain::exchange::{Rate, RateQuery};
use tributary_domain::vocabulary::currency::Currency;
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::time::Timestamp;

/// Exchange rates.
#[async_trait]
pub trait Rates: Send + Sync {
    /// Stores rates, one per currency and day. A later import replaces an earlier one; events keep
    /// their rate. Returns the number of new or changed rows.
    async fn import_rates(&self, rates: Vec<Rate>, at: Timestamp) -> StoreResult<u64>;

    /// Returns the rate for each query that has one, in no particular order.
    async fn latest_rates(&self, queries: Vec<RateQuery>) -> StoreResult<Vec<Rate>>;

    /// Returns the latest day with an imported rate of the currency.
    async fn latest_rate_day(&self, currency: Currency) -> StoreResult<Option<Day>>;
}
