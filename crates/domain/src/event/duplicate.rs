//! One event that two sources report.
//!
//! Within an app and environment an id names one event. A website or a billing provider proves what it reports, so
//! its event counts and is forwarded. The SDK's event of the same id and kind is kept, does not count, and is not
//! forwarded, whichever of the two arrives first. The later one takes the earlier one's id as the root of its
//! deduplication ids, so that a network recognises what it already has.

use super::{Event, EventSource};
use crate::forwarding::plan::withheld;
use crate::integration::Integration;
use crate::ledger::Uncounted;
use crate::vocabulary::id::EventId;
use crate::vocabulary::money::Amount;

/// Names that a website or a billing provider reports too.
pub const VERIFIABLE_NAMES: &[&str] = &[
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

/// Makes a new SDK event a duplicate of the verified event that has its id, if it is one.
pub fn mark_duplicate(event: &mut Event, verified: &Event) {
    let is_duplicate = event.source == EventSource::Sdk
        && verified.source != EventSource::Sdk
        && is_same_kind(&event.name, &verified.name);
    if is_duplicate {
        uncount(event, verified.id);
        event.dedup_root = Some(verified.root());
    }
}

fn uncount(event: &mut Event, verified: EventId) {
    event.duplicate_of = Some(verified);
    event.first_payment = false;
    if let Some(revenue) = &mut event.revenue {
        revenue.uncounted = Some(Uncounted::DuplicateOfVerified);
    }
}

/// The SDK event that has the id of a new verified event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reported {
    /// The SDK event.
    pub event: Event,
    /// The earliest other payment of its device that counts. Only needed if the SDK event is the first one.
    pub next_payment: Option<Event>,
}

/// An event that becomes another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replacement {
    /// The event as it is stored.
    pub before: Event,
    /// The event as it is to be stored.
    pub after: Event,
}

/// What a verified event changes about the SDK event of the same id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Demotion {
    /// The SDK event, which counts no longer.
    pub event: Replacement,
    /// The payment that becomes the first one of the SDK event's device.
    pub promoted: Option<Replacement>,
}

impl Demotion {
    /// Every event that is stored again.
    pub fn replacements(&self) -> impl Iterator<Item = &Replacement> {
        std::iter::once(&self.event).chain(&self.promoted)
    }

    /// Returns whether the SDK event was the first payment of its device.
    pub fn vacates_first_payment(&self) -> bool {
        self.event.before.first_payment
    }
}

/// Decides what a new verified event means for the SDK event of the same id: sets the new event's root, and returns
/// what changes about the SDK event.
pub fn demote(
    verified: &mut Event,
    reported: Reported,
    integrations: &[Integration],
) -> Option<Demotion> {
    let Reported {
        event: before,
        next_payment,
    } = reported;
    let is_duplicate =
        before.source == EventSource::Sdk && is_same_kind(&before.name, &verified.name);
    if !is_duplicate {
        return None;
    }
    verified.dedup_root = Some(before.root());
    if before.duplicate_of.is_some() {
        // Another verified source reported it before.
        return None;
    }
    let mut after = before.clone();
    uncount(&mut after, verified.id);
    after.skipped = withheld(&after, integrations);
    let promoted = next_payment
        .filter(|next| before.first_payment && pays(next))
        .map(|next| Replacement {
            after: Event {
                first_payment: true,
                ..next.clone()
            },
            before: next,
        });
    // The device's first payment is vacant: the verified event takes it if it is on the same device.
    if before.first_payment && promoted.is_none() && verified.device == before.device {
        verified.first_payment = pays(verified);
    }
    Some(Demotion {
        event: Replacement { before, after },
        promoted,
    })
}

fn pays(event: &Event) -> bool {
    let revenue = event.revenue.as_ref();
    revenue.is_some_and(|revenue| revenue.counted_usd() > Amount::ZERO)
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
            mark_duplicate(&mut second, &first);
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
            let reported = Reported {
                event: first.clone(),
                next_payment: None,
            };
            let demotion = demote(&mut second, reported, &[]);
            assert_eq!(second.dedup_root, duplicate.then_some(first.id));
            let demoted = demotion.map(|demotion| demotion.event.after);
            let duplicate_of = demoted.as_ref().and_then(|event| event.duplicate_of);
            assert_eq!(duplicate_of, expected);
            if let Some(event) = demoted {
                assert!(Figures::of_event(&event).is_zero());
                assert_eq!(event.dedup_root, None, "what was sent keeps its id");
                let reason = event.revenue.and_then(|revenue| revenue.uncounted);
                assert_eq!(reason, Some(Uncounted::DuplicateOfVerified));
            }
        }
    }

    #[test]
    fn an_sdk_event_is_no_duplicate_of_an_sdk_event() {
        let mut event = of(EventSource::Sdk, "purchase", 2);
        mark_duplicate(&mut event, &of(EventSource::Sdk, "purchase", 1));
        assert_eq!(event.duplicate_of, None);
        let reported = Reported {
            event: of(EventSource::Billing, "purchase", 1),
            next_payment: None,
        };
        let mut web = of(EventSource::Web, "purchase", 2);
        assert_eq!(demote(&mut web, reported, &[]), None);
        assert_eq!(web.dedup_root, None);
    }

    #[test]
    fn a_second_verified_event_joins_the_same_root() {
        let mut sdk = of(EventSource::Sdk, "purchase", 2);
        mark_duplicate(&mut sdk, &of(EventSource::Web, "purchase", 1));
        let mut billing = of(EventSource::Billing, "purchase", 3);
        let reported = Reported {
            event: sdk,
            next_payment: None,
        };
        assert_eq!(demote(&mut billing, reported, &[]), None);
        assert_eq!(billing.dedup_root, Some(EventId::from_bytes([1; 16])));
    }

    #[rstest]
    #[case::nothing_else(false, "d", false, true)]
    #[case::nothing_else_of_its_device(false, "other", false, false)]
    #[case::another_payment(true, "d", true, false)]
    fn the_first_payment_passes_on(
        #[case] has_next: bool,
        #[case] device: &str,
        #[case] promoted: bool,
        #[case] verified_is_first: bool,
    ) {
        let mut event = of(EventSource::Sdk, "purchase", 1);
        event.first_payment = true;
        let next_payment = has_next.then(|| of(EventSource::Sdk, "purchase", 9));
        let mut verified = of(EventSource::Web, "purchase", 2);
        verified.device = Some(DeviceKey::stored(device.to_owned()));
        let reported = Reported {
            event,
            next_payment,
        };
        let demotion = demote(&mut verified, reported, &[]).unwrap();
        assert!(demotion.vacates_first_payment());
        assert!(!demotion.event.after.first_payment);
        assert_eq!(
            demotion
                .promoted
                .is_some_and(|next| next.after.first_payment),
            promoted
        );
        assert_eq!(verified.first_payment, verified_is_first);
    }
}
