//! Web events in a batch see each other's effects, and a batch equals its events processed one by
//! one.

use super::super::samples::{APP, CLICK, at, web_event};
use super::super::{WebEventKind, WebEventKind as Kind};
use super::*;
use crate::event::memory::InMemoryEvents;
use crate::forwarding::plan::samples::{event as sample, worth};
use crate::vocabulary::currency::Currency;
use proptest::prelude::*;
use rstest::rstest;

/// A web event worth 10 USD, or a refund of 4 USD. Events are ordered in time by number.
fn numbered_event(
    number: u8,
    kind: WebEventKind,
    id: &str,
    parent: Option<&str>,
    device: &str,
) -> WebEvent {
    let amount = if kind == Kind::Refund { "-4" } else { "10" };
    WebEvent {
        id: EventId::from_bytes([number; 16]),
        external_id: id.to_owned(),
        device: DeviceKey::stored(device.to_owned()),
        occurred_at: at(i64::from(number)),
        received_at: at(300),
        amount: Amount::parse(amount).ok(),
        currency: Some(Currency::USD),
        parent: parent.map(str::to_owned),
        ..web_event(kind, None)
    }
}

fn purchase(number: u8, id: &str) -> WebEvent {
    numbered_event(number, Kind::Purchase, id, None, "d")
}

fn refund(number: u8, id: &str, parent: &str) -> WebEvent {
    numbered_event(number, Kind::Refund, id, Some(parent), "d")
}

fn forged(web_event: WebEvent) -> WebEvent {
    WebEvent {
        click: None,
        ..web_event
    }
}

/// An SDK event worth 1 USD that reserved its id.
fn reported(number: u8, id: &str, name: &str, device: &str) -> Event {
    let mut event = sample(name);
    event.id = EventId::from_bytes([number; 16]);
    event.external_id = id.to_owned();
    event.device = Some(DeviceKey::stored(device.to_owned()));
    event.revenue = Some(worth(Some("1"), None));
    event
}

const NEW: Result<bool, Refusal> = Ok(false);
const AGAIN: Result<bool, Refusal> = Ok(true);

#[rstest]
#[case::a_refund_finds_its_payment(&[purchase(1, "p"), refund(2, "f", "p")], &[NEW, NEW])]
#[case::a_refund_before_its_payment(
    &[refund(1, "f", "p"), purchase(2, "p"), refund(3, "f", "p")],
    &[Err(Refusal::OriginalTransactionUnavailable), NEW, NEW]
)]
#[case::refunds_add_up(
    &[purchase(1, "p"), refund(2, "f", "p"), refund(3, "g", "p"), refund(4, "h", "p")],
    &[NEW, NEW, NEW, Err(Refusal::RefundExceedsPayment)]
)]
#[case::refunds_of_an_earlier_batch_count(
    &[refund(4, "h", "q"), refund(5, "i", "q")],
    &[NEW, Err(Refusal::RefundExceedsPayment)]
)]
#[case::a_renewal_finds_its_purchase(
    &[purchase(1, "p"), numbered_event(2, Kind::Renewal, "n", Some("p"), "d"), refund(3, "f", "n")],
    &[NEW, NEW, NEW]
)]
#[case::a_refund_of_a_refund(
    &[purchase(1, "p"), refund(2, "f", "p"), refund(3, "g", "f")],
    &[NEW, NEW, Err(Refusal::OriginalTransactionInvalid)]
)]
#[case::repeated(&[purchase(1, "p"), purchase(1, "p")], &[NEW, AGAIN])]
#[case::the_id_of_a_rejected_event_is_free(
    &[forged(purchase(1, "p")), purchase(2, "p")],
    &[Err(Refusal::ClickNotVerified), NEW]
)]
fn events_of_a_batch_see_each_other(
    #[case] web_events: &[WebEvent],
    #[case] expected: &[Result<bool, Refusal>],
) {
    let mut memory = InMemoryEvents::default();
    memory.post(&[purchase(7, "q"), refund(8, "r", "q")]);
    assert_eq!(memory.post(web_events), expected);
}

#[test]
fn a_different_payload_with_an_id_of_the_batch_is_a_conflict() {
    let mut other = purchase(1, "p");
    other.amount = Some(Amount::from_micros(1));
    let answers = InMemoryEvents::default().post(&[purchase(1, "p"), other]);
    assert!(matches!(&answers[1], Err(Refusal::EventIdConflict(_))));
}

#[test]
fn a_duplicate_returns_the_first_arrival_time() {
    let first = purchase(1, "p");
    let again = WebEvent {
        received_at: at(900),
        ..first.clone()
    };
    let facts = WebFacts {
        clicks: BTreeMap::from([(
            (APP, CLICK),
            StoredWebClick {
                click: Arc::new(super::super::samples::web_click()),
                is_referenced: false,
            },
        )]),
        ..WebFacts::default()
    };
    let web_events = [first, again];
    let decisions = decide(&web_events, &facts);
    let arrivals = decisions.answers.into_iter().map(Result::unwrap);
    let arrivals: Vec<_> = arrivals.map(|answer| answer.received_at).collect();
    assert_eq!(arrivals, [at(300), at(300)]);
    assert_eq!(decisions.changes.clicks, BTreeSet::from([(APP, CLICK)]));
}

/// The earliest payment is the first one, in whatever order the payments arrive.
#[rstest]
#[case::in_order(&[1, 2, 3], 1)]
#[case::the_earliest_last(&[3, 2, 1], 1)]
#[case::the_earliest_between(&[2, 1, 3], 1)]
fn the_earliest_payment_is_the_first(#[case] numbers: &[u8], #[case] expected: u8) {
    let web_events: Vec<WebEvent> = numbers
        .iter()
        .map(|number| purchase(*number, &format!("p{number}")))
        .collect();
    let mut memory = InMemoryEvents::default();
    memory.post(&web_events);
    let first = memory.events.values().filter(|event| event.first_payment);
    let first: Vec<EventId> = first.map(|event| event.id).collect();
    assert_eq!(first, [EventId::from_bytes([expected; 16])]);
}

#[rstest]
#[case::of_the_same_device("d", "purchase", true)]
#[case::of_another_device("other", "purchase", true)]
#[case::of_another_kind("d", "sign_up", false)]
fn a_web_event_takes_over_a_reserved_id(
    #[case] device: &str,
    #[case] name: &str,
    #[case] demotes: bool,
) {
    let mut sdk = reported(9, "p", name, device);
    sdk.first_payment = true;
    let mut memory = InMemoryEvents::default();
    memory.report(sdk);
    assert_eq!(
        memory.post(&[purchase(2, "p"), purchase(2, "p")]),
        [NEW, AGAIN]
    );
    let sdk = &memory.events[&EventId::from_bytes([9; 16])];
    assert_eq!(sdk.duplicate_of.is_some(), demotes);
    let web = &memory.events[&EventId::from_bytes([2; 16])];
    assert!(web.first_payment, "it is the device's earliest payment");
    assert_eq!(web.dedup_root, demotes.then_some(sdk.id));
}

fn any_web_event() -> impl Strategy<Value = WebEvent> {
    let kind = prop_oneof![
        3 => Just(Kind::Purchase),
        1 => Just(Kind::Renewal),
        3 => Just(Kind::Refund),
        1 => Just(Kind::SignUp),
    ];
    let id = || prop::sample::select(vec!["a", "b", "c", "d", "e"]);
    let device = prop::sample::select(vec!["x", "y"]);
    let parts = (kind, id(), id(), device, prop::bool::weighted(0.1));
    parts.prop_map(|(kind, id, parent, device, is_forged)| {
        let parent = kind.has_parent().then_some(parent);
        let event = numbered_event(0, kind, id, parent, device);
        if is_forged { forged(event) } else { event }
    })
}

fn any_reported() -> impl Strategy<Value = Event> {
    let name = prop::sample::select(vec!["purchase", "sign_up", "refund"]);
    let device = prop::sample::select(vec!["x", "y"]);
    (name, device).prop_map(|(name, device)| reported(0, "", name, device))
}

/// Shuffled numbers from 1 to `count`, because events arrive out of order.
fn numbers(count: u8) -> impl Strategy<Value = Vec<u8>> {
    Just((1..=count).collect::<Vec<u8>>()).prop_shuffle()
}

proptest! {
    #[test]
    fn a_batch_equals_its_events_one_by_one(
        mut web_events in prop::collection::vec(any_web_event(), 1..12),
        mut sdk in prop::collection::vec(any_reported(), 0..3),
        numbers in numbers(16),
        repeated in 0..12_usize,
        earlier in 0..8_usize,
    ) {
        let mut numbers = numbers.into_iter();
        let mut before = InMemoryEvents::default();
        for (event, id) in sdk.iter_mut().zip(["a", "b", "c"]) {
            event.id = EventId::from_bytes([numbers.next().unwrap(); 16]);
            event.external_id = id.to_owned();
            let device = event.device.clone().unwrap();
            event.first_payment = !before.first_payments.contains_key(&device);
            before.report(event.clone());
        }
        for (web_event, number) in web_events.iter_mut().zip(numbers) {
            web_event.id = EventId::from_bytes([number; 16]);
            web_event.occurred_at = at(i64::from(number));
        }
        web_events.extend(web_events.get(repeated).cloned());
        let (earlier, web_events) = web_events.split_at(earlier.min(web_events.len()));
        before.post(earlier);
        let mut together = before.clone();
        let answers = together.post(web_events);
        let mut alone = before;
        let one_by_one = web_events.chunks(1).flat_map(|one| alone.post(one));
        prop_assert_eq!(answers, one_by_one.collect::<Vec<_>>());
        prop_assert_eq!(together.outcome(), alone.outcome());
    }
}
