//! Encryption of app secrets. Each secret is bound to its owner and field, and can be decrypted
//! only for the same owner and field.

use crate::state::ApiState;
use tributary_domain::app::AppSecret;
use tributary_domain::keyring::seal::SealedSecret;
use tributary_domain::keyring::secret_scope::SecretScope;
use tributary_domain::vocabulary::change::Change;
use tributary_domain::vocabulary::id::{AppId, OrganizationId};

pub(crate) use tributary_domain::keyring::secret_scope::APP_SECRET_SCOPE;

/// Encrypts and decrypts one app's secrets.
pub(crate) struct AppSealer<'a> {
    state: &'a ApiState,
    organization: OrganizationId,
    app: AppId,
}

impl<'a> AppSealer<'a> {
    /// Creates a sealer for an app's secrets.
    pub(crate) fn new(state: &'a ApiState, organization: OrganizationId, app: AppId) -> Self {
        Self {
            state,
            organization,
            app,
        }
    }

    /// Encrypts a secret for its owner and field.
    pub(crate) fn seal(&self, belongs_to: &str, field: &str, secret: &str) -> SealedSecret {
        let scope = self.scope(belongs_to, field);
        self.state.keyring.seal(
            &scope.parts(),
            self.state.runtime.random_bytes(),
            secret.as_bytes(),
        )
    }

    /// Decrypts an app's secret. Returns `None` if the secret was encrypted with another key.
    pub(crate) fn open_app_secret(
        &self,
        secret: AppSecret,
        sealed: &SealedSecret,
    ) -> Option<String> {
        let scope = self.scope(APP_SECRET_SCOPE, secret.as_str());
        let bytes = self.state.keyring.open(&scope.parts(), sealed).ok()?;
        String::from_utf8(bytes).ok()
    }

    fn scope<'p>(&self, belongs_to: &'p str, field: &'p str) -> SecretScope<'p> {
        SecretScope::new(self.organization, self.app, belongs_to, field)
    }

    /// Encrypts the app secrets that a request sets.
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
