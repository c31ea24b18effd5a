//! Account settings.

use crate::account::{AccountSettings, UnusableIntegration};
use crate::secret::Secret;

/// How app events are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SdkEventMode {
    /// As website events, with the link as the page.
    Website,
    /// As app events, with device data.
    App,
}

/// A Meta account (`network_a`).
#[derive(Debug, Clone)]
pub struct MetaAccount {
    pub(super) pixel_id: String,
    pub(super) api_version: String,
    pub(super) mode: SdkEventMode,
    pub(super) limited_data_use: bool,
    pub(super) access_token: Secret,
    pub(super) app_secret: Option<Secret>,
    pub(crate) test_code: Option<String>,
}

impl MetaAccount {
    pub(crate) fn read(settings: &AccountSettings<'_>) -> Result<Self, UnusableIntegration> {
        let mode = match settings.text("sdkEventMode").as_deref() {
            Some("app") => SdkEventMode::App,
            _ => SdkEventMode::Website,
        };
        Ok(Self {
            pixel_id: settings.required("pixelId")?,
            api_version: settings.required("apiVersion")?,
            mode,
            limited_data_use: settings.flag("limitedDataUse"),
            access_token: settings.required_secret("accessToken")?,
            app_secret: settings.secret("appSecret"),
            test_code: settings.test_code()?,
        })
    }

    pub(crate) fn secrets(&self) -> impl Iterator<Item = &Secret> {
        std::iter::once(&self.access_token).chain(&self.app_secret)
    }
}
