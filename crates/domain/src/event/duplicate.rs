//! Detects events that two sources report.
//!
//! Within an app and environment an id identifies one event. Websites and billing providers are
//! verified sources: their events count and are forwarded. An SDK event with the same id and kind
//! is stored, but it neither counts nor is forwarded. This does not depend on which of the events
//! arrives first. Billing events are compared by the store's transaction id. The later event takes
//! the earlier event's id as the root of its deduplication ids, so that a network recognises an
//! event that it already received.
//!
//! A payment that Stripe took may be reported by a website as well. The website's event counts,
//! because it names the click (`billing::payment`).

use super::name::money_kind;
use super::{Event, EventSource};
use crate::forwarding::plan::skips_for_all_networks;
use crate::integration::Integration;
use crate::ledger::{MoneyPolicy, PaymentKind, UncountedReason};
use crate::vocabulary::id::EventId;
use std::collections::BTreeSet;

/// Event names that websites and billing providers report too.
pub const VERIFIABLE_NAMES: [&str; 7] = [
    "purchase",
    "subscribe",
    "renewal",
    "refund",
    "sign_up",
    "start_trial",
    "checkout_started",
];

/// Returns whether an SDK event with this canonical name can duplicate a verified event.
pub fn is_verifiable(name: &str) -> bool {
    VERIFIABLE_NAMES.contains(&name)
}

/// Returns whether two canonical names are of the same kind, like `purchase` and `subscribe`.
pub fn is_same_kind(one: &str, other: &str) -> bool {
    let kind = |name| match name {
        "subscribe" => "purchase",
        other => other,
    };
    kind(one) == kind(other)
}

/// Returns whether a verified event and an SDK event with the same id report the same occurrence.
pub fn reports_same_event(reported: &Event, verified: &Event) -> bool {
    reported.source == EventSource::Sdk
        && verified.source != EventSource::Sdk
        && is_same_kind(&reported.name, &verified.name)
}

/// Marks a new SDK event as a duplicate of the first verified event that reports the same
/// occurrence.
pub fn mark_duplicate(event: &mut Event, verified: &[Event]) {
    let twin = verified
        .iter()
        .find(|verified| reports_same_event(event, verified));
    if let Some(verified) = twin {
        uncount(event, verified.id);
        event.dedup_root = Some(verified.root());
    }
}

fn uncount(event: &mut Event, verified: EventId) {
    event.duplicate_of = Some(verified);
    event.first_payment = false;
    if let Some(revenue) = &mut event.revenue {
        revenue.uncounted = Some(UncountedReason::DuplicateOfVerified);
    }
}

/// A stored event and its new version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventReplacement {
    /// The stored event.
    pub before: Event,
    /// The event to store instead.
    pub after: Event,
}

impl EventReplacement {
    /// Returns whether the event becomes a duplicate and stops counting.
    pub const fn is_demotion(&self) -> bool {
        self.after.duplicate_of.is_some()
    }

    /// Returns whether the event stops being its device's first payment.
    pub const fn vacates_first_payment(&self) -> bool {
        self.before.first_payment && !self.after.first_payment
    }
}

/// Sets a verified event's deduplication root to that of the earlier SDK event that reports the
/// same occurrence. Does not replace an existing root. A billing provider knows nothing about
/// consent, so its event also takes over the consent that the app reported.
pub fn adopt_dedup_root(verified: &mut Event, reported: &Event) {
    if verified.dedup_root.is_none() && reports_same_event(reported, verified) {
        if verified.source == EventSource::Billing {
            verified.consent = reported.consent;
        }
        let id = verified.id;
        verified.dedup_root = Some(reported.root()).filter(|root| *root != id);
    }
}

/// Applies a new verified event to the SDK event with the same id: sets the new event's root and
/// returns the SDK event as a duplicate that no longer counts.
pub fn demote(
    verified: &mut Event,
    reported: Event,
    integrations: &[Integration],
) -> Option<EventReplacement> {
    if !reports_same_event(&reported, verified) {
        return None;
    }
    adopt_dedup_root(verified, &reported);
    if reported.duplicate_of.is_some() {
        // Already a duplicate of an event from another verified source.
        return None;
    }
    Some(demoted(reported, verified.id, integrations))
}

/// Returns whether an event is a website's report of a payment.
pub fn is_web_payment(event: &Event) -> bool {
    event.source == EventSource::Web && PaymentKind::parse(&event.name).is_some()
}

/// Sets the deduplication root of a website's payment to that of the billing event that reported the
/// payment earlier. Does not replace an existing root.
pub fn adopt_billing_root(web: &mut Event, billed: &Event) {
    if web.dedup_root.is_none() && is_web_payment(web) {
        web.dedup_root = Some(billed.root());
    }
}

/// Credits a billing provider's refund like the website's payment that it refunds. The refund
/// belongs to no device, because the website's events are credited to their click. An erasure would
/// not find it, so it names neither the user nor the transaction.
pub fn credit_refund(refund: &mut Event, payment: &Event) {
    refund.device = None;
    refund.user = None;
    refund.params = None;
    refund.platform = payment.platform;
    refund.country.clone_from(&payment.country);
    refund.credit.clone_from(&payment.credit);
}

fn demoted(before: Event, verified: EventId, integrations: &[Integration]) -> EventReplacement {
    let mut after = before.clone();
    uncount(&mut after, verified);
    after.skipped = skips_for_all_networks(&after, integrations);
    EventReplacement { before, after }
}

/// The app's settings for events from its SDK.
#[derive(Debug, Clone, Copy)]
pub struct SdkEventRules<'a> {
    /// Whether revenue from SDK events counts.
    pub policy: MoneyPolicy,
    /// Custom events that count as income.
    pub revenue_events: &'a [String],
    /// The app's configured integrations.
    pub integrations: &'a [Integration],
}

/// Checks again whether a stored SDK event is a duplicate, because billing may add, reclassify or
/// remove events later. `verified` are all stored verified events with its id. The SDK event is a
/// duplicate while a verified event of its kind exists; otherwise it counts by the app's current
/// rules. Its deduplication root does not change.
pub fn settle_duplicate(
    event: Event,
    verified: &[Event],
    terms: SdkEventRules<'_>,
) -> Option<EventReplacement> {
    let twins = verified
        .iter()
        .filter(|verified| reports_same_event(&event, verified));
    let twins: BTreeSet<EventId> = twins.map(|verified| verified.id).collect();
    let named = event.duplicate_of.filter(|named| twins.contains(named));
    let duplicate_of = named.or_else(|| twins.first().copied());
    if duplicate_of == event.duplicate_of {
        return None;
    }
    if let Some(verified) = duplicate_of {
        return Some(demoted(event, verified, terms.integrations));
    }
    let mut after = event.clone();
    after.duplicate_of = None;
    let kind = money_kind(event.source, &event.name, terms.revenue_events);
    let revenue = after.revenue.take();
    after.revenue = revenue.map(|revenue| revenue.reassessed(terms.policy, kind));
    let before = event;
    Some(EventReplacement { before, after })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::DeviceKey;
    use crate::forwarding::plan::samples::{event as sample, worth};
    use crate::report::Figures;
    use rstest::rstest;

    fn of(source: EventSource, name: &str, number: u8) -> Event {
        let mut event = sample(name);
        event.revenue = Some(worth(Some("1"), None));
        event.source = source;
        event.id = EventId::from_bytes([number; 16]);
        event.device = Some(DeviceKey::stored("d".to_owned()));
        event
    }

    #[rstest]
    #[case::the_same_name("purchase", "purchase", true)]
    #[case::one_kind("subscribe", "purchase", true)]
    #[case::no_money("sign_up", "sign_up", true)]
    #[case::another_kind("sign_up", "purchase", false)]
    #[case::a_later_payment("purchase", "renewal", false)]
    fn only_events_of_the_same_kind_are_duplicates(
        #[case] sdk: &str,
        #[case] verified: &str,
        #[case] duplicate: bool,
    ) {
        for source in [EventSource::Web, EventSource::Billing] {
            // The SDK event arrives second.
            let first = of(source, verified, 1);
            let mut second = of(EventSource::Sdk, sdk, 2);
            second.first_payment = true;
            mark_duplicate(&mut second, std::slice::from_ref(&first));
            let expected = duplicate.then_some(first.id);
            assert_eq!(
                (second.duplicate_of, second.dedup_root),
                (expected, expected)
            );
            assert_eq!(second.first_payment, !duplicate);
            assert_eq!(Figures::of_event(&second).is_zero(), duplicate);
            // The SDK event arrives first.
            let first = of(EventSource::Sdk, sdk, 2);
            let mut second = of(source, verified, 1);
            let demotion = demote(&mut second, first.clone(), &[]);
            assert_eq!(second.dedup_root, duplicate.then_some(first.id));
            let demoted = demotion.map(|demotion| demotion.after);
            let duplicate_of = demoted.as_ref().and_then(|event| event.duplicate_of);
            assert_eq!(duplicate_of, expected);
            if let Some(event) = demoted {
                assert!(Figures::of_event(&event).is_zero());
                assert_eq!(event.dedup_root, None, "a sent event keeps its id");
                let reason = event.revenue.and_then(|revenue| revenue.uncounted);
                assert_eq!(reason, Some(UncountedReason::DuplicateOfVerified));
            }
        }
    }

    #[test]
    fn only_sdk_events_duplicate_verified_events() {
        let mut event = of(EventSource::Sdk, "purchase", 2);
        mark_duplicate(&mut event, &[of(EventSource::Sdk, "purchase", 1)]);
        assert_eq!(event.duplicate_of, None);
        let mut web = of(EventSource::Web, "purchase", 2);
        let billing = of(EventSource::Billing, "purchase", 1);
        assert_eq!(demote(&mut web, billing, &[]), None);
        assert_eq!(web.dedup_root, None, "both are verified, and both count");
    }

    #[test]
    fn a_second_verified_event_takes_the_same_root() {
        let mut sdk = of(EventSource::Sdk, "purchase", 2);
        mark_duplicate(&mut sdk, &[of(EventSource::Web, "purchase", 1)]);
        let mut billing = of(EventSource::Billing, "purchase", 3);
        assert_eq!(demote(&mut billing, sdk, &[]), None);
        assert_eq!(billing.dedup_root, Some(EventId::from_bytes([1; 16])));
    }

    #[test]
    fn a_root_is_set_once_and_never_to_itself() {
        let mut sdk = of(EventSource::Sdk, "purchase", 2);
        let mut billing = of(EventSource::Billing, "purchase", 1);
        mark_duplicate(&mut sdk, std::slice::from_ref(&billing));
        adopt_dedup_root(&mut billing, &sdk);
        assert_eq!(billing.dedup_root, None);
        billing.dedup_root = Some(EventId::from_bytes([9; 16]));
        adopt_dedup_root(&mut billing, &of(EventSource::Sdk, "purchase", 2));
        assert_eq!(billing.dedup_root, Some(EventId::from_bytes([9; 16])));
    }

    #[test]
    fn a_websites_payment_takes_the_root_of_the_billing_event() {
        let mut billed = of(EventSource::Billing, "purchase", 1);
        billed.dedup_root = Some(EventId::from_bytes([7; 16]));
        for (name, root) in [
            ("purchase", Some(7)),
            ("renewal", Some(7)),
            ("sign_up", None),
        ] {
            let mut web = of(EventSource::Web, name, 2);
            adopt_billing_root(&mut web, &billed);
            let expected = root.map(|number| EventId::from_bytes([number; 16]));
            assert_eq!(web.dedup_root, expected, "{name}");
            let mut reported = of(EventSource::Web, name, 2);
            reported.dedup_root = Some(EventId::from_bytes([9; 16]));
            adopt_billing_root(&mut reported, &billed);
            assert_eq!(reported.dedup_root, Some(EventId::from_bytes([9; 16])));
        }
    }

    #[test]
    fn a_refund_is_credited_like_the_websites_payment() {
        let mut refund = of(EventSource::Billing, "refund", 1);
        refund.credit = None;
        refund.params = Some("{}".to_owned());
        let mut payment = of(EventSource::Web, "purchase", 2);
        payment.country = Some("FR".to_owned());
        credit_refund(&mut refund, &payment);
        assert_eq!((&refund.device, &refund.credit), (&None, &payment.credit));
        assert_eq!((&refund.user, &refund.params), (&None, &None));
        assert_eq!(refund.country, payment.country);
    }

    /// The event that an SDK purchase duplicates, given stored verified events by number and name.
    #[rstest]
    #[case::none(None, &[], None)]
    #[case::one_appears(None, &[(1, "purchase")], Some(1))]
    #[case::the_earliest(None, &[(3, "purchase"), (1, "subscribe")], Some(1))]
    #[case::of_another_kind(None, &[(1, "renewal"), (3, "refund")], None)]
    #[case::unchanged(Some(3), &[(1, "purchase"), (3, "purchase")], Some(3))]
    #[case::kind_changes(Some(1), &[(1, "renewal")], None)]
    #[case::removed(Some(1), &[], None)]
    #[case::another_remains(Some(1), &[(3, "purchase")], Some(3))]
    fn a_stored_sdk_event_follows_its_verified_events(
        #[case] before: Option<u8>,
        #[case] stored: &[(u8, &str)],
        #[case] expected: Option<u8>,
    ) {
        let id = |number| EventId::from_bytes([number; 16]);
        let mut event = of(EventSource::Sdk, "purchase", 2);
        if let Some(before) = before {
            uncount(&mut event, id(before));
        }
        let stored = stored.iter();
        let stored: Vec<Event> = stored
            .map(|(number, name)| of(EventSource::Billing, name, *number))
            .collect();
        for policy in [
            MoneyPolicy::Count,
            MoneyPolicy::Ignore(UncountedReason::BillingSource),
        ] {
            let terms = SdkEventRules {
                policy,
                revenue_events: &[],
                integrations: &[],
            };
            let settled = settle_duplicate(event.clone(), &stored, terms);
            assert_eq!(settled.is_some(), before != expected);
            let Some(EventReplacement { after, .. }) = settled else {
                continue;
            };
            assert_eq!(after.duplicate_of, expected.map(id));
            let reason = after.revenue.and_then(|revenue| revenue.uncounted);
            let expected = match (expected, policy) {
                (Some(_), _) => Some(UncountedReason::DuplicateOfVerified),
                (None, MoneyPolicy::Ignore(reason)) => Some(reason),
                (None, MoneyPolicy::Count) => None,
            };
            assert_eq!(reason, expected);
        }
    }
}
