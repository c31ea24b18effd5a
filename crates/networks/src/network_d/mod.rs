//! `network_d`: OpenAI Ads Conversions API. It is in beta, and its field names have changed
//! before.

mod encode;
mod event_type;
mod judge;

#[cfg(test)]
mod tests;

pub(crate) use encode::{check, encode};
pub(crate) use judge::judge;

use crate::account::{AccountSettings, UnusableIntegration};
use crate::secret::Secret;

/// An OpenAI Ads account (`network_d`).
#[derive(Debug, Clone)]
pub struct OpenAiAccount {
    pixel_id: String,
    pub(crate) api_key: Secret,
    pub(crate) validate_only: bool,
}

impl OpenAiAccount {
    pub(crate) fn read(settings: &AccountSettings<'_>) -> Result<Self, UnusableIntegration> {
        Ok(Self {
            pixel_id: settings.required("pixelId")?,
            api_key: settings.required_secret("apiKey")?,
            validate_only: settings.flag("testMode"),
        })
    }
}
