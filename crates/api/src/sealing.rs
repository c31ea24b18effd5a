//! Sealing secrets on their way in, each for the one place it belongs to, and opening them again there.

use crate::state::ApiState;
use tributary_domain::app::AppSecret;
use tributary_domain::keyring::seal::SealedSecret;
use tributary_domain::keyring::secret_scope::SecretScope;
use tributary_domain::vocabulary::change::Change;
use tributary_domain::vocabulary::id::{AppId, OrganizationId};

pub(crate) use tributary_domain::keyring::secret_scope::APP_SECRET_SCOPE;

/// Seals and opens secrets of one app.
pub(crate) struct AppSealer<'a> {
    state: &'a ApiState,
    organization: OrganizationId,
    app: AppId,
}

impl<'a> AppSealer<'a> {
    /// For the secrets of this app.
    pub(crate) fn new(state: &'a ApiState, organization: OrganizationId, app: AppId) -> Self {
        Self {
            state,
            organization,
            app,
        }
    }

    /// Seals a text for its place: what it belongs to, and which field it is.
    pub(crate) fn seal(&self, belongs_to: &str, field: &str, secret: &str) -> SealedSecret {
        let place = self.place(belongs_to, field);
        self.state.keyring.seal(
            &place.parts(),
            self.state.runtime.random_bytes(),
            secret.as_bytes(),
        )
    }

    /// Opens a secret of the app itself. Nothing when it was sealed with another key.
    pub(crate) fn open_app_secret(
        &self,
        secret: AppSecret,
        sealed: &SealedSecret,
    ) -> Option<String> {
        let place = self.place(APP_SECRET_SCOPE, secret.as_str());
        let bytes = self.state.keyring.open(&place.parts(), sealed).ok()?;
        String::from_utf8(bytes).ok()
    }

    fn place<'p>(&self, belongs_to: &'p str, field: &'p str) -> SecretScope<'p> {
        SecretScope::new(self.organization, self.app, belongs_to, field)
    }

    /// Seals the secrets of the app that a body sets.
    pub(crate) fn seal_app_secrets(
        &self,
        secrets: Vec<(AppSecret, Change<String>)>,
    ) -> Vec<(AppSecret, Change<SealedSecret>)> {
        let seal =
            |secret: AppSecret, text: &str| self.seal(APP_SECRET_SCOPE, secret.as_str(), text);
        let secrets = secrets.into_iter();
        let sealed = secrets.map(|(one, change)| (one, change.map(|text| seal(one, &text))));
        sealed.collect()
    }
}
