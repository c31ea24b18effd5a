//! Cohorts: who is counted where, and when.

use super::*;
use crate::attribution::{CreditedNetwork, MatchType};
use crate::event::EventSource;
use crate::integration::Network;
use crate::ledger::Revenue;
use crate::link::Campaign;
use crate::vocabulary::id::EventId;
use crate::vocabulary::money::Amount;
use rstest::rstest;

const DAY: i64 = 24 * 60 * 60 * 1_000;

fn credit(network: CreditedNetwork) -> Credit {
    Credit {
        network,
        match_type: MatchType::ClickId,
        link: None,
        click: None,
        campaign: Campaign::default(),
    }
}

fn event(name: &str, at: i64, paid: i64) -> Event {
    Event {
        id: EventId::from_bytes([1; 16]),
        given_id: "e".to_owned(),
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
        own: name == "install",
        skipped: Vec::new(),
        website: None,
    }
}

fn entry(name: &str, at: i64, paid: i64) -> CohortEntry {
    CohortEntry::of(&event(name, at, paid)).unwrap()
}

/// Network, age, devices and money of every row.
fn told(rows: &CohortRows) -> Vec<(&'static str, u8, i64, i64)> {
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
fn ages(#[case] after: i64, #[case] expected: Option<u8>) {
    let installed_at = Timestamp::from_millis(0);
    assert_eq!(age(installed_at, Timestamp::from_millis(after)), expected);
}

#[test]
fn a_device_is_seen_once_an_age_and_its_money_adds_up() {
    let mut known = BTreeMap::new();
    let entries = [
        entry("install", 0, 0),
        entry("open", 1, 0),
        entry("purchase", DAY + 1, 5),
        entry("refund", DAY + 2, -2),
        entry("open", DAY + 3, 0),
    ];
    let (rows, changed) = enroll(&entries, &mut known);
    assert_eq!(told(&rows), [("organic", 0, 1, 0), ("organic", 1, 1, 3)]);
    assert_eq!(changed.len(), 1);
    let (rows, changed) = enroll(&[entry("open", DAY + 9, 0)], &mut known);
    assert_eq!((told(&rows).len(), changed.len()), (0, 0), "it was seen");
}

#[test]
fn a_moved_install_takes_everything_along() {
    let mut known = BTreeMap::new();
    let before = [entry("install", 0, 0), entry("purchase", DAY, 5)];
    let (mut all, _) = enroll(&before, &mut known);
    let better = credit(CreditedNetwork::Ad(Network::A));
    let moved = |name: &str, at: i64, paid: i64| {
        let mut event = event(name, at, paid);
        let from = event.credit.replace(better.clone());
        CohortEntry::of(&event).unwrap().moved(from)
    };
    for order in [[0, 1], [1, 0]] {
        let mut known = known.clone();
        let entries = [moved("install", 0, 0), moved("purchase", DAY, 5)];
        let entries = order.map(|place| entries[place].clone());
        let (rows, _) = enroll(&entries, &mut known);
        let mut sum = all.clone();
        sum.merge(rows);
        assert_eq!(told(&sum), [("network_a", 0, 1, 0), ("network_a", 1, 1, 5)]);
    }
    all.drop_zeros();
    assert_eq!(all.places.len(), 2);
}

#[test]
fn events_before_the_first_call_count_with_it() {
    let mut early = event("purchase", -10, 7);
    early.credit = None;
    assert_eq!(CohortEntry::of(&early), None);
    early.credit = Some(credit(CreditedNetwork::Organic));
    let early = CohortEntry::of(&early).unwrap().moved(None);
    let (rows, _) = enroll(&[early, entry("install", 0, 0)], &mut BTreeMap::new());
    assert_eq!(told(&rows), [("organic", 0, 1, 7)]);
}

#[test]
fn what_belongs_to_no_install_is_in_no_cohort() {
    let website = Event {
        source: EventSource::Web,
        ..event("purchase", 0, 5)
    };
    assert_eq!(CohortEntry::of(&website), None);
    let (rows, _) = enroll(&[entry("purchase", 0, 5)], &mut BTreeMap::new());
    assert_eq!(rows, CohortRows::default());
}

#[test]
fn ages_survive_their_bytes() {
    let mut ages = Ages::default();
    assert!(ages.note(0) && ages.note(127) && !ages.note(127));
    let read = Ages::from_bytes(ages.to_bytes());
    assert_eq!(read.each().collect::<Vec<_>>(), [0, 127]);
}
