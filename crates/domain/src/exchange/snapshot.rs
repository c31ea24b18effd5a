//! The rates that are compiled in, so that an instance without internet and without imports converts the
//! common currencies from its first event on.
//!
//! `snapshot.csv` holds the euro foreign exchange reference rates that the European Central Bank published
//! up to [`SNAPSHOT_DAY`]: a row per working day, oldest first, a column per currency, units per 1 EUR, an
//! empty cell where none was published. It is the bank's history from 2022 on, cut to the currencies that
//! have a figure in it. Who brings it up to date changes the constant with it.

use crate::exchange::{Day, Rate, RateBase, RateValue};
use crate::vocabulary::currency::Currency;
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// The last day of the snapshot: 2026-09-14.
pub const SNAPSHOT_DAY: Day = Day::from_days(20_710);
/// What the source of a rate of the snapshot reads.
pub const SNAPSHOT_SOURCE: &str = "ecb-snapshot";

const TEXT: &str = include_str!("snapshot.csv");

/// The figures of each currency, oldest first.
type Figures = BTreeMap<Currency, Vec<(Day, RateValue)>>;

/// The latest rate of the currency at or before the day.
pub(super) fn latest(currency: Currency, day: Day) -> Option<Rate> {
    let figures = figures().get(&currency)?;
    let after = figures.partition_point(|(published, _)| *published <= day);
    let (day, units) = *figures.get(after.checked_sub(1)?)?;
    Some(Rate {
        currency,
        day,
        base: RateBase::Eur,
        units,
        source: SNAPSHOT_SOURCE.to_owned(),
    })
}

fn figures() -> &'static Figures {
    static FIGURES: OnceLock<Figures> = OnceLock::new();
    // The text is part of the program, and a test holds that it is read whole.
    FIGURES.get_or_init(|| read(TEXT).unwrap_or_default())
}

/// All figures, or nothing where a single one cannot be read.
fn read(text: &str) -> Option<Figures> {
    let mut lines = text.lines();
    let header = lines.next()?.strip_prefix("day,")?.split(',');
    let currencies: Vec<Currency> = header.map(Currency::stored).collect::<Option<_>>()?;
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

    /// Figures in the file, counted when it was made.
    const FIGURES_COUNT: usize = 36_180;
    /// Room that the file may take in the program.
    const BYTES_MAX: usize = 400_000;

    #[test]
    fn it_is_read_whole_and_its_days_rise() {
        let figures = read(TEXT).expect("the snapshot is well formed");
        assert_eq!(figures.len(), 32);
        assert_eq!(figures.values().map(Vec::len).sum::<usize>(), FIGURES_COUNT);
        for (currency, figures) in &figures {
            let rising = figures.is_sorted_by(|one, next| one.0 < next.0);
            assert!(rising, "{currency:?}");
        }
        let last = figures.values().flatten().map(|(day, _)| *day).max();
        assert_eq!(last, Some(SNAPSHOT_DAY));
        assert_eq!(SNAPSHOT_DAY.to_string(), "2026-09-14");
        assert!(TEXT.len() < BYTES_MAX);
    }

    #[rstest]
    #[case::first("USD", "2022-01-03", Some(("2022-01-03", "1.1355")))]
    #[case::before_the_first("USD", "2022-01-02", None)]
    #[case::last_dollar("USD", "2026-09-14", Some(("2026-09-14", "1.1551")))]
    #[case::a_monday("JPY", "2024-03-18", Some(("2024-03-18", "162.51")))]
    #[case::a_sunday("JPY", "2024-03-17", Some(("2024-03-15", "162.03")))]
    #[case::last("GBP", "2026-09-14", Some(("2026-09-14", "0.85598")))]
    #[case::after_the_last("GBP", "2031-01-01", Some(("2026-09-14", "0.85598")))]
    #[case::ended_in_2022("RUB", "2026-09-14", Some(("2022-03-01", "117.201")))]
    #[case::ended_with_2022("HRK", "2024-01-01", Some(("2022-12-30", "7.5365")))]
    #[case::ended_with_2025("BGN", "2026-09-14", Some(("2025-12-31", "1.9558")))]
    #[case::never_published("UAH", "2026-09-14", None)]
    #[case::the_euro_itself("EUR", "2026-09-14", None)]
    fn known_figures(
        #[case] currency: &str,
        #[case] day: &str,
        #[case] expected: Option<(&str, &str)>,
    ) {
        let found = latest(
            Currency::stored(currency).unwrap(),
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
    fn half_a_snapshot_is_none(#[case] text: &str) {
        assert_eq!(read(text), None);
    }
}
