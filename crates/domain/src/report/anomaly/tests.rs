//! Cases and properties of the anomaly detector.

use super::*;
use proptest::prelude::*;
use rstest::rstest;

/// A Monday, 12:00 UTC.
const HOUR: Timestamp = Timestamp::from_millis(1_767_614_400_000);

fn hours_ago(hours: i64) -> Timestamp {
    Timestamp::from_millis(HOUR.as_millis() - hours * MILLIS_PER_HOUR)
}

/// Builds a history from the value of each age in hours.
fn history(hours: i64, value: impl Fn(i64) -> i64) -> Vec<(Timestamp, i64)> {
    (1..=hours)
        .map(|age| (hours_ago(age), value(age)))
        .collect()
}

fn installs(value: i64, history: Vec<(Timestamp, i64)>) -> TrafficSeries {
    TrafficSeries {
        subject: TrafficSubject::App,
        figure: TrafficFigure::Installs,
        floor: TrafficFigure::Installs.floor(),
        value,
        history,
    }
}

fn is_anomaly(value: i64, history: Vec<(Timestamp, i64)>) -> bool {
    !check_hour(HOUR, &[installs(value, history)], &[])
        .raised
        .is_empty()
}

#[rstest]
#[case::steady(100, 100, false)]
#[case::twice(200, 100, false)]
#[case::at_the_limit(250, 100, false)]
#[case::above_the_limit(251, 100, true)]
#[case::ten_times(1_000, 100, true)]
#[case::a_fall(0, 100, false)]
#[case::small_app_below_the_floor(49, 1, false)]
#[case::small_app_at_the_floor(50, 1, true)]
fn a_steady_figure_has_a_limit_of_two_and_a_half(
    #[case] value: i64,
    #[case] usual: i64,
    #[case] expected: bool,
) {
    assert_eq!(is_anomaly(value, history(672, |_| usual)), expected);
}

#[rstest]
#[case::three_days(72, true)]
#[case::less(71, false)]
#[case::none(0, false)]
fn a_new_app_has_no_usual_traffic(#[case] hours: i64, #[case] expected: bool) {
    assert_eq!(is_anomaly(5_000, history(hours, |_| 10)), expected);
}

#[test]
fn hours_before_the_first_activity_are_not_zeros() {
    let recent = history(672, |age| if age <= 100 { 300 } else { 0 });
    assert!(!is_anomaly(300, recent));
}

#[test]
fn a_weekly_peak_is_usual() {
    let weekly = |age: i64| {
        if age % HOURS_PER_WEEK == 0 { 2_000 } else { 20 }
    };
    // The margin of an hour makes the peak a third of the samples, so a wide peak is used.
    let wide = |age: i64| {
        if (age + 1) % HOURS_PER_WEEK <= 2 {
            2_000
        } else {
            20
        }
    };
    assert!(!is_anomaly(2_100, history(672, wide)));
    assert!(is_anomaly(2_100, history(672, |_| 20)));
    assert!(
        is_anomaly(2_100, history(400, weekly)),
        "too short for seasons"
    );
}

#[test]
fn an_earlier_attack_does_not_hide_the_next() {
    let attacked = history(672, |age| if age <= 10 { 50_000 } else { 20 });
    assert!(is_anomaly(50_000, attacked));
}

#[test]
fn noisy_figures_have_a_wide_limit() {
    let noisy = history(400, |age| if age % 2 == 0 { 20 } else { 220 });
    assert!(!is_anomaly(900, noisy.clone()));
    assert!(is_anomaly(1_100, noisy));
}

#[test]
fn a_missing_hour_is_a_zero() {
    let mut gaps = history(672, |_| 0);
    gaps.retain(|(at, _)| *at == hours_ago(672));
    gaps[0].1 = 5;
    assert!(is_anomaly(60, gaps));
}

fn anomaly(hours: i64, ended: Option<i64>) -> TrafficAnomaly {
    TrafficAnomaly {
        subject: TrafficSubject::App,
        figure: TrafficFigure::Installs,
        hour: hours_ago(hours),
        value: 1_000,
        expected: 10,
        ended_at: ended.map(hours_ago),
    }
}

#[rstest]
#[case::first(&[], true)]
#[case::still_open(&[anomaly(30, None)], false)]
#[case::ended_today(&[anomaly(23, Some(20))], false)]
#[case::ended_yesterday(&[anomaly(24, Some(20))], true)]
fn a_subject_raises_once_until_it_is_normal_and_once_a_day(
    #[case] known: &[TrafficAnomaly],
    #[case] expected: bool,
) {
    let series = [installs(1_000, history(672, |_| 10))];
    let check = check_hour(HOUR, &series, known);
    assert_eq!(check.raised.len(), usize::from(expected));
    assert_eq!(check.ended, []);
}

#[test]
fn a_normal_hour_ends_an_anomaly() {
    let series = [installs(10, history(672, |_| 10))];
    let check = check_hour(HOUR, &series, &[anomaly(3, None)]);
    assert_eq!(check.ended, [TrafficSubject::App]);
    assert_eq!(check_hour(HOUR, &series, &[anomaly(3, Some(1))]).ended, []);
    // A subject that is not compared any more, such as yesterday's address, is normal too.
    assert_eq!(check_hour(HOUR, &[], &[anomaly(3, None)]).ended.len(), 1);
}

#[test]
fn the_most_extreme_figure_of_a_subject_is_raised() {
    let figure = |figure, value| TrafficSeries {
        figure,
        ..installs(value, history(672, |_| 10))
    };
    let series = [
        figure(TrafficFigure::Installs, 100),
        figure(TrafficFigure::Events, 100_000),
    ];
    let raised = check_hour(HOUR, &series, &[]).raised;
    assert_eq!(raised.len(), 1);
    assert_eq!(raised[0].figure, TrafficFigure::Events);
    assert_eq!((raised[0].value, raised[0].expected), (100_000, 10));
}

#[test]
fn an_app_raises_at_most_five_anomalies_per_hour() {
    let link = |number: u8| TrafficSeries {
        subject: TrafficSubject::Link(LinkId::from_bytes([number; 16])),
        ..installs(100 + i64::from(number), history(672, |_| 10))
    };
    let series: Vec<TrafficSeries> = (0..20).map(link).collect();
    let raised = check_hour(HOUR, &series, &[]).raised;
    let values: Vec<i64> = raised.iter().map(|one| one.value).collect();
    assert_eq!(values, [119, 118, 117, 116, 115]);
}

#[test]
fn subjects_round_trip_and_reveal_no_address() {
    let address = TrafficSubject::address(&Digest::of(b"203.0.113.9"));
    let link = TrafficSubject::Link(LinkId::from_bytes([7; 16]));
    for subject in [TrafficSubject::App, link, address.clone()] {
        assert_eq!(
            TrafficSubject::parse(subject.kind(), &subject.id()),
            Some(subject)
        );
    }
    assert_eq!(address.id().len(), 12);
    assert_eq!(TrafficSubject::parse("country", "DE"), None);
}

#[rstest]
#[case::app(
    TrafficSubject::App,
    TrafficFigure::Installs,
    "Unusual installs of the app in the hour from 2026-01-05T12:00:00Z: 812. Usual: 14."
)]
#[case::link(TrafficSubject::Link(LinkId::from_bytes([0; 16])), TrafficFigure::Events, "Unusual events of link lnk_00000000000000000000000000 in the hour from 2026-01-05T12:00:00Z: 812. Usual: 14.")]
#[case::address(TrafficSubject::Address("0a1b".to_owned()), TrafficFigure::Installs, "Unusual installs from one address range (fingerprint 0a1b) in the hour from 2026-01-05T12:00:00Z: 812. Usual: 14.")]
fn messages_name_subject_figure_and_hour(
    #[case] subject: TrafficSubject,
    #[case] figure: TrafficFigure,
    #[case] expected: &str,
) {
    let anomaly = TrafficAnomaly {
        subject,
        figure,
        hour: HOUR,
        value: 812,
        expected: 14,
        ended_at: None,
    };
    assert_eq!(message(&anomaly), expected);
}

#[test]
fn revenue_is_written_in_dollars() {
    let revenue = TrafficAnomaly {
        figure: TrafficFigure::Revenue,
        value: 5_000_400_000,
        ..anomaly(0, None)
    };
    let text = message(&revenue);
    assert!(text.contains(": 5000 USD. Usual: 0 USD."), "{text}");
}

proptest! {
    #[test]
    fn the_order_of_samples_never_matters(
        mut values in proptest::collection::vec(0_i64..1_000_000, 1..50),
        value in 0_i64..10_000_000,
    ) {
        let before = Baseline::of(&values);
        values.reverse();
        prop_assert_eq!(Baseline::of(&values), before);
        values.sort_unstable();
        prop_assert_eq!(Baseline::of(&values), before);
        let mut shuffled = history(672, |age| age * 7 % 13);
        let first = is_anomaly(value, shuffled.clone());
        shuffled.reverse();
        prop_assert_eq!(is_anomaly(value, shuffled), first);
    }

    #[test]
    fn a_constant_series_never_alerts(value in 0_i64..i64::MAX / 16, hours in 0_i64..700) {
        prop_assert!(!is_anomaly(value, history(hours, |_| value)));
    }

    #[test]
    fn the_decision_does_not_depend_on_the_unit(
        values in proptest::collection::vec(0_i64..100_000, 1..50),
        value in 0_i64..1_000_000,
        floor in 0_i64..1_000,
        factor in 1_i64..1_000_000,
    ) {
        let scaled: Vec<i64> = values.iter().map(|one| one * factor).collect();
        let (one, other) = (Baseline::of(&values), Baseline::of(&scaled));
        let decision = one.excess(value, floor).is_some();
        prop_assert_eq!(other.excess(value * factor, floor * factor).is_some(), decision);
    }

    #[test]
    fn more_traffic_is_never_less_suspicious(
        values in proptest::collection::vec(0_i64..100_000, 1..50),
        value in 0_i64..1_000_000,
        more in 0_i64..1_000_000,
    ) {
        let baseline = Baseline::of(&values);
        let (low, high) = (baseline.excess(value, 10), baseline.excess(value + more, 10));
        prop_assert!(high >= low);
    }
}
