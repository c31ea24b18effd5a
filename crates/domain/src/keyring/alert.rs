//! Signs alerts by the Standard Webhooks scheme.

use super::seal::{NONCE_BYTES, SealedSecret, UnsealError};
use super::secret_scope::SecretScope;
use super::{Keyring, derive};
use crate::refusal::Refusal;
use crate::vocabulary::id::{AppId, OrganizationId};
use crate::vocabulary::time::Timestamp;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::time::Duration;

/// Hours for which a replaced secret stays valid by default: a working day to change a receiver.
pub const ALERT_SECRET_OVERLAP_HOURS_DEFAULT: u32 = 24;
/// Maximum number of these hours: thirty days.
pub const ALERT_SECRET_OVERLAP_HOURS_MAX: u32 = 30 * 24;

/// Prefix of Standard Webhooks secrets.
const PREFIX: &str = "whsec_";

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

    /// Returns the secret as Standard Webhooks libraries read it, to show it.
    pub fn reveal(&self) -> String {
        format!("{PREFIX}{}", BASE64.encode(self.0))
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

/// An app's stored secrets, encrypted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredAlertSecrets {
    /// The secret in use.
    pub current: SealedSecret,
    /// The secret that it replaced, and its end.
    pub previous: Option<(SealedSecret, Timestamp)>,
}

/// How to replace the secret of an app.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AlertSecretRotation {
    /// The secret in use, if none is stored yet.
    pub derived: SealedSecret,
    /// The new secret.
    pub successor: SealedSecret,
    /// How long alerts are signed with the replaced one, too.
    pub overlap: Duration,
}

impl AlertSecretRotation {
    /// Returns what to store. Refused while the secret that was replaced before is valid: receivers
    /// may know only that one, for example because the answer to the rotation was lost. An alert has
    /// at most two signatures. A rotation without an overlap ends all former secrets.
    pub fn replace(
        &self,
        stored: Option<StoredAlertSecrets>,
        now: Timestamp,
    ) -> Result<StoredAlertSecrets, Refusal> {
        let previous = stored.iter().find_map(|stored| stored.previous.as_ref());
        if !self.overlap.is_zero() && previous.is_some_and(|(_, end)| now < *end) {
            return Err(Refusal::AlertSecretRotated);
        }
        let replaced = stored.map_or_else(|| self.derived.clone(), |stored| stored.current);
        let has_overlap = !self.overlap.is_zero();
        Ok(StoredAlertSecrets {
            current: self.successor.clone(),
            previous: has_overlap.then(|| (replaced, now.plus(self.overlap))),
        })
    }
}

/// The secrets that an app's alerts are signed with at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AlertSecrets {
    /// The secret in use.
    pub current: AlertSecret,
    /// The secret that it replaced, and its end, which has not come.
    pub previous: Option<(AlertSecret, Timestamp)>,
}

impl AlertSecrets {
    /// Returns the header with the signatures of an alert. Receivers accept it if one of them matches.
    pub fn signatures(&self, id: &str, seconds: i64, body: &[u8]) -> String {
        let previous = self.previous.iter().map(|(secret, _)| secret);
        let secrets = std::iter::once(&self.current).chain(previous);
        let signed = secrets.map(|secret| BASE64.encode(secret.sign(id, seconds, body)));
        let signed: Vec<String> = signed.map(|text| format!("v1,{text}")).collect();
        signed.join(" ")
    }
}

impl Keyring {
    /// Returns the secrets that an app's alerts are signed with now. A replaced one that no known key
    /// decrypts is left out, so that alerts are sent with the secret in use.
    pub fn alert_secrets(
        &self,
        of: (OrganizationId, AppId),
        stored: Option<&StoredAlertSecrets>,
        now: Timestamp,
    ) -> Result<AlertSecrets, UnsealError> {
        let previous = stored.and_then(|stored| stored.previous.as_ref());
        let previous = previous.filter(|(_, end)| now < *end);
        Ok(AlertSecrets {
            current: self.alert_secret(of, stored.map(|stored| &stored.current))?,
            previous: previous.and_then(|(sealed, end)| {
                let secret = self.alert_secret(of, Some(sealed)).ok()?;
                Some((secret, *end))
            }),
        })
    }

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
    fn a_replaced_secret_signs_until_its_end() {
        let keyring = Keyring::new([7; 32]);
        let seal = |byte| {
            let secret = AlertSecret::from_bytes([byte; 32]);
            keyring.seal_alert_secret(OF, [byte; NONCE_BYTES], &secret)
        };
        let rotation = |successor, hours| AlertSecretRotation {
            derived: seal(1),
            successor: seal(successor),
            overlap: Duration::from_hours(hours),
        };
        let at = |hours: i64| Timestamp::from_millis(hours * 3_600_000);
        let first = rotation(2, 24).replace(None, at(0)).unwrap();
        assert_eq!(first.previous, Some((seal(1), at(24))), "the derived one");
        let early = rotation(3, 48).replace(Some(first.clone()), at(23));
        assert_eq!(early, Err(Refusal::AlertSecretRotated));
        let leaked = rotation(4, 0).replace(Some(first.clone()), at(2)).unwrap();
        assert_eq!(leaked.previous, None, "ended at once");
        let second = rotation(3, 48).replace(Some(first), at(24)).unwrap();
        assert_eq!(second.current, seal(3));
        assert_eq!(second.previous, Some((seal(2), at(72))));
        let signed_by = |stored: &StoredAlertSecrets, hours| {
            let secrets = keyring.alert_secrets(OF, Some(stored), at(hours)).unwrap();
            let header = secrets.signatures("alt_1", 5, b"{}");
            let by = |byte: &u8| {
                let signed = AlertSecret::from_bytes([*byte; 32]).sign("alt_1", 5, b"{}");
                let signed = format!("v1,{}", BASE64.encode(signed));
                header.split(' ').any(|one| one == signed)
            };
            [1, 2, 3].into_iter().filter(by).collect::<Vec<u8>>()
        };
        assert_eq!(signed_by(&second, 71), [2, 3]);
        assert_eq!(signed_by(&second, 72), [3]);
        let damaged = StoredAlertSecrets {
            previous: Some((SealedSecret::from_bytes(vec![1]), at(72))),
            ..second
        };
        assert_eq!(signed_by(&damaged, 71), [3]);
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
