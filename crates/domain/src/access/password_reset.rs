//! One-time links with which a person sets a new password.
//!
//! A link belongs to an email address and sets the password of all accounts with this address, because
//! the person with the address owns them all. The operator creates it, or the person asks for it and
//! gets it by e-mail.

use super::key::KeyText;
use super::person::{Email, Role};
use super::single_sign_on::{SingleSignOn, allows_password, has_password};
use crate::vocabulary::time::Timestamp;
use std::time::Duration;

/// Lifetime of a link that the operator creates. The operator passes it on, which may take until the
/// next day.
pub const OPERATOR_RESET_LIFETIME: Duration = Duration::from_hours(24);

/// Lifetime of a link that a person asks for. It lies in a mailbox, and the person waits for it.
pub const MAILED_RESET_LIFETIME: Duration = Duration::from_hours(1);

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

/// Whether an account can get a new password.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResettableAccount {
    /// Whether the organization accepts a password from this account.
    pub allows_password: bool,
    /// Whether the account has a password, or may choose a first one.
    pub has_password: bool,
    /// Whether the organization has a provider for single sign-on.
    pub has_provider: bool,
}

impl ResettableAccount {
    /// Collects the facts about an account in an organization with these settings.
    pub fn of(role: Role, password_hash: &str, settings: Option<&SingleSignOn>) -> Self {
        Self {
            allows_password: allows_password(role, settings),
            has_password: role == Role::Owner || has_password(password_hash),
            has_provider: settings.is_some(),
        }
    }
}

/// What a person gets by e-mail after asking for a new password.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResetAnswer {
    /// Nothing: there is no account.
    Nothing,
    /// A link for a new password.
    Link,
    /// The advice to sign in at the organization's provider.
    UseProvider,
}

impl ResetAnswer {
    /// Decides for the accounts of an email address. One account with a password is enough, because
    /// the others still do not accept it. Without a provider, a first password is the only way back for
    /// a person who lost the passkey, or whose organization removed its provider.
    pub fn of(accounts: &[ResettableAccount]) -> Self {
        let gets_link = |one: &ResettableAccount| {
            one.allows_password && (one.has_password || !one.has_provider)
        };
        match accounts {
            [] => Self::Nothing,
            some if some.iter().any(gets_link) => Self::Link,
            _ => Self::UseProvider,
        }
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
    use crate::access::single_sign_on::no_password_hash;
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

    #[rstest]
    #[case::no_account(&[], ResetAnswer::Nothing)]
    #[case::password(&[(true, true, false)], ResetAnswer::Link)]
    #[case::password_and_provider(&[(true, true, true)], ResetAnswer::Link)]
    #[case::provider_only(&[(false, true, true)], ResetAnswer::UseProvider)]
    #[case::came_from_the_provider(&[(true, false, true)], ResetAnswer::UseProvider)]
    #[case::neither(&[(false, false, true)], ResetAnswer::UseProvider)]
    #[case::passkey_only(&[(true, false, false)], ResetAnswer::Link)]
    #[case::one_of_two(&[(false, true, true), (true, true, false)], ResetAnswer::Link)]
    #[case::one_of_each(&[(false, true, true), (true, false, true)], ResetAnswer::UseProvider)]
    fn people_get_a_link_or_use_their_provider(
        #[case] accounts: &[(bool, bool, bool)],
        #[case] expected: ResetAnswer,
    ) {
        let account = |&(allows_password, has_password, has_provider)| ResettableAccount {
            allows_password,
            has_password,
            has_provider,
        };
        let accounts: Vec<_> = accounts.iter().map(account).collect();
        assert_eq!(ResetAnswer::of(&accounts), expected);
    }

    #[rstest]
    #[case::owner_without_a_password(Role::Owner, true, true)]
    #[case::member_without_a_password(Role::Viewer, true, false)]
    fn an_owner_may_choose_a_first_password(
        #[case] role: Role,
        #[case] allows_password: bool,
        #[case] has_password: bool,
    ) {
        let expected = ResettableAccount {
            allows_password,
            has_password,
            has_provider: false,
        };
        let none = no_password_hash([7; 16]);
        assert_eq!(ResettableAccount::of(role, &none, None), expected);
    }

    #[test]
    fn the_url_contains_the_token() {
        let token = KeyText::generate(KeyKind::Reset, Environment::Live, [1; 24]);
        let url = reset_url("https://t.example.com/", &token);
        let text = url.strip_prefix("https://t.example.com/reset/");
        assert_eq!(text.map(KeyText::parse), Some(Ok(token)));
    }
}
