//! Encrypts secrets from forms. Each is bound to its organization, app and field.

use crate::access::FormSubmission;
use crate::failure::Failure;
use crate::state::DashboardHandles;
use tributary_domain::access::AppsWrite;
use tributary_domain::app::AppSecret;
use tributary_domain::keyring::seal::SealedSecret;
use tributary_domain::keyring::secret_scope::{APP_SECRET_SCOPE, SecretScope};
use tributary_domain::vocabulary::change::Change;
use tributary_domain::vocabulary::id::{AppId, OrganizationId};

/// Encrypts one app's secrets.
pub(crate) struct FormSecretSealer<'a> {
    handles: &'a DashboardHandles,
    organization: OrganizationId,
    app: AppId,
}

impl<'a> FormSecretSealer<'a> {
    /// Creates a sealer for the app that the form was submitted for.
    pub(crate) fn new(
        handles: &'a DashboardHandles,
        submission: &FormSubmission<AppsWrite>,
    ) -> Result<Self, Failure> {
        Ok(Self {
            handles,
            organization: submission.authorized.organization(),
            app: submission.app()?.id,
        })
    }

    /// Encrypts a text, bound to its owner and field.
    pub(crate) fn seal(&self, belongs_to: &str, field: &str, secret: &str) -> SealedSecret {
        let place = SecretScope::new(self.organization, self.app, belongs_to, field);
        let nonce = self.handles.runtime.random_bytes();
        let keyring = &self.handles.keyring;
        keyring.seal(&place.parts(), nonce, secret.as_bytes())
    }

    /// Encrypts one of the app's own secrets.
    pub(crate) fn seal_app_secret(&self, secret: AppSecret, text: &str) -> SealedSecret {
        self.seal(APP_SECRET_SCOPE, secret.as_str(), text)
    }

    /// Encrypts the app secrets that a form sets.
    pub(crate) fn seal_app_secrets(
        &self,
        secrets: Vec<(AppSecret, Change<String>)>,
    ) -> Vec<(AppSecret, Change<SealedSecret>)> {
        let secrets = secrets.into_iter();
        let sealed = secrets.map(|(secret, change)| {
            let sealed = change.map(|text| self.seal_app_secret(secret, &text));
            (secret, sealed)
        });
        sealed.collect()
    }
}
