//! What an amount was worth in US dollars, which reports are in.
//!
//! The rate of the event's UTC day counts, else the latest before it, however old; nothing waits for a rate
//! to be published. Only a currency without any rate cannot be converted. What was found is stored with the
//! event and never computed again, so a later import changes no report of the past.
//!
//! Rates come from two places: what was imported, which a store keeps, and the snapshots that are compiled in.
//! For each currency the later day wins, and the imported rate where the days are the same. A currency that
//! the euro has replaced keeps the rate that was fixed then, and only the dollar's is looked for.
//!
//! A store that converts an amount asks [`ImportedRates`] which rates it wants to know, answers each
//! question, and hands the facts to [`exchange`]. It keeps one rate per currency and day; the later import
//! replaces the earlier.

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

/// Days that the dollar's latest rate may be behind. Rates are published on working days, and the longest row of
/// holidays, around Easter and at the turn of the year, is shorter.
pub const STALE_AFTER_DAYS: i64 = 7;

/// Whether the rates are as fresh as they should be. That is judged by the dollar's rate per euro, which
/// every rate against the euro needs: a new rate of any other currency makes none of the rest new.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Staleness {
    /// Nothing is missing but what is not published yet.
    Fresh,
    /// Nobody has brought a new rate of the dollar for this many days.
    Stale {
        /// Days that the latest is behind.
        days: i64,
    },
}

/// How the rates look on a day, given that of the dollar's latest.
pub fn staleness(latest: Day, today: Day) -> Staleness {
    match today.days_since(latest) {
        days if days > STALE_AFTER_DAYS => Staleness::Stale { days },
        _ => Staleness::Fresh,
    }
}

/// The day of the dollar's latest rate there is, given that of the latest imported one.
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
    fn an_old_import_is_no_news() {
        let (before, after) = (Day::from_days(0), Day::from_days(30_000));
        assert_eq!(latest_day(None), SNAPSHOT_DAY);
        assert_eq!(latest_day(Some(before)), SNAPSHOT_DAY);
        assert_eq!(latest_day(Some(after)), after);
    }
}
