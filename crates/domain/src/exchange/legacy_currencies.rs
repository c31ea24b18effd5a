//! Currencies that the euro replaced, at their irrevocably fixed rates.
//!
//! No source publishes rates for them any more, but their value in dollars still changes with the
//! euro's. An amount in such a currency is converted to euros and then at the dollar rate of the
//! event's day. Imports cannot override the fixed rate.
//!
//! Lists only currencies that were still in use when the snapshot begins.

use crate::exchange::RateValue;
use crate::vocabulary::currency::Currency;
use crate::vocabulary::day::Day;

/// Source name of a fixed rate.
pub const FIXED_SOURCE: &str = "fixed";

/// The fixed rate of a replaced currency.
struct FixedRate {
    code: &'static str,
    /// First day of the euro.
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

/// Returns units of the currency per 1 EUR if the rate is fixed on this day.
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
    #[case::pegged_to_the_euro_but_not_fixed("DKK", "2026-01-01", None)]
    #[case::the_euro_itself("EUR", "2026-01-01", None)]
    fn rates_are_fixed_from_the_first_day_of_the_euro(
        #[case] code: &str,
        #[case] day: &str,
        #[case] expected: Option<&str>,
    ) {
        let units = fixed_units(
            Currency::from_stored(code).unwrap(),
            Day::parse(day).unwrap(),
        );
        assert_eq!(units.map(|units| units.to_string()).as_deref(), expected);
    }
}
