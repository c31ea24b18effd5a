//! `network_c`: TikTok Events API 2.0.

mod cost_report;
mod encode;
mod judge;

#[cfg(test)]
mod tests;

pub use cost_report::TikTokReport;
pub(crate) use encode::{check, encode};
pub(crate) use judge::judge;

use crate::account::{AccountSettings, UnusableIntegration};
use crate::secret::Secret;

/// A TikTok account (`network_c`).
#[derive(Debug, Clone)]
pub struct TikTokAccount {
    pixel_code: String,
    pub(crate) access_token: Secret,
    pub(crate) test_code: Option<String>,
}

impl TikTokAccount {
    pub(crate) fn read(settings: &AccountSettings<'_>) -> Result<Self, UnusableIntegration> {
        Ok(Self {
            pixel_code: settings.required("pixelCode")?,
            access_token: settings.required_secret("accessToken")?,
            test_code: settings.test_code()?,
        })
    }
}
