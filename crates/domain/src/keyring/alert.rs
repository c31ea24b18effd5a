//! Signs alerts by the Standard Webhooks scheme.

use super::seal::{NONCE_BYTES, SealedSecret, UnsealError};
use super::secret_scope::SecretScope;
use super::{Keyring, derive};
use crate::vocabulary::id::{AppId, OrganizationId};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Owner and field that alert secrets are encrypted for.
pub const ALERT_SECRET_PLACE: (&str, &str) = ("alerts", "webhook");

/// Secret that an app's alerts are signed with. Receivers verify alerts with it.
#[derive(Clone, PartialEq, Eq)]
pub struct AlertSecret([u8; AlertSecret::BYTES]);

impl AlertSecret {
    /// Length in bytes.
    const BYTES: usize = 32;

    /// Wraps random bytes.
    pub const fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        Self(bytes)
    }

    /// Returns the bytes, to show them.
    pub const fn as_bytes(&self) -> &[u8; Self::BYTES] {
        &self.0
    }

    /// Signs an alert's id, sending time in seconds and body.
    pub fn sign(&self, id: &str, seconds: i64, body: &[u8]) -> [u8; 32] {
        let mut mac =
            Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC accepts keys of any length");
        mac.update(format!("{id}.{seconds}.").as_bytes());
        mac.update(body);
        mac.finalize().into_bytes().into()
    }
}

impl std::fmt::Debug for AlertSecret {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("AlertSecret(***)")
    }
}

impl Keyring {
    /// Returns the secret of an app. It is derived until it is stored, which is when it is first shown
    /// and before a rotation of the secret key. So a secret that a receiver knows does not change.
    pub fn alert_secret(
        &self,
        (organization, app): (OrganizationId, AppId),
        stored: Option<&SealedSecret>,
    ) -> Result<AlertSecret, UnsealError> {
        let Some(sealed) = stored else {
            return Ok(AlertSecret(derive(
                self.in_use().key,
                &format!("alert-webhook/1/{app}"),
            )));
        };
        let bytes = self.open(&scope(organization, app).parts(), sealed)?;
        bytes.try_into().map(AlertSecret).map_err(|_| UnsealError)
    }

    /// Encrypts the secret of an app.
    pub fn seal_alert_secret(
        &self,
        (organization, app): (OrganizationId, AppId),
        nonce: [u8; NONCE_BYTES],
        secret: &AlertSecret,
    ) -> SealedSecret {
        self.seal(&scope(organization, app).parts(), nonce, &secret.0)
    }
}

fn scope(organization: OrganizationId, app: AppId) -> SecretScope<'static> {
    let (owner, field) = ALERT_SECRET_PLACE;
    SecretScope::new(organization, app, owner, field)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OF: (OrganizationId, AppId) = (
        OrganizationId::from_bytes([9; 16]),
        AppId::from_bytes([1; 16]),
    );

    #[test]
    fn signatures_cover_every_part() {
        let secret = AlertSecret::from_bytes([7; 32]);
        let signed = secret.sign("alt_1", 1_700_000_000, b"{}");
        assert_eq!(signed, secret.sign("alt_1", 1_700_000_000, b"{}"));
        for changed in [
            AlertSecret::from_bytes([8; 32]).sign("alt_1", 1_700_000_000, b"{}"),
            secret.sign("alt_2", 1_700_000_000, b"{}"),
            secret.sign("alt_1", 1_700_000_001, b"{}"),
            secret.sign("alt_1", 1_700_000_000, b"{ }"),
        ] {
            assert_ne!(signed, changed);
        }
    }

    #[test]
    fn an_app_without_a_stored_secret_has_a_derived_one() {
        let keyring = Keyring::new([7; 32]);
        let derived = |app| keyring.alert_secret((OF.0, app), None).unwrap();
        assert_ne!(derived(OF.1), derived(AppId::from_bytes([2; 16])));
        let stored = keyring.seal_alert_secret(OF, [3; NONCE_BYTES], &derived(OF.1));
        assert_eq!(keyring.alert_secret(OF, Some(&stored)), Ok(derived(OF.1)));
        let other = Keyring::new([8; 32]).alert_secret(OF, Some(&stored));
        assert_eq!(
            other,
            Err(UnsealError),
            "a stored secret is not replaced by a derived one"
        );
    }
}
