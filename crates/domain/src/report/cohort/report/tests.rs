//! Tests of the cohort report: a table of cases, and a comparison with a count device by device.

use super::*;
use crate::report::cohort::CohortFigures;
use crate::report::cost::CostOrigin;
use crate::report::range::DayRange;
use crate::report::{CostSum, Dimension, TimeUnit};
use crate::vocabulary::day::Day;
use crate::vocabulary::timezone::Timezone;
use proptest::prelude::*;
use rstest::rstest;

const HOUR: i64 = 60 * 60 * 1_000;
const DAY: i64 = 24 * HOUR;
const USD: i64 = MICROS_PER_UNIT;

/// Returns a time in days and hours since the first install day.
fn time(day: i64, hour: i64) -> Timestamp {
    Timestamp::from_millis(day * DAY + hour * HOUR)
}

/// Returns one span per day.
fn spans(days: i32) -> Vec<Span> {
    let range = DayRange {
        from: Day::from_days(0),
        to: Day::from_days(days - 1),
        zone: Timezone::UTC,
    };
    range.split(Some(TimeUnit::Day))
}

fn query(by: &[Dimension], spans: &[Span]) -> CohortReportQuery {
    let periods = spans.iter().map(|span| span.period).collect();
    CohortReportQuery::new(periods, by, 90, 1_000)
}

/// Day of the installs, network, age, active devices and net revenue in dollars.
type Figures = (usize, &'static str, u8, i64, i64);

fn row((period, network, age, devices, usd): Figures, by: &[Dimension]) -> CohortRow {
    // As `split_by_network` reads it: the network is the last value.
    let values = if by == [Dimension::Network] {
        vec![network.to_owned()]
    } else {
        let others = by.iter().map(|_| "c1".to_owned());
        others.chain([network.to_owned()]).collect()
    };
    CohortRow {
        period,
        values,
        age,
        figures: CohortFigures {
            devices,
            revenue_micros: usd * USD,
            payers: if usd > 0 { devices / 5 } else { 0 },
            ..CohortFigures::default()
        },
    }
}

fn cost(day: i32, network: &str, usd: i64) -> CostSum {
    CostSum {
        day: Day::from_days(day),
        network: network.to_owned(),
        campaign: "c1".to_owned(),
        usd_micros: usd * USD,
        origin: CostOrigin::Manual,
    }
}

/// Two days of installs. On the first, 10 paid and 30 organic devices; on the second, 10 paid ones.
const ROWS: [Figures; 7] = [
    (0, "network_a", 0, 10, 20),
    (0, "network_a", 1, 5, 10),
    (0, "network_a", 3, 2, 6),
    (0, "organic", 0, 30, 30),
    (0, "organic", 1, 3, 0),
    (1, "network_a", 0, 10, 10),
    (1, "network_a", 1, 1, 0),
];

fn report(by: &[Dimension], now: Timestamp, has_costs: bool) -> Vec<Cohort> {
    let spans = spans(3);
    // A cost without installs belongs to the third day.
    let spend: Spend = [
        cost(0, "network_a", 20),
        cost(1, "network_a", 10),
        cost(2, "network_a", 10),
    ]
    .into_iter()
    .collect();
    let rows = ROWS.iter().map(|one| row(*one, by)).collect();
    cohort_report(
        rows,
        &query(by, &spans),
        &spans,
        has_costs.then_some(&spend),
        None,
        now,
    )
}

fn value(measure: CohortMeasure, sums: Option<&CohortSums>) -> Option<String> {
    measure.of(sums?).map(|value| value.to_string())
}

/// At an hour of the sixth day, the last installs are at least two days old.
#[rstest]
#[case::retention(CohortMeasure::Retention, 0, ["1", "1", ""], Some("1"))]
#[case::retention_later(CohortMeasure::Retention, 1, ["0.1", "0.2", ""], Some("0.18"))]
#[case::payers(CohortMeasure::PayerShare, 0, ["0.2", "0.2", ""], Some("0.2"))]
#[case::payers_add_up(CohortMeasure::PayerShare, 3, ["0.2", "0.225", ""], Some("0.22"))]
#[case::per_install(CohortMeasure::RevenuePerInstall, 0, ["1", "1.25", ""], Some("1.2"))]
#[case::per_install_later(CohortMeasure::RevenuePerInstall, 3, ["1", "1.65", ""], Some("1.52"))]
#[case::total(CohortMeasure::CumulativeRevenue, 3, ["10", "66", "0"], Some("76"))]
#[case::blended(CohortMeasure::Roas, 1, ["1", "3", "0"], Some("1.75"))]
#[case::paid(CohortMeasure::PaidRoas, 1, ["1", "1.5", "0"], Some("1"))]
#[case::paid_later(CohortMeasure::PaidRoas, 3, ["1", "1.8", "0"], Some("1.15"))]
fn measures_by_age(
    #[case] measure: CohortMeasure,
    #[case] age: u8,
    #[case] expected: [&str; 3],
    #[case] average: Option<&str>,
) {
    let cohorts = report(&[], time(7, 0), true);
    assert_eq!(
        cohorts.iter().map(|one| one.period).collect::<Vec<_>>(),
        [2, 1, 0]
    );
    let at = |cohort: &Cohort| value(measure, cohort.at(age).map(|one| &one.sums));
    let values = [1, 2, 0].map(|index: usize| at(&cohorts[index]).unwrap_or_default());
    assert_eq!(values.each_ref().map(String::as_str), expected);
    let sums = weighted_average(&cohorts, age);
    assert_eq!(value(measure, sums.as_ref()).as_deref(), average);
}

/// An upgrade counts the payers of earlier installs in the background, latest first.
#[rstest]
#[case::all_are_counted(None, ["0.225", "0.2"], Some("0.22"))]
#[case::from_the_first_day(Some(time(0, 0)), ["0.225", "0.2"], Some("0.22"))]
#[case::from_an_hour_of_the_first_day(Some(time(0, 1)), ["", "0.2"], None)]
#[case::from_later(Some(time(5, 0)), ["", ""], None)]
fn payers_are_unknown_until_they_are_counted(
    #[case] from: Option<Timestamp>,
    #[case] expected: [&str; 2],
    #[case] average: Option<&str>,
) {
    let (spans, by) = (spans(2), [Dimension::Network]);
    let rows = ROWS.iter().map(|one| row(*one, &by)).collect();
    let cohorts = cohort_report(rows, &query(&[], &spans), &spans, None, from, time(9, 0));
    let share = |sums: Option<&CohortSums>| value(CohortMeasure::PayerShare, sums);
    let values = [1, 0].map(|index: usize| share(cohorts[index].at(3).map(|one| &one.sums)));
    assert_eq!(values.map(Option::unwrap_or_default), expected);
    let sums = weighted_average(&cohorts, 3);
    assert_eq!(share(sums.as_ref()).as_deref(), average);
    assert!(value(CohortMeasure::Retention, sums.as_ref()).is_some());
}

#[rstest]
#[case::roas(CohortMeasure::Roas, None)]
#[case::paid_roas(CohortMeasure::PaidRoas, None)]
#[case::retention(CohortMeasure::Retention, Some("0.18"))]
fn without_costs_only_roas_is_unknown(
    #[case] measure: CohortMeasure,
    #[case] expected: Option<&str>,
) {
    let cohorts = report(&[], time(7, 0), false);
    assert_eq!(cohorts.len(), 2, "a cost makes no cohort");
    let sums = weighted_average(&cohorts, 1);
    assert_eq!(value(measure, sums.as_ref()).as_deref(), expected);
    assert_eq!(measure.needs_cost(), expected.is_none());
}

/// The cohort of the first day ends at day 1, and its day 1 ends a day after that.
#[rstest]
#[case::before_the_installs(time(-1, 0), 0, None)]
#[case::day_of_installs(time(0, 12), 0, Some(false))]
#[case::last_device_is_young(time(1, 23), 0, Some(false))]
#[case::all_completed_day_0(time(2, 0), 0, Some(true))]
#[case::first_device_reached_day_1(time(2, 0), 1, Some(false))]
#[case::all_completed_day_1(time(3, 0), 1, Some(true))]
#[case::nobody_reached_day_3(time(2, 23), 3, None)]
fn an_age_is_complete_when_all_devices_completed_it(
    #[case] now: Timestamp,
    #[case] age: u8,
    #[case] expected: Option<bool>,
) {
    let cohorts = report(&[], now, false);
    let first = cohorts.iter().find(|one| one.period == 0).unwrap();
    assert_eq!(first.at(age).map(|one| one.is_complete), expected);
    let in_average = weighted_average([first], age).is_some();
    assert_eq!(in_average, expected == Some(true));
    assert_eq!(first.complete_age() >= Some(age), expected == Some(true));
}

#[rstest]
#[case::network(&[Dimension::Network], 4)]
#[case::campaign(&[Dimension::Campaign], 3)]
fn grouping_does_not_change_the_average(#[case] by: &[Dimension], #[case] cohorts: usize) {
    let (grouped, whole) = (report(by, time(9, 0), true), report(&[], time(9, 0), true));
    assert_eq!(grouped.len(), cohorts);
    for age in 0..=5 {
        let [grouped, whole] = [&grouped, &whole].map(|one| {
            let sums = weighted_average(one, age).unwrap();
            CohortSums { cohorts: 0, ..sums }
        });
        assert_eq!(grouped, whole, "day {age}");
    }
}

/// Installs of three days, of which the first is followed longest.
#[rstest]
#[case::all_are_young(time(1, 0), [10, 20, 30], &[])]
#[case::the_first_completed_day_0(time(2, 0), [10, 20, 30], &[10])]
#[case::both_completed_day_0_and_one_day_1(time(3, 0), [10, 20, 30], &[10, 10])]
#[case::a_part_that_is_too_small(time(4, 0), [10, 20, 30], &[30, 30])]
#[case::all_have_the_same_age(time(5, 0), [10, 0, 0], &[10, 10, 10, 10])]
#[case::no_installs(time(9, 0), [0, 0, 0], &[])]
fn the_same_cohorts_are_followed_while_they_are_large_enough(
    #[case] now: Timestamp,
    #[case] installs: [i64; 3],
    #[case] expected: &[i64],
) {
    let spans = spans(3);
    let rows = installs.into_iter().enumerate();
    let rows = rows.filter(|(_, installs)| *installs > 0);
    let rows = rows.map(|(period, installs)| row((period, "network_a", 0, installs, 9), &[]));
    let found = query(&[], &spans);
    let cohorts = cohort_report(rows.collect(), &found, &spans, None, None, now);
    let followed = same_cohorts(&cohorts, 90);
    let followed: Vec<i64> = followed.iter().map(|sums| sums.installs).collect();
    assert_eq!(followed, expected);
}

/// A device: install time in hours, whether it is paid, and age in hours and dollars of payments.
type Device = (i64, bool, Vec<(i64, i64)>);

fn rows_of(devices: &[Device]) -> Vec<CohortRow> {
    let mut rows: BTreeMap<(usize, &str, u8), CohortFigures> = BTreeMap::new();
    for (hour, is_paid, events) in devices {
        let network = if *is_paid { "network_a" } else { "organic" };
        let mut active = std::collections::BTreeSet::from([0]);
        for (age, usd) in events {
            let age = u8::try_from(age / 24).unwrap();
            active.insert(age);
            let row = rows.entry((usize::try_from(hour / 24).unwrap(), network, age));
            row.or_default().revenue_micros += usd * USD;
        }
        for age in active {
            let row = rows.entry((usize::try_from(hour / 24).unwrap(), network, age));
            row.or_default().devices += 1;
        }
        let payments = events.iter().filter(|(_, usd)| *usd > 0);
        if let Some(age) = payments.map(|(age, _)| age / 24).min() {
            let age = u8::try_from(age).unwrap();
            let row = rows.entry((usize::try_from(hour / 24).unwrap(), network, age));
            row.or_default().payers += 1;
        }
    }
    rows.into_iter()
        .map(|((period, network, age), figures)| CohortRow {
            period,
            values: vec![network.to_owned()],
            age,
            figures,
        })
        .collect()
}

/// Counts device by device: installs, active devices, revenue, paid revenue and payers of devices
/// whose install day is old enough.
fn slow_count(devices: &[Device], age: u8, now: i64) -> (i64, i64, i64, i64, i64) {
    let old = devices
        .iter()
        .filter(|(hour, ..)| (hour / 24 + 1) * 24 + (i64::from(age) + 1) * 24 <= now);
    let mut sums = (0, 0, 0, 0, 0);
    for (_, is_paid, events) in old {
        let is_active = age == 0 || events.iter().any(|(at, _)| at / 24 == i64::from(age));
        let paid_so_far = events.iter().filter(|(at, _)| at / 24 <= i64::from(age));
        let has_paid = paid_so_far.clone().any(|(_, usd)| *usd > 0);
        let revenue: i64 = paid_so_far.map(|(_, usd)| usd * USD).sum();
        sums.0 += 1;
        sums.1 += i64::from(is_active);
        sums.2 += revenue;
        sums.3 += if *is_paid { revenue } else { 0 };
        sums.4 += i64::from(has_paid);
    }
    sums
}

fn device() -> impl Strategy<Value = Device> {
    let events = prop::collection::vec((0_i64..24 * 10, -3_i64..9), 0..4);
    (0_i64..24 * 7, any::<bool>(), events)
}

proptest! {
    #[test]
    fn the_average_equals_a_count_of_devices_and_ignores_the_order(
        devices in prop::collection::vec(device(), 0..25),
        now in 0_i64..24 * 20,
        turn in 0_usize..7,
    ) {
        let spans = spans(7);
        let query = query(&[], &spans);
        let spend: Spend = (0..7).map(|day| cost(day, "network_a", 2)).collect();
        let now_at = Timestamp::from_millis(now * HOUR);
        let mut cohorts = cohort_report(rows_of(&devices), &query, &spans, Some(&spend), None, now_at);
        for age in [0, 1, 3, 7] {
            let (installs, active, revenue, paid, payers) = slow_count(&devices, age, now);
            let old_days = (0..7).filter(|day| (day + 2 + i64::from(age)) * 24 <= now).count();
            let expected = (old_days > 0).then(|| CohortSums {
                cohorts: u32::try_from(old_days).unwrap(),
                installs,
                devices: active,
                payers: Some(payers),
                revenue_micros: revenue,
                paid_micros: Some(paid),
                cost_micros: Some(i64::try_from(old_days).unwrap() * 2 * USD),
            });
            prop_assert_eq!(weighted_average(&cohorts, age), expected);
            let turned = turn.min(cohorts.len());
            cohorts.rotate_left(turned);
            prop_assert_eq!(weighted_average(&cohorts, age), expected);
        }
        let followed = same_cohorts(&cohorts, 9);
        if let Some(last) = followed.len().checked_sub(1) {
            let last = u8::try_from(last).unwrap();
            prop_assert_eq!(followed.last().copied(), weighted_average(&cohorts, last));
        }
        for pair in followed.windows(2) {
            prop_assert_eq!(pair[0].installs, pair[1].installs);
            prop_assert!(pair[0].payers <= pair[1].payers);
            let has_refunds = devices.iter().any(|(.., events)| events.iter().any(|(_, usd)| *usd < 0));
            prop_assert!(has_refunds || pair[0].revenue_micros <= pair[1].revenue_micros);
        }
    }
}
