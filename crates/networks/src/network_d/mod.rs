//! `network_d`: the `OpenAI` Ads Conversions API. It is in beta, and its names have changed before.

mod encode;
mod judge;
mod kind;

#[cfg(test)]
mod tests;

pub(crate) use encode::{check, encode};
pub(crate) use judge::judge;

use crate::account::{NotUsable, Settings};
use crate::secret::Secret;

/// An account of `network_d`.
#[derive(Debug, Clone)]
pub struct Account {
    pixel_id: String,
    pub(crate) api_key: Secret,
    pub(crate) validate_only: bool,
}

impl Account {
    pub(crate) fn read(settings: &Settings<'_>) -> Result<Self, NotUsable> {
        Ok(Self {
            pixel_id: settings.required("pixelId")?,
            api_key: settings.required_secret("apiKey")?,
            validate_only: settings.flag("testMode"),
        })
    }
}
