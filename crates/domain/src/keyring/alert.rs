//! Signs alerts by the Standard Webhooks scheme.

use super::Keyring;
use crate::vocabulary::id::AppId;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

impl Keyring {
    /// Returns the secret that an app's alerts are signed with. It is derived from the instance's
    /// secret and not stored. Receivers verify alerts with it.
    pub fn alert_secret(&self, app: AppId) -> [u8; 32] {
        self.derive(&format!("alert-webhook/1/{app}"))
    }

    /// Signs an alert's id, sending time in seconds and body.
    pub fn sign_alert(&self, app: AppId, id: &str, seconds: i64, body: &[u8]) -> [u8; 32] {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.alert_secret(app))
            .expect("HMAC accepts keys of any length");
        mac.update(format!("{id}.{seconds}.").as_bytes());
        mac.update(body);
        mac.finalize().into_bytes().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_differ_per_app_and_signatures_cover_every_part() {
        let keyring = Keyring::new([7; 32]);
        let (one, other) = (AppId::from_bytes([1; 16]), AppId::from_bytes([2; 16]));
        assert_ne!(keyring.alert_secret(one), keyring.alert_secret(other));
        let signed = keyring.sign_alert(one, "alt_1", 1_700_000_000, b"{}");
        assert_eq!(
            signed,
            keyring.sign_alert(one, "alt_1", 1_700_000_000, b"{}")
        );
        for changed in [
            keyring.sign_alert(other, "alt_1", 1_700_000_000, b"{}"),
            keyring.sign_alert(one, "alt_2", 1_700_000_000, b"{}"),
            keyring.sign_alert(one, "alt_1", 1_700_000_001, b"{}"),
            keyring.sign_alert(one, "alt_1", 1_700_000_000, b"{ }"),
        ] {
            assert_ne!(signed, changed);
        }
    }
}
