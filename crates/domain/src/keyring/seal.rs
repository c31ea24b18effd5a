//! Encrypts secrets at rest with XChaCha20-Poly1305 and a random nonce per value. The scope is part
//! of the associated data, so a row copied to another app, network or field cannot be decrypted.

use super::purpose::Purpose;
use super::{Keyring, SecretKeyBytes, SecretKeyId, derive};
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};

/// Length of a nonce in bytes, long enough to be chosen at random.
pub const NONCE_BYTES: usize = 24;
/// Layout of a value that does not name its key; the first byte. Written until the first rotation of
/// the secret key, because earlier versions know no other layout.
const UNNAMED_KEY: u8 = 1;
/// Layout of a value that names its key.
const NAMED_KEY: u8 = 2;

/// An encrypted secret: layout, id of the key in the second layout, nonce, ciphertext and tag.
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

    /// Returns the key that the value names, if it names one.
    pub fn key(&self) -> Option<SecretKeyId> {
        let rest = self.0.strip_prefix(&[NAMED_KEY])?;
        rest.first_chunk().copied().map(SecretKeyId::from_bytes)
    }

    /// Returns the bytes that every value begins with that names this key.
    pub fn start(key: SecretKeyId) -> [u8; 1 + SecretKeyId::BYTES] {
        let mut bytes = [NAMED_KEY; 1 + SecretKeyId::BYTES];
        if let Some(id) = bytes.last_chunk_mut() {
            *id = *key.as_bytes();
        }
        bytes
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

fn associated_data(layout: u8, scope: &[&str]) -> Vec<u8> {
    let mut bytes = vec![layout];
    for part in scope {
        bytes.extend_from_slice(&(part.len() as u64).to_be_bytes());
        bytes.extend_from_slice(part.as_bytes());
    }
    bytes
}

fn cipher(key: &SecretKeyBytes) -> XChaCha20Poly1305 {
    XChaCha20Poly1305::new(&derive(key, Purpose::Seal.as_str()).into())
}

impl Keyring {
    /// Encrypts a secret for a scope: organization, app, owner and field. Uses the key in use.
    pub fn seal(&self, scope: &[&str], nonce: [u8; NONCE_BYTES], secret: &[u8]) -> SealedSecret {
        let in_use = self.in_use();
        let mut bytes = if in_use.is_named {
            SealedSecret::start(SecretKeyId::of(in_use.key)).to_vec()
        } else {
            vec![UNNAMED_KEY]
        };
        let layout = if in_use.is_named {
            NAMED_KEY
        } else {
            UNNAMED_KEY
        };
        let payload = Payload {
            msg: secret,
            aad: &associated_data(layout, scope),
        };
        let ciphertext = cipher(in_use.key)
            .encrypt(&XNonce::from(nonce), payload)
            .expect("messages below 256 GiB can be encrypted");
        bytes.extend_from_slice(&nonce);
        bytes.extend_from_slice(&ciphertext);
        SealedSecret(bytes)
    }

    /// Decrypts a secret that was encrypted for this scope, with any known key.
    pub fn open(&self, scope: &[&str], sealed: &SealedSecret) -> Result<Vec<u8>, UnsealError> {
        let (&layout, rest) = sealed.0.split_first().ok_or(UnsealError)?;
        let (named, rest) = match layout {
            UNNAMED_KEY => (None, rest),
            NAMED_KEY => {
                let (id, rest) = rest.split_first_chunk().ok_or(UnsealError)?;
                (Some(SecretKeyId::from_bytes(*id)), rest)
            }
            _ => return Err(UnsealError),
        };
        let (nonce, ciphertext) = rest.split_first_chunk::<NONCE_BYTES>().ok_or(UnsealError)?;
        let aad = associated_data(layout, scope);
        let decrypt = |key: &SecretKeyBytes| {
            let payload = Payload {
                msg: ciphertext,
                aad: &aad,
            };
            cipher(key).decrypt(&XNonce::from(*nonce), payload).ok()
        };
        let may_fit = |key: &&SecretKeyBytes| named.is_none_or(|id| id == SecretKeyId::of(key));
        let mut keys = self.known().iter().filter(may_fit);
        keys.find_map(decrypt).ok_or(UnsealError)
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
