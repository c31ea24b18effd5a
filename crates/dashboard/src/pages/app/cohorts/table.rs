//! The cohort table: rows, cells with their colour, and the weighted average.

use super::report::{BY, CohortsReport, describe};
use crate::metric::Unit;
use crate::query::UrlQuery;
use crate::text;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use tributary_domain::report::cohort::{Cohort, CohortMeasure, CohortSums, weighted_average};
use tributary_domain::vocabulary::money::Amount;

/// Maximum number of values with a row over all periods: those with most installs.
const SUMS_MAX: usize = 20;
/// Number of heat-map colours.
const HEATS: i64 = 5;

/// A cohort.
pub(super) struct Row {
    pub(super) label: String,
    /// Value that the cohorts are grouped by.
    pub(super) value: Option<RowValue>,
    pub(super) installs: String,
    /// Ad cost; `None` if the measure needs none.
    pub(super) cost: Option<String>,
    pub(super) cells: Vec<Cell>,
}

/// Value that a cohort is grouped by.
pub(super) struct RowValue {
    pub(super) text: String,
    /// Id of a value that is shown by its name; otherwise empty.
    pub(super) id: String,
    /// Query that filters by the value; `None` if the value is missing.
    pub(super) filter: Option<String>,
}

/// A table cell: one cohort at one age.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Cell {
    /// Empty if no device has reached the age.
    pub(super) text: String,
    /// Numbers behind a share, such as `12 of 80`; otherwise empty.
    pub(super) detail: String,
    /// Number of the colour, from 1; 0 for none.
    pub(super) heat: i64,
    /// Whether some devices have not completed the age yet.
    pub(super) is_unfinished: bool,
}

/// The weighted average row.
pub(super) struct AverageRow {
    pub(super) label: &'static str,
    pub(super) values: Vec<String>,
    /// Number of installs that each value covers.
    pub(super) installs: Vec<String>,
}

fn written(value: Option<i64>, unit: Unit) -> String {
    value.map_or_else(|| "–".to_owned(), |value| unit.write(value))
}

/// Returns whether a cell takes part in the colour scale. Retention on day 0 is always 100 % and
/// would use up the whole scale.
const fn is_coloured(measure: CohortMeasure, age: u8) -> bool {
    age > 0 || !matches!(measure, CohortMeasure::Retention)
}

/// Returns the colour of a value on a scale up to `highest`.
fn heat(value: i64, highest: i64) -> i64 {
    if value <= 0 || highest <= 0 {
        return 0;
    }
    let (value, highest) = (i128::from(value), i128::from(highest));
    let level = (value * i128::from(HEATS) + highest - 1) / highest;
    i64::try_from(level).unwrap_or(HEATS).clamp(1, HEATS)
}

fn final_value(found: &CohortsReport, cohort: &Cohort, age: u8) -> Option<i64> {
    let at = cohort.at(age).filter(|at| at.is_complete)?;
    found.value(&at.sums)
}

/// Returns the highest final value in the colour scale.
fn highest(found: &CohortsReport, ages: &[u8]) -> i64 {
    let ages = ages.iter().filter(|age| is_coloured(found.measure, **age));
    let values = ages.flat_map(|age| {
        let cohorts = found.cohorts.iter();
        cohorts.filter_map(|cohort| final_value(found, cohort, *age))
    });
    values.max().unwrap_or(0)
}

fn cell(found: &CohortsReport, cohort: &Cohort, age: u8, highest: i64) -> Cell {
    let Some(at) = cohort.at(age) else {
        return Cell {
            text: String::new(),
            detail: String::new(),
            heat: 0,
            is_unfinished: false,
        };
    };
    let (_, unit) = describe(found.measure);
    let shown = found.value(&at.sums);
    let coloured = final_value(found, cohort, age).filter(|_| is_coloured(found.measure, age));
    Cell {
        text: written(shown, unit),
        detail: String::new(),
        heat: coloured.map_or(0, |value| heat(value, highest)),
        is_unfinished: !at.is_complete && shown.is_some(),
    }
}

fn row_value(found: &CohortsReport, cohort: &Cohort, query: &UrlQuery) -> Option<RowValue> {
    let (value, text) = found.group_value(cohort)?;
    let by = found.by?;
    Some(RowValue {
        text,
        id: found.group_id(cohort),
        filter: (!value.is_empty()).then(|| query.with(&[(by.as_str(), Some(value)), (BY, None)])),
    })
}

/// Returns the first rows of the table.
pub(super) fn rows(found: &CohortsReport, ages: &[u8], query: &UrlQuery, max: usize) -> Vec<Row> {
    let highest = highest(found, ages);
    let row = |cohort: &Cohort| Row {
        label: found.period_label(cohort).to_owned(),
        value: row_value(found, cohort, query),
        installs: text::count(cohort.installs),
        cost: found.measure.needs_cost().then(|| {
            let cost = cohort.cost.map(|cost| text::usd(Amount::from_micros(cost)));
            cost.unwrap_or_else(|| "–".to_owned())
        }),
        cells: ages
            .iter()
            .map(|age| cell(found, cohort, *age, highest))
            .collect(),
    };
    found.cohorts.iter().take(max).map(row).collect()
}

/// Returns the numbers behind a share; empty for other measures.
fn detail(measure: CohortMeasure, sums: &CohortSums) -> String {
    let part = match measure {
        CohortMeasure::Retention => Some(sums.devices),
        CohortMeasure::PayerShare => sums.payers,
        _ => None,
    };
    let installs = text::count(sums.installs);
    part.map_or_else(String::new, |part| {
        format!("{} of {installs}", text::count(part))
    })
}

/// Returns one row per value over all periods, those with most installs first. Only periods whose
/// devices have all completed an age count at this age. A total would fall from one age to the
/// next, so it has no such rows.
pub(super) fn sums(found: &CohortsReport, ages: &[u8], query: &UrlQuery) -> Vec<Row> {
    let mut by_value: BTreeMap<&[String], Vec<&Cohort>> = BTreeMap::new();
    for cohort in &found.cohorts {
        by_value.entry(&cohort.values).or_default().push(cohort);
    }
    let is_split = by_value.values().any(|cohorts| cohorts.len() > 1);
    let is_total = found.measure == CohortMeasure::CumulativeRevenue;
    if found.by.is_none() || !is_split || is_total {
        return Vec::new();
    }
    let (_, unit) = describe(found.measure);
    let installs = |cohorts: &[&Cohort]| cohorts.iter().map(|one| one.installs).sum::<i64>();
    let mut values: Vec<Vec<&Cohort>> = by_value.into_values().collect();
    values.sort_by_key(|cohorts| Reverse(installs(cohorts)));
    let cell = |cohorts: &[&Cohort], age: u8| {
        let sums = weighted_average(cohorts.iter().copied(), age);
        Cell {
            text: sums.map_or_else(String::new, |sums| written(found.value(&sums), unit)),
            detail: sums.map_or_else(String::new, |sums| detail(found.measure, &sums)),
            heat: 0,
            is_unfinished: false,
        }
    };
    let row = |cohorts: &Vec<&Cohort>| Row {
        label: "whole period".to_owned(),
        value: cohorts
            .first()
            .and_then(|cohort| row_value(found, cohort, query)),
        installs: text::count(installs(cohorts)),
        cost: found.measure.needs_cost().then(|| {
            let cost = cohorts.iter().map(|one| one.cost).sum::<Option<i64>>();
            written(cost, Unit::Money)
        }),
        cells: ages.iter().map(|age| cell(cohorts, *age)).collect(),
    };
    values.iter().take(SUMS_MAX).map(row).collect()
}

/// Returns the average row. It covers all cohorts, including those that the page does not show.
pub(super) fn average(found: &CohortsReport, ages: &[u8]) -> AverageRow {
    let (_, unit) = describe(found.measure);
    let sums: Vec<_> = ages.iter().map(|age| found.average(*age)).collect();
    let installs = |sums: &Option<CohortSums>| {
        sums.map_or_else(String::new, |sums| text::count(sums.installs))
    };
    let value = |sums: &Option<CohortSums>| {
        sums.map_or_else(String::new, |sums| written(found.value(&sums), unit))
    };
    AverageRow {
        label: if found.measure == CohortMeasure::CumulativeRevenue {
            "Total"
        } else {
            "Weighted average"
        },
        installs: sums.iter().map(installs).collect(),
        values: sums.iter().map(value).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::nothing(0, 10, 0)]
    #[case::a_loss(-5, 10, 0)]
    #[case::a_little(1, 1_000, 1)]
    #[case::half(5, 10, 3)]
    #[case::highest(10, 10, 5)]
    #[case::no_scale(3, 0, 0)]
    fn colours_are_relative_to_the_highest_value(
        #[case] value: i64,
        #[case] highest: i64,
        #[case] expected: i64,
    ) {
        assert_eq!(heat(value, highest), expected);
    }

    #[rstest]
    #[case::retention_of_installs(CohortMeasure::Retention, 0, false)]
    #[case::retention(CohortMeasure::Retention, 1, true)]
    #[case::revenue(CohortMeasure::RevenuePerInstall, 0, true)]
    fn day_0_of_retention_has_no_colour(
        #[case] measure: CohortMeasure,
        #[case] age: u8,
        #[case] expected: bool,
    ) {
        assert_eq!(is_coloured(measure, age), expected);
    }
}
