//! Sample deliveries.

use super::conversion::Conversion;
use super::delivery::PendingDelivery;
use super::plan::samples::{NOW, click, event};
use crate::device::ContactHashes;
use crate::vocabulary::id::{DeliveryId, EventId};

/// A sendable conversion with a numbered delivery.
pub(crate) fn conversion(number: u8) -> Conversion {
    Conversion {
        delivery: DeliveryId::from_bytes([number; 16]),
        dedup_id: format!("d{number}"),
        network_event: "CompleteRegistration".to_owned(),
        event: event("sign_up"),
        page_url: None,
        click: Some(click()),
        network_click_id: None,
        device: None,
        matching: ContactHashes::default(),
        user: None,
    }
}

/// The conversion's pending delivery, before the first attempt.
pub(crate) fn pending(number: u8) -> PendingDelivery {
    PendingDelivery {
        id: DeliveryId::from_bytes([number; 16]),
        event: EventId::from_bytes([2; 16]),
        network_event: "CompleteRegistration".to_owned(),
        dedup_id: format!("d{number}"),
        planned_at: NOW,
        attempts_made: 0,
        attempts: Vec::new(),
        ambiguous_since: None,
        interrupted_at: None,
    }
}
