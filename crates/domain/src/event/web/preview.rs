//! Says what a web event would cause, for websites that try out the endpoint. Nothing is recorded.

use super::batch::{UnrecordedDecision, decide_unrecorded};
use super::{AcceptedWebEvent, WebEvent, WebFacts};
use crate::click::Click;
use crate::event::Event;
use crate::event::duplicate::is_web_payment;
use crate::forwarding::plan::PlannedDelivery;
use crate::refusal::Refusal;

/// What a web event would cause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebEventPreview {
    /// The answer that the event would get.
    pub accepted: AcceptedWebEvent,
    /// The event as it would be recorded, or as it is stored if this one is a duplicate. `None` if
    /// retention removed the stored event.
    pub event: Option<Event>,
    /// Deliveries that would be planned. A duplicate causes none.
    pub planned: Vec<PlannedDelivery>,
    /// Stored events of other sources that report the same as this one, and would stop counting. A
    /// duplicate replaces none.
    pub replaced: Vec<Event>,
    /// The click that the event names. `None` if the event is a duplicate whose click is not stored
    /// any more.
    pub click: Option<PreviewedClick>,
}

/// The click that a previewed event names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreviewedClick {
    /// The click.
    pub click: Click,
    /// Why the click would get no credit for the event; `None` if it would get the credit.
    pub uncredited: Option<UncreditedReason>,
}

/// Why a click would get no credit for an event that names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UncreditedReason {
    /// The click is on a test link.
    TestLink,
    /// The event is recorded already.
    Duplicate,
    /// A renewal or refund is credited to the click of its payment.
    OriginalTransaction,
}

crate::keywords! {
    UncreditedReason {
        TestLink => "test_link",
        Duplicate => "duplicate",
        OriginalTransaction => "original_transaction",
    }
}

/// Decides a web event like [`decide`](super::decide), but accepts clicks on test links. Returns
/// what the event would cause.
pub fn preview(web_event: &WebEvent, facts: &WebFacts<'_>) -> Result<WebEventPreview, Refusal> {
    let UnrecordedDecision {
        accepted,
        recorded,
        demoted: mut replaced,
    } = decide_unrecorded(web_event, facts)?;
    let click = web_event.click.map(|click| (web_event.app, click));
    let click = click.and_then(|click| facts.clicks.get(&click));
    let click = click.map(|stored| PreviewedClick {
        click: stored.click.click.clone(),
        uncredited: uncredited_reason(web_event, &stored.click.click, &accepted),
    });
    let (event, planned) = if let Some(recorded) = recorded {
        let mut event = recorded.event;
        replaced.extend(replaced_billing_event(web_event, &event, facts).cloned());
        // The flag moves to an earlier payment once that is recorded.
        let first = facts.first_payments.get(&web_event.device_ref()).copied();
        event.first_payment |= event.displaces_first_payment(first);
        // It also moves if the first payment is a replaced one.
        let is_vacated = first.is_some_and(|first| replaced.iter().any(|one| one.id == first));
        event.first_payment |= is_vacated && event.payer().is_some();
        (Some(event), recorded.planned)
    } else {
        let stored = facts.events.get(&web_event.key());
        let stored = stored.and_then(|existing| existing.event.as_deref());
        (stored.cloned(), Vec::new())
    };
    Ok(WebEventPreview {
        accepted,
        event,
        planned,
        replaced,
        click,
    })
}

/// Returns the billing event that would stop counting, because the website reports the same payment.
fn replaced_billing_event<'f>(
    web_event: &'f WebEvent,
    event: &Event,
    facts: &'f WebFacts<'_>,
) -> Option<&'f Event> {
    let reservation = facts.reservations.get(&web_event.key())?;
    let billed = reservation.billing_event.as_deref()?;
    let counts = billed.duplicate_of.is_none();
    (counts && is_web_payment(event)).then_some(billed)
}

fn uncredited_reason(
    web_event: &WebEvent,
    click: &Click,
    accepted: &AcceptedWebEvent,
) -> Option<UncreditedReason> {
    if click.is_test() {
        Some(UncreditedReason::TestLink)
    } else if accepted.is_duplicate {
        Some(UncreditedReason::Duplicate)
    } else {
        let is_credited_elsewhere = web_event.kind.has_parent();
        is_credited_elsewhere.then_some(UncreditedReason::OriginalTransaction)
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::{APP, CLICK, web_click, web_event};
    use super::super::{Reservation, StoredWebClick, WebEventKind, decide};
    use super::*;
    use crate::click::BotReason;
    use crate::event::EventSource;
    use crate::forwarding::SkipReason;
    use crate::integration::Network;
    use crate::vocabulary::id::EventId;
    use rstest::rstest;
    use std::sync::Arc;

    fn facts<'a>(bot: Option<BotReason>) -> WebFacts<'a> {
        let mut click = web_click();
        click.click.bot = bot;
        let stored = StoredWebClick {
            click: Arc::new(click),
            is_referenced: false,
        };
        let mut facts = WebFacts::default();
        facts.clicks.insert((APP, CLICK), stored);
        facts
    }

    /// Whether a click passes when the event is recorded, and when it is only validated.
    #[rstest]
    #[case::counts(None, None, None)]
    #[case::of_a_bot(
        Some(BotReason::Head),
        Some(Refusal::ClickNotVerified),
        Some(Refusal::ClickNotVerified)
    )]
    #[case::on_a_test_link(Some(BotReason::TestLink), Some(Refusal::TestClick), None)]
    fn only_validation_accepts_clicks_on_test_links(
        #[case] bot: Option<BotReason>,
        #[case] when_recorded: Option<Refusal>,
        #[case] when_validated: Option<Refusal>,
    ) {
        let (event, facts) = (web_event(WebEventKind::SignUp, None), facts(bot));
        let mut decisions = decide(std::slice::from_ref(&event), &facts);
        assert_eq!(decisions.answers.pop().unwrap().err(), when_recorded);
        assert_eq!(preview(&event, &facts).err(), when_validated);
    }

    #[test]
    fn a_preview_is_what_would_be_recorded() {
        let (event, facts) = (web_event(WebEventKind::Purchase, Some("49.9")), facts(None));
        let decisions = decide(std::slice::from_ref(&event), &facts);
        let previewed = preview(&event, &facts).unwrap();
        assert_eq!(decisions.answers, [Ok(previewed.accepted)]);
        let recorded = &decisions.changes.recorded[0];
        assert_eq!(previewed.event.as_ref(), Some(&recorded.event));
        assert_eq!(previewed.planned, recorded.planned);
        let skipped = &recorded.event.skipped;
        assert_eq!(skipped, &[(Network::D, SkipReason::IntegrationDisabled)]);
        assert_eq!(previewed.click.unwrap().uncredited, None);
    }

    #[test]
    fn a_preview_of_a_repeat_shows_the_stored_event() {
        let event = web_event(WebEventKind::Purchase, Some("49.9"));
        let mut facts = facts(None);
        let mut decisions = decide(std::slice::from_ref(&event), &facts);
        let recorded = decisions.changes.recorded.pop().unwrap();
        let existing = super::super::ExistingEvent {
            fingerprint: recorded.fingerprint,
            event: Some(Box::new(recorded.event.clone())),
        };
        facts.events.insert((APP, "order-1"), existing);
        let previewed = preview(&event, &facts).unwrap();
        assert!(previewed.accepted.is_duplicate && previewed.planned.is_empty());
        assert_eq!(previewed.event, Some(recorded.event));
        let uncredited = previewed.click.and_then(|click| click.uncredited);
        assert_eq!(uncredited, Some(UncreditedReason::Duplicate));
    }

    /// Whether a payment would be the first, given the id of the device's first payment.
    #[rstest]
    #[case::none_before(None, true)]
    #[case::a_later_one_before(Some(3), true)]
    #[case::an_earlier_one_before(Some(1), false)]
    fn says_whether_a_payment_would_be_the_first(
        #[case] first: Option<u8>,
        #[case] expected: bool,
    ) {
        let event = web_event(WebEventKind::Purchase, Some("10"));
        let mut facts = facts(None);
        let first = first.map(|number| (event.device_ref(), EventId::from_bytes([number; 16])));
        facts.first_payments.extend(first);
        let previewed = preview(&event, &facts).unwrap();
        assert_eq!(previewed.event.unwrap().first_payment, expected);
    }

    /// Whether a preview names Stripe's event of the payment as one that stops counting, and whether
    /// the payment stays the first of its device.
    #[rstest]
    #[case::purchase(WebEventKind::Purchase, "49.9", None, true)]
    #[case::replaced_before(WebEventKind::Purchase, "49.9", Some(5), false)]
    #[case::no_payment(WebEventKind::StartTrial, "0", None, false)]
    fn names_the_billing_event_that_stops_counting(
        #[case] kind: WebEventKind,
        #[case] amount: &str,
        #[case] duplicate_of: Option<u8>,
        #[case] is_replaced: bool,
    ) {
        let event = web_event(kind, Some(amount));
        let mut facts = facts(None);
        let decisions = decide(std::slice::from_ref(&event), &facts);
        let billed = Event {
            id: EventId::from_bytes([1; 16]),
            source: EventSource::Billing,
            external_id: "evt_in_1".to_owned(),
            duplicate_of: duplicate_of.map(|number| EventId::from_bytes([number; 16])),
            ..decisions.changes.recorded[0].event.clone()
        };
        facts.first_payments.insert(event.device_ref(), billed.id);
        let reservation = Reservation {
            event_id: billed.id,
            sdk_event: None,
            billing_event: Some(Box::new(billed.clone())),
        };
        facts.reservations.insert((APP, "order-1"), reservation);
        let previewed = preview(&event, &facts).unwrap();
        let expected = if is_replaced {
            vec![billed]
        } else {
            Vec::new()
        };
        assert_eq!(previewed.replaced, expected);
        assert_eq!(previewed.event.unwrap().first_payment, is_replaced);
    }

    #[rstest]
    #[case::purchase(WebEventKind::Purchase, false, false, None)]
    #[case::renewal(WebEventKind::Renewal, false, false, Some("original_transaction"))]
    #[case::refund(WebEventKind::Refund, false, false, Some("original_transaction"))]
    #[case::repeat(WebEventKind::Refund, false, true, Some("duplicate"))]
    #[case::test_link(WebEventKind::Refund, true, true, Some("test_link"))]
    fn says_why_a_click_gets_no_credit(
        #[case] kind: WebEventKind,
        #[case] is_test: bool,
        #[case] is_duplicate: bool,
        #[case] expected: Option<&str>,
    ) {
        let event = web_event(kind, None);
        let mut click = web_click().click;
        click.bot = is_test.then_some(BotReason::TestLink);
        let accepted = AcceptedWebEvent {
            is_duplicate,
            received_at: event.received_at,
        };
        let found = uncredited_reason(&event, &click, &accepted);
        assert_eq!(found.map(UncreditedReason::as_str), expected);
    }
}
