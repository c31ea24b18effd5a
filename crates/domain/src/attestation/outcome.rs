//! Outcomes of attestation, and what an app's policy makes of them.

use crate::device::Platform;

/// What an app does with attestation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AttestationPolicy {
    /// Tokens are ignored.
    #[default]
    Off,
    /// Installs without a verified token are flagged.
    Flag,
    /// Like [`Self::Flag`]; events of devices without a verified token are not forwarded.
    Require,
}

crate::keywords! {
    AttestationPolicy { Off => "off", Flag => "flag", Require => "require" }
}

/// Service that issues tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttestationProvider {
    /// Apple App Attest.
    AppAttest,
    /// Google Play Integrity.
    PlayIntegrity,
}

crate::keywords! {
    AttestationProvider { AppAttest => "app_attest", PlayIntegrity => "play_integrity" }
}

/// Why a token was rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AttestationFailure {
    /// The app lacks the team id, bundle id, package name or keys that the check needs.
    NotConfigured,
    /// The provider does not exist on the device's platform.
    WrongPlatform,
    /// The token, key id or challenge is too long.
    TooLarge,
    /// The token cannot be parsed.
    Malformed,
    /// The server did not issue the challenge for this app and device.
    InvalidChallenge,
    /// The challenge is too old.
    ExpiredChallenge,
    /// The certificates do not chain to the trusted root, or are not valid at this time.
    UntrustedCertificate,
    /// The token cannot be decrypted with the app's key, or its signature is wrong.
    InvalidSignature,
    /// The token was made for another challenge.
    ChallengeMismatch,
    /// The attested key differs from the key id.
    KeyMismatch,
    /// The token was made for another app.
    WrongApp,
    /// The token comes from a development build, but the SDK key is live.
    DevelopmentBuild,
    /// The attested key was used before, or the token is too old.
    StaleToken,
    /// Google Play does not recognise the app's binary or its signing certificate.
    UnrecognizedApp,
    /// The device does not pass Google's integrity check.
    UntrustedDevice,
}

crate::keywords! {
    AttestationFailure {
        NotConfigured => "not_configured",
        WrongPlatform => "wrong_platform",
        TooLarge => "too_large",
        Malformed => "malformed",
        InvalidChallenge => "invalid_challenge",
        ExpiredChallenge => "expired_challenge",
        UntrustedCertificate => "untrusted_certificate",
        InvalidSignature => "invalid_signature",
        ChallengeMismatch => "challenge_mismatch",
        KeyMismatch => "key_mismatch",
        WrongApp => "wrong_app",
        DevelopmentBuild => "development_build",
        StaleToken => "stale_token",
        UnrecognizedApp => "unrecognized_app",
        UntrustedDevice => "untrusted_device",
    }
}

/// A device's attestation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttestationOutcome {
    /// A token was verified.
    Verified,
    /// The latest token was rejected.
    Failed(AttestationFailure),
    /// The device's first call had no token, and no later call had one.
    Missing,
}

impl AttestationOutcome {
    /// Returns the keyword without the reason: `verified`, `failed` or `missing`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Verified => "verified",
            Self::Failed(_) => "failed",
            Self::Missing => "missing",
        }
    }

    /// Returns why the token was rejected.
    pub const fn failure(self) -> Option<AttestationFailure> {
        match self {
            Self::Failed(failure) => Some(failure),
            Self::Verified | Self::Missing => None,
        }
    }

    /// Parses the output of [`Self::as_str`] and the failure's keyword.
    pub fn parse(outcome: &str, failure: Option<&str>) -> Option<Self> {
        match (outcome, failure) {
            ("verified", None) => Some(Self::Verified),
            ("missing", None) => Some(Self::Missing),
            ("failed", Some(failure)) => AttestationFailure::parse(failure).map(Self::Failed),
            _ => None,
        }
    }
}

/// Attestation of one `configure` call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PresentedOutcome {
    /// The app's policy.
    pub policy: AttestationPolicy,
    /// Result of the check; `None` if the call had no token.
    pub result: Option<Result<(), AttestationFailure>>,
}

impl PresentedOutcome {
    /// Returns the device's outcome after this call.
    ///
    /// A verified device stays verified, because a token is presented once per install. A missing
    /// token is noted at the first open only: turning the policy on must not flag existing installs,
    /// whose SDK never had a reason to send one. Browsers cannot attest, so they have no outcome.
    pub fn after(
        self,
        before: Option<AttestationOutcome>,
        platform: Platform,
        is_first_open: bool,
    ) -> Option<AttestationOutcome> {
        let is_ignored = self.policy == AttestationPolicy::Off || platform == Platform::Web;
        if is_ignored || before == Some(AttestationOutcome::Verified) {
            return before;
        }
        match self.result {
            Some(Ok(())) => Some(AttestationOutcome::Verified),
            Some(Err(failure)) => Some(AttestationOutcome::Failed(failure)),
            None => before.or_else(|| is_first_open.then_some(AttestationOutcome::Missing)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    const VERIFIED: AttestationOutcome = AttestationOutcome::Verified;
    const MISSING: AttestationOutcome = AttestationOutcome::Missing;
    const FORGED: AttestationOutcome =
        AttestationOutcome::Failed(AttestationFailure::UntrustedCertificate);
    const BAD: Option<Result<(), AttestationFailure>> =
        Some(Err(AttestationFailure::UntrustedCertificate));
    const GOOD: Option<Result<(), AttestationFailure>> = Some(Ok(()));

    #[rstest]
    #[case::first_open_without_token(None, None, true, Some(MISSING))]
    #[case::existing_device_without_token(None, None, false, None)]
    #[case::still_without_token(Some(MISSING), None, false, Some(MISSING))]
    #[case::verified_at_once(None, GOOD, true, Some(VERIFIED))]
    #[case::verified_later(Some(MISSING), GOOD, false, Some(VERIFIED))]
    #[case::verified_after_a_failure(Some(FORGED), GOOD, false, Some(VERIFIED))]
    #[case::forged(None, BAD, true, Some(FORGED))]
    #[case::forged_later(Some(MISSING), BAD, false, Some(FORGED))]
    #[case::a_failure_is_not_forgotten(Some(FORGED), None, false, Some(FORGED))]
    #[case::verified_stays(Some(VERIFIED), BAD, false, Some(VERIFIED))]
    #[case::verified_without_token_stays(Some(VERIFIED), None, false, Some(VERIFIED))]
    fn outcomes_after_a_call(
        #[case] before: Option<AttestationOutcome>,
        #[case] result: Option<Result<(), AttestationFailure>>,
        #[case] is_first_open: bool,
        #[case] expected: Option<AttestationOutcome>,
    ) {
        for policy in [AttestationPolicy::Flag, AttestationPolicy::Require] {
            let call = PresentedOutcome { policy, result };
            assert_eq!(call.after(before, Platform::Ios, is_first_open), expected);
            assert_eq!(call.after(before, Platform::Web, is_first_open), before);
        }
        let off = PresentedOutcome {
            policy: AttestationPolicy::Off,
            result,
        };
        assert_eq!(off.after(before, Platform::Ios, is_first_open), before);
    }

    #[test]
    fn outcomes_round_trip_through_their_text() {
        let failures = AttestationFailure::ALL.iter().copied();
        let failures = failures.map(AttestationOutcome::Failed);
        for outcome in failures.chain([VERIFIED, MISSING]) {
            let failure = outcome.failure().map(AttestationFailure::as_str);
            let read = AttestationOutcome::parse(outcome.as_str(), failure);
            assert_eq!(read, Some(outcome));
        }
        assert_eq!(AttestationOutcome::parse("failed", None), None);
        assert_eq!(
            AttestationOutcome::parse("verified", Some("malformed")),
            None
        );
    }
}
