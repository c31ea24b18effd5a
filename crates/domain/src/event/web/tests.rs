//! Which posts are accepted, and what they do.

use super::samples::{OTHER_APP, at, origin, posted, web_click};
use super::*;
use crate::click::agent::BotReason;
use crate::integration::Network;
use crate::ledger::{PaymentKind, UncountedReason};
use crate::link::Campaign;
use rstest::rstest;

fn in_usd(posted: &WebEvent) -> Option<ConvertedAmount> {
    posted
        .exchange_day()
        .map(|(usd, _, rate_day)| ConvertedAmount {
            usd,
            rate_day,
            rate: "1".to_owned(),
            source: "identity".to_owned(),
        })
}

fn facts(posted: &WebEvent) -> WebEventFacts {
    WebEventFacts {
        click: Some(Arc::new(web_click())),
        exchanged: in_usd(posted),
        ..WebEventFacts::default()
    }
}

fn recorded(posted: &WebEvent, facts: WebEventFacts) -> WebRecord {
    match accept(posted, facts).expect("it is accepted") {
        WebAcceptance::Recorded(record) => *record,
        WebAcceptance::Duplicate => panic!("it is new"),
    }
}

/// What renewals and refunds of it will find.
fn receipt(record: WebRecord) -> Option<Receipt> {
    Receipt::of(record.event, Amount::ZERO)
}

/// A payment of 100 USD that network A brought.
fn payment(kind: PaymentKind) -> ParentEvent {
    let first = posted(WebEventKind::Purchase, Some("100"));
    let facts = facts(&first);
    let mut receipt = receipt(recorded(&first, facts)).expect("a purchase is a payment");
    receipt.kind = kind;
    receipt.credit = Credit {
        network: CreditedNetwork::Ad(Network::A),
        match_type: MatchType::ClickId,
        link: None,
        click: None,
        campaign: Campaign::default(),
    };
    ParentEvent::Payment(Box::new(receipt))
}

/// The facts about a post whose id an accepted post has already.
fn known(first: &WebEvent) -> WebEventFacts {
    let record = recorded(first, facts(first));
    WebEventFacts {
        existing: Some(ExistingEvent {
            fingerprint: record.fingerprint,
            event: Some(Box::new(record.event)),
        }),
        ..WebEventFacts::default()
    }
}

/// The fields that a conflict names.
fn conflict(outcome: Result<WebAcceptance, Refusal>) -> Vec<String> {
    match outcome {
        Err(Refusal::EventIdConflict(faults)) => {
            faults.iter().map(|fault| fault.field.clone()).collect()
        }
        other => panic!("it is a conflict: {other:?}"),
    }
}

#[test]
fn the_same_again_is_the_same_event_and_another_payload_a_conflict() {
    let first = posted(WebEventKind::Purchase, Some("49.9"));
    // An identical repeat is accepted even if the click has gone since.
    let facts = known(&first);
    assert_eq!(accept(&first, facts.clone()), Ok(WebAcceptance::Duplicate));
    let another = posted(WebEventKind::Purchase, Some("49.91"));
    assert_eq!(conflict(accept(&another, facts.clone())), ["revenue"]);
    let mut removed = facts;
    if let Some(before) = &mut removed.existing {
        before.event = None;
    }
    assert_eq!(conflict(accept(&another, removed)), [""; 0]);
}

#[rstest]
#[case::click(|post: &mut WebEvent| {
    post.click_text = "clk_other".to_owned();
    post.click = None;
}, &["arClickId"])]
#[case::device(|post: &mut WebEvent| post.device = DeviceKey::stored("another".to_owned()), &["deviceId"])]
#[case::time(|post: &mut WebEvent| post.occurred_at = at(1), &["timestampMs"])]
#[case::kind(|post: &mut WebEvent| post.kind = WebEventKind::StartTrial, &["eventType"])]
#[case::currency(|post: &mut WebEvent| post.currency = Currency::from_stored("EUR"), &["currency"])]
#[case::page(|post: &mut WebEvent| post.source_url = "https://shop.example.com/".to_owned(), &["sourceUrl"])]
#[case::parent(|post: &mut WebEvent| post.parent = Some("order-9".to_owned()), &["originalTransactionId"])]
#[case::email(|post: &mut WebEvent| post.email_sha256 = Some("ab".repeat(32)), &["emailSha256"])]
#[case::several(|post: &mut WebEvent| {
    post.click_text = "clk_other".to_owned();
    post.click = None;
    post.amount = Some(Amount::from_micros(1));
    post.email_sha256 = Some("ab".repeat(32));
}, &["arClickId", "revenue", "emailSha256"])]
fn a_conflict_names_the_fields_that_differ(
    #[case] change: fn(&mut WebEvent),
    #[case] expected: &[&str],
    #[values(WebEventKind::Purchase, WebEventKind::Renewal, WebEventKind::SignUp)]
    kind: WebEventKind,
) {
    let first = posted(kind, (kind != WebEventKind::SignUp).then_some("10"));
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
fn a_conflict_with_an_erased_event_names_what_cannot_be_compared() {
    let first = posted(WebEventKind::Purchase, Some("10"));
    let mut facts = known(&first);
    let before = facts.existing.as_mut().unwrap();
    let erasure = crate::erasure::Erasure {
        device: first.device.clone(),
        pseudonym: crate::erasure::pseudonym([7; 16]),
        people: Vec::new(),
        advertising: Vec::new(),
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
#[case::click(|post: &mut WebEvent| post.click_text = "clk_other".to_owned())]
#[case::device(|post: &mut WebEvent| post.device = DeviceKey::stored("another".to_owned()))]
#[case::time(|post: &mut WebEvent| post.occurred_at = at(1))]
#[case::kind(|post: &mut WebEvent| post.kind = WebEventKind::StartTrial)]
#[case::amount(|post: &mut WebEvent| post.amount = Some(Amount::from_micros(1)))]
#[case::currency(|post: &mut WebEvent| post.currency = Currency::from_stored("EUR"))]
#[case::page(|post: &mut WebEvent| post.source_url = "https://shop.example.com/".to_owned())]
#[case::parent(|post: &mut WebEvent| post.parent = Some("order-0".to_owned()))]
#[case::person(|post: &mut WebEvent| post.email_sha256 = Some("ab".repeat(32)))]
fn every_value_tells_payloads_apart(#[case] change: fn(&mut WebEvent)) {
    let first = posted(WebEventKind::Purchase, Some("10"));
    let mut other = first.clone();
    change(&mut other);
    assert_ne!(first.fingerprint(), other.fingerprint());
    // When it arrived and what we call it are not the sender's.
    let mut later = first.clone();
    later.received_at = at(99);
    later.id = EventId::from_bytes([7; 16]);
    assert_eq!(first.fingerprint(), later.fingerprint());
}

#[rstest]
#[case::verified(|_: &mut WebEvent, _: &mut Option<WebClick>| {}, None)]
#[case::forged(|post: &mut WebEvent, _: &mut Option<WebClick>| post.click = None, Some(Refusal::ClickNotVerified))]
#[case::not_stored(|_: &mut WebEvent, click: &mut Option<WebClick>| *click = None, Some(Refusal::ClickNotVerified))]
#[case::another_apps(
    |_: &mut WebEvent, click: &mut Option<WebClick>| if let Some(found) = click { found.click.app = OTHER_APP },
    Some(Refusal::ClickNotVerified)
)]
#[case::a_bots(
    |_: &mut WebEvent, click: &mut Option<WebClick>| if let Some(found) = click { found.click.bot = Some(BotReason::Head) },
    Some(Refusal::ClickNotVerified)
)]
#[case::of_a_test_key(
    |_: &mut WebEvent, click: &mut Option<WebClick>| if let Some(found) = click { found.click.environment = Some(Environment::Test) },
    Some(Refusal::ClickNotVerified)
)]
#[case::of_no_network(
    |_: &mut WebEvent, click: &mut Option<WebClick>| if let Some(found) = click { found.click.network = None },
    Some(Refusal::ClickNetworkUnsupported)
)]
#[case::of_an_app_install_link(
    |_: &mut WebEvent, click: &mut Option<WebClick>| if let Some(found) = click { found.is_web_funnel = false },
    Some(Refusal::OriginMismatch)
)]
#[case::elsewhere(
    |post: &mut WebEvent, _: &mut Option<WebClick>| post.origin = origin("https://evil.example.com"),
    Some(Refusal::OriginMismatch)
)]
#[case::another_port(
    |post: &mut WebEvent, _: &mut Option<WebClick>| post.origin = origin("https://shop.example.com:8443"),
    Some(Refusal::OriginMismatch)
)]
#[case::where_the_link_leads_today(
    |post: &mut WebEvent, click: &mut Option<WebClick>| {
        post.origin = origin("https://new.example.com");
        if let Some(found) = click { found.link_origin = Some(origin("https://new.example.com")) }
    },
    None
)]
#[case::where_the_link_led_then(
    |_: &mut WebEvent, click: &mut Option<WebClick>| if let Some(found) = click { found.link_origin = None },
    None
)]
fn clicks_and_origins(
    #[case] change: fn(&mut WebEvent, &mut Option<WebClick>),
    #[case] expected: Option<Refusal>,
) {
    let mut post = posted(WebEventKind::SignUp, None);
    let mut click = Some(web_click());
    change(&mut post, &mut click);
    let facts = WebEventFacts {
        click: click.map(Arc::new),
        ..WebEventFacts::default()
    };
    assert_eq!(accept(&post, facts).err(), expected);
}

#[rstest]
#[case::at_the_click(-60_000, true)]
#[case::ten_minutes_before_the_click(-660_000, true)]
#[case::earlier(-660_001, false)]
#[case::much_earlier(-400 * 86_400_000, false)]
fn an_event_is_not_earlier_than_its_click(#[case] offset: i64, #[case] accepted: bool) {
    let mut post = posted(WebEventKind::Purchase, Some("10"));
    post.occurred_at = Timestamp::from_millis(at(0).as_millis() + offset);
    let outcome = accept(&post, facts(&post));
    match outcome {
        Ok(_) => assert!(accepted),
        Err(Refusal::Invalid(faults)) => {
            let fields: Vec<&str> = faults.iter().map(|fault| fault.field.as_str()).collect();
            assert_eq!((fields, accepted), (vec!["timestampMs"], false));
        }
        Err(other) => panic!("{other}"),
    }
    // A repeat of what was accepted before is not checked again.
    let repeated = WebEventFacts {
        existing: Some(ExistingEvent {
            fingerprint: post.fingerprint(),
            event: None,
        }),
        ..facts(&post)
    };
    assert_eq!(accept(&post, repeated), Ok(WebAcceptance::Duplicate));
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
fn what_counts(
    #[case] kind: WebEventKind,
    #[case] amount: Option<&str>,
    #[case] uncounted: Option<UncountedReason>,
    #[case] counted: i64,
) {
    let post = posted(kind, amount);
    let record = recorded(&post, facts(&post));
    let revenue = record.event.revenue.as_ref().expect("the amount is kept");
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
fn a_placeholder_device_makes_no_paying_device() {
    for device in ["00000000-0000-0000-0000-000000000000", "9774d56d682e549c"] {
        let mut post = posted(WebEventKind::Purchase, Some("10"));
        post.device = DeviceKey::parse_any(device).unwrap();
        let event = recorded(&post, facts(&post)).event;
        let counted = event.revenue.map(|revenue| revenue.counted_usd().micros());
        assert_eq!((counted, event.first_payment), (Some(10_000_000), false));
    }
}

#[test]
fn a_sign_up_carries_no_money() {
    for amount in [None, Some("0")] {
        let mut post = posted(WebEventKind::SignUp, amount);
        post.currency = None;
        let record = recorded(&post, facts(&post));
        let credit = record.event.credit.as_ref();
        let network = credit.map(|credit| credit.network);
        assert_eq!(network, Some(CreditedNetwork::Ad(Network::D)));
        assert!(record.event.revenue.is_none() && receipt(record).is_none());
    }
}

#[test]
fn a_renewal_is_credited_to_its_purchase() {
    let post = posted(WebEventKind::Renewal, Some("100"));
    let with = |parent| WebEventFacts {
        parent,
        ..facts(&post)
    };
    let record = recorded(&post, with(Some(payment(PaymentKind::Purchase))));
    let receipt = receipt(record).expect("it is a payment");
    assert_eq!(receipt.credit.network, CreditedNetwork::Ad(Network::A));
    assert_eq!(receipt.kind, PaymentKind::Renewal);
    assert_eq!(
        accept(&post, with(None)),
        Err(Refusal::OriginalTransactionUnavailable)
    );
    let invalid = accept(&post, with(Some(payment(PaymentKind::Renewal))));
    assert_eq!(invalid, Err(Refusal::OriginalTransactionInvalid));
}

#[test]
fn a_refund_is_bound_to_its_payment() {
    let post = posted(WebEventKind::Refund, Some("-60"));
    let with = |parent| WebEventFacts {
        parent: Some(parent),
        ..facts(&post)
    };
    let record = recorded(&post, with(payment(PaymentKind::Renewal)));
    let revenue = record.event.revenue.as_ref().expect("money");
    assert_eq!(revenue.counted_usd().micros(), -60_000_000);
    assert!(!record.event.first_payment);
    let after = record.refunded.clone();
    let after = after.expect("the payment is written back");
    assert!(receipt(record).is_none());
    assert_eq!(after.refunded.micros(), 60_000_000);
    let again = accept(&post, with(ParentEvent::Payment(Box::new(after))));
    assert_eq!(again, Err(Refusal::RefundExceedsPayment));
    assert_eq!(
        accept(&post, with(ParentEvent::NotAPayment)),
        Err(Refusal::OriginalTransactionInvalid)
    );
}

#[rstest]
#[case::renewal(WebEventKind::Renewal, "10")]
#[case::refund(WebEventKind::Refund, "-10")]
fn an_event_that_names_itself_is_never_valid(#[case] kind: WebEventKind, #[case] amount: &str) {
    let mut post = posted(kind, Some(amount));
    post.parent = Some(post.external_id.clone());
    let outcome = accept(&post, facts(&post));
    assert_eq!(outcome, Err(Refusal::OriginalTransactionInvalid));
    // The click is checked first, as for every parent.
    let outcome = accept(&post, WebEventFacts::default());
    assert_eq!(outcome, Err(Refusal::ClickNotVerified));
}

#[test]
fn checks_come_in_the_order_of_the_contract() {
    let mut post = posted(WebEventKind::Refund, Some("-1000"));
    post.origin = origin("https://evil.example.com");
    let mut facts = facts(&post);
    let refused = |facts: &WebEventFacts| accept(&post, facts.clone()).unwrap_err();
    facts.click = None;
    assert_eq!(
        refused(&facts),
        Refusal::ClickNotVerified,
        "the click before the origin"
    );
    facts.click = Some(Arc::new(web_click()));
    assert_eq!(
        refused(&facts),
        Refusal::OriginMismatch,
        "the origin before the parent"
    );
    let mut there = post.clone();
    there.origin = origin("https://shop.example.com");
    assert_eq!(
        accept(&there, facts.clone()),
        Err(Refusal::OriginalTransactionUnavailable)
    );
    facts.parent = Some(payment(PaymentKind::Purchase));
    assert_eq!(
        accept(&there, facts),
        Err(Refusal::RefundExceedsPayment),
        "the bound last"
    );
}
