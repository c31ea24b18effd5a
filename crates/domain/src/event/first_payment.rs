//! A device's first payment: its earliest counted payment by event time.

use super::Event;
use super::duplicate::EventReplacement;

/// Changes to a device's first-payment flag.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FirstPayment {
    /// Events whose flag changes.
    pub moved: Vec<EventReplacement>,
    /// The first payment, if the device has one.
    pub first: Option<Event>,
}

/// Decides which of a device's events has the first-payment flag. `flagged` are the events that
/// have the flag now; `earliest` is the device's earliest counted payment. Placeholder devices have
/// no first payment.
pub fn settle_first_payment(flagged: Vec<Event>, earliest: Option<Event>) -> FirstPayment {
    let first = earliest.filter(|event| event.payer().is_some());
    let id = first.as_ref().map(|event| event.id);
    let is_first = |event: &Event| Some(event.id) == id;
    let gains = first.clone().filter(|_| !flagged.iter().any(is_first));
    let loses = flagged.into_iter().filter(|event| !is_first(event));
    let moved = loses.chain(gains).map(|before| {
        let mut after = before.clone();
        after.first_payment = !before.first_payment;
        EventReplacement { before, after }
    });
    FirstPayment {
        moved: moved.collect(),
        first,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::DeviceKey;
    use crate::forwarding::plan::samples::{event as sample, worth};
    use crate::vocabulary::id::EventId;
    use rstest::rstest;

    fn payment(number: u8, flagged: bool) -> Event {
        let mut event = sample("purchase");
        event.id = EventId::from_bytes([number; 16]);
        event.device = Some(DeviceKey::stored("d".to_owned()));
        event.revenue = Some(worth(Some("1"), None));
        event.first_payment = flagged;
        event
    }

    #[rstest]
    #[case::none(&[], None, &[], None)]
    #[case::a_new_one(&[], Some(1), &[(1, true)], Some(1))]
    #[case::unchanged(&[1], Some(1), &[], Some(1))]
    #[case::an_earlier_one(&[2], Some(1), &[(2, false), (1, true)], Some(1))]
    #[case::removed(&[2], None, &[(2, false)], None)]
    #[case::two_flagged(&[1, 2], Some(1), &[(2, false)], Some(1))]
    fn the_flag_moves(
        #[case] flagged: &[u8],
        #[case] earliest: Option<u8>,
        #[case] moved: &[(u8, bool)],
        #[case] noted: Option<u8>,
    ) {
        let flagged: Vec<Event> = flagged
            .iter()
            .map(|number| payment(*number, true))
            .collect();
        let earliest = earliest.map(|number| {
            let before = flagged
                .iter()
                .find(|event| event.id == payment(number, true).id);
            before.cloned().unwrap_or_else(|| payment(number, false))
        });
        let settled = settle_first_payment(flagged, earliest);
        let found = settled.moved.iter().map(|one| &one.after);
        let found: Vec<(EventId, bool)> = found.map(|one| (one.id, one.first_payment)).collect();
        let id = |number: u8| EventId::from_bytes([number; 16]);
        let moved: Vec<_> = moved
            .iter()
            .map(|(number, has)| (id(*number), *has))
            .collect();
        assert_eq!(found, moved);
        let first = settled.first.map(|event| event.id);
        assert_eq!(first, noted.map(id));
    }

    #[test]
    fn a_placeholder_has_no_first_payment() {
        let mut event = payment(1, false);
        event.device = Some(DeviceKey::stored("0".repeat(16)));
        let is_placeholder = event.device.as_ref().is_some_and(DeviceKey::is_placeholder);
        let settled = settle_first_payment(Vec::new(), Some(event));
        assert!(is_placeholder);
        assert_eq!(settled, FirstPayment::default());
    }
}
