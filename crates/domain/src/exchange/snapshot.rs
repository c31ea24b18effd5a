//! Rates compiled into the binary, so that an instance without internet access and imports can
//! convert every currency from its first event on.
//!
//! `snapshot.csv` holds the European Central Bank's euro reference rates from 2022 to
//! [`SNAPSHOT_DAY`]: one row per working day, oldest first, and one column per currency, in units
//! per 1 EUR. A cell is empty if no rate was published. Currencies without any rate in that time
//! are left out.
//!
//! `snapshot_second.csv` has the same form in units per 1 USD. It holds the other current ISO 4217
//! currencies from the npm package `@fawazahmed0/currency-api` (public domain): the last version of
//! each week from 2024-03-02 to [`SECOND_SNAPSHOT_DAY`], rounded to six significant digits.
//! Obviously wrong rates are left out: MNT on 2025-11-01 (a crypto token), SSP on 2024-07-31 (an
//! outdated official rate), and SYP from 2026-01 to 2026-08 (new pounds, while the package
//! otherwise lists old ones).
//!
//! When you update a file, change its constant, too.

use crate::exchange::imported::newer;
use crate::exchange::{Rate, RateBase, RateValue};
use crate::vocabulary::currency::Currency;
use crate::vocabulary::day::Day;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Last day of the European Central Bank's snapshot: 2026-09-14.
pub const SNAPSHOT_DAY: Day = Day::from_days(20_710);
/// Source name of a rate from the European Central Bank's snapshot.
pub const SNAPSHOT_SOURCE: &str = "ecb-snapshot";
/// Last day of the second source's snapshot: 2026-09-29.
pub const SECOND_SNAPSHOT_DAY: Day = Day::from_days(20_725);
/// Source name of a rate from the second source's snapshot.
pub const SECOND_SNAPSHOT_SOURCE: &str = "currency-api-snapshot";

const FIRST_TEXT: &str = include_str!("snapshot.csv");
const SECOND_TEXT: &str = include_str!("snapshot_second.csv");

/// Rates per currency, oldest first.
type Figures = BTreeMap<Currency, Vec<(Day, RateValue)>>;

/// A snapshot file.
struct Snapshot {
    base: RateBase,
    source: &'static str,
    figures: Figures,
}

impl Snapshot {
    // A test ensures that the built-in text parses.
    fn of(text: &str, base: RateBase, source: &'static str) -> Self {
        Self {
            base,
            source,
            figures: read(text).unwrap_or_default(),
        }
    }

    fn latest(&self, currency: Currency, day: Day) -> Option<Rate> {
        let figures = self.figures.get(&currency)?;
        let after = figures.partition_point(|(published, _)| *published <= day);
        let (day, units) = *figures.get(after.checked_sub(1)?)?;
        Some(Rate {
            currency,
            day,
            base: self.base,
            units,
            source: self.source.to_owned(),
        })
    }
}

static FIRST: LazyLock<Snapshot> =
    LazyLock::new(|| Snapshot::of(FIRST_TEXT, RateBase::Eur, SNAPSHOT_SOURCE));
static SECOND: LazyLock<Snapshot> =
    LazyLock::new(|| Snapshot::of(SECOND_TEXT, RateBase::Usd, SECOND_SNAPSHOT_SOURCE));

/// Returns the latest rate of the currency at or before the day. A currency is in both files only
/// if the European Central Bank stopped publishing it.
pub(super) fn latest(currency: Currency, day: Day) -> Option<Rate> {
    newer(FIRST.latest(currency, day), SECOND.latest(currency, day))
}

/// Returns whether the European Central Bank publishes the currency, as of [`SNAPSHOT_DAY`].
pub(super) fn is_published_by_bank(currency: Currency) -> bool {
    let figures = FIRST.figures.get(&currency);
    let last = figures.and_then(|figures| figures.last());
    last.is_some_and(|(day, _)| *day == SNAPSHOT_DAY)
}

/// Parses a snapshot. Returns `None` if any cell is invalid.
fn read(text: &str) -> Option<Figures> {
    let mut lines = text.lines();
    let header = lines.next()?.strip_prefix("day,")?.split(',');
    let currencies: Vec<Currency> = header.map(Currency::from_stored).collect::<Option<_>>()?;
    let mut figures = Figures::new();
    for line in lines {
        let (day, cells) = line.split_once(',')?;
        let day = Day::parse(day).ok()?;
        let cells: Vec<&str> = cells.split(',').collect();
        if cells.len() != currencies.len() {
            return None;
        }
        for (currency, cell) in currencies.iter().zip(cells) {
            if !cell.is_empty() {
                let value = RateValue::parse(cell).ok()?;
                figures.entry(*currency).or_default().push((day, value));
            }
        }
    }
    Some(figures)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    /// Size limit for both files together, because they are part of the binary.
    const BYTES_MAX: usize = 400_000;

    // The expected counts were determined when the files were created.
    #[rstest]
    #[case::first(FIRST_TEXT, 32, 36_180, SNAPSHOT_DAY, "2026-09-14")]
    #[case::second(SECOND_TEXT, 126, 10_584, SECOND_SNAPSHOT_DAY, "2026-09-29")]
    fn each_snapshot_parses_in_day_order(
        #[case] text: &str,
        #[case] currencies: usize,
        #[case] count: usize,
        #[case] last_day: Day,
        #[case] last_date: &str,
    ) {
        let figures = read(text).expect("the snapshot is well formed");
        assert_eq!(figures.len(), currencies);
        assert_eq!(figures.values().map(Vec::len).sum::<usize>(), count);
        for (currency, figures) in &figures {
            let rising = figures.is_sorted_by(|one, next| one.0 < next.0);
            assert!(rising, "{currency:?}");
        }
        let last = figures.values().flatten().map(|(day, _)| *day).max();
        assert_eq!(last, Some(last_day));
        assert_eq!(last_day.to_string(), last_date);
    }

    #[test]
    fn snapshots_are_small() {
        assert!(FIRST_TEXT.len() + SECOND_TEXT.len() < BYTES_MAX);
    }

    /// Units of account and fund codes, which have no rate in any source and in which nothing is
    /// sold.
    const WITHOUT_RATE: [&str; 9] = [
        "BOV", "CHE", "CHW", "CLF", "COU", "USN", "UYI", "UYW", "XAD",
    ];

    #[test]
    fn every_current_currency_is_in_a_snapshot() {
        let bases = [RateBase::Eur.as_str(), RateBase::Usd.as_str()];
        let absent: Vec<_> = Currency::all()
            .filter(|currency| !bases.contains(&currency.as_str()))
            .filter(|currency| latest(*currency, SECOND_SNAPSHOT_DAY).is_none())
            .map(|currency| currency.as_str().to_owned())
            .collect();
        assert_eq!(absent, WITHOUT_RATE);
    }

    #[test]
    fn the_second_snapshot_has_no_currency_of_the_bank() {
        let both: Vec<_> = SECOND
            .figures
            .keys()
            .filter(|currency| FIRST.figures.contains_key(*currency))
            .map(Currency::as_str)
            .collect();
        assert_eq!(both, ["RUB"], "published by the bank until 2022");
        assert!(
            SECOND
                .figures
                .keys()
                .all(|currency| !is_published_by_bank(*currency))
        );
    }

    #[rstest]
    #[case::first("USD", "2022-01-03", Some(("2022-01-03", "1.1355")))]
    #[case::before_the_first("USD", "2022-01-02", None)]
    #[case::last_dollar("USD", "2026-09-14", Some(("2026-09-14", "1.1551")))]
    #[case::a_monday("JPY", "2024-03-18", Some(("2024-03-18", "162.51")))]
    #[case::a_sunday("JPY", "2024-03-17", Some(("2024-03-15", "162.03")))]
    #[case::last("GBP", "2026-09-14", Some(("2026-09-14", "0.85598")))]
    #[case::after_the_last("GBP", "2031-01-01", Some(("2026-09-14", "0.85598")))]
    #[case::ended_in_2022("RUB", "2024-03-01", Some(("2022-03-01", "117.201")))]
    #[case::continued_by_the_second("RUB", "2024-03-02", Some(("2024-03-02", "92.0886")))]
    #[case::ended_with_2022("HRK", "2024-01-01", Some(("2022-12-30", "7.5365")))]
    #[case::ended_with_2025("BGN", "2026-09-14", Some(("2025-12-31", "1.9558")))]
    #[case::first_of_the_second("AED", "2024-03-02", Some(("2024-03-02", "3.6725")))]
    #[case::before_the_first_of_the_second("AED", "2024-03-01", None)]
    #[case::between_two_weeks("EGP", "2024-03-09", Some(("2024-03-02", "30.8648")))]
    #[case::after_a_devaluation("EGP", "2024-03-10", Some(("2024-03-10", "49.4039")))]
    #[case::last_of_the_second("UAH", "2031-01-01", Some(("2026-09-29", "44.924")))]
    #[case::no_source_has_it("CLF", "2026-09-29", None)]
    #[case::the_euro_itself("EUR", "2026-09-14", None)]
    fn known_figures(
        #[case] currency: &str,
        #[case] day: &str,
        #[case] expected: Option<(&str, &str)>,
    ) {
        let found = latest(
            Currency::from_stored(currency).unwrap(),
            Day::parse(day).unwrap(),
        );
        let found = found.map(|rate| (rate.day.to_string(), rate.units.to_string()));
        let expected = expected.map(|(day, value)| (day.to_owned(), value.to_owned()));
        assert_eq!(found, expected);
    }

    #[rstest]
    #[case::empty("")]
    #[case::other_header("date,USD\n2024-03-18,1.1\n")]
    #[case::no_currency("day,usd\n2024-03-18,1.1\n")]
    #[case::too_few_cells("day,USD,JPY\n2024-03-18,1.1\n")]
    #[case::no_date("day,USD\n18 March 2024,1.1\n")]
    #[case::no_figure("day,USD\n2024-03-18,N/A\n")]
    fn rejects_a_malformed_snapshot(#[case] text: &str) {
        assert_eq!(read(text), None);
    }
}
