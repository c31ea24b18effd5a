//! Converts amounts to US dollars, the currency of reports.
//!
//! The rate of the event's UTC day applies, else the latest one before it, however old, so that no
//! event waits for a rate. Only a currency without any rate cannot be converted. The result is
//! stored with the event and not computed again, so a later import does not change past reports.
//!
//! Rates come from imports in the store and from snapshots compiled into the binary. For each
//! currency the rate with the later day wins; on the same day the import wins. A currency that the
//! euro replaced keeps its fixed rate, so only the dollar rate is looked up.
//!
//! To convert an amount, a store runs the queries of [`ImportedRates`] and passes the results to
//! [`exchange`]. It keeps one rate per currency and day; a later import replaces an earlier one.

mod convert;
mod cross;
mod imported;
mod legacy_currencies;
mod rate;
mod second_source;
mod snapshot;

pub use convert::{ConvertedAmount, EXCHANGED_RATE_DECIMALS, IDENTITY_SOURCE, exchange};
pub use cross::cross_rates;
pub use legacy_currencies::FIXED_SOURCE;

pub use imported::{ImportedRates, RateQuery, euro_rate_currencies};
pub use rate::{RATE_DECIMALS_MAX, RATE_UNITS_MAX, Rate, RateBase, RateValue};
pub use second_source::{
    JUMP_FACTOR_MAX, JUMP_FACTOR_PER_DAY, RateReview, SECOND_SOURCE, latest_second_day, review,
    review_query, second_source_currencies,
};
pub use snapshot::{SECOND_SNAPSHOT_DAY, SECOND_SNAPSHOT_SOURCE, SNAPSHOT_DAY, SNAPSHOT_SOURCE};

use crate::vocabulary::day::Day;

/// Age in days after which the latest dollar rate is stale. Rates are published on working days.
/// The longest gaps, around Easter and New Year, are shorter than this.
pub const STALE_AFTER_DAYS: i64 = 7;

/// Freshness of the rates. It is measured by the rate of dollars per euro, because every rate
/// against the euro is converted with that rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Staleness {
    /// Rates are up to date.
    Fresh,
    /// The latest dollar rate is too old.
    Stale {
        /// Age of the latest rate in days.
        days: i64,
    },
}

/// Returns whether the rates are up to date, given the day of the latest dollar rate.
pub fn staleness(latest: Day, today: Day) -> Staleness {
    match today.days_since(latest) {
        days if days > STALE_AFTER_DAYS => Staleness::Stale { days },
        _ => Staleness::Fresh,
    }
}

/// Returns the day of the latest dollar rate, imported or built in.
pub fn latest_day(imported: Option<Day>) -> Day {
    imported.map_or(SNAPSHOT_DAY, |day| day.max(SNAPSHOT_DAY))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::same_day("2024-03-18", Staleness::Fresh)]
    #[case::ahead_of_the_clock("2024-03-17", Staleness::Fresh)]
    #[case::a_week("2024-03-25", Staleness::Fresh)]
    #[case::a_day_more("2024-03-26", Staleness::Stale { days: 8 })]
    #[case::a_year("2025-03-18", Staleness::Stale { days: 365 })]
    fn staleness_on_a_day(#[case] today: &str, #[case] expected: Staleness) {
        let latest = Day::parse("2024-03-18").unwrap();
        assert_eq!(staleness(latest, Day::parse(today).unwrap()), expected);
    }

    #[test]
    fn an_old_import_does_not_replace_the_snapshot() {
        let (before, after) = (Day::from_days(0), Day::from_days(30_000));
        assert_eq!(latest_day(None), SNAPSHOT_DAY);
        assert_eq!(latest_day(Some(before)), SNAPSHOT_DAY);
        assert_eq!(latest_day(Some(after)), after);
    }
}
