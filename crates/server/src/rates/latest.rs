//! Age of the imported rates.

use tributary_domain::exchange::{
    RateQuery, euro_rate_currencies, latest_second_day, second_source_currencies,
};
use tributary_domain::vocabulary::day::Day;
use tributary_store::{Rates, StoreResult};

/// Returns the day of the latest imported rate between dollar and euro. Rates based on the euro are
/// converted to dollars with this rate, so newer rates for other currencies cannot be used. Files
/// based on the dollar contain it as the euro's rate.
pub async fn latest_imported_day(store: &dyn Rates) -> StoreResult<Option<Day>> {
    let mut latest = None;
    for currency in euro_rate_currencies() {
        latest = latest.max(store.latest_rate_day(currency).await?);
    }
    Ok(latest)
}

/// Returns the day of the second source's latest rates, which are stored in the database or
/// compiled in.
pub async fn latest_second_source_day(store: &dyn Rates, today: Day) -> StoreResult<Day> {
    // A file may be dated tomorrow if the source's clock is ahead.
    let day = today.following();
    let questions = second_source_currencies().map(|currency| RateQuery { currency, day });
    let rates = store.latest_rates(questions.collect()).await?;
    Ok(latest_second_day(&rates))
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::super::tests::today;
    use super::*;
    use crate::testing;
    use rstest::rstest;
    use tributary_domain::vocabulary::time::Timestamp;

    #[rstest]
    #[case::dollars_per_euro("date,currency,perEur\n2024-03-18,USD,1.08\n", Some("2024-03-18"))]
    #[case::euros_per_dollar("date,currency,perUsd\n2024-03-18,EUR,0.92\n", Some("2024-03-18"))]
    #[case::another_currency("date,currency,perEur\n2024-03-18,UAH,42\n", None)]
    #[case::another_that_is_newer(
        "date,currency,perEur\n2024-03-15,USD,1.08\n2024-03-18,UAH,42\n",
        Some("2024-03-15")
    )]
    #[case::another_against_the_dollar("date,currency,perUsd\n2024-03-18,UAH,39\n", None)]
    #[tokio::test]
    async fn only_rates_between_dollar_and_euro_count_as_latest(
        #[case] text: &str,
        #[case] expected: Option<&str>,
    ) {
        let (store, _folder) = testing::store().await;
        let rates = parse(text.as_bytes(), today()).unwrap();
        let at = Timestamp::from_millis(0);
        store.import_rates(rates, at).await.unwrap();
        let found = latest_imported_day(&*store).await.unwrap();
        assert_eq!(found.map(|day| day.to_string()).as_deref(), expected);
    }
}
