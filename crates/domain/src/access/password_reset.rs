//! One-time links with which a person sets a new password.
//!
//! A link belongs to an email address and sets the password of all accounts with this address, because
//! the person with the address owns them all.

use super::key::KeyText;
use super::person::Email;
use crate::vocabulary::time::Timestamp;
use std::time::Duration;

/// Lifetime of a link that the operator creates. The operator passes it on, which may take until the
/// next day.
pub const OPERATOR_RESET_LIFETIME: Duration = Duration::from_hours(24);

/// A one-time link for setting a new password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PasswordReset {
    /// Email address of the accounts.
    pub email: Email,
    /// Expiry time.
    pub expires_at: Timestamp,
}

impl PasswordReset {
    /// Returns whether the link has not expired. A used link is not stored any more.
    pub fn is_valid(&self, now: Timestamp) -> bool {
        now < self.expires_at
    }
}

/// Returns the URL of a link for setting a new password.
pub fn reset_url(base_url: &str, token: &KeyText) -> String {
    format!(
        "{}/reset/{}",
        base_url.trim_end_matches('/'),
        token.reveal()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::Environment;
    use crate::access::key::KeyKind;
    use rstest::rstest;

    #[rstest]
    #[case::fresh(99, true)]
    #[case::at_expiry(100, false)]
    fn a_link_expires(#[case] now: i64, #[case] valid: bool) {
        let reset = PasswordReset {
            email: Email::parse("you@example.com").unwrap(),
            expires_at: Timestamp::from_millis(100),
        };
        assert_eq!(reset.is_valid(Timestamp::from_millis(now)), valid);
    }

    #[test]
    fn the_url_contains_the_token() {
        let token = KeyText::generate(KeyKind::Reset, Environment::Live, [1; 24]);
        let url = reset_url("https://t.example.com/", &token);
        let text = url.strip_prefix("https://t.example.com/reset/");
        assert_eq!(text.map(KeyText::parse), Some(Ok(token)));
    }
}
