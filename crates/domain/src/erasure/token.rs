//! The token with which a device's user erases the device.
//!
//! The SDK generates the token and sends it with its first `configure` calls, so that a lost
//! response cannot lose the token. Only a digest is stored.

use crate::device::DeviceKey;
use crate::keyring::constant_time_eq;
use crate::refusal::Refusal;
use crate::vocabulary::digest::Digest;
use crate::vocabulary::fault::{FaultCode, Problem};
use std::fmt;

/// Length of a token: 32 random bytes in base64url without padding.
pub const ERASE_TOKEN_CHARS: usize = 43;

/// The secret of a device's user. Never stored or logged.
#[derive(Clone, PartialEq, Eq)]
pub struct EraseToken(String);

impl EraseToken {
    /// Parses a token.
    pub fn parse(text: &str) -> Result<Self, Problem> {
        let is_base64url = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        if text.len() == ERASE_TOKEN_CHARS && text.bytes().all(is_base64url) {
            return Ok(Self(text.to_owned()));
        }
        let message = "Must be 32 random bytes in base64url without padding, 43 characters.";
        Err(Problem::new(FaultCode::InvalidFormat, message))
    }

    /// Returns the digest that is stored for a device. It contains the device id, so that the digest
    /// of an erased device still proves which device its user may erase, without the id itself.
    pub fn proof(&self, device: &DeviceKey) -> Digest {
        Digest::of(format!("{}\0{}", self.0, device.as_str()).as_bytes())
    }
}

/// Returns whether a device's user may register a token: only if the device id is a random UUID. The
/// first token of a device holds, so a stranger could register one for an id that is easy to guess,
/// such as an account number.
pub fn may_have_erase_token(device: &DeviceKey) -> bool {
    let id = uuid::Uuid::try_parse(device.as_str());
    id.is_ok_and(|id| id.get_version() == Some(uuid::Version::Random))
}

impl fmt::Debug for EraseToken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("EraseToken(…)")
    }
}

/// Checks whether the sender of a token may erase a device. `stored` are the proofs of the device
/// and those of erased devices.
pub fn check_erase_proof(stored: &[Digest], sent: &Digest) -> Result<(), Refusal> {
    // Compares with every proof, so that the time does not depend on which one matches.
    let matches = stored
        .iter()
        .filter(|one| constant_time_eq(one.as_bytes(), sent.as_bytes()));
    if matches.count() > 0 {
        return Ok(());
    }
    Err(Refusal::InvalidEraseToken)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    const TOKEN: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8";

    #[rstest]
    #[case::token(TOKEN, true)]
    #[case::both_special_characters("-_ECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8", true)]
    #[case::empty("", false)]
    #[case::short(&TOKEN[1..], false)]
    #[case::padded("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=", false)]
    #[case::base64("+/ECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8", false)]
    #[case::blank("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh ", false)]
    #[case::wide("éECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8", false)]
    fn tokens_have_one_form(#[case] text: &str, #[case] valid: bool) {
        assert_eq!(EraseToken::parse(text).is_ok(), valid);
    }

    #[test]
    fn a_token_is_not_printed() {
        let token = EraseToken::parse(TOKEN).unwrap();
        assert_eq!(format!("{token:?}"), "EraseToken(…)");
    }

    #[rstest]
    #[case::random(LOWER, true)]
    #[case::upper_case(UPPER, true)]
    #[case::ordered("018f2d3c-7b1a-7c3d-9e4f-0123456789ab", false)]
    #[case::account_number("1001", false)]
    #[case::pseudonym("erased-6f9619ff-8b86-4011-b42d-00c04fc964ff", false)]
    fn only_a_random_device_id_has_a_token(#[case] device: &str, #[case] expected: bool) {
        let device = DeviceKey::parse(device).unwrap();
        assert_eq!(may_have_erase_token(&device), expected);
    }

    fn proof(token: &str, device: &str) -> Digest {
        let device = DeviceKey::parse(device).unwrap();
        EraseToken::parse(token).unwrap().proof(&device)
    }

    const OTHER: &str = "BAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8";
    const UPPER: &str = "6F9619FF-8B86-4011-B42D-00C04FC964FF";
    const LOWER: &str = "6f9619ff-8b86-4011-b42d-00c04fc964ff";

    #[rstest]
    #[case::the_device(&[(TOKEN, LOWER)], true)]
    #[case::another_spelling(&[(TOKEN, UPPER)], true)]
    #[case::erased_before(&[(OTHER, LOWER), (TOKEN, LOWER)], true)]
    #[case::another_token(&[(OTHER, LOWER)], false)]
    #[case::another_device(&[(TOKEN, "phone")], false)]
    #[case::none(&[], false)]
    fn a_proof_is_for_one_token_and_one_device(
        #[case] stored: &[(&str, &str)],
        #[case] valid: bool,
    ) {
        let stored: Vec<Digest> = stored.iter().map(|(token, id)| proof(token, id)).collect();
        let found = check_erase_proof(&stored, &proof(TOKEN, LOWER));
        let expected = if valid {
            Ok(())
        } else {
            Err(Refusal::InvalidEraseToken)
        };
        assert_eq!(found, expected);
    }
}
