//! Attestation: proof that a device's calls come from the genuine app.
//!
//! The SDK asks for a challenge, passes it to Apple App Attest or Google Play Integrity, and sends
//! the resulting token with `configure`. [`AttestationCheck::verify`] checks the token offline. The
//! outcome is a signal of the attribution; the app's [`AttestationPolicy`] says what follows from
//! it.
//!
//! A token proves that one device runs the genuine app. It does not limit how many device ids that
//! device invents.

mod app_attest;
mod challenge;
mod key_unwrap;
mod outcome;
mod play_integrity;
#[cfg(any(test, feature = "samples"))]
pub mod samples;
#[cfg(test)]
mod tests;

pub use app_attest::app_attest_roots;
pub use challenge::{CHALLENGE_RANDOM_BYTES, CHALLENGE_VALID};
pub use outcome::{
    AttestationFailure, AttestationOutcome, AttestationPolicy, AttestationProvider,
    PresentedOutcome,
};
pub use play_integrity::{
    PlayKeys, PlayVerdict, parse_play_decryption_key, parse_play_verification_key,
};

use crate::access::Environment;
use crate::app::App;
use crate::billing::certificate::TrustedRoots;
use crate::device::{DeviceKey, Platform};
use crate::keyring::Keyring;
use crate::vocabulary::time::Timestamp;
use app_attest::AppAttestExpectation;
use play_integrity::PlayExpectation;

/// Longest token in bytes, as sent. Attestation objects have about 7,500 base64 characters and Play
/// Integrity tokens about 2,000; both grow with the certificates and receipts inside.
pub const TOKEN_BYTES_MAX: usize = 24 * 1_024;
/// Longest key id and challenge in bytes. Key ids have 44 characters and challenges 64.
pub const CHALLENGE_BYTES_MAX: usize = 256;

/// A token as sent by an SDK.
#[derive(Clone, PartialEq, Eq)]
pub struct PresentedAttestation {
    /// Service that issued the token.
    pub provider: AttestationProvider,
    /// Attestation object in base64, or Play Integrity token.
    pub token: String,
    /// App Attest key id in base64.
    pub key_id: Option<String>,
    /// Challenge that the server issued.
    pub challenge: String,
}

/// Tokens identify a device to Apple or Google, so they are not printed.
impl std::fmt::Debug for PresentedAttestation {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "PresentedAttestation({:?}, ***)", self.provider)
    }
}

/// Everything that a token is checked against.
#[derive(Debug, Clone, Copy)]
pub struct AttestationCheck<'a> {
    /// The app that the device claims to run.
    pub app: &'a App,
    /// Environment of the SDK key. Test keys also accept development builds.
    pub environment: Environment,
    /// Device that sent the token.
    pub device: &'a DeviceKey,
    /// Platform that the device claims.
    pub platform: Platform,
    /// Issued the challenge.
    pub keyring: &'a Keyring,
    /// Roots of App Attest certificates.
    pub roots: &'a TrustedRoots,
    /// The app's Play Integrity keys, if both are set.
    pub play_keys: Option<&'a PlayKeys>,
    /// Reads the JSON of a Play Integrity verdict, because this crate has no JSON parser.
    pub read_verdict: fn(&[u8]) -> Option<PlayVerdict>,
    /// Time of the check.
    pub at: Timestamp,
}

impl AttestationCheck<'_> {
    /// Checks a token. Invalid tokens are normal input: the result is the reason.
    pub fn verify(&self, presented: &PresentedAttestation) -> Result<(), AttestationFailure> {
        let sizes = [
            (presented.token.len(), TOKEN_BYTES_MAX),
            (presented.challenge.len(), CHALLENGE_BYTES_MAX),
            (
                presented.key_id.as_ref().map_or(0, String::len),
                CHALLENGE_BYTES_MAX,
            ),
        ];
        if sizes.iter().any(|(size, max)| size > max) {
            return Err(AttestationFailure::TooLarge);
        }
        // The challenge comes first: it costs little, and without it no signature is checked.
        self.keyring.check_attestation_challenge(
            (self.app.id, self.environment, self.device),
            &presented.challenge,
            self.at,
        )?;
        match (presented.provider, self.platform) {
            (AttestationProvider::AppAttest, Platform::Ios) => self.verify_app_attest(presented),
            (AttestationProvider::PlayIntegrity, Platform::Android) => {
                self.verify_play_integrity(presented)
            }
            _ => Err(AttestationFailure::WrongPlatform),
        }
    }

    fn verify_app_attest(
        &self,
        presented: &PresentedAttestation,
    ) -> Result<(), AttestationFailure> {
        let ios = &self.app.ios;
        let (Some(team_id), Some(bundle_id)) = (&ios.team_id, &ios.bundle_id) else {
            return Err(AttestationFailure::NotConfigured);
        };
        let expected = AppAttestExpectation {
            app_id: format!("{team_id}.{bundle_id}"),
            key_id: presented.key_id.as_deref(),
            challenge: &presented.challenge,
            accepts_development: self.environment == Environment::Test,
            roots: self.roots,
            at: self.at,
        };
        app_attest::verify(&presented.token, &expected)
    }

    fn verify_play_integrity(
        &self,
        presented: &PresentedAttestation,
    ) -> Result<(), AttestationFailure> {
        let android = &self.app.android;
        let (Some(keys), Some(package_name)) = (self.play_keys, &android.package_name) else {
            return Err(AttestationFailure::NotConfigured);
        };
        let verdict = keys.open(&presented.token)?;
        let verdict = (self.read_verdict)(&verdict).ok_or(AttestationFailure::Malformed)?;
        verdict.check(&PlayExpectation {
            challenge: &presented.challenge,
            package_name,
            cert_fingerprints: &android.sha256_cert_fingerprints,
            accepts_development: self.environment == Environment::Test,
            at: self.at,
        })
    }
}
