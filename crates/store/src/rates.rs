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
    /// Stores rates, one per currency and day. Importing a rate again replaces the stored rate;
    /// recorded events keep the rate they were converted with. Returns the number of new or changed
    /// rows.
    async fn import_rates(&self, rates: Vec<Rate>, at: Timestamp) -> StoreResult<u64>;

    /// Returns the latest rate on or before each query's day, in no particular order. Omits queries
    /// without such a rate.
    async fn latest_rates(&self, queries: Vec<RateQuery>) -> StoreResult<Vec<Rate>>;

    /// Returns the latest day with an imported rate for the currency.
    async fn latest_rate_day(&self, currency: Currency) -> StoreResult<Option<Day>>;
}
