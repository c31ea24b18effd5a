//! Public keys of passkeys, as COSE keys (RFC 9052).

use crate::access::single_sign_on::rsa_public_key;
use crate::vocabulary::cbor::CborValue;
use p256::ecdsa::signature::Verifier as _;
use p256::ecdsa::{Signature, VerifyingKey};
use webpki::ring::{ED25519, RSA_PKCS1_2048_8192_SHA256};

/// COSE numbers of the algorithms, in the order in which devices should choose: ES256 of almost all
/// devices, Ed25519, and RS256 of older Windows computers.
pub const SUPPORTED_ALGORITHMS: [i64; 3] = [ES256, ED_DSA, RS256];

const ES256: i64 = -7;
const ED_DSA: i64 = -8;
const RS256: i64 = -257;

/// Labels of a COSE key.
const KEY_TYPE: i64 = 1;
const ALGORITHM: i64 = 3;
/// The curve of an elliptic key, or the modulus of an RSA key.
const FIRST: i64 = -1;
/// The coordinate x, or the exponent.
const SECOND: i64 = -2;
/// The coordinate y.
const THIRD: i64 = -3;

/// Key types with their curves.
const OKP: i64 = 1;
const EC2: i64 = 2;
const RSA: i64 = 3;
const P256: i64 = 1;
const CURVE_25519: i64 = 6;

/// Longest stored key: RSA with 4,096 bits, with room for labels that are not read.
const KEY_BYTES_MAX: usize = 1_024;
/// Lengths of an RSA modulus: 2,048 to 4,096 bits.
const MODULUS_BYTES: std::ops::RangeInclusive<usize> = 256..=512;
/// Longest RSA exponent. Devices use 65,537.
const EXPONENT_BYTES_MAX: usize = 4;

/// A public key of a supported algorithm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PasskeyKey {
    cose: Vec<u8>,
    material: KeyMaterial,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum KeyMaterial {
    P256(VerifyingKey),
    Ed25519([u8; 32]),
    /// In DER.
    Rsa(Vec<u8>),
}

impl PasskeyKey {
    /// Reads a COSE key. Returns `None` if it is not a valid key of a supported algorithm.
    pub fn parse(cose: &[u8]) -> Option<Self> {
        if cose.len() > KEY_BYTES_MAX {
            return None;
        }
        let map = CborValue::parse(cose)?;
        let number = |label| map.get_numbered(label)?.integer();
        let bytes = |label| map.get_numbered(label)?.bytes();
        let material = match (number(KEY_TYPE)?, number(ALGORITHM)?) {
            (EC2, ES256) if number(FIRST)? == P256 => {
                let (x, y): ([u8; 32], [u8; 32]) = (
                    bytes(SECOND)?.try_into().ok()?,
                    bytes(THIRD)?.try_into().ok()?,
                );
                let point = [&[4][..], &x, &y].concat();
                KeyMaterial::P256(VerifyingKey::from_sec1_bytes(&point).ok()?)
            }
            (OKP, ED_DSA) if number(FIRST)? == CURVE_25519 => {
                KeyMaterial::Ed25519(bytes(SECOND)?.try_into().ok()?)
            }
            (RSA, RS256) => {
                let (modulus, exponent) = (bytes(FIRST)?, bytes(SECOND)?);
                let is_valid = MODULUS_BYTES.contains(&modulus.len())
                    && (1..=EXPONENT_BYTES_MAX).contains(&exponent.len());
                is_valid.then(|| KeyMaterial::Rsa(rsa_public_key(modulus, exponent)))?
            }
            _ => return None,
        };
        Some(Self {
            cose: cose.to_vec(),
            material,
        })
    }

    /// Returns the COSE key to store.
    pub fn as_cose(&self) -> &[u8] {
        &self.cose
    }

    /// Returns whether a signature of this key is right.
    pub(super) fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        match &self.material {
            KeyMaterial::P256(key) => {
                let signature = Signature::from_der(signature);
                signature.is_ok_and(|signature| key.verify(message, &signature).is_ok())
            }
            KeyMaterial::Ed25519(key) => ED25519.verify_signature(key, message, signature).is_ok(),
            KeyMaterial::Rsa(key) => {
                let rsa = RSA_PKCS1_2048_8192_SHA256;
                rsa.verify_signature(key, message, signature).is_ok()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    /// Builds a COSE key from a type, an algorithm, and encoded further pairs.
    fn cose(kind: u8, algorithm: &[u8], rest: &[&[u8]]) -> Vec<u8> {
        let count = u8::try_from(rest.len()).unwrap();
        let head = [&[0xa2 + count, 1, kind, 3][..], algorithm].concat();
        [head, rest.concat()].concat()
    }

    fn pair(label: u8, bytes: &[u8]) -> Vec<u8> {
        let length = u16::try_from(bytes.len()).unwrap().to_be_bytes();
        [&[label, 0x59][..], &length, bytes].concat()
    }

    #[rstest]
    #[case::ed25519(cose(1, &[0x27], &[&[0x20, 6], &pair(0x21, &[9; 32])]), true)]
    #[case::another_curve(cose(1, &[0x27], &[&[0x20, 7], &pair(0x21, &[9; 32])]), false)]
    #[case::short(cose(1, &[0x27], &[&[0x20, 6], &pair(0x21, &[9; 31])]), false)]
    #[case::key_of_another_type(cose(2, &[0x27], &[&[0x20, 6], &pair(0x21, &[9; 32])]), false)]
    #[case::not_on_the_curve(
        cose(2, &[0x26], &[&[0x20, 1], &pair(0x21, &[9; 32]), &pair(0x22, &[9; 32])]), false
    )]
    #[case::no_y(cose(2, &[0x26], &[&[0x20, 1], &pair(0x21, &[9; 32])]), false)]
    #[case::rsa(cose(3, &[0x39, 1, 0], &[&pair(0x20, &[0xc1; 256]), &pair(0x21, &[1, 0, 1])]), true)]
    #[case::small_rsa(
        cose(3, &[0x39, 1, 0], &[&pair(0x20, &[0xc1; 128]), &pair(0x21, &[1, 0, 1])]), false
    )]
    #[case::large_exponent(
        cose(3, &[0x39, 1, 0], &[&pair(0x20, &[0xc1; 256]), &pair(0x21, &[1; 5])]), false
    )]
    #[case::sha_1(
        cose(3, &[0x39, 0xff, 0xfe], &[&pair(0x20, &[0xc1; 256]), &pair(0x21, &[1, 0, 1])]), false
    )]
    #[case::no_map(vec![0x80], false)]
    #[case::empty(vec![], false)]
    #[case::too_long(
        cose(1, &[0x27], &[&[0x20, 6], &pair(0x21, &[9; 32]), &pair(0x22, &[0; 1_000])]), false
    )]
    fn reads_keys_of_the_supported_algorithms(#[case] cose: Vec<u8>, #[case] expected: bool) {
        let key = PasskeyKey::parse(&cose);
        assert_eq!(key.is_some(), expected);
        if let Some(key) = key {
            assert_eq!(key.as_cose(), cose);
            assert!(!key.verifies(b"message", &[0; 64]));
        }
    }
}
