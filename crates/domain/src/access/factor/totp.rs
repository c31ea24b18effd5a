//! Time-based one-time passwords (RFC 6238) of authenticator apps.
//!
//! The parameters are those that every app supports. Several ignore others in the QR code.

use crate::keyring::constant_time_eq;
use crate::vocabulary::time::Timestamp;
use hmac::{Hmac, KeyInit, Mac};
use sha1::Sha1;
use url::form_urlencoded::byte_serialize;

/// Length of a secret in bytes: that of the hash, as RFC 4226 recommends.
pub const SECRET_BYTES: usize = 20;
/// Number of digits of a code.
pub const DIGITS: usize = 6;
/// How long a code is shown.
const STEP_MILLIS: i64 = 30_000;
/// Steps before and after the current one whose codes are accepted, because clocks differ and people
/// need time to type.
const SKEW_STEPS: i64 = 1;
/// Alphabet of base32 (RFC 4648).
const BASE32: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
/// Characters of a group of the secret's text, so that it can be typed.
const GROUP_CHARS: usize = 4;

/// The secret that a server and an authenticator app share.
#[derive(Clone, PartialEq, Eq)]
pub struct TotpSecret([u8; SECRET_BYTES]);

impl std::fmt::Debug for TotpSecret {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("TotpSecret(***)")
    }
}

impl TotpSecret {
    /// Creates a secret from random bytes.
    pub const fn new(random: [u8; SECRET_BYTES]) -> Self {
        Self(random)
    }

    /// Reads the bytes of a secret.
    pub fn from_slice(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    /// Returns the bytes to seal.
    pub const fn as_bytes(&self) -> &[u8; SECRET_BYTES] {
        &self.0
    }

    /// Returns the code that an app shows at a time.
    pub fn code_at(&self, at: Timestamp) -> String {
        self.code(step(at))
    }

    fn code(&self, step: i64) -> String {
        let mut mac = Hmac::<Sha1>::new_from_slice(&self.0).expect("HMAC takes keys of any length");
        mac.update(&step.to_be_bytes());
        let hash: [u8; 20] = mac.finalize().into_bytes().into();
        let offset = usize::from(hash[19] & 0xf);
        let bytes = [
            hash[offset] & 0x7f,
            hash[offset + 1],
            hash[offset + 2],
            hash[offset + 3],
        ];
        let number = u32::from_be_bytes(bytes) % 1_000_000;
        format!("{number:0DIGITS$}")
    }

    /// Returns the step of a code if it is right at `now` and newer than the last accepted one. A code
    /// is therefore accepted once.
    pub fn accepted_step(&self, typed: &str, now: Timestamp, last: Option<i64>) -> Option<i64> {
        let digits: String = typed.chars().filter(|one| !one.is_whitespace()).collect();
        let current = step(now);
        let steps = current - SKEW_STEPS..=current + SKEW_STEPS;
        steps
            .filter(|step| is_new_step(*step, last))
            .find(|step| constant_time_eq(self.code(*step).as_bytes(), digits.as_bytes()))
    }

    /// Returns the secret as text, in groups, for apps without a camera.
    pub fn text(&self) -> String {
        let text = base32(&self.0);
        let groups: Vec<&str> = (0..text.len())
            .step_by(GROUP_CHARS)
            .map(|at| &text[at..(at + GROUP_CHARS).min(text.len())])
            .collect();
        groups.join(" ")
    }

    /// Returns the address that the QR code contains.
    pub fn uri(&self, issuer: &str, account: &str) -> String {
        let encode = |text: &str| -> String {
            let encoded: String = byte_serialize(text.as_bytes()).collect();
            // Apps show a plus sign as it is.
            encoded.replace('+', "%20")
        };
        let (issuer, account, secret) = (encode(issuer), encode(account), base32(&self.0));
        format!(
            "otpauth://totp/{issuer}:{account}?secret={secret}&issuer={issuer}\
             &algorithm=SHA1&digits={DIGITS}&period=30"
        )
    }
}

/// Returns whether a code of a step may be accepted after the last accepted one.
pub fn is_new_step(step: i64, last: Option<i64>) -> bool {
    last.is_none_or(|last| step > last)
}

/// Returns whether typed text looks like a code.
pub fn is_code(typed: &str) -> bool {
    let mut digits = typed.chars().filter(|one| !one.is_whitespace());
    digits.clone().count() == DIGITS && digits.all(|one| one.is_ascii_digit())
}

const fn step(at: Timestamp) -> i64 {
    at.as_millis().div_euclid(STEP_MILLIS)
}

fn base32(bytes: &[u8; SECRET_BYTES]) -> String {
    let mut text = String::new();
    for chunk in bytes.chunks_exact(5) {
        let number = chunk
            .iter()
            .fold(0_u64, |number, byte| (number << 8) | u64::from(*byte));
        for shift in (0..8).rev() {
            let value = (number >> (5 * shift)) & 31;
            let letter = BASE32[usize::try_from(value).unwrap_or_default()];
            text.push(char::from(letter));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    const SECRET: TotpSecret = TotpSecret::new(*b"12345678901234567890");

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1_000)
    }

    // The last six digits of the table in RFC 6238, appendix B.
    #[rstest]
    #[case(59, "287082")]
    #[case(1_111_111_109, "081804")]
    #[case(1_111_111_111, "050471")]
    #[case(1_234_567_890, "005924")]
    #[case(2_000_000_000, "279037")]
    #[case(20_000_000_000, "353130")]
    fn codes_are_those_of_the_standard(#[case] seconds: i64, #[case] code: &str) {
        assert_eq!(SECRET.code_at(at(seconds)), code);
    }

    #[rstest]
    #[case::now(0, true)]
    #[case::one_step_late(30, true)]
    #[case::one_step_early(-30, true)]
    #[case::two_steps_late(60, false)]
    #[case::two_steps_early(-60, false)]
    fn accepts_one_step_each_way(#[case] seconds: i64, #[case] expected: bool) {
        let code = SECRET.code_at(at(3_000));
        let found = SECRET.accepted_step(&code, at(3_000 + seconds), None);
        assert_eq!(found, expected.then_some(100));
    }

    #[test]
    fn accepts_a_code_once() {
        let code = SECRET.code_at(at(3_000));
        for (last, expected) in [(Some(99), true), (Some(100), false), (Some(101), false)] {
            let found = SECRET.accepted_step(&code, at(3_000), last);
            assert_eq!(found.is_some(), expected, "{last:?}");
        }
    }

    #[test]
    fn spaces_in_a_code_do_not_matter() {
        let code = SECRET.code_at(at(3_000));
        let spaced = format!(" {} {} ", &code[..3], &code[3..]);
        assert!(is_code(&spaced));
        assert!(SECRET.accepted_step(&spaced, at(3_000), None).is_some());
        for wrong in ["", "12345", "1234567", "abcdef", "０１２３４５"] {
            assert!(!is_code(wrong), "{wrong}");
            assert_eq!(SECRET.accepted_step(wrong, at(3_000), None), None);
        }
    }

    #[test]
    fn the_secret_is_shown_as_text_and_address() {
        let text = "GEZD GNBV GY3T QOJQ GEZD GNBV GY3T QOJQ";
        assert_eq!(SECRET.text(), text);
        assert_eq!(
            SECRET.uri("Tributary: A & B", "you@example.com"),
            "otpauth://totp/Tributary%3A%20A%20%26%20B:you%40example.com\
             ?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ&issuer=Tributary%3A%20A%20%26%20B\
             &algorithm=SHA1&digits=6&period=30"
        );
        assert_eq!(format!("{SECRET:?}"), "TotpSecret(***)");
        assert_eq!(TotpSecret::from_slice(SECRET.as_bytes()), Some(SECRET));
        assert_eq!(TotpSecret::from_slice(&[1]), None);
    }
}
