//! Signing what operators are told, by the scheme of Standard Webhooks.

use super::Keyring;
use crate::vocabulary::id::AppId;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

impl Keyring {
    /// The secret that an app's alerts are signed with. It is made of the instance's own, so there is nothing to store;
    /// whoever receives alerts has to know it.
    pub fn alert_secret(&self, app: AppId) -> [u8; 32] {
        self.derive(&format!("alert-webhook/1/{app}"))
    }

    /// The signature of an alert: over its id, the second it is sent in, and its body.
    pub fn sign_alert(&self, app: AppId, id: &str, seconds: i64, body: &[u8]) -> [u8; 32] {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.alert_secret(app))
            .expect("HMAC takes keys of any length");
        mac.update(format!("{id}.{seconds}.").as_bytes());
        mac.update(body);
        mac.finalize().into_bytes().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_app_has_a_secret_of_its_own_and_every_word_counts() {
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
