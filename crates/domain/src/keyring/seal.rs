//! Secrets at rest: XChaCha20-Poly1305 with a random nonce per value. What a value is for goes into the
//! associated data, so that a row copied to another app, network or field does not open.

use super::Keyring;
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};

/// Bytes of a nonce; drawn at random, which at this length cannot collide.
pub const NONCE_BYTES: usize = 24;
/// The number of the key and layout a sealed value was made with; its first byte.
const SEAL_VERSION: u8 = 1;

/// An encrypted secret: version, nonce, ciphertext with its tag.
#[derive(Clone, PartialEq, Eq)]
pub struct SealedSecret(Vec<u8>);

impl SealedSecret {
    /// As stored.
    pub const fn from_bytes(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// As stored.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl std::fmt::Debug for SealedSecret {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Sealed(***)")
    }
}

/// The value does not open: another key, another place, or damage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a stored secret does not open with this secret_key in this place")]
pub struct UnsealError;

fn associated_data(place: &[&str]) -> Vec<u8> {
    let mut bytes = vec![SEAL_VERSION];
    for part in place {
        bytes.extend_from_slice(&(part.len() as u64).to_be_bytes());
        bytes.extend_from_slice(part.as_bytes());
    }
    bytes
}

impl Keyring {
    /// Encrypts a secret for one place: organization, app, what it belongs to, field.
    pub fn seal(&self, place: &[&str], nonce: [u8; NONCE_BYTES], secret: &[u8]) -> SealedSecret {
        let cipher = XChaCha20Poly1305::new(&self.derive("credential/1").into());
        let payload = Payload {
            msg: secret,
            aad: &associated_data(place),
        };
        let ciphertext = cipher
            .encrypt(&XNonce::from(nonce), payload)
            .expect("only a message of 256 GiB cannot be encrypted");
        let mut bytes = vec![SEAL_VERSION];
        bytes.extend_from_slice(&nonce);
        bytes.extend_from_slice(&ciphertext);
        SealedSecret(bytes)
    }

    /// Decrypts a secret of that place.
    pub fn open(&self, place: &[&str], sealed: &SealedSecret) -> Result<Vec<u8>, UnsealError> {
        let (version, rest) = sealed.0.split_first().ok_or(UnsealError)?;
        let (nonce, ciphertext) = rest.split_first_chunk::<NONCE_BYTES>().ok_or(UnsealError)?;
        if *version != SEAL_VERSION {
            return Err(UnsealError);
        }
        let cipher = XChaCha20Poly1305::new(&self.derive("credential/1").into());
        let payload = Payload {
            msg: ciphertext,
            aad: &associated_data(place),
        };
        cipher
            .decrypt(&XNonce::from(*nonce), payload)
            .map_err(|_| UnsealError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: &[&str] = &["org_1", "app_1", "network_a", "accessToken"];

    #[test]
    fn a_secret_opens_in_its_own_place_only() {
        let keyring = Keyring::new([3; 32]);
        let sealed = keyring.seal(PLACE, [5; NONCE_BYTES], b"token");
        assert_eq!(
            keyring.open(PLACE, &sealed).as_deref(),
            Ok(b"token".as_slice())
        );
        for place in [
            &["org_2", "app_1", "network_a", "accessToken"][..],
            &["org_1", "app_2", "network_a", "accessToken"][..],
            &["org_1", "app_1", "network_c", "accessToken"][..],
            &["org_1", "app_1", "network_a", "appSecret"][..],
            &["org_1", "app_1", "network_aaccessToken", ""][..],
        ] {
            assert_eq!(keyring.open(place, &sealed), Err(UnsealError), "{place:?}");
        }
        assert_eq!(Keyring::new([4; 32]).open(PLACE, &sealed), Err(UnsealError));
    }

    #[test]
    fn a_damaged_secret_does_not_open() {
        let keyring = Keyring::new([3; 32]);
        let sealed = keyring.seal(PLACE, [5; NONCE_BYTES], b"token");
        for position in 0..sealed.as_bytes().len() {
            let mut bytes = sealed.as_bytes().to_vec();
            bytes[position] ^= 1;
            assert_eq!(
                keyring.open(PLACE, &SealedSecret::from_bytes(bytes)),
                Err(UnsealError)
            );
        }
        assert_eq!(
            keyring.open(PLACE, &SealedSecret::from_bytes(Vec::new())),
            Err(UnsealError)
        );
    }

    #[test]
    fn neither_the_secret_nor_its_sealed_form_prints() {
        let sealed = Keyring::new([3; 32]).seal(PLACE, [5; NONCE_BYTES], b"token");
        assert_eq!(format!("{sealed:?}"), "Sealed(***)");
    }
}
