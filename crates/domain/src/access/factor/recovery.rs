//! Recovery codes, for users who lost their second factors. Each works once.

use crate::vocabulary::digest::Digest;
use crate::vocabulary::id::{UserId, decode, encode};

/// Number of codes that a user gets.
pub const RECOVERY_CODES: usize = 10;
/// Random bytes of a code: too many to find a code from its hash.
pub const RECOVERY_BYTES: usize = 10;
/// Characters of a group.
const GROUP_CHARS: usize = 4;

/// A recovery code, without separators.
#[derive(Clone, PartialEq, Eq)]
pub struct RecoveryCode(String);

impl std::fmt::Debug for RecoveryCode {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("RecoveryCode(***)")
    }
}

impl RecoveryCode {
    /// Creates a code from random bytes.
    pub fn new(random: [u8; RECOVERY_BYTES]) -> Self {
        Self(encode("", &random))
    }

    /// Reads a code as people type it: in any case, with or without separators, and with letters that
    /// look like digits.
    pub fn parse(typed: &str) -> Option<Self> {
        let typed = typed
            .chars()
            .filter(|one| !one.is_whitespace() && *one != '-');
        let text: String = typed
            .map(|one| match one.to_ascii_lowercase() {
                'o' => '0',
                'i' | 'l' => '1',
                other => other,
            })
            .collect();
        decode::<RECOVERY_BYTES>("", &text).ok()?;
        Some(Self(text))
    }

    /// Returns the text to show.
    pub fn reveal(&self) -> String {
        let groups: Vec<&str> = (0..self.0.len())
            .step_by(GROUP_CHARS)
            .map(|at| &self.0[at..(at + GROUP_CHARS).min(self.0.len())])
            .collect();
        groups.join("-")
    }

    /// Returns the stored form. It differs between users.
    pub fn digest(&self, user: UserId) -> Digest {
        Digest::of(&[user.as_bytes().as_slice(), self.0.as_bytes()].concat())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    const USER: UserId = UserId::from_bytes([1; 16]);

    #[rstest]
    #[case::as_shown("041061050r3gg28a")]
    #[case::groups("0410-6105-0r3g-g28a")]
    #[case::upper_case("0410 6105 0R3G G28A")]
    #[case::similar_letters("o4lo-6io5-or3g-g28a")]
    fn reads_codes_as_people_type_them(#[case] typed: &str) {
        let code = RecoveryCode::new([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
        assert_eq!(code.reveal(), "0410-6105-0r3g-g28a");
        let parsed = RecoveryCode::parse(typed).unwrap();
        assert_eq!(parsed.digest(USER), code.digest(USER));
    }

    #[rstest]
    #[case::empty("")]
    #[case::short("0410-6105-0r3g-g28")]
    #[case::long("0410-6105-0r3g-g28aa")]
    #[case::letter("0410-6105-0r3g-g28u")]
    #[case::other_script("０410-6105-0r3g-g28a")]
    fn rejects_other_text(#[case] typed: &str) {
        assert_eq!(RecoveryCode::parse(typed), None);
    }

    #[test]
    fn hashes_differ_between_users() {
        let code = RecoveryCode::new([1; RECOVERY_BYTES]);
        assert_ne!(code.digest(USER), code.digest(UserId::from_bytes([2; 16])));
        assert_eq!(format!("{code:?}"), "RecoveryCode(***)");
    }
}
