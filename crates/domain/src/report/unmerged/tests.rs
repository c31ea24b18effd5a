//! Reports must not depend on which increments are merged.

use super::super::cohort::{CohortCredit, CohortRows};
use super::super::{Increments, NameKey, PivotKey, PlaceKey};
use super::*;
use crate::event::EventSource;
use crate::report::CreditKey;
use crate::vocabulary::time::Timestamp;
use proptest::prelude::*;
use rstest::rstest;

const APP: AppId = AppId::from_bytes([1; 16]);
const SCOPE: (AppId, Environment) = (APP, Environment::Live);
const QUARTER: i64 = 15 * 60 * 1_000;
const DAY: i64 = 96 * QUARTER;

fn moment(quarter: i64) -> Timestamp {
    Timestamp::from_millis(quarter * QUARTER)
}

fn figures(events: i64) -> Figures {
    Figures {
        events,
        revenue_micros: 10 * events,
        ..Figures::default()
    }
}

/// Returns increments for one quarter hour.
fn counted(
    app: AppId,
    environment: Environment,
    quarter: i64,
    campaign: &str,
    events: i64,
) -> Increments {
    let at = BucketKey::of(app, environment, moment(quarter));
    let credit = CreditKey {
        at,
        network: "network_a",
        link: Some(LinkId::from_bytes([3; 16])),
        campaign: campaign.to_owned(),
        adset: "set".to_owned(),
        ad: String::new(),
    };
    let name = NameKey {
        at,
        source: EventSource::Sdk,
        name: "purchase".to_owned(),
    };
    let place = PlaceKey {
        at,
        country: "DE".to_owned(),
        platform: "ios",
    };
    let pivot = PivotKey {
        at,
        network: "network_a",
        campaign: campaign.to_owned(),
        country: "DE".to_owned(),
        platform: "ios",
    };
    Increments {
        pivots: [(pivot, figures(events))].into(),
        credits: [(credit, figures(events))].into(),
        names: [(name, figures(events))].into(),
        places: [(place, figures(events))].into(),
        ..Increments::default()
    }
}

fn rows(all: impl IntoIterator<Item = Increments>) -> RollupRows {
    let mut sum = Increments::default();
    for one in all {
        sum.merge(one);
    }
    RollupRows::of(&sum, &CapDecisions::default(), &CohortRows::default())
}

fn report_query(
    periods: Vec<Period>,
    by: &[Dimension],
    filters: &[(Dimension, &str)],
) -> ReportQuery {
    let filters = filters.iter();
    ReportQuery {
        periods,
        group_by: by.to_vec(),
        filters: filters
            .map(|(one, value)| (*one, (*value).to_owned()))
            .collect(),
        rows_max: u32::MAX,
    }
}

fn events_of(rows: &RollupRows, report_query: &ReportQuery) -> Vec<(usize, Vec<String>, i64)> {
    let found = rows.add_to_stats(SCOPE, report_query, Vec::new()).unwrap();
    found
        .into_iter()
        .map(|row| (row.period, row.values, row.figures.events))
        .collect()
}

#[rstest]
#[case::no_dimension(&[], &[])]
#[case::network(&[Dimension::Network], &["network_a"])]
#[case::campaign(&[Dimension::Campaign, Dimension::Network], &["spring", "network_a"])]
#[case::ad_set(&[Dimension::Adset, Dimension::Ad], &["set", ""])]
#[case::name(&[Dimension::Source, Dimension::Event], &["sdk", "purchase"])]
#[case::place(&[Dimension::Platform], &["ios"])]
#[case::pivot(&[Dimension::Country, Dimension::Campaign, Dimension::Network, Dimension::Platform], &["DE", "spring", "network_a", "ios"])]
fn a_row_has_the_requested_values(#[case] by: &[Dimension], #[case] values: &[&str]) {
    let rows = rows([counted(APP, Environment::Live, 5, "spring", 2)]);
    let report_query = report_query(vec![(moment(0), moment(96))], by, &[]);
    let values = values.iter().map(|value| (*value).to_owned()).collect();
    assert_eq!(events_of(&rows, &report_query), [(0, values, 2)]);
}

#[test]
fn links_are_reported_by_id() {
    let rows = rows([counted(APP, Environment::Live, 5, "spring", 2)]);
    let link = LinkId::from_bytes([3; 16]).to_string();
    let periods = vec![(moment(0), moment(96))];
    let query = report_query(
        periods.clone(),
        &[Dimension::Link],
        &[(Dimension::Link, &link)],
    );
    assert_eq!(events_of(&rows, &query), [(0, vec![link], 2)]);
    let query = report_query(periods, &[], &[(Dimension::Link, "another")]);
    assert_eq!(events_of(&rows, &query), []);
}

#[test]
fn other_apps_other_environments_and_other_times_are_left_out() {
    let rows = rows([
        counted(APP, Environment::Live, 5, "", 1),
        counted(APP, Environment::Test, 5, "", 10),
        counted(AppId::from_bytes([2; 16]), Environment::Live, 5, "", 100),
        counted(APP, Environment::Live, 4, "", 1_000),
        counted(APP, Environment::Live, 6, "", 10_000),
    ]);
    let query = report_query(vec![(moment(5), moment(6))], &[], &[]);
    assert_eq!(events_of(&rows, &query), [(0, vec![], 1)]);
}

#[test]
fn a_row_counts_in_every_period_that_contains_it() {
    let rows = rows([counted(APP, Environment::Live, 100, "", 1)]);
    let day = (moment(96), moment(192));
    let query = report_query(vec![day, (moment(0), moment(96)), day], &[], &[]);
    assert_eq!(events_of(&rows, &query), [(0, vec![], 1), (2, vec![], 1)]);
}

#[test]
fn rows_that_cancel_out_are_dropped() {
    let merged = rows([counted(APP, Environment::Live, 5, "spring", 1)]);
    let unmerged = rows([counted(APP, Environment::Live, 5, "spring", -1)]);
    let query = report_query(vec![(moment(0), moment(96))], &[Dimension::Campaign], &[]);
    let stored = merged.add_to_stats(SCOPE, &query, Vec::new()).unwrap();
    assert_eq!(stored.len(), 1);
    assert_eq!(unmerged.add_to_stats(SCOPE, &query, stored).unwrap(), []);
}

#[test]
fn rows_are_limited_as_requested() {
    let rows =
        rows((0..5).map(|number| counted(APP, Environment::Live, 5, &number.to_string(), 1)));
    let query = ReportQuery {
        rows_max: 3,
        ..report_query(vec![(moment(0), moment(96))], &[Dimension::Campaign], &[])
    };
    assert_eq!(events_of(&rows, &query).len(), 3);
}

#[test]
fn rejects_dimensions_that_no_rollup_combines() {
    let query = report_query(Vec::new(), &[Dimension::Ad, Dimension::Country], &[]);
    let refused = RollupRows::default().add_to_stats(SCOPE, &query, Vec::new());
    assert_eq!(refused, Err(Refusal::no_rollup()));
}

fn cohort_rows(age: u8, campaign: &str, devices: i64) -> RollupRows {
    let mut rows = RollupRows::default();
    let figures = CohortFigures {
        devices,
        ..CohortFigures::default()
    };
    for grain in Grain::ALL {
        let at = BucketKey::of(APP, Environment::Live, moment(5)).within(grain);
        let credit = CohortCredit {
            network: "network_b",
            link: None,
            campaign: campaign.to_owned(),
        };
        rows.cohorts
            .credits
            .insert(CohortKey { at, credit, age }, figures);
        let country = "DE".to_owned();
        rows.cohorts
            .places
            .insert(CohortPlaceKey { at, country, age }, figures);
    }
    rows
}

#[rstest]
#[case::none(&[], &[])]
#[case::network(&[Dimension::Network], &["network_b"])]
#[case::link(&[Dimension::Link], &[""])]
#[case::campaign(&[Dimension::Campaign], &["spring"])]
#[case::both(&[Dimension::Campaign, Dimension::Network], &["spring", "network_b"])]
#[case::country(&[Dimension::Country], &["DE"])]
fn unmerged_cohorts_are_added_to_merged_ones(#[case] by: &[Dimension], #[case] values: &[&str]) {
    let query = CohortReportQuery::new(vec![(moment(0), moment(96))], by, 3, 10);
    let add = |rows: RollupRows, stored| rows.add_to_cohorts(SCOPE, &query, stored).unwrap();
    let stored = add(cohort_rows(3, "spring", 2), Vec::new());
    let known = add(cohort_rows(3, "spring", 5), stored);
    let found = add(cohort_rows(4, "spring", 7), known);
    let found: Vec<_> = found
        .iter()
        .map(|row| (row.values.clone(), row.age, row.figures.devices))
        .collect();
    let values = values.iter().map(|value| (*value).to_owned()).collect();
    assert_eq!(found, [(values, 3, 7)]);
}

#[rstest]
#[case::the_value(&[(Dimension::Campaign, "spring")], Some(5))]
#[case::another_value(&[(Dimension::Campaign, "autumn")], Some(0))]
#[case::without_a_link(&[(Dimension::Link, ""), (Dimension::Network, "network_b")], Some(5))]
#[case::country(&[(Dimension::Country, "DE")], Some(5))]
#[case::not_together(&[(Dimension::Country, "DE"), (Dimension::Network, "network_b")], None)]
#[case::not_counted(&[(Dimension::Platform, "ios")], None)]
fn unmerged_cohorts_are_filtered(
    #[case] filters: &[(Dimension, &str)],
    #[case] expected: Option<i64>,
) {
    let mut query = CohortReportQuery::new(vec![(moment(0), moment(96))], &[], 3, 10);
    let filters = filters.iter();
    query.report.filters = filters
        .map(|(one, value)| (*one, (*value).to_owned()))
        .collect();
    let found = cohort_rows(3, "spring", 5).add_to_cohorts(SCOPE, &query, Vec::new());
    let devices = |rows: Vec<CohortRow>| rows.iter().map(|row| row.figures.devices).sum();
    assert_eq!(found.ok().map(devices), expected);
}

proptest! {
    #[test]
    fn reports_do_not_depend_on_what_is_merged(
        all in prop::collection::vec((0_i64..400, 0_u8..3, -3_i64..4), 0..40),
        merged in 0_usize..40,
        from in 0_i64..400,
        length in 0_i64..400,
        by in prop::sample::subsequence(vec![Dimension::Network, Dimension::Campaign, Dimension::Adset], 0..=3),
    ) {
        let counted = |(quarter, campaign, events): &(i64, u8, i64)| {
            counted(APP, Environment::Live, *quarter, &campaign.to_string(), *events)
        };
        let (first, last) = all.split_at(merged.min(all.len()));
        let whole = (Timestamp::from_millis(0), Timestamp::from_millis(5 * DAY));
        let query = report_query(vec![(moment(from), moment(from + length)), whole], &by, &[]);
        let stored = rows(first.iter().map(counted)).add_to_stats(SCOPE, &query, Vec::new()).unwrap();
        let found = rows(last.iter().map(counted)).add_to_stats(SCOPE, &query, stored).unwrap();
        let expected = rows(all.iter().map(counted)).add_to_stats(SCOPE, &query, Vec::new()).unwrap();
        prop_assert_eq!(found, expected);
    }
}
