//! Requests in a batch see each other's effects, and a batch equals its requests processed one by
//! one.

use super::*;
use crate::access::Environment;
use crate::attribution::evidence::ReferrerTimes;
use crate::attribution::{
    CreditedNetwork, Decision, EvidenceSummary, MatchState, MatchType, SettingsSummary,
};
use crate::device::{Consent, Device, DeviceKey, Platform, Traits};
use crate::event::memory::InMemoryEvents;
use crate::event::web::samples::{CLICK, web_event};
use crate::event::web::{WebEvent, WebEventKind};
use crate::forwarding::plan::samples::{APP, NOW, active};
use crate::install::Attribution;
use crate::integration::Network;
use crate::ledger::{MoneyPolicy, UncountedReason};
use crate::link::Campaign;
use crate::vocabulary::id::AttributionId;
use crate::vocabulary::money::Amount;
use SdkEventOutcome::{Accepted, Duplicate};
use proptest::prelude::*;
use rstest::rstest;

fn later(seconds: i64) -> Timestamp {
    Timestamp::from_millis(NOW.as_millis() + seconds * 1_000)
}

/// An event worth 5 USD. Events are ordered in time by number.
fn sent(number: u8, name: &str, id: &str) -> SdkEvent {
    SdkEvent {
        id: EventId::from_bytes([number; 16]),
        external_id: id.to_owned(),
        name: name.to_owned(),
        occurred_at: later(i64::from(number)),
        revenue: Amount::parse("5").ok(),
        currency: Some(Currency::USD),
        params: None,
        consent: None,
    }
}

fn request(device: &str, received_at: Timestamp, events: &[SdkEvent]) -> SdkRequest {
    SdkRequest {
        context: SdkRequestContext {
            app: APP,
            environment: Environment::Live,
            device: DeviceKey::stored(device.to_owned()),
            received_at,
            country: None,
            policy: MoneyPolicy::Count,
            requires_attestation: false,
            revenue_events: Vec::new(),
        },
        events: events.to_vec(),
    }
}

/// A configured device with this last-seen time, credited to a click.
fn configured(device: &str, last_seen_at: Timestamp) -> (DeviceKey, DeviceState) {
    let key = DeviceKey::stored(device.to_owned());
    let device = Device {
        key: key.clone(),
        traits: Traits {
            os_version: Some("17".to_owned()),
            ..Traits::of(Platform::Ios)
        },
        advertising_id: None,
        idfv: None,
        consent: Consent::default(),
        country: Some("DE".to_owned()),
        first_seen_at: last_seen_at,
        last_seen_at,
    };
    let id = AttributionId::from_bytes([6; 16]);
    let state = DeviceState {
        device: Some(device),
        attribution: Some(Attribution::first(id, credited(), last_seen_at)),
        ..DeviceState::default()
    };
    (key, state)
}

fn credited() -> Decision {
    Decision {
        state: MatchState::Attributed,
        match_type: MatchType::ClickId,
        network: CreditedNetwork::Ad(Network::B),
        confidence: None,
        click: Some(CLICK),
        link: None,
        campaign: Campaign::default(),
        keyword: None,
        network_click_id: None,
        deep_link: None,
        custom_data: BTreeMap::new(),
        query_params: BTreeMap::new(),
        reason: String::new(),
        flags: BTreeSet::new(),
        candidates: Vec::new(),
        evidence: EvidenceSummary::default(),
        times: ReferrerTimes::default(),
        settings: SettingsSummary {
            click_window_hours: 24,
            probabilistic: false,
            window_hours: 24,
        },
    }
}

#[rstest]
#[case::in_one_request(
    &[request("d", NOW, &[sent(1, "a", "x"), sent(2, "b", "x"), sent(3, "c", "y")])],
    vec![vec![Accepted, Duplicate, Accepted]]
)]
#[case::in_two_requests(
    &[request("d", NOW, &[sent(1, "a", "x")]), request("other", NOW, &[sent(2, "a", "x")])],
    vec![vec![Accepted], vec![Duplicate]]
)]
#[case::the_same_request_twice(
    &[request("d", NOW, &[sent(1, "a", "x")]), request("d", NOW, &[sent(1, "a", "x")])],
    vec![vec![Accepted], vec![Duplicate]]
)]
fn an_id_is_used_once(
    #[case] requests: &[SdkRequest],
    #[case] expected: Vec<Vec<SdkEventOutcome>>,
) {
    let mut memory = InMemoryEvents::default();
    assert_eq!(memory.send(requests), expected);
    let accepted = expected.iter().flatten();
    let accepted = accepted.filter(|answer| **answer == Accepted);
    assert_eq!(memory.events.len(), accepted.count());
}

/// The earliest payment is the first one, in whatever order the payments arrive.
#[rstest]
#[case::in_order(vec![vec![1], vec![2]], 1)]
#[case::the_earliest_in_a_later_request(vec![vec![2, 3], vec![1]], 1)]
#[case::the_earliest_later_in_a_request(vec![vec![3, 1, 2]], 1)]
fn the_earliest_payment_is_the_first(#[case] numbers: Vec<Vec<u8>>, #[case] expected: u8) {
    let requests = numbers.iter().map(|numbers| {
        let events = numbers.iter();
        let events = events.map(|number| sent(*number, "purchase", &format!("e{number}")));
        request("d", NOW, &events.collect::<Vec<_>>())
    });
    let mut memory = InMemoryEvents::default();
    memory.send(&requests.collect::<Vec<_>>());
    let first = memory.events.values().filter(|event| event.first_payment);
    let first: Vec<EventId> = first.map(|event| event.id).collect();
    assert_eq!(first, [EventId::from_bytes([expected; 16])]);
}

#[test]
fn an_sdk_event_that_a_website_reported_does_not_count() {
    let mut memory = InMemoryEvents::default();
    let web = WebEvent {
        external_id: "order".to_owned(),
        ..web_event(WebEventKind::Purchase, Some("5"))
    };
    assert_eq!(memory.post(std::slice::from_ref(&web)), [Ok(false)]);
    memory.send(&[request("d", NOW, &[sent(9, "purchase", "order")])]);
    let sdk = &memory.events[&EventId::from_bytes([9; 16])];
    assert_eq!(sdk.duplicate_of, Some(web.id));
    let revenue = sdk.revenue.as_ref().unwrap();
    assert_eq!(
        revenue.uncounted,
        Some(UncountedReason::DuplicateOfVerified)
    );
    assert!(!sdk.first_payment);
}

#[rstest]
#[case::a_moment_ago(&[3_599], None)]
#[case::an_hour_ago(&[3_600], Some(3_600))]
#[case::twice_in_a_batch(&[3_600, 3_700], Some(3_600))]
#[case::an_hour_apart(&[3_600, 7_200], Some(7_200))]
fn last_seen_is_updated_at_most_once_an_hour(#[case] calls: &[i64], #[case] expected: Option<i64>) {
    let calls = calls.iter().map(|at| request("d", later(*at), &[]));
    let requests: Vec<_> = calls.collect();
    let (key, state) = configured("d", NOW);
    let sender = DeviceRef {
        app: APP,
        environment: Environment::Live,
        key: &key,
    };
    let mut facts = SdkFacts::default();
    assert_eq!(decide(&requests, &facts).changes.seen, BTreeMap::new());
    facts.devices.insert(sender, state);
    let expected = expected.map(|at| (sender, later(at)));
    let seen = decide(&requests, &facts).changes.seen;
    assert_eq!(seen, expected.into_iter().collect());
}

#[rstest]
#[case::credited(Some(CLICK), true, Some(CLICK))]
#[case::organic(None, true, None)]
#[case::no_active_integration(Some(CLICK), false, None)]
fn a_click_is_loaded_only_if_an_integration_is_active(
    #[case] click: Option<ClickId>,
    #[case] is_sending: bool,
    #[case] expected: Option<ClickId>,
) {
    let (_, mut state) = configured("d", NOW);
    state.attribution.as_mut().unwrap().decision.click = click;
    let mut integration = active(Network::A);
    integration.enabled = is_sending;
    assert_eq!(planning_click(&state, &[integration]), expected);
    assert_eq!(
        planning_click(&DeviceState::default(), &[active(Network::A)]),
        None
    );
}

#[test]
fn events_take_credit_and_plan_from_their_device() {
    let mut memory = InMemoryEvents::default();
    memory.devices.extend([configured("d", NOW)]);
    let events = [sent(1, "purchase", "a"), sent(2, "sign_up", "b")];
    memory.send(&[
        request("d", NOW, &events),
        request("e", NOW, &[sent(3, "a", "c")]),
    ]);
    let credits = memory.events.values().map(|event| {
        let credit = event.credit.as_ref();
        (
            event.country.as_deref(),
            credit.and_then(|credit| credit.click),
        )
    });
    let of_device = (Some("DE"), Some(CLICK));
    assert_eq!(
        credits.collect::<Vec<_>>(),
        [of_device, of_device, (None, None)]
    );
    let planned = memory
        .planned
        .iter()
        .map(|(event, planned)| (*event, planned.network));
    let first = EventId::from_bytes([1; 16]);
    assert!(planned.collect::<Vec<_>>().contains(&(first, Network::B)));
}

fn any_request() -> impl Strategy<Value = SdkRequest> {
    let names = vec!["purchase", "subscribe", "sign_up", "custom"];
    let ids = vec!["a", "b", "c", "d", "e", "f", "g"];
    let event = (prop::sample::select(names), prop::sample::select(ids));
    let events = prop::collection::vec(event, 0..4);
    let device = prop::sample::select(vec!["x", "y", "z"]);
    (device, events, 0..10_000_i64).prop_map(|(device, events, at)| {
        let events = events.iter().map(|(name, id)| sent(0, name, id));
        request(device, later(at), &events.collect::<Vec<_>>())
    })
}

proptest! {
    #[test]
    fn a_batch_equals_its_requests_one_by_one(
        mut requests in prop::collection::vec(any_request(), 1..6),
        numbers in Just((1..=30_u8).collect::<Vec<_>>()).prop_shuffle(),
        reported in prop::sample::subsequence(vec!["a", "b"], 0..=2),
    ) {
        let mut numbers = numbers.into_iter();
        let mut before = InMemoryEvents::default();
        before.devices.extend([configured("x", NOW), configured("y", NOW)]);
        let web_events = reported.iter().map(|id| WebEvent {
            id: EventId::from_bytes([numbers.next().unwrap(); 16]),
            external_id: (*id).to_owned(),
            device: DeviceKey::stored("x".to_owned()),
            ..web_event(WebEventKind::Purchase, Some("5"))
        });
        before.post(&web_events.collect::<Vec<_>>());
        for event in requests.iter_mut().flat_map(|request| &mut request.events) {
            event.id = EventId::from_bytes([numbers.next().unwrap(); 16]);
        }
        let mut together = before.clone();
        let answers = together.send(&requests);
        let mut alone = before;
        let one_by_one = requests.chunks(1).flat_map(|one| alone.send(one));
        prop_assert_eq!(answers, one_by_one.collect::<Vec<_>>());
        prop_assert_eq!(together.outcome(), alone.outcome());
    }
}
