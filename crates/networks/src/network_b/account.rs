//! What a request is made with.

use super::service_account::ServiceAccount;
use crate::account::{AccountSettings, UnusableIntegration};
use crate::secret::Secret;
use std::collections::BTreeMap;
use tributary_domain::forwarding::Conversion;

/// An account of `network_b`.
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

/// How access tokens are come by.
#[derive(Debug, Clone)]
pub(super) enum TokenGrant {
    /// With a token that a person agreed to.
    RefreshToken {
        client_id: String,
        client_secret: Secret,
        refresh_token: Secret,
    },
    /// With a key of its own. Preferred where both are there: nobody's consent runs out.
    ServiceAccount(ServiceAccount),
}

impl GoogleAdsAccount {
    pub(crate) fn read(settings: &AccountSettings<'_>) -> Result<Self, UnusableIntegration> {
        let way_in = match settings.secret("serviceAccountKey") {
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
            grant: way_in,
            validate_only: settings.flag("testMode"),
        })
    }

    /// The conversion action that stands for an event.
    pub(crate) fn action(&self, conversion: &Conversion) -> Option<&str> {
        let action = self.conversion_actions.get(&conversion.network_event);
        action.map(String::as_str)
    }

    /// Any key that a conversion action is known by, for tests.
    pub(crate) fn any_event_key(&self) -> Option<&str> {
        self.conversion_actions.keys().next().map(String::as_str)
    }

    pub(crate) fn secrets(&self) -> impl Iterator<Item = &Secret> {
        let secrets = match &self.grant {
            TokenGrant::RefreshToken {
                client_secret,
                refresh_token,
                ..
            } => [client_secret, refresh_token],
            TokenGrant::ServiceAccount(account) => account.secrets(),
        };
        secrets.into_iter()
    }

    /// The cloud project whose quota is used. An OAuth client's id begins with its project's number.
    pub(crate) fn project(&self) -> &str {
        match &self.grant {
            TokenGrant::RefreshToken { client_id, .. } => {
                client_id.split('-').next().unwrap_or(client_id)
            }
            TokenGrant::ServiceAccount(account) => account.project(),
        }
    }
}
