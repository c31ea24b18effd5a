//! JSON form of a user's consent, used by devices and events.

use serde::Serialize;
use tributary_domain::device::{Consent, Tracking};
use utoipa::ToSchema;

/// The user's consent. Null means that the user was not asked.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ConsentOut {
    ad_user_data: Option<bool>,
    ad_personalization: Option<bool>,
    /// `authorized`, `denied` or `notDetermined`.
    tracking: Option<&'static str>,
}

impl From<Consent> for ConsentOut {
    fn from(consent: Consent) -> Self {
        Self {
            ad_user_data: consent.ad_user_data,
            ad_personalization: consent.ad_personalization,
            tracking: consent.tracking.map(Tracking::as_str),
        }
    }
}
