//! Currencies that the euro has replaced, each at a rate that is fixed for good.
//!
//! Nobody publishes a rate of theirs any more, but their worth in dollars still changes, with the euro's. An
//! amount of such a currency is a number of euros: it takes the dollar's rate of the event's day, not that of
//! the last day on which the currency had one of its own. No import changes what the law has fixed.
//!
//! Only currencies that were paid in since the snapshot begins are here.

use crate::exchange::RateValue;
use crate::vocabulary::currency::Currency;
use crate::vocabulary::day::Day;

/// What the source reads of a rate that is fixed.
pub const FIXED_SOURCE: &str = "fixed";

/// A currency, and since when it is a number of euros.
struct FixedRate {
    code: &'static str,
    /// The first day of the euro.
    first_day: Day,
    /// Billionths of a unit per 1 EUR.
    nanos: i64,
}

const FIXED_RATES: [FixedRate; 2] = [
    // Bulgaria, 2026-01-01: 1.95583.
    FixedRate {
        code: "BGN",
        first_day: Day::from_days(20_454),
        nanos: 1_955_830_000,
    },
    // Croatia, 2023-01-01: 7.53450.
    FixedRate {
        code: "HRK",
        first_day: Day::from_days(19_358),
        nanos: 7_534_500_000,
    },
];

/// Units of the currency per 1 EUR, where that is fixed on the day.
pub(super) fn fixed_units(currency: Currency, day: Day) -> Option<RateValue> {
    let adoption = FIXED_RATES
        .iter()
        .find(|adoption| adoption.code == currency.as_str() && adoption.first_day <= day)?;
    RateValue::from_nanos(adoption.nanos)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::kuna_on_its_last_day("HRK", "2022-12-31", None)]
    #[case::kuna_on_the_first_day_of_the_euro("HRK", "2023-01-01", Some("7.5345"))]
    #[case::kuna_long_after("HRK", "2040-01-01", Some("7.5345"))]
    #[case::lev_on_its_last_day("BGN", "2025-12-31", None)]
    #[case::lev_on_the_first_day_of_the_euro("BGN", "2026-01-01", Some("1.95583"))]
    #[case::ended_without_the_euro("RUB", "2026-01-01", None)]
    #[case::bound_to_the_euro_but_not_fixed("DKK", "2026-01-01", None)]
    #[case::the_euro_itself("EUR", "2026-01-01", None)]
    fn what_is_fixed(#[case] code: &str, #[case] day: &str, #[case] expected: Option<&str>) {
        let units = fixed_units(
            Currency::from_stored(code).unwrap(),
            Day::parse(day).unwrap(),
        );
        assert_eq!(units.map(|units| units.to_string()).as_deref(), expected);
    }
}
