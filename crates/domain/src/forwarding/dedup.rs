//! Deduplication ids of conversions.

use crate::event::{Event, EventSource};
use crate::integration::Network;
use crate::vocabulary::digest::{Digest, hex};

/// Length of a derived id in hex digits.
const DERIVED_DIGITS: usize = 32;
/// Maximum length of a sender's id that is sent unchanged.
const OWN_ID_CHARS_MAX: usize = 64;

/// Returns an event's deduplication id at a network, which is the same for every attempt. With
/// `own`, a web event keeps its sender's id, so that a pixel on the page can send the same id. The
/// id is always derived if the sender's id is long or looks like an email address, or if another
/// source reported the event earlier.
pub fn dedup_id(event: &Event, network: Network, network_event: &str, own: bool) -> String {
    let external_id = &event.external_id;
    let can_be_own = event.dedup_root.is_none()
        && event.source == EventSource::Web
        && !external_id.contains('@')
        && external_id.chars().count() <= OWN_ID_CHARS_MAX;
    if own && can_be_own {
        return external_id.clone();
    }
    let uuid = uuid::Uuid::from_bytes(*event.root().as_bytes());
    derived(
        &event.app.to_string(),
        &uuid.to_string(),
        network,
        network_event,
    )
}

fn derived(app: &str, event: &str, network: Network, network_event: &str) -> String {
    let text = format!("{app}|{event}|{}|{network_event}", network.as_str());
    let mut id = hex(Digest::of(text.as_bytes()).as_bytes());
    id.truncate(DERIVED_DIGITS);
    id
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forwarding::plan::samples::event;
    use rstest::rstest;

    #[test]
    fn the_example_of_the_reference() {
        let event = "0199f1c2-7b3a-7c44-9e21-5d0a4b8c6e10";
        let id = derived("app_7f3k", event, Network::A, "Lead");
        assert_eq!(id, "b86acd70fb880a9f5599081812f779c5");
    }

    #[test]
    fn ids_differ_by_network_and_name() {
        let event = event("purchase");
        let id = |network, name| dedup_id(&event, network, name, false);
        let one = id(Network::A, "Purchase");
        assert_eq!(one, id(Network::A, "Purchase"), "the same at every attempt");
        assert_ne!(one, id(Network::C, "Purchase"));
        assert_ne!(one, id(Network::A, "StartTrial"));
    }

    #[test]
    fn an_event_reported_twice_keeps_the_first_ids() {
        let first = event("purchase");
        let mut second = event("purchase");
        second.source = EventSource::Web;
        second.id = crate::vocabulary::id::EventId::from_bytes([9; 16]);
        second.dedup_root = Some(first.id);
        for network in Network::ALL {
            let known = dedup_id(&first, network, "Purchase", false);
            assert_eq!(dedup_id(&second, network, "Purchase", true), known);
        }
    }

    #[rstest]
    #[case::web(EventSource::Web, "ord_1", true, true)]
    #[case::disabled(EventSource::Web, "ord_1", false, false)]
    #[case::from_the_sdk(EventSource::Sdk, "ord_1", true, false)]
    #[case::like_an_email_address(EventSource::Web, "joe@example.com", true, false)]
    #[case::long(EventSource::Web, &"x".repeat(65), true, false)]
    #[case::just_short_enough(EventSource::Web, &"x".repeat(64), true, true)]
    fn which_sender_ids_are_kept(
        #[case] source: EventSource,
        #[case] external_id: &str,
        #[case] own: bool,
        #[case] is_kept: bool,
    ) {
        let mut event = event("purchase");
        event.source = source;
        external_id.clone_into(&mut event.external_id);
        let id = dedup_id(&event, Network::A, "Purchase", own);
        assert_eq!(id == external_id, is_kept);
    }
}
