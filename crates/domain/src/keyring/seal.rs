//! Encrypts secrets at rest with XChaCha20-Poly1305 and a random nonce per value. The scope is part
//! of the associated data, so a row copied to another app, network or field cannot be decrypted.

use super::Keyring;
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};

/// Length of a nonce in bytes, long enough to be chosen at random.
pub const NONCE_BYTES: usize = 24;
/// Version of key and layout; the first byte of an encrypted value.
const SEAL_VERSION: u8 = 1;

/// An encrypted secret: version, nonce, ciphertext and tag.
#[derive(Clone, PartialEq, Eq)]
pub struct SealedSecret(Vec<u8>);

impl SealedSecret {
    /// Wraps stored bytes.
    pub const fn from_bytes(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// Returns the bytes to store.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl std::fmt::Debug for SealedSecret {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("SealedSecret(***)")
    }
}

/// The value cannot be decrypted: wrong key, wrong scope or corrupt data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a stored secret cannot be decrypted with this secret_key in this scope")]
pub struct UnsealError;

fn associated_data(scope: &[&str]) -> Vec<u8> {
    let mut bytes = vec![SEAL_VERSION];
    for part in scope {
        bytes.extend_from_slice(&(part.len() as u64).to_be_bytes());
        bytes.extend_from_slice(part.as_bytes());
    }
    bytes
}

impl Keyring {
    /// Encrypts a secret for a scope: organization, app, owner and field.
    pub fn seal(&self, scope: &[&str], nonce: [u8; NONCE_BYTES], secret: &[u8]) -> SealedSecret {
        let cipher = XChaCha20Poly1305::new(&self.derive("credential/1").into());
        let payload = Payload {
            msg: secret,
            aad: &associated_data(scope),
        };
        let ciphertext = cipher
            .encrypt(&XNonce::from(nonce), payload)
            .expect("messages below 256 GiB can be encrypted");
        let mut bytes = vec![SEAL_VERSION];
        bytes.extend_from_slice(&nonce);
        bytes.extend_from_slice(&ciphertext);
        SealedSecret(bytes)
    }

    /// Decrypts a secret that was encrypted for this scope.
    pub fn open(&self, scope: &[&str], sealed: &SealedSecret) -> Result<Vec<u8>, UnsealError> {
        let (version, rest) = sealed.0.split_first().ok_or(UnsealError)?;
        let (nonce, ciphertext) = rest.split_first_chunk::<NONCE_BYTES>().ok_or(UnsealError)?;
        if *version != SEAL_VERSION {
            return Err(UnsealError);
        }
        let cipher = XChaCha20Poly1305::new(&self.derive("credential/1").into());
        let payload = Payload {
            msg: ciphertext,
            aad: &associated_data(scope),
        };
        cipher
            .decrypt(&XNonce::from(*nonce), payload)
            .map_err(|_| UnsealError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCOPE: &[&str] = &["org_1", "app_1", "network_a", "accessToken"];

    #[test]
    fn a_secret_decrypts_in_its_own_scope_only() {
        let keyring = Keyring::new([3; 32]);
        let sealed = keyring.seal(SCOPE, [5; NONCE_BYTES], b"token");
        assert_eq!(
            keyring.open(SCOPE, &sealed).as_deref(),
            Ok(b"token".as_slice())
        );
        for scope in [
            &["org_2", "app_1", "network_a", "accessToken"][..],
            &["org_1", "app_2", "network_a", "accessToken"][..],
            &["org_1", "app_1", "network_c", "accessToken"][..],
            &["org_1", "app_1", "network_a", "appSecret"][..],
            &["org_1", "app_1", "network_aaccessToken", ""][..],
        ] {
            assert_eq!(keyring.open(scope, &sealed), Err(UnsealError), "{scope:?}");
        }
        assert_eq!(Keyring::new([4; 32]).open(SCOPE, &sealed), Err(UnsealError));
    }

    #[test]
    fn a_corrupt_secret_does_not_decrypt() {
        let keyring = Keyring::new([3; 32]);
        let sealed = keyring.seal(SCOPE, [5; NONCE_BYTES], b"token");
        for position in 0..sealed.as_bytes().len() {
            let mut bytes = sealed.as_bytes().to_vec();
            bytes[position] ^= 1;
            assert_eq!(
                keyring.open(SCOPE, &SealedSecret::from_bytes(bytes)),
                Err(UnsealError)
            );
        }
        assert_eq!(
            keyring.open(SCOPE, &SealedSecret::from_bytes(Vec::new())),
            Err(UnsealError)
        );
    }

    #[test]
    fn a_sealed_secret_is_redacted_in_debug_output() {
        let sealed = Keyring::new([3; 32]).seal(SCOPE, [5; NONCE_BYTES], b"token");
        assert_eq!(format!("{sealed:?}"), "SealedSecret(***)");
    }
}
