//! The curve of the same cohorts and the rows of the whole period, on the page and in the REST API.

use super::cohort_pages::{AGES, CountedCohort, Key, MEASURES, Question, number};
use serde_json::Value;
use std::collections::BTreeMap;
use tributary_domain::report::metric::Unit;

/// Compares the figures of the same cohorts with the count: those that have completed the last day
/// that a quarter of the installs has completed.
pub(super) fn compare_same_cohorts(
    answer: &Value,
    counted: &BTreeMap<Key, CountedCohort>,
    now: i64,
    query: &str,
) {
    let complete = |age: u8| {
        counted
            .values()
            .filter(move |one| one.is_complete(age, now))
    };
    let installs = |age: u8| complete(age).map(|one| one.installs).sum::<i64>();
    let is_followed = |age: &u8| installs(*age) > 0 && installs(*age) * 4 >= installs(0);
    let last = (0..=90_u8).rev().find(is_followed);
    let found = answer["meta"]["sameCohorts"].as_array().unwrap();
    assert_eq!(
        found.len(),
        last.map_or(0, |last| usize::from(last) + 1),
        "{query}"
    );
    let mut before = None;
    for (age, found) in (0..=90_u8).zip(found) {
        let followed = complete(last.unwrap()).map(|one| one.at(age));
        let expected = followed.reduce(|mut sum, one| {
            sum.add(&one);
            sum
        });
        let expected = expected.unwrap();
        assert_eq!(found["day"], age, "{query}");
        assert_eq!(found["installs"], expected.installs, "{query} {age}");
        assert!(before.is_none_or(|before| before == expected.installs));
        before = Some(expected.installs);
        for measure in MEASURES {
            let found = number(&found[measure]);
            assert_eq!(found, expected.measure(measure), "{query} {age} {measure}");
        }
    }
}

/// Compares the curve and the row of totals of the page with the REST answer.
pub(super) fn compare_curve(page: &str, answer: &Value, measure: &str, query: &str) {
    let unit = match measure {
        "retention" | "payerShare" => Unit::Share,
        "revenuePerInstall" | "cumulativeRevenue" => Unit::Money,
        _ => Unit::Ratio,
    };
    let followed = answer["meta"]["sameCohorts"].as_array().unwrap();
    let written = |at: &Value| number(&at[measure]).map(|micros| unit.write(micros));
    let first = usize::from(measure == "retention");
    let values: Vec<String> = followed.iter().skip(first).filter_map(written).collect();
    let curve = page.split_once("Show as table").map(|(_, rest)| rest);
    assert_eq!(curve.is_some(), values.len() > 1, "{query}");
    let Some(curve) = curve else { return };
    for (age, value) in (first..).zip(&values) {
        let row = format!("<th scope=\"row\">Day {age}</th><td class=\"num\">{value}</td>");
        assert!(curve.contains(&row), "{query}: {row}");
    }
    if measure == "cumulativeRevenue" {
        let row = page.split_once(">Total</th>").unwrap().1;
        let row = row.split_once("</tr>").unwrap().0;
        for age in AGES {
            if let Some(total) = values.get(usize::from(age)) {
                assert!(
                    row.contains(&format!("<td>{total}</td>")),
                    "{query} {age}: {row}"
                );
            }
        }
    }
}

/// Compares the rows of the whole period, one per value, with the rows of the REST answer.
pub(super) fn compare_sums(page: &str, rows: &[&Value], question: &Question, measure: &str) {
    let Some(by) = question.by else { return };
    let mut by_value: BTreeMap<String, Vec<&Value>> = BTreeMap::new();
    for row in rows {
        let cohorts = by_value.entry(row[by].to_string()).or_default();
        cohorts.push(row);
    }
    let is_split = by_value.values().any(|cohorts| cohorts.len() > 1);
    let shown = page.split_once("<tbody class=\"sums\">");
    assert_eq!(shown.is_some(), is_split);
    let Some((_, shown)) = shown else { return };
    let (shown, _) = shown.split_once("</tbody>").unwrap();
    assert_eq!(shown.matches("<tr>").count(), by_value.len().min(20));
    let counted = if measure == "retention" {
        "devices"
    } else {
        "payers"
    };
    for cohorts in by_value.values().filter(|_| by_value.len() <= 20) {
        for age in AGES {
            let is_complete = |at: &&Value| at["day"] == age && at["complete"] == true;
            let (mut part, mut installs) = (0, 0);
            for cohort in cohorts {
                let ages = cohort["ages"].as_array().unwrap();
                if let Some(at) = ages.iter().find(is_complete) {
                    part += at[counted].as_i64().unwrap();
                    installs += cohort["installs"].as_i64().unwrap();
                }
            }
            if installs > 0 {
                let share = Unit::Share.write((part * 1_000_000 + installs / 2) / installs);
                let cell = format!(">{share}<span class=\"so-far\">{part} of {installs}</span>");
                assert!(shown.contains(&cell), "{age} {cell}: {shown}");
            }
        }
    }
}
