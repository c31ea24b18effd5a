//! Tests of cohort counting.

use super::*;
use crate::access::Environment;
use crate::attribution::{CreditedNetwork, HoldState, MatchType};
use crate::device::DeviceKey;
use crate::event::{Credit, Event, EventSource};
use crate::integration::Network;
use crate::ledger::Revenue;
use crate::link::Campaign;
use crate::vocabulary::id::{AppId, EventId};
use crate::vocabulary::money::Amount;
use crate::vocabulary::time::Timestamp;
use rstest::rstest;
use std::collections::BTreeMap;

const DAY: i64 = 24 * 60 * 60 * 1_000;

fn credit(network: CreditedNetwork) -> Credit {
    Credit {
        network,
        match_type: MatchType::ClickId,
        link: None,
        click: None,
        campaign: Campaign::default(),
        hold: None,
    }
}

fn event(name: &str, at: i64, paid: i64) -> Event {
    Event {
        id: EventId::from_bytes([1; 16]),
        external_id: "e".to_owned(),
        app: AppId::from_bytes([2; 16]),
        environment: Environment::Live,
        source: EventSource::Sdk,
        name: name.to_owned(),
        original_name: None,
        occurred_at: Timestamp::from_millis(at),
        received_at: Timestamp::from_millis(at),
        device: DeviceKey::parse("d").ok(),
        user: None,
        platform: None,
        country: Some("DE".to_owned()),
        revenue: (paid != 0).then(|| Revenue {
            amount: Amount::from_micros(paid),
            currency: None,
            usd: Some(Amount::from_micros(paid)),
            rate_day: None,
            rate: None,
            rate_source: None,
            uncounted: None,
        }),
        credit: Some(credit(CreditedNetwork::Organic)),
        params: None,
        first_payment: false,
        is_service_install: name == "install",
        duplicate_of: None,
        dedup_root: None,
        consent: None,
        skipped: Vec::new(),
        website: None,
    }
}

fn entry(name: &str, at: i64, paid: i64) -> CohortEntry {
    CohortEntry::of(&event(name, at, paid)).unwrap()
}

/// Returns network, age, devices and net revenue of every non-zero row.
fn summary(rows: &CohortRows) -> Vec<(&'static str, u8, i64, i64)> {
    let all = rows.credits.iter();
    all.map(|(key, figures)| {
        let money = figures.revenue_micros - figures.refunded_micros;
        (key.credit.network, key.age, figures.devices, money)
    })
    .filter(|(_, _, devices, money)| (*devices, *money) != (0, 0))
    .collect()
}

#[rstest]
#[case::at_once(0, Some(0))]
#[case::last_moment_of_the_first_day(DAY - 1, Some(0))]
#[case::a_day_later(DAY, Some(1))]
#[case::before_the_first_call(-5 * DAY, Some(0))]
#[case::the_last_age(127 * DAY, Some(127))]
#[case::too_old(128 * DAY, None)]
#[case::much_too_old(i64::MAX, None)]
fn age_counts_whole_days_since_the_install(#[case] after: i64, #[case] expected: Option<u8>) {
    let installed_at = Timestamp::from_millis(0);
    assert_eq!(
        age_in_days(installed_at, Timestamp::from_millis(after)),
        expected
    );
}

#[test]
fn a_device_counts_once_per_age_and_its_revenue_adds_up() {
    let mut known = BTreeMap::new();
    let entries = [
        entry("install", 0, 0),
        entry("open", 1, 0),
        entry("purchase", DAY + 1, 5),
        entry("refund", DAY + 2, -2),
        entry("open", DAY + 3, 0),
    ];
    let all = update_cohorts(&entries, &mut known);
    let rows = summary(&all.rows);
    assert_eq!(rows, [("organic", 0, 1, 0), ("organic", 1, 1, 3)]);
    assert_eq!(all.changed_devices.len(), 1);
    let again = update_cohorts(&[entry("open", DAY + 9, 0)], &mut known);
    assert_eq!(again, CohortUpdate::default(), "already active at this age");
}

#[test]
fn moving_an_install_moves_all_its_figures() {
    let mut known = BTreeMap::new();
    let before = [entry("install", 0, 0), entry("purchase", DAY, 5)];
    let mut all = update_cohorts(&before, &mut known).rows;
    let better = credit(CreditedNetwork::Ad(Network::A));
    let moved = |name: &str, at: i64, paid: i64| {
        let mut event = event(name, at, paid);
        let from = CohortEntry::of(&event);
        event.credit = Some(better.clone());
        CohortEntry::for_move(from, CohortEntry::of(&event)).unwrap()
    };
    for order in [[0, 1], [1, 0]] {
        let mut known = known.clone();
        let entries = [moved("install", 0, 0), moved("purchase", DAY, 5)];
        let entries = order.map(|index| entries[index].clone());
        let mut sum = all.clone();
        sum.merge(update_cohorts(&entries, &mut known).rows);
        assert_eq!(
            summary(&sum),
            [("network_a", 0, 1, 0), ("network_a", 1, 1, 5)]
        );
    }
    all.drop_zeros();
    assert_eq!(all.places.len(), 2);
}

#[test]
fn events_before_the_first_call_count_at_age_zero() {
    let mut early = event("purchase", -10, 7);
    early.credit = None;
    assert_eq!(CohortEntry::of(&early), None);
    early.credit = Some(credit(CreditedNetwork::Organic));
    let early = CohortEntry::for_move(None, CohortEntry::of(&early)).unwrap();
    let all = update_cohorts(&[early, entry("install", 0, 0)], &mut BTreeMap::new());
    assert_eq!(summary(&all.rows), [("organic", 0, 1, 7)]);
}

/// Changes the hold and the credit of events as a review does, and returns their entries.
fn held_as(events: &mut [Event], network: CreditedNetwork, hold: HoldState) -> Vec<CohortEntry> {
    let entry = |event: &mut Event| {
        let before = CohortEntry::of(event);
        event.credit = Some(Credit {
            hold: Some(hold),
            ..credit(network)
        });
        CohortEntry::for_move(before, CohortEntry::of(event))
    };
    events.iter_mut().filter_map(entry).collect()
}

#[test]
fn a_held_install_leaves_its_cohort_and_returns_when_it_is_released() {
    let organic = CreditedNetwork::Organic;
    let better = CreditedNetwork::Ad(Network::A);
    for at_once in [true, false] {
        let mut events = [
            event("open", -10, 0),
            event("install", 0, 0),
            event("purchase", 2 * DAY, 5),
        ];
        let mut parts = vec![events.iter().filter_map(CohortEntry::of).collect()];
        parts.push(held_as(&mut events, organic, HoldState::Held));
        assert!(held_as(&mut events, better, HoldState::Rejected).is_empty());
        parts.push(held_as(&mut events, better, HoldState::Released));
        if at_once {
            parts = vec![parts.concat()];
        }
        let (mut known, mut sum) = (BTreeMap::new(), CohortRows::default());
        for (number, part) in parts.iter().enumerate() {
            sum.merge(update_cohorts(part, &mut known).rows);
            if number == 1 {
                assert_eq!(summary(&sum), [], "held installs are in no cohort");
            }
        }
        assert_eq!(
            summary(&sum),
            [("network_a", 0, 1, 0), ("network_a", 2, 1, 5)]
        );
    }
}

/// Returns age and payers of every row with payers.
fn payers(rows: &CohortRows) -> Vec<(&'static str, u8, i64)> {
    let all = rows.credits.iter();
    all.map(|(key, figures)| (key.credit.network, key.age, figures.payers))
        .filter(|(_, _, payers)| *payers != 0)
        .collect()
}

#[rstest]
#[case::nothing(&[], &[])]
#[case::a_refund_is_no_payment(&[(1, -3)], &[])]
#[case::one(&[(1, 3)], &[("organic", 1, 1)])]
#[case::only_the_first(&[(1, 3), (1, 4), (5, 3)], &[("organic", 1, 1)])]
#[case::a_refunded_one(&[(1, 3), (1, -3)], &[("organic", 1, 1)])]
#[case::an_earlier_one_that_arrives_later(&[(5, 3), (2, 3)], &[("organic", 2, 1)])]
#[case::before_the_first_call(&[(-3, 3)], &[("organic", 0, 1)])]
#[case::too_old(&[(128, 3)], &[])]
fn a_device_becomes_a_payer_once(
    #[case] paid: &[(i64, i64)],
    #[case] expected: &[(&'static str, u8, i64)],
) {
    let payments = paid
        .iter()
        .map(|(day, amount)| entry("purchase", day * DAY, *amount));
    let entries: Vec<CohortEntry> = std::iter::once(entry("install", 0, 0))
        .chain(payments)
        .collect();
    let at_once = update_cohorts(&entries, &mut BTreeMap::new());
    assert_eq!(payers(&at_once.rows), expected);
    let (mut known, mut sum) = (BTreeMap::new(), CohortRows::default());
    for one in entries {
        sum.merge(update_cohorts(&[one], &mut known).rows);
    }
    assert_eq!(payers(&sum), expected, "one by one");
}

#[test]
fn a_payer_moves_with_the_credit_and_leaves_with_the_payment() {
    let mut known = BTreeMap::new();
    let (first, later) = (event("purchase", DAY, 5), event("purchase", 3 * DAY, 5));
    let entries = [
        entry("install", 0, 0),
        entry("purchase", DAY, 5),
        entry("purchase", 3 * DAY, 5),
    ];
    let mut sum = update_cohorts(&entries, &mut known).rows;
    let credited = |event: &Event| {
        let now = Event {
            credit: Some(credit(CreditedNetwork::AppleAds)),
            ..event.clone()
        };
        CohortEntry::for_move(CohortEntry::of(event), CohortEntry::of(&now)).unwrap()
    };
    let moved = [
        credited(&first),
        credited(&event("install", 0, 0)),
        credited(&later),
    ];
    sum.merge(update_cohorts(&moved, &mut known).rows);
    assert_eq!(payers(&sum), [("apple_ads", 1, 1)]);
    // The first payment stops to count.
    let uncounted = Event {
        revenue: None,
        ..first.clone()
    };
    let entries: Vec<CohortEntry> = CohortEntry::for_replacement(&first, &uncounted).collect();
    let mut update = update_cohorts(&entries, &mut known);
    for day in update.uncertain_payments.clone() {
        update.mark_unpaid(&day, &mut known);
    }
    sum.merge(update.rows);
    assert_eq!(payers(&sum), [("apple_ads", 3, 1)]);
}

#[test]
fn payments_from_before_are_counted_later() {
    let entries = [
        entry("install", 0, 0),
        entry("purchase", DAY, 5),
        entry("purchase", 9 * DAY, 5),
    ];
    let mut counted = BTreeMap::new();
    let complete = update_cohorts(&entries, &mut counted).rows;
    // Only the latest payment was counted.
    let mut known = BTreeMap::new();
    let mut sum = update_cohorts(
        &[entry("install", 0, 0), entry("purchase", 9 * DAY, 5)],
        &mut known,
    )
    .rows;
    assert_eq!(payers(&sum), [("organic", 9, 1)]);
    for again in [true, false] {
        let mut update = CohortUpdate::default();
        for (member, device) in &mut known {
            update.correct_payments(member, device, &counted[member]);
        }
        assert_eq!(!update.changed_devices.is_empty(), again);
        sum.merge(update.rows);
    }
    assert_eq!(payers(&sum), payers(&complete));
}

#[test]
fn events_without_an_install_are_in_no_cohort() {
    let website = Event {
        source: EventSource::Web,
        ..event("purchase", 0, 5)
    };
    assert_eq!(CohortEntry::of(&website), None);
    let all = update_cohorts(&[entry("purchase", 0, 5)], &mut BTreeMap::new());
    assert_eq!(all, CohortUpdate::default());
}

#[test]
fn ages_round_trip_through_bytes() {
    let mut ages = Ages::default();
    assert!(ages.add(0) && ages.add(127) && !ages.add(127));
    let read = Ages::from_bytes(ages.to_bytes());
    assert_eq!(read.iter().collect::<Vec<_>>(), [0, 127]);
}

/// Device, credited network and amount of a subscription event.
type Billed = (Option<&'static str>, Option<CreditedNetwork>, i64);

const PHONE: Billed = (Some("d"), Some(CreditedNetwork::Organic), 5);
const TABLET: Billed = (Some("e"), Some(CreditedNetwork::AppleAds), 5);
const NO_DEVICE: Billed = (None, None, 5);
const UNCONFIGURED: Billed = (Some("never-configured"), None, 5);

fn billed(at: i64, (device, network, paid): Billed) -> Event {
    Event {
        source: EventSource::Billing,
        device: device.and_then(|device| DeviceKey::parse(device).ok()),
        credit: network.map(credit),
        ..event("renewal", at, paid)
    }
}

/// Returns an installed phone and tablet, with the rows counted so far.
fn installed() -> (BTreeMap<CohortMember, CohortDevice>, CohortRows) {
    let mut known = BTreeMap::new();
    let tablet = Event {
        device: DeviceKey::parse("e").ok(),
        credit: Some(credit(CreditedNetwork::AppleAds)),
        ..event("install", 0, 0)
    };
    let entries = [entry("install", 0, 0), CohortEntry::of(&tablet).unwrap()];
    let rows = update_cohorts(&entries, &mut known).rows;
    (known, rows)
}

#[rstest]
#[case::it_gains_a_device(NO_DEVICE, PHONE)]
#[case::it_gains_a_device_without_cohort(NO_DEVICE, UNCONFIGURED)]
#[case::its_device_is_configured(UNCONFIGURED, PHONE)]
#[case::it_moves_to_another_device(PHONE, TABLET)]
#[case::it_leaves_its_device(PHONE, NO_DEVICE)]
#[case::it_moves_out_of_every_cohort(PHONE, UNCONFIGURED)]
#[case::it_is_credited_elsewhere(PHONE, (PHONE.0, TABLET.1, 5))]
#[case::it_is_worth_less(PHONE, (PHONE.0, PHONE.1, 2))]
#[case::it_is_worth_nothing(PHONE, (PHONE.0, PHONE.1, 0))]
#[case::it_becomes_a_refund(PHONE, (PHONE.0, PHONE.1, -5))]
#[case::it_moves_and_is_worth_more(PHONE, (TABLET.0, TABLET.1, 9))]
#[case::it_does_not_change(PHONE, PHONE)]
fn replacing_an_event_equals_counting_the_new_one(
    #[case] before: Billed,
    #[case] now: Billed,
    // Install day, later days, and one day beyond the highest day that is counted.
    #[values(0, 1, 3, 127, 128)] day: i64,
    // Devices with another event on that day.
    #[values(&[], &["d"], &["e"], &["d", "e"])] seen: &[&str],
) {
    let at = day * DAY + 7;
    let others: Vec<CohortEntry> = seen
        .iter()
        .filter_map(|device| {
            let network = if *device == "d" { PHONE.1 } else { TABLET.1 };
            CohortEntry::of(&Event {
                device: DeviceKey::parse(device).ok(),
                credit: network.map(credit),
                ..event("open", at + 1, 0)
            })
        })
        .collect();
    let (before, now) = (billed(at, before), billed(at, now));

    let (mut known, mut rows) = installed();
    let counted = others.iter().cloned().chain(CohortEntry::of(&before));
    rows.merge(update_cohorts(&counted.collect::<Vec<_>>(), &mut known).rows);
    let entries: Vec<CohortEntry> = CohortEntry::for_replacement(&before, &now).collect();
    let mut all = update_cohorts(&entries, &mut known);
    for uncertain in all.uncertain_ages.clone() {
        assert!((uncertain.from..uncertain.until).contains(&Timestamp::from_millis(at)));
        let is_same_device = |entry: &CohortEntry| entry.member == uncertain.member;
        if !others
            .iter()
            .chain(&CohortEntry::of(&now))
            .any(is_same_device)
        {
            all.mark_inactive(&uncertain, &mut known);
        }
    }
    for uncertain in all.uncertain_payments.clone() {
        assert!((uncertain.from..uncertain.until).contains(&Timestamp::from_millis(at)));
        let still_pays =
            |entry: &CohortEntry| entry.member == uncertain.member && entry.revenue_micros > 0;
        if !CohortEntry::of(&now).iter().any(still_pays) {
            all.mark_unpaid(&uncertain, &mut known);
        }
    }
    rows.merge(all.rows);

    let (mut recounted, mut expected) = installed();
    let counted = others.iter().cloned().chain(CohortEntry::of(&now));
    expected.merge(update_cohorts(&counted.collect::<Vec<_>>(), &mut recounted).rows);
    rows.drop_zeros();
    expected.drop_zeros();
    assert_eq!((rows, known), (expected, recounted));
}

#[test]
fn only_an_event_that_leaves_a_device_makes_its_age_uncertain() {
    let entries = |before, now| {
        let (before, now) = (billed(DAY, before), billed(DAY, now));
        CohortEntry::for_replacement(&before, &now).collect::<Vec<_>>()
    };
    let count_uncertain = |entries: &[CohortEntry]| {
        let (mut known, _) = installed();
        update_cohorts(entries, &mut known).uncertain_ages.len()
    };
    assert_eq!(entries(PHONE, PHONE), []);
    assert_eq!(count_uncertain(&entries(NO_DEVICE, PHONE)), 0);
    assert_eq!(count_uncertain(&entries(PHONE, (PHONE.0, PHONE.1, 9))), 0);
    assert_eq!(count_uncertain(&entries(PHONE, TABLET)), 1);
    let back = [entries(PHONE, TABLET), entries(TABLET, PHONE)].concat();
    assert_eq!(
        count_uncertain(&back),
        1,
        "only the tablet's age is uncertain"
    );
    let (mut known, _) = installed();
    let found = update_cohorts(&entries(PHONE, TABLET), &mut known);
    let day = |day: i64| Timestamp::from_millis(day * DAY);
    let uncertain = found.uncertain_ages.first().unwrap();
    assert_eq!((uncertain.from, uncertain.until), (day(1), day(2)));
}
