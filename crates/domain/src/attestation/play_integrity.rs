//! Google Play Integrity: decrypts and verifies a token locally, with the app's keys from the Play
//! Console.
//!
//! A token is a compact JWE around a compact JWS. The algorithms are fixed (A256KW with A256GCM,
//! ES256), so the headers are authenticated but not read: a token cannot choose a weaker algorithm.

use super::AttestationFailure;
use super::key_unwrap::{WRAPPED_BYTES, unwrap_key};
use crate::vocabulary::digest::from_hex;
use crate::vocabulary::fault::{FaultCode, Problem};
use crate::vocabulary::jws::Jws;
use crate::vocabulary::time::Timestamp;
use aes_gcm::aead::{Aead, KeyInit, Payload};
use aes_gcm::{Aes256Gcm, Nonce};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use p256::ecdsa::signature::Verifier as _;
use p256::ecdsa::{Signature, VerifyingKey};
use std::time::Duration;

/// Maximum age of a token. The challenge inside is not older, so this only catches a token that
/// was made for a stored challenge.
const AGE_MAX: Duration = Duration::from_mins(10);
/// How far Google's clock may be ahead of ours.
const AHEAD_MAX: Duration = Duration::from_mins(2);
/// DER in front of an uncompressed P-256 point in a public key.
const P256_PREFIX: &[u8] = &[
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a,
    0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];
/// Verdict for a binary that Google Play distributed.
const PLAY_RECOGNIZED: &str = "PLAY_RECOGNIZED";
/// Verdict for a genuine device.
const MEETS_DEVICE_INTEGRITY: &str = "MEETS_DEVICE_INTEGRITY";

/// An app's Play Integrity keys.
#[derive(Clone)]
pub struct PlayKeys {
    decryption: [u8; 32],
    verification: VerifyingKey,
}

impl std::fmt::Debug for PlayKeys {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("PlayKeys(***)")
    }
}

/// Parses a decryption key: an AES-256 key in base64.
pub fn parse_play_decryption_key(text: &str) -> Result<[u8; 32], Problem> {
    let bytes = STANDARD.decode(text.trim()).ok();
    bytes
        .and_then(|bytes| bytes.try_into().ok())
        .ok_or_else(|| {
            let message = "Must be the decryption key from the Play Console: 32 bytes in base64.";
            Problem::new(FaultCode::InvalidFormat, message)
        })
}

/// Parses a verification key: a P-256 public key in DER, in base64.
pub fn parse_play_verification_key(text: &str) -> Result<VerifyingKey, Problem> {
    let bytes = STANDARD.decode(text.trim()).unwrap_or_default();
    let point = bytes.strip_prefix(P256_PREFIX).unwrap_or_default();
    VerifyingKey::from_sec1_bytes(point).map_err(|_| {
        let message = "Must be the verification key from the Play Console: a P-256 public key \
                       (DER) in base64.";
        Problem::new(FaultCode::InvalidFormat, message)
    })
}

impl PlayKeys {
    /// Parses both keys. Returns `None` if one is malformed.
    pub fn parse(decryption: &str, verification: &str) -> Option<Self> {
        Some(Self {
            decryption: parse_play_decryption_key(decryption).ok()?,
            verification: parse_play_verification_key(verification).ok()?,
        })
    }

    /// Decrypts a token and verifies its signature. Returns the verdict as JSON.
    pub(super) fn open(&self, token: &str) -> Result<Vec<u8>, AttestationFailure> {
        let parts: Vec<&str> = token.splitn(6, '.').collect();
        let [header, key, nonce, content, tag] = parts.as_slice() else {
            return Err(AttestationFailure::Malformed);
        };
        let malformed = |_| AttestationFailure::Malformed;
        let decode = |part: &&str| URL_SAFE_NO_PAD.decode(part).map_err(malformed);
        let key: [u8; WRAPPED_BYTES] = exact(decode(key)?)?;
        let nonce: [u8; 12] = exact(decode(nonce)?)?;
        let tag: [u8; 16] = exact(decode(tag)?)?;
        let ciphertext = [decode(content)?, tag.to_vec()].concat();
        let forged = AttestationFailure::InvalidSignature;
        let content_key = unwrap_key(&self.decryption, &key).ok_or(forged)?;
        let payload = Payload {
            msg: &ciphertext,
            aad: header.as_bytes(),
        };
        let signed = Aes256Gcm::new(&content_key.into())
            .decrypt(&Nonce::from(nonce), payload)
            .map_err(|_| forged)?;
        let signed = String::from_utf8(signed).map_err(|_| AttestationFailure::Malformed)?;
        let jws = Jws::split(&signed).map_err(|_| AttestationFailure::Malformed)?;
        let signature = Signature::from_slice(&jws.signature).map_err(|_| forged)?;
        let verified = self.verification.verify(&jws.signing_input, &signature);
        verified.map_err(|_| forged)?;
        Ok(jws.payload)
    }
}

fn exact<const N: usize>(bytes: Vec<u8>) -> Result<[u8; N], AttestationFailure> {
    bytes.try_into().map_err(|_| AttestationFailure::Malformed)
}

/// The parts of a verdict that are checked.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PlayVerdict {
    /// `requestDetails.nonce`, from a classic request.
    pub nonce: Option<String>,
    /// `requestDetails.requestHash`, from a standard request.
    pub request_hash: Option<String>,
    /// `requestDetails.requestPackageName`.
    pub package_name: Option<String>,
    /// `requestDetails.timestampMillis`.
    pub made_at: Option<Timestamp>,
    /// `appIntegrity.appRecognitionVerdict`.
    pub app_recognition: Option<String>,
    /// `appIntegrity.certificateSha256Digest`: hashes in base64url.
    pub certificate_digests: Vec<String>,
    /// `deviceIntegrity.deviceRecognitionVerdict`.
    pub device_recognition: Vec<String>,
}

/// What a verdict must match.
pub(super) struct PlayExpectation<'a> {
    pub(super) challenge: &'a str,
    pub(super) package_name: &'a str,
    /// Fingerprints of the app's signing certificates; not checked if empty.
    pub(super) cert_fingerprints: &'a [String],
    /// Whether builds that Google Play does not know are accepted.
    pub(super) accepts_development: bool,
    pub(super) at: Timestamp,
}

impl PlayVerdict {
    /// Checks the verdict.
    pub(super) fn check(&self, expected: &PlayExpectation<'_>) -> Result<(), AttestationFailure> {
        let challenges = [&self.nonce, &self.request_hash];
        let mut challenges = challenges.into_iter().flatten();
        if !challenges.any(|one| one == expected.challenge) {
            return Err(AttestationFailure::ChallengeMismatch);
        }
        if self.package_name.as_deref() != Some(expected.package_name) {
            return Err(AttestationFailure::WrongApp);
        }
        let is_recent = |made_at: Timestamp| {
            made_at <= expected.at.plus(AHEAD_MAX) && made_at.plus(AGE_MAX) > expected.at
        };
        if !self.made_at.is_some_and(is_recent) {
            return Err(AttestationFailure::StaleToken);
        }
        let is_recognized = self.app_recognition.as_deref() == Some(PLAY_RECOGNIZED)
            && self.has_certificate(expected.cert_fingerprints);
        if !is_recognized && !expected.accepts_development {
            return Err(AttestationFailure::UnrecognizedApp);
        }
        let verdicts = &self.device_recognition;
        if !verdicts.iter().any(|one| one == MEETS_DEVICE_INTEGRITY) {
            return Err(AttestationFailure::UntrustedDevice);
        }
        Ok(())
    }

    fn has_certificate(&self, fingerprints: &[String]) -> bool {
        let accepted = |fingerprint: &String| {
            let bytes = from_hex(&fingerprint.replace(':', ""));
            let digest = bytes.map(|bytes| URL_SAFE_NO_PAD.encode(bytes));
            // Google writes the digests with or without padding.
            let mut known = self.certificate_digests.iter();
            digest.is_some_and(|digest| known.any(|one| one.trim_end_matches('=') == digest))
        };
        fingerprints.is_empty() || fingerprints.iter().any(accepted)
    }
}
