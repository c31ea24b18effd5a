//! Challenges: issued by the server, returned inside a token.
//!
//! A challenge is not stored. It contains its time and a random part, authenticated together with
//! app, environment and device. A token may therefore be presented again within the validity, but
//! only for the device that it was made for, which changes nothing.

use super::AttestationFailure;
use crate::access::Environment;
use crate::device::DeviceKey;
use crate::keyring::{Keyring, Purpose};
use crate::vocabulary::id::AppId;
use crate::vocabulary::time::Timestamp;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use std::time::Duration;

/// How long a challenge is valid. Apple and Google answer within seconds; the rest allows for a
/// slow connection and one retry.
pub const CHALLENGE_VALID: Duration = Duration::from_mins(10);
/// How far the clock of the node that issued a challenge may be ahead of the node that checks it.
const AHEAD_MAX: Duration = Duration::from_mins(1);
/// Length of the random part in bytes.
pub const CHALLENGE_RANDOM_BYTES: usize = 16;
/// Length of the authentication tag in bytes. Time, random part and tag have 48 bytes, so that
/// base64 needs no padding, which Google may add or remove.
const TAG_BYTES: usize = 24;
/// Length of the time in bytes.
const TIME_BYTES: usize = 8;

/// App, environment and device that a challenge is valid for.
type ChallengeScope<'a> = (AppId, Environment, &'a DeviceKey);

impl Keyring {
    /// Issues a challenge for a device.
    pub fn issue_attestation_challenge(
        &self,
        scope: ChallengeScope<'_>,
        random: [u8; CHALLENGE_RANDOM_BYTES],
        at: Timestamp,
    ) -> String {
        let time = at.as_millis().to_be_bytes();
        let tag = self.tag(
            Purpose::AttestationChallenge,
            &challenge_parts(&scope, &time, &random),
        );
        let bytes = [&time[..], &random[..], &tag[..TAG_BYTES]].concat();
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// Checks that this instance issued the challenge for this device and that it is recent.
    pub(super) fn check_attestation_challenge(
        &self,
        scope: ChallengeScope<'_>,
        challenge: &str,
        now: Timestamp,
    ) -> Result<(), AttestationFailure> {
        let invalid = || AttestationFailure::InvalidChallenge;
        let bytes = URL_SAFE_NO_PAD.decode(challenge).map_err(|_| invalid())?;
        let (time, rest) = bytes
            .split_first_chunk::<TIME_BYTES>()
            .ok_or_else(invalid)?;
        let (random, tag) = rest
            .split_first_chunk::<CHALLENGE_RANDOM_BYTES>()
            .ok_or_else(invalid)?;
        let parts = challenge_parts(&scope, time, random);
        if tag.len() != TAG_BYTES || !self.is_tag(Purpose::AttestationChallenge, &parts, tag) {
            return Err(invalid());
        }
        let issued_at = Timestamp::from_millis(i64::from_be_bytes(*time));
        if issued_at > now.plus(AHEAD_MAX) || issued_at.plus(CHALLENGE_VALID) <= now {
            return Err(AttestationFailure::ExpiredChallenge);
        }
        Ok(())
    }
}

/// Returns what a challenge's tag covers.
fn challenge_parts<'a>(
    (app, environment, device): &'a ChallengeScope<'a>,
    time: &'a [u8; TIME_BYTES],
    random: &'a [u8],
) -> [&'a [u8]; 5] {
    let (app, environment) = (app.as_bytes(), environment.as_str().as_bytes());
    [app, environment, device.as_str().as_bytes(), time, random]
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    const APP: AppId = AppId::from_bytes([1; 16]);
    const ISSUED: Timestamp = Timestamp::from_millis(1_790_000_000_000);

    fn device(text: &str) -> DeviceKey {
        DeviceKey::parse(text).unwrap()
    }

    fn issued() -> String {
        let scope = (APP, Environment::Live, &device("device-1"));
        Keyring::new([1; 32]).issue_attestation_challenge(scope, [7; 16], ISSUED)
    }

    fn check(
        app: AppId,
        environment: Environment,
        key: &str,
        millis: i64,
    ) -> Result<(), AttestationFailure> {
        Keyring::new([1; 32]).check_attestation_challenge(
            (app, environment, &device(key)),
            &issued(),
            Timestamp::from_millis(ISSUED.as_millis() + millis),
        )
    }

    const INVALID: Result<(), AttestationFailure> = Err(AttestationFailure::InvalidChallenge);
    const EXPIRED: Result<(), AttestationFailure> = Err(AttestationFailure::ExpiredChallenge);

    #[rstest]
    #[case::at_once(APP, Environment::Live, "device-1", 0, Ok(()))]
    #[case::just_in_time(APP, Environment::Live, "device-1", 599_999, Ok(()))]
    #[case::too_late(APP, Environment::Live, "device-1", 600_000, EXPIRED)]
    #[case::another_node_is_behind(APP, Environment::Live, "device-1", -60_000, Ok(()))]
    #[case::before_it_was_issued(APP, Environment::Live, "device-1", -60_001, EXPIRED)]
    #[case::of_another_device(APP, Environment::Live, "device-2", 0, INVALID)]
    #[case::of_another_environment(APP, Environment::Test, "device-1", 0, INVALID)]
    #[case::of_another_app(AppId::from_bytes([2; 16]), Environment::Live, "device-1", 0, INVALID)]
    fn a_challenge_is_valid_for_one_device_for_minutes(
        #[case] app: AppId,
        #[case] environment: Environment,
        #[case] key: &str,
        #[case] millis: i64,
        #[case] expected: Result<(), AttestationFailure>,
    ) {
        assert_eq!(check(app, environment, key, millis), expected);
    }

    #[test]
    fn a_changed_challenge_is_rejected() {
        let keyring = Keyring::new([1; 32]);
        let key = device("device-1");
        let scope = (APP, Environment::Live, &key);
        let bytes = URL_SAFE_NO_PAD.decode(issued()).unwrap();
        for index in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[index] ^= 1;
            let text = URL_SAFE_NO_PAD.encode(&changed);
            let checked = keyring.check_attestation_challenge(scope, &text, ISSUED);
            assert_eq!(checked, INVALID, "byte {index}");
        }
        for text in ["", "A", "AAAA", "not base64 at all!", &issued()[..60]] {
            let checked = keyring.check_attestation_challenge(scope, text, ISSUED);
            assert_eq!(checked, INVALID, "{text}");
        }
        let other = Keyring::new([2; 32]);
        assert_eq!(
            other.check_attestation_challenge(scope, &issued(), ISSUED),
            INVALID
        );
        assert_eq!(issued().len(), 64);
    }
}
