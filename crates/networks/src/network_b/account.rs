//! Account settings.

use super::service_account::ServiceAccount;
use crate::account::{AccountSettings, UnusableIntegration};
use crate::secret::Secret;
use std::collections::BTreeMap;
use tributary_domain::forwarding::Conversion;

/// A Google Ads account (`network_b`).
#[derive(Debug, Clone)]
pub struct GoogleAdsAccount {
    pub(super) operating_account_id: String,
    pub(super) login_account_id: Option<String>,
    pub(super) conversion_actions: BTreeMap<String, String>,
    pub(super) user_data_enabled: bool,
    pub(super) landing_page_device_info: bool,
    pub(super) sdk_event_source: String,
    pub(super) grant: TokenGrant,
    pub(crate) validate_only: bool,
}

/// How access tokens are obtained.
#[derive(Debug, Clone)]
pub(super) enum TokenGrant {
    /// With a user's refresh token.
    RefreshToken {
        client_id: String,
        client_secret: Secret,
        refresh_token: Secret,
    },
    /// With a service account key. Preferred if both credentials are set, because a service account
    /// does not depend on the consent of a Google user.
    ServiceAccount(ServiceAccount),
}

impl TokenGrant {
    pub(super) fn secrets(&self) -> impl Iterator<Item = &Secret> {
        let secrets = match self {
            Self::RefreshToken {
                client_secret,
                refresh_token,
                ..
            } => [client_secret, refresh_token],
            Self::ServiceAccount(account) => account.secrets(),
        };
        secrets.into_iter()
    }
}

impl GoogleAdsAccount {
    pub(crate) fn read(settings: &AccountSettings<'_>) -> Result<Self, UnusableIntegration> {
        let grant = match settings.secret("serviceAccountKey") {
            Some(file) => TokenGrant::ServiceAccount(ServiceAccount::read(file)?),
            None => TokenGrant::RefreshToken {
                client_id: settings.required("clientId")?,
                client_secret: settings.required_secret("clientSecret")?,
                refresh_token: settings.required_secret("refreshToken")?,
            },
        };
        Ok(Self {
            operating_account_id: settings.required("operatingAccountId")?,
            login_account_id: settings.text("loginAccountId"),
            conversion_actions: settings.map("conversionActions"),
            user_data_enabled: settings.flag("userDataEnabled"),
            landing_page_device_info: settings.flag("landingPageDeviceInfo"),
            sdk_event_source: settings.required("sdkEventSource")?,
            grant,
            validate_only: settings.flag("testMode"),
        })
    }

    /// Returns the conversion action mapped to an event.
    pub(crate) fn action(&self, conversion: &Conversion) -> Option<&str> {
        let action = self.conversion_actions.get(&conversion.network_event);
        action.map(String::as_str)
    }

    /// Returns one of the mapped event keys, for test events.
    pub(crate) fn any_event_key(&self) -> Option<&str> {
        self.conversion_actions.keys().next().map(String::as_str)
    }

    pub(crate) fn secrets(&self) -> impl Iterator<Item = &Secret> {
        self.grant.secrets()
    }

    /// Returns the cloud project whose quota is used. An OAuth client id starts with its project
    /// number.
    pub(crate) fn project(&self) -> &str {
        match &self.grant {
            TokenGrant::RefreshToken { client_id, .. } => {
                client_id.split('-').next().unwrap_or(client_id)
            }
            TokenGrant::ServiceAccount(account) => account.project(),
        }
    }
}
