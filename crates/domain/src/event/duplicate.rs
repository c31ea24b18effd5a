//! One event that two sources report.
//!
//! Within an app and environment an id names one event. A website or a billing provider proves what it reports, so
//! its event counts and is forwarded. The SDK's event of the same id and kind is kept, does not count, and is not
//! forwarded, whichever of the two arrives first. Of a billing event the store's transaction id is compared. The later one takes the earlier one's id as the root of its
//! deduplication ids, so that a network recognises what it already has.

use super::name::money_kind;
use super::{Event, EventSource};
use crate::forwarding::plan::skips_for_all_networks;
use crate::integration::Integration;
use crate::ledger::{MoneyPolicy, UncountedReason};
use crate::vocabulary::id::EventId;
use std::collections::BTreeSet;

/// Names that a website or a billing provider reports too.
pub const VERIFIABLE_NAMES: [&str; 7] = [
    "purchase",
    "subscribe",
    "renewal",
    "refund",
    "sign_up",
    "start_trial",
    "checkout_started",
];

/// Returns whether an SDK event of this canonical name can be a duplicate of a verified event.
pub fn is_verifiable(name: &str) -> bool {
    VERIFIABLE_NAMES.contains(&name)
}

/// Returns whether two canonical names are one kind. `purchase` and `subscribe` are.
pub fn is_same_kind(one: &str, other: &str) -> bool {
    let kind = |name| match name {
        "subscribe" => "purchase",
        other => other,
    };
    kind(one) == kind(other)
}

/// Returns whether a verified event reports the same as an SDK event of the same id.
pub fn reports_same_event(reported: &Event, verified: &Event) -> bool {
    reported.source == EventSource::Sdk
        && verified.source != EventSource::Sdk
        && is_same_kind(&reported.name, &verified.name)
}

/// Makes a new SDK event a duplicate of the first verified event of its id that reports the same.
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

/// An event that becomes another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventReplacement {
    /// The event as it is stored.
    pub before: Event,
    /// The event as it is to be stored.
    pub after: Event,
}

impl EventReplacement {
    /// Returns whether the event does not count any more.
    pub const fn is_demotion(&self) -> bool {
        self.after.duplicate_of.is_some()
    }

    /// Returns whether the event was the first payment of its device.
    pub const fn vacates_first_payment(&self) -> bool {
        self.before.first_payment && !self.after.first_payment
    }
}

/// Gives a verified event the root of the SDK event that reported the same earlier. A root is given once.
pub fn adopt_dedup_root(verified: &mut Event, reported: &Event) {
    if verified.dedup_root.is_none() && reports_same_event(reported, verified) {
        let id = verified.id;
        verified.dedup_root = Some(reported.root()).filter(|root| *root != id);
    }
}

/// Decides what a new verified event means for the SDK event of the same id: sets the new event's root, and returns
/// the SDK event as one that counts no longer.
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
        // Another verified source reported it before.
        return None;
    }
    Some(demoted(reported, verified.id, integrations))
}

fn demoted(before: Event, verified: EventId, integrations: &[Integration]) -> EventReplacement {
    let mut after = before.clone();
    uncount(&mut after, verified);
    after.skipped = skips_for_all_networks(&after, integrations);
    EventReplacement { before, after }
}

/// What the app says about the events of its SDK.
#[derive(Debug, Clone, Copy)]
pub struct SdkEventRules<'a> {
    /// What it says about their money.
    pub policy: MoneyPolicy,
    /// The custom events that it counts as income.
    pub revenue_events: &'a [String],
    /// Its integrations that were ever touched.
    pub integrations: &'a [Integration],
}

/// Decides about a stored SDK event, given all verified events of its id as they are stored now. Billing settles its
/// events again, so one that an SDK event duplicates may turn up, become another kind, or go. An SDK event is a duplicate
/// while there is a verified event of its kind. Once there is none it counts by the app's present terms. Its root stays.
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
    fn kinds(#[case] sdk: &str, #[case] verified: &str, #[case] duplicate: bool) {
        for source in [EventSource::Web, EventSource::Billing] {
            // The SDK's event is second.
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
            // The SDK's event is first.
            let first = of(EventSource::Sdk, sdk, 2);
            let mut second = of(source, verified, 1);
            let demotion = demote(&mut second, first.clone(), &[]);
            assert_eq!(second.dedup_root, duplicate.then_some(first.id));
            let demoted = demotion.map(|demotion| demotion.after);
            let duplicate_of = demoted.as_ref().and_then(|event| event.duplicate_of);
            assert_eq!(duplicate_of, expected);
            if let Some(event) = demoted {
                assert!(Figures::of_event(&event).is_zero());
                assert_eq!(event.dedup_root, None, "what was sent keeps its id");
                let reason = event.revenue.and_then(|revenue| revenue.uncounted);
                assert_eq!(reason, Some(UncountedReason::DuplicateOfVerified));
            }
        }
    }

    #[test]
    fn an_sdk_event_is_no_duplicate_of_an_sdk_event() {
        let mut event = of(EventSource::Sdk, "purchase", 2);
        mark_duplicate(&mut event, &[of(EventSource::Sdk, "purchase", 1)]);
        assert_eq!(event.duplicate_of, None);
        let mut web = of(EventSource::Web, "purchase", 2);
        let billing = of(EventSource::Billing, "purchase", 1);
        assert_eq!(demote(&mut web, billing, &[]), None);
        assert_eq!(web.dedup_root, None, "both are verified, and both count");
    }

    #[test]
    fn a_second_verified_event_joins_the_same_root() {
        let mut sdk = of(EventSource::Sdk, "purchase", 2);
        mark_duplicate(&mut sdk, &[of(EventSource::Web, "purchase", 1)]);
        let mut billing = of(EventSource::Billing, "purchase", 3);
        assert_eq!(demote(&mut billing, sdk, &[]), None);
        assert_eq!(billing.dedup_root, Some(EventId::from_bytes([1; 16])));
    }

    #[test]
    fn a_root_is_given_once_and_never_to_itself() {
        let mut sdk = of(EventSource::Sdk, "purchase", 2);
        let mut billing = of(EventSource::Billing, "purchase", 1);
        mark_duplicate(&mut sdk, std::slice::from_ref(&billing));
        adopt_dedup_root(&mut billing, &sdk);
        assert_eq!(billing.dedup_root, None);
        billing.dedup_root = Some(EventId::from_bytes([9; 16]));
        adopt_dedup_root(&mut billing, &of(EventSource::Sdk, "purchase", 2));
        assert_eq!(billing.dedup_root, Some(EventId::from_bytes([9; 16])));
    }

    /// What an SDK purchase is a duplicate of, given the verified events that are stored, by number and name.
    #[rstest]
    #[case::none(None, &[], None)]
    #[case::one_turns_up(None, &[(1, "purchase")], Some(1))]
    #[case::the_earliest(None, &[(3, "purchase"), (1, "subscribe")], Some(1))]
    #[case::of_another_kind(None, &[(1, "renewal"), (3, "refund")], None)]
    #[case::it_stays(Some(3), &[(1, "purchase"), (3, "purchase")], Some(3))]
    #[case::it_becomes_another_kind(Some(1), &[(1, "renewal")], None)]
    #[case::it_goes(Some(1), &[], None)]
    #[case::another_is_left(Some(1), &[(3, "purchase")], Some(3))]
    fn settling(
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
