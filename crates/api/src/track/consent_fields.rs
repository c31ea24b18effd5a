//! The user's consent, in `configure` and with each event.

use crate::fields::{Fields, flag, object, text_as};
use tributary_domain::device::{Consent, Tracking};
use tributary_domain::vocabulary::fault::{FaultCode, Problem};

/// iOS tracking status of a user who is not allowed to choose, such as on a managed device.
const RESTRICTED: &str = "restricted";

/// Reads the member `consent`. Returns `None` if it is absent or not an object.
pub(super) fn read(fields: &mut Fields<'_>, about: &'static str) -> Option<Consent> {
    let mut fields = fields.section_as("consent", object().about(about));
    let words = Tracking::ALL.iter().map(|one| one.as_str());
    let tracking = text_as(tracking)
        .words(words.chain([RESTRICTED]))
        .about("Choice in the platform's tracking prompt. `restricted` counts as `denied`.");
    let consent = Consent {
        ad_user_data: fields.optional("adUserData", flag()),
        ad_personalization: fields.optional("adPersonalization", flag()),
        tracking: fields.optional("tracking", tracking),
    };
    fields.is_present().then_some(consent)
}

/// Parses the user's choice in the tracking prompt. A user who is not allowed to choose has not
/// consented.
fn tracking(text: &str) -> Result<Tracking, Problem> {
    if text == RESTRICTED {
        return Ok(Tracking::Denied);
    }
    let message = "Must be one of authorized, denied, notDetermined, restricted.";
    Tracking::parse(text).ok_or_else(|| Problem::new(FaultCode::UnknownValue, message))
}
