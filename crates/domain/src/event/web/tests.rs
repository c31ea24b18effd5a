//! Acceptance of web events and its effects.

use super::samples::{OTHER_APP, at, origin, web_click, web_event};
use super::*;
use crate::click::agent::BotReason;
use crate::integration::Network;
use crate::ledger::{PaymentKind, UncountedReason};
use crate::link::Campaign;
use rstest::rstest;

fn in_usd(web_event: &WebEvent) -> Option<ConvertedAmount> {
    web_event
        .exchange_day()
        .map(|(usd, _, rate_day)| ConvertedAmount {
            usd,
            rate_day,
            rate: "1".to_owned(),
            source: "identity".to_owned(),
        })
}

fn facts(web_event: &WebEvent) -> WebEventFacts {
    WebEventFacts {
        click: Some(Arc::new(web_click())),
        exchanged: in_usd(web_event),
        ..WebEventFacts::default()
    }
}

fn recorded(web_event: &WebEvent, facts: WebEventFacts) -> WebRecord {
    match accept(web_event, facts).expect("the event is accepted") {
        WebAcceptance::Recorded(record) => *record,
        WebAcceptance::Duplicate => panic!("expected a new event, got a duplicate"),
    }
}

/// Returns the receipt that later renewals and refunds see.
fn receipt(record: WebRecord) -> Option<Receipt> {
    Receipt::of(record.event, Amount::ZERO)
}

/// A payment of 100 USD credited to `network_a`.
fn payment(kind: PaymentKind) -> ParentEvent {
    let first = web_event(WebEventKind::Purchase, Some("100"));
    let facts = facts(&first);
    let mut receipt = receipt(recorded(&first, facts)).expect("a purchase is a payment");
    receipt.kind = kind;
    receipt.credit = Credit {
        network: CreditedNetwork::Ad(Network::A),
        match_type: MatchType::ClickId,
        link: None,
        click: None,
        campaign: Campaign::default(),
        hold: None,
    };
    ParentEvent::Payment(Box::new(receipt))
}

/// Facts in which an accepted event already has this id.
fn facts_with_existing(first: &WebEvent) -> WebEventFacts {
    let record = recorded(first, facts(first));
    WebEventFacts {
        existing: Some(ExistingEvent {
            fingerprint: record.fingerprint,
            event: Some(Box::new(record.event)),
        }),
        ..WebEventFacts::default()
    }
}

/// Returns the fields that a conflict names.
fn conflict(outcome: Result<WebAcceptance, Refusal>) -> Vec<String> {
    match outcome {
        Err(Refusal::EventIdConflict(faults)) => {
            faults.iter().map(|fault| fault.field.clone()).collect()
        }
        other => panic!("expected a conflict, got {other:?}"),
    }
}

#[test]
fn a_repeat_is_a_duplicate_and_a_different_payload_a_conflict() {
    let first = web_event(WebEventKind::Purchase, Some("49.9"));
    // An identical repeat is accepted even if the click was deleted since.
    let facts = facts_with_existing(&first);
    assert_eq!(accept(&first, facts.clone()), Ok(WebAcceptance::Duplicate));
    let another = web_event(WebEventKind::Purchase, Some("49.91"));
    assert_eq!(conflict(accept(&another, facts.clone())), ["revenue"]);
    let mut removed = facts;
    if let Some(before) = &mut removed.existing {
        before.event = None;
    }
    assert_eq!(conflict(accept(&another, removed)), [""; 0]);
}

#[rstest]
#[case::click(|event: &mut WebEvent| {
    event.click_text = "clk_other".to_owned();
    event.click = None;
}, &["arClickId"])]
#[case::device(|event: &mut WebEvent| event.device = DeviceKey::stored("another".to_owned()), &["deviceId"])]
#[case::time(|event: &mut WebEvent| event.occurred_at = at(1), &["timestampMs"])]
#[case::kind(|event: &mut WebEvent| event.kind = WebEventKind::StartTrial, &["eventType"])]
#[case::currency(|event: &mut WebEvent| event.currency = Currency::from_stored("EUR"), &["currency"])]
#[case::page(|event: &mut WebEvent| event.source_url = "https://shop.example.com/".to_owned(), &["sourceUrl"])]
#[case::parent(|event: &mut WebEvent| event.parent = Some("order-9".to_owned()), &["originalTransactionId"])]
#[case::email(|event: &mut WebEvent| event.email_sha256 = Some("ab".repeat(32)), &["emailSha256"])]
#[case::several(|event: &mut WebEvent| {
    event.click_text = "clk_other".to_owned();
    event.click = None;
    event.amount = Some(Amount::from_micros(1));
    event.email_sha256 = Some("ab".repeat(32));
}, &["arClickId", "revenue", "emailSha256"])]
fn a_conflict_names_the_fields_that_differ(
    #[case] change: fn(&mut WebEvent),
    #[case] expected: &[&str],
    #[values(WebEventKind::Purchase, WebEventKind::Renewal, WebEventKind::SignUp)]
    kind: WebEventKind,
) {
    let first = web_event(kind, (kind != WebEventKind::SignUp).then_some("10"));
    let mut facts = facts(&first);
    facts.parent = Some(payment(PaymentKind::Purchase));
    let record = recorded(&first, facts);
    let before = ExistingEvent {
        fingerprint: record.fingerprint,
        event: Some(Box::new(record.event)),
    };
    let facts = WebEventFacts {
        existing: Some(before),
        ..WebEventFacts::default()
    };
    let mut other = first;
    change(&mut other);
    assert_eq!(conflict(accept(&other, facts)), expected);
}

#[test]
fn a_conflict_with_an_erased_event_names_the_erased_fields() {
    let first = web_event(WebEventKind::Purchase, Some("10"));
    let mut facts = facts_with_existing(&first);
    let before = facts.existing.as_mut().unwrap();
    let erasure = crate::erasure::Erasure {
        device: first.device.clone(),
        pseudonym: crate::erasure::pseudonym([7; 16]),
        person: crate::personal_data::PersonIds::default(),
    };
    before.event = before
        .event
        .take()
        .map(|event| Box::new(erasure.erase_event(*event)));
    let mut other = first.clone();
    other.amount = Some(Amount::from_micros(1));
    assert_eq!(conflict(accept(&other, facts.clone())), ["revenue"]);
    other.device = DeviceKey::stored("another".to_owned());
    let fields = ["deviceId", "revenue", "sourceUrl", "emailSha256"];
    assert_eq!(conflict(accept(&other, facts)), fields);
}

#[rstest]
#[case::click(|event: &mut WebEvent| event.click_text = "clk_other".to_owned())]
#[case::device(|event: &mut WebEvent| event.device = DeviceKey::stored("another".to_owned()))]
#[case::time(|event: &mut WebEvent| event.occurred_at = at(1))]
#[case::kind(|event: &mut WebEvent| event.kind = WebEventKind::StartTrial)]
#[case::amount(|event: &mut WebEvent| event.amount = Some(Amount::from_micros(1)))]
#[case::currency(|event: &mut WebEvent| event.currency = Currency::from_stored("EUR"))]
#[case::page(|event: &mut WebEvent| event.source_url = "https://shop.example.com/".to_owned())]
#[case::parent(|event: &mut WebEvent| event.parent = Some("order-0".to_owned()))]
#[case::person(|event: &mut WebEvent| event.email_sha256 = Some("ab".repeat(32)))]
fn the_fingerprint_covers_every_value(#[case] change: fn(&mut WebEvent)) {
    let first = web_event(WebEventKind::Purchase, Some("10"));
    let mut other = first.clone();
    change(&mut other);
    assert_ne!(first.fingerprint(), other.fingerprint());
    // Arrival time and internal id are not part of the payload.
    let mut later = first.clone();
    later.received_at = at(99);
    later.id = EventId::from_bytes([7; 16]);
    assert_eq!(first.fingerprint(), later.fingerprint());
}

#[rstest]
#[case::verified(|_: &mut WebEvent, _: &mut Option<WebClick>| {}, None)]
#[case::forged(|event: &mut WebEvent, _: &mut Option<WebClick>| event.click = None, Some(Refusal::ClickNotVerified))]
#[case::not_stored(|_: &mut WebEvent, click: &mut Option<WebClick>| *click = None, Some(Refusal::ClickNotVerified))]
#[case::of_another_app(
    |_: &mut WebEvent, click: &mut Option<WebClick>| if let Some(found) = click { found.click.app = OTHER_APP },
    Some(Refusal::ClickNotVerified)
)]
#[case::from_a_bot(
    |_: &mut WebEvent, click: &mut Option<WebClick>| if let Some(found) = click { found.click.bot = Some(BotReason::Head) },
    Some(Refusal::ClickNotVerified)
)]
#[case::on_a_test_link(
    |_: &mut WebEvent, click: &mut Option<WebClick>| if let Some(found) = click { found.click.bot = Some(BotReason::TestLink) },
    Some(Refusal::TestClick)
)]
#[case::in_the_test_environment(
    |_: &mut WebEvent, click: &mut Option<WebClick>| if let Some(found) = click { found.click.environment = Some(Environment::Test) },
    Some(Refusal::ClickNotVerified)
)]
#[case::without_network(
    |_: &mut WebEvent, click: &mut Option<WebClick>| if let Some(found) = click { found.click.network = None },
    Some(Refusal::ClickNetworkUnsupported)
)]
#[case::of_an_app_install_link(
    |_: &mut WebEvent, click: &mut Option<WebClick>| if let Some(found) = click { found.is_web_funnel = false },
    Some(Refusal::OriginMismatch)
)]
#[case::another_origin(
    |event: &mut WebEvent, _: &mut Option<WebClick>| event.origin = origin("https://evil.example.com"),
    Some(Refusal::OriginMismatch)
)]
#[case::another_port(
    |event: &mut WebEvent, _: &mut Option<WebClick>| event.origin = origin("https://shop.example.com:8443"),
    Some(Refusal::OriginMismatch)
)]
#[case::current_link_origin(
    |event: &mut WebEvent, click: &mut Option<WebClick>| {
        event.origin = origin("https://new.example.com");
        if let Some(found) = click { found.link_origin = Some(origin("https://new.example.com")) }
    },
    None
)]
#[case::link_origin_at_click_time(
    |_: &mut WebEvent, click: &mut Option<WebClick>| if let Some(found) = click { found.link_origin = None },
    None
)]
fn click_and_origin_are_verified(
    #[case] change: fn(&mut WebEvent, &mut Option<WebClick>),
    #[case] expected: Option<Refusal>,
) {
    let mut event = web_event(WebEventKind::SignUp, None);
    let mut click = Some(web_click());
    change(&mut event, &mut click);
    let facts = WebEventFacts {
        click: click.map(Arc::new),
        ..WebEventFacts::default()
    };
    assert_eq!(accept(&event, facts).err(), expected);
}

#[rstest]
#[case::at_the_click(-60_000, true)]
#[case::ten_minutes_before_the_click(-660_000, true)]
#[case::earlier(-660_001, false)]
#[case::much_earlier(-400 * 86_400_000, false)]
fn rejects_an_event_earlier_than_its_click(#[case] offset: i64, #[case] accepted: bool) {
    let mut event = web_event(WebEventKind::Purchase, Some("10"));
    event.occurred_at = Timestamp::from_millis(at(0).as_millis() + offset);
    let outcome = accept(&event, facts(&event));
    match outcome {
        Ok(_) => assert!(accepted),
        Err(Refusal::Invalid(faults)) => {
            let fields: Vec<&str> = faults.iter().map(|fault| fault.field.as_str()).collect();
            assert_eq!((fields, accepted), (vec!["timestampMs"], false));
        }
        Err(other) => panic!("{other}"),
    }
    // A repeat of an accepted event is not checked again.
    let repeated = WebEventFacts {
        existing: Some(ExistingEvent {
            fingerprint: event.fingerprint(),
            event: None,
        }),
        ..facts(&event)
    };
    assert_eq!(accept(&event, repeated), Ok(WebAcceptance::Duplicate));
}

#[rstest]
#[case::purchase(WebEventKind::Purchase, Some("9.99"), None, 9_990_000)]
#[case::purchase_over_the_limit(
    WebEventKind::Purchase,
    Some("2000.01"),
    Some(UncountedReason::OverLimit),
    0
)]
#[case::checkout_started(
    WebEventKind::CheckoutStarted,
    Some("9.99"),
    Some(UncountedReason::Predicted),
    0
)]
#[case::start_trial(
    WebEventKind::StartTrial,
    Some("9.99"),
    Some(UncountedReason::Predicted),
    0
)]
fn only_payments_count(
    #[case] kind: WebEventKind,
    #[case] amount: Option<&str>,
    #[case] uncounted: Option<UncountedReason>,
    #[case] counted: i64,
) {
    let event = web_event(kind, amount);
    let record = recorded(&event, facts(&event));
    let revenue = record.event.revenue.as_ref().expect("the amount is stored");
    assert_eq!(
        (revenue.uncounted, revenue.counted_usd().micros()),
        (uncounted, counted)
    );
    assert_eq!(record.event.first_payment, counted > 0);
    assert_eq!(record.event.name, kind.as_str());
    assert_eq!(record.event.country.as_deref(), Some("DE"));
    assert_eq!(receipt(record).is_some(), kind == WebEventKind::Purchase);
}

#[test]
fn a_placeholder_device_has_no_first_payment() {
    for device in ["00000000-0000-0000-0000-000000000000", "9774d56d682e549c"] {
        let mut event = web_event(WebEventKind::Purchase, Some("10"));
        event.device = DeviceKey::parse_any(device).unwrap();
        let event = recorded(&event, facts(&event)).event;
        let counted = event.revenue.map(|revenue| revenue.counted_usd().micros());
        assert_eq!((counted, event.first_payment), (Some(10_000_000), false));
    }
}

#[test]
fn a_sign_up_carries_no_money() {
    for amount in [None, Some("0")] {
        let mut event = web_event(WebEventKind::SignUp, amount);
        event.currency = None;
        let record = recorded(&event, facts(&event));
        let credit = record.event.credit.as_ref();
        let network = credit.map(|credit| credit.network);
        assert_eq!(network, Some(CreditedNetwork::Ad(Network::D)));
        assert!(record.event.revenue.is_none() && receipt(record).is_none());
    }
}

#[test]
fn a_renewal_is_credited_to_its_purchase() {
    let event = web_event(WebEventKind::Renewal, Some("100"));
    let with = |parent| WebEventFacts {
        parent,
        ..facts(&event)
    };
    let record = recorded(&event, with(Some(payment(PaymentKind::Purchase))));
    let receipt = receipt(record).expect("a renewal is a payment");
    assert_eq!(receipt.credit.network, CreditedNetwork::Ad(Network::A));
    assert_eq!(receipt.kind, PaymentKind::Renewal);
    assert_eq!(
        accept(&event, with(None)),
        Err(Refusal::OriginalTransactionUnavailable)
    );
    let invalid = accept(&event, with(Some(payment(PaymentKind::Renewal))));
    assert_eq!(invalid, Err(Refusal::OriginalTransactionInvalid));
}

#[test]
fn a_refund_is_bound_to_its_payment() {
    let event = web_event(WebEventKind::Refund, Some("-60"));
    let with = |parent| WebEventFacts {
        parent: Some(parent),
        ..facts(&event)
    };
    let record = recorded(&event, with(payment(PaymentKind::Renewal)));
    let revenue = record.event.revenue.as_ref().expect("a refund has revenue");
    assert_eq!(revenue.counted_usd().micros(), -60_000_000);
    assert!(!record.event.first_payment);
    let after = record.refunded.clone();
    let after = after.expect("the updated payment is returned");
    assert!(receipt(record).is_none());
    assert_eq!(after.refunded.micros(), 60_000_000);
    let again = accept(&event, with(ParentEvent::Payment(Box::new(after))));
    assert_eq!(again, Err(Refusal::RefundExceedsPayment));
    assert_eq!(
        accept(&event, with(ParentEvent::NotAPayment)),
        Err(Refusal::OriginalTransactionInvalid)
    );
}

#[rstest]
#[case::renewal(WebEventKind::Renewal, "10")]
#[case::refund(WebEventKind::Refund, "-10")]
fn rejects_an_event_that_names_itself_as_parent(#[case] kind: WebEventKind, #[case] amount: &str) {
    let mut event = web_event(kind, Some(amount));
    event.parent = Some(event.external_id.clone());
    let outcome = accept(&event, facts(&event));
    assert_eq!(outcome, Err(Refusal::OriginalTransactionInvalid));
    // The click is checked first, as for every parent.
    let outcome = accept(&event, WebEventFacts::default());
    assert_eq!(outcome, Err(Refusal::ClickNotVerified));
}

#[test]
fn checks_run_in_contract_order() {
    let mut event = web_event(WebEventKind::Refund, Some("-1000"));
    event.origin = origin("https://evil.example.com");
    let mut facts = facts(&event);
    let refused = |facts: &WebEventFacts| accept(&event, facts.clone()).unwrap_err();
    facts.click = None;
    assert_eq!(
        refused(&facts),
        Refusal::ClickNotVerified,
        "the click is checked before the origin"
    );
    facts.click = Some(Arc::new(web_click()));
    assert_eq!(
        refused(&facts),
        Refusal::OriginMismatch,
        "the origin is checked before the parent"
    );
    let mut there = event.clone();
    there.origin = origin("https://shop.example.com");
    assert_eq!(
        accept(&there, facts.clone()),
        Err(Refusal::OriginalTransactionUnavailable)
    );
    facts.parent = Some(payment(PaymentKind::Purchase));
    assert_eq!(
        accept(&there, facts),
        Err(Refusal::RefundExceedsPayment),
        "the refund limit is checked last"
    );
}
