//! Stores rates in chunks, because one transaction for a whole history would block other writers.

use tributary_domain::exchange::Rate;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::{Rates, StoreResult};

/// Rates per transaction. A daily file is one chunk; the European Central Bank's whole history is
/// about two hundred chunks.
pub const RATES_PER_IMPORT: usize = 1_000;

/// Stores rates in order and reports progress after each chunk. Returns how many were new or
/// different. An interrupted import can be repeated safely.
pub async fn import(
    store: &dyn Rates,
    rates: Vec<Rate>,
    at: Timestamp,
    mut stored: impl FnMut(usize),
) -> StoreResult<u64> {
    let (mut count, mut changed) = (0, 0);
    for piece in rates.chunks(RATES_PER_IMPORT) {
        changed += store.import_rates(piece.to_vec(), at).await?;
        count += piece.len();
        stored(count);
    }
    Ok(changed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;
    use rstest::rstest;
    use tributary_domain::exchange::{RateBase, RateValue};
    use tributary_domain::vocabulary::currency::Currency;
    use tributary_domain::vocabulary::day::Day;

    fn rates(count: usize) -> Vec<Rate> {
        let day = |index| Day::from_days(i32::try_from(index).unwrap());
        let rate = |index| Rate {
            currency: Currency::from_stored("UAH").unwrap(),
            day: day(index),
            base: RateBase::Eur,
            units: RateValue::ONE,
            source: "file".to_owned(),
        };
        (0..count).map(rate).collect()
    }

    #[rstest]
    #[case::none(0, &[])]
    #[case::one_chunk(1_000, &[1_000])]
    #[case::one_more(1_001, &[1_000, 1_001])]
    #[tokio::test]
    async fn stores_rates_in_chunks(#[case] count: usize, #[case] expected: &[usize]) {
        let (store, _folder) = testing::store().await;
        let mut steps = Vec::new();
        let at = Timestamp::from_millis(0);
        let changed = import(&*store, rates(count), at, |count| steps.push(count)).await;
        assert_eq!(changed.unwrap(), count as u64);
        assert_eq!(steps, expected);
        let last = rates(count).last().map(|rate| rate.day);
        let latest = store.latest_rate_day(Currency::from_stored("UAH").unwrap());
        assert_eq!(latest.await.unwrap(), last);
        let again = import(&*store, rates(count), at, |_| {}).await;
        assert_eq!(again.unwrap(), 0, "a repeated import changes nothing");
    }
}
