//! Reasons why a conversion cannot be sent.

/// Reason why a conversion can never be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unsendable {
    /// Recorded reason code.
    pub code: &'static str,
}

const fn unsendable(code: &'static str) -> Unsendable {
    Unsendable { code }
}

/// The user refused consent.
pub(crate) const CONSENT: Unsendable = unsendable("consent");
/// The network requires an amount for this event, but the event's amount may not be forwarded.
pub(crate) const AMOUNT_NOT_FORWARDABLE: Unsendable = unsendable("amount_not_forwardable");
/// The network could not identify the person.
pub(crate) const INSUFFICIENT_IDENTITY: Unsendable = unsendable("insufficient_identity");
/// The network requires its click id.
pub(crate) const NO_CLICK_ID: Unsendable = unsendable("no_click_id");
/// No conversion action is mapped to the event.
pub(crate) const NO_CONVERSION_ACTION: Unsendable = unsendable("no_conversion_action");
/// The network requires the page URL or the link.
pub(crate) const NO_SOURCE_URL: Unsendable = unsendable("no_source_url");
/// The network requires device data that the device never sent.
pub(crate) const NO_DEVICE_DATA: Unsendable = unsendable("no_device_data");
/// The network does not accept this event name.
pub(crate) const INVALID_EVENT_NAME: Unsendable = unsendable("invalid_event_name");

/// Fails with `otherwise` unless the condition holds.
pub(crate) fn ensure(holds: bool, otherwise: Unsendable) -> Result<(), Unsendable> {
    if holds { Ok(()) } else { Err(otherwise) }
}
