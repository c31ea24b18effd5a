//! Why a conversion cannot be sent.

/// A conversion that no attempt could bring to its network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unsendable {
    /// The reason, as it is recorded.
    pub code: &'static str,
}

const fn unsendable(code: &'static str) -> Unsendable {
    Unsendable { code }
}

/// The person refused.
pub(crate) const CONSENT: Unsendable = unsendable("consent");
/// It needs an amount, and its own may not be told.
pub(crate) const AMOUNT_NOT_FORWARDABLE: Unsendable = unsendable("amount_not_forwardable");
/// The network could not tell whose it is.
pub(crate) const INSUFFICIENT_IDENTITY: Unsendable = unsendable("insufficient_identity");
/// The network needs its click id.
pub(crate) const NO_CLICK_ID: Unsendable = unsendable("no_click_id");
/// Nothing at the network stands for it.
pub(crate) const NO_CONVERSION_ACTION: Unsendable = unsendable("no_conversion_action");
/// The network wants the page that it happened on, or the link that led to it.
pub(crate) const NO_SOURCE_URL: Unsendable = unsendable("no_source_url");
/// The network wants to know what it ran on, and the device never said.
pub(crate) const NO_DEVICE_DATA: Unsendable = unsendable("no_device_data");
/// The network takes no event of this name.
pub(crate) const INVALID_EVENT_NAME: Unsendable = unsendable("invalid_event_name");

/// A condition as a check.
pub(crate) fn ensure(holds: bool, otherwise: Unsendable) -> Result<(), Unsendable> {
    if holds { Ok(()) } else { Err(otherwise) }
}
