//! Changes to an event when its notification is settled again.

use super::RENEWAL;
use crate::event::Event;
use crate::event::duplicate::{EventReplacement, adopt_dedup_root};
use crate::forwarding::lifecycle::{ATTRIBUTION_CHANGED, DUPLICATE_OF_VERIFIED, NOT_FIRST_PAYMENT};

/// Event that the notification caused when it was last settled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PreviousEvent {
    /// There was no event.
    None,
    /// The event was erased since.
    Erased,
    /// The stored event.
    Stored(Box<Event>),
}

/// Change to the event log and to deliveries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventChange {
    /// No change.
    None,
    /// Record a new event.
    Record(Box<Event>),
    /// Replace the stored event, and plan its deliveries again.
    Replace {
        /// Event before and after.
        event: Box<EventReplacement>,
        /// Whether pending deliveries under the previous name are withdrawn first.
        withdraws: bool,
        /// Reason code for deliveries that are no longer planned.
        cancel_reason: &'static str,
    },
    /// Remove the event, and withdraw its pending deliveries.
    Remove(Box<Event>),
}

/// Returns whether [`event_change`] requires the SDK event with the same transaction. It does if
/// the event is new or renamed, because only then is the event's deduplication root set.
pub fn needs_sdk_event(before: &PreviousEvent, now: Option<&Event>) -> bool {
    match (before, now) {
        (PreviousEvent::None, Some(_)) => true,
        (PreviousEvent::Stored(stored), Some(now)) => stored.name != now.name,
        _ => false,
    }
}

/// Decides how an event changes. `sdk_event` is the SDK event with the same transaction.
///
/// An erased event is not recorded again. A payment that becomes a renewal keeps its deliveries
/// until planning cancels them with the reason code. Under any other new name the deliveries would
/// report the wrong conversion, so they are withdrawn.
pub fn event_change(
    before: PreviousEvent,
    now: Option<Event>,
    sdk_event: Option<&Event>,
) -> EventChange {
    match (before, now) {
        (PreviousEvent::None, None) | (PreviousEvent::Erased, _) => EventChange::None,
        (PreviousEvent::Stored(stored), None) => EventChange::Remove(stored),
        (PreviousEvent::None, Some(mut event)) => {
            if let Some(sdk_event) = sdk_event {
                adopt_dedup_root(&mut event, sdk_event);
            }
            EventChange::Record(Box::new(event))
        }
        (PreviousEvent::Stored(stored), Some(event)) => replaced(*stored, event, sdk_event),
    }
}

fn replaced(before: Event, mut after: Event, sdk_event: Option<&Event>) -> EventChange {
    let is_renamed = before.name != after.name;
    after.skipped.clone_from(&before.skipped);
    let is_flagged = before.first_payment && before.device == after.device;
    after.first_payment = is_flagged && after.duplicate_of.is_none();
    after.dedup_root = before.dedup_root;
    after.consent = before.consent;
    if let Some(sdk_event) = sdk_event.filter(|_| is_renamed) {
        adopt_dedup_root(&mut after, sdk_event);
    }
    if before == after {
        return EventChange::None;
    }
    EventChange::Replace {
        withdraws: is_renamed && after.name != RENEWAL,
        cancel_reason: if after.duplicate_of.is_some() {
            DUPLICATE_OF_VERIFIED
        } else if is_renamed {
            NOT_FIRST_PAYMENT
        } else {
            ATTRIBUTION_CHANGED
        },
        event: Box::new(EventReplacement { before, after }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::billing::{PURCHASE, REFUND, SUBSCRIBE};
    use crate::device::DeviceKey;
    use crate::event::EventSource;
    use crate::forwarding::plan::samples::event as sample;
    use crate::vocabulary::id::EventId;
    use rstest::rstest;

    fn billed(name: &str, device: &str) -> Event {
        let mut event = sample(name);
        event.source = EventSource::Billing;
        event.device = Some(DeviceKey::stored(device.to_owned()));
        event
    }

    fn stored(event: &Event) -> PreviousEvent {
        PreviousEvent::Stored(Box::new(event.clone()))
    }

    #[test]
    fn an_erased_event_is_not_recorded_again() {
        let now = Some(billed(PURCHASE, "d"));
        assert_eq!(
            event_change(PreviousEvent::Erased, now, None),
            EventChange::None
        );
        assert_eq!(
            event_change(PreviousEvent::None, None, None),
            EventChange::None
        );
    }

    #[test]
    fn removes_an_event_that_no_longer_applies() {
        let event = billed(PURCHASE, "d");
        let removed = EventChange::Remove(Box::new(event.clone()));
        assert_eq!(event_change(stored(&event), None, None), removed);
    }

    #[rstest]
    #[case::another_device(PURCHASE, PURCHASE, "e", Some((false, ATTRIBUTION_CHANGED)))]
    #[case::not_the_first(PURCHASE, RENEWAL, "d", Some((false, NOT_FIRST_PAYMENT)))]
    #[case::the_first_again(RENEWAL, PURCHASE, "d", Some((true, NOT_FIRST_PAYMENT)))]
    #[case::after_a_trial(PURCHASE, SUBSCRIBE, "d", Some((true, NOT_FIRST_PAYMENT)))]
    #[case::the_same(PURCHASE, PURCHASE, "d", None)]
    fn replaces_changed_events(
        #[case] before: &str,
        #[case] after: &str,
        #[case] device: &str,
        #[case] expected: Option<(bool, &str)>,
    ) {
        let (before, after) = (billed(before, "d"), billed(after, device));
        let change = event_change(stored(&before), Some(after), None);
        let found = match change {
            EventChange::Replace {
                withdraws,
                cancel_reason,
                ..
            } => Some((withdraws, cancel_reason)),
            _ => None,
        };
        assert_eq!(found, expected);
    }

    #[rstest]
    #[case::stays("d", true)]
    #[case::moves("e", false)]
    fn the_first_payment_flag_does_not_follow_to_another_device(
        #[case] device: &str,
        #[case] flagged: bool,
    ) {
        let mut before = billed(PURCHASE, "d");
        before.first_payment = true;
        let after = billed(SUBSCRIBE, device);
        let change = event_change(stored(&before), Some(after), None);
        let EventChange::Replace { event, .. } = change else {
            panic!("expected a replacement");
        };
        assert_eq!(event.after.first_payment, flagged);
    }

    #[test]
    fn an_event_that_became_a_duplicate_loses_its_flag_and_its_deliveries() {
        let mut before = billed(PURCHASE, "d");
        before.first_payment = true;
        let mut after = before.clone();
        after.duplicate_of = Some(EventId::from_bytes([1; 16]));
        let change = event_change(stored(&before), Some(after), None);
        let EventChange::Replace {
            event,
            withdraws,
            cancel_reason,
        } = change
        else {
            panic!("expected a replacement");
        };
        assert!(!event.after.first_payment && !withdraws);
        assert_eq!(cancel_reason, DUPLICATE_OF_VERIFIED);
    }

    #[rstest]
    #[case::recorded(PreviousEvent::None, PURCHASE, true)]
    #[case::renamed(stored(&billed(REFUND, "d")), PURCHASE, true)]
    #[case::as_before(stored(&billed(PURCHASE, "d")), PURCHASE, false)]
    #[case::erased(PreviousEvent::Erased, PURCHASE, false)]
    fn adopts_the_deduplication_root_of_the_sdk_event(
        #[case] before: PreviousEvent,
        #[case] name: &str,
        #[case] joins: bool,
    ) {
        let mut now = billed(name, "e");
        now.id = EventId::from_bytes([1; 16]);
        assert_eq!(needs_sdk_event(&before, Some(&now)), joins);
        let mut sdk_event = sample(name);
        sdk_event.source = EventSource::Sdk;
        sdk_event.id = EventId::from_bytes([2; 16]);
        let root = match event_change(before, Some(now), Some(&sdk_event)) {
            EventChange::Record(event) => event.dedup_root,
            EventChange::Replace { event, .. } => event.after.dedup_root,
            _ => None,
        };
        assert_eq!(root, joins.then_some(sdk_event.id));
    }
}
