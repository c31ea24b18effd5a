//! Addresses that messages are sent to.

use crate::access::person::Email;
use crate::vocabulary::fault::{FaultCode, Problem};

/// Recipients of a notice.
pub const RECIPIENTS_MAX: usize = 10;
/// Maximum length of the part before the `@`, by RFC 5321.
const LOCAL_CHARS_MAX: usize = 64;

/// An address that can stand in a header and in an SMTP command without quoting: ASCII letters, digits
/// and a few other characters. Line breaks, brackets, commas and quotes cannot occur, so an address
/// cannot add a header or another recipient.
#[derive(Clone, PartialEq, Eq)]
pub struct MailAddress(String);

impl MailAddress {
    /// Parses an address such as `team@example.com`.
    pub fn parse(text: &str) -> Result<Self, Problem> {
        let email = Email::parse(text)?;
        let (local, host) = email.as_str().split_once('@').unwrap_or_default();
        let is_local =
            |byte: u8| byte.is_ascii_alphanumeric() || b".!#$%&'*+-/=?^_`{|}~".contains(&byte);
        let is_label = |label: &str| {
            let inner = label
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
            inner && !label.is_empty() && !label.starts_with('-') && !label.ends_with('-')
        };
        let dots = local.starts_with('.') || local.ends_with('.') || local.contains("..");
        let is_plain = local.len() <= LOCAL_CHARS_MAX
            && local.bytes().all(is_local)
            && !dots
            && host.split('.').all(is_label);
        if is_plain {
            return Ok(Self(email.as_str().to_owned()));
        }
        let message = "Must be an email address of ASCII letters, digits and . _ + -, for example \
                       team@example.com.";
        Err(Problem::new(FaultCode::InvalidFormat, message))
    }

    /// Returns the address in previews.
    pub(super) fn placeholder() -> Self {
        Self("you@example.com".to_owned())
    }

    /// Returns the address.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the host, which Message-IDs end with.
    pub fn host(&self) -> &str {
        self.0.split_once('@').map_or("", |(_, host)| host)
    }
}

impl std::fmt::Debug for MailAddress {
    /// Hides the address from logs.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("MailAddress(***)")
    }
}

/// Drops repeated addresses and keeps the order.
pub fn distinct_recipients(addresses: Vec<MailAddress>) -> Vec<MailAddress> {
    let mut distinct: Vec<MailAddress> = Vec::new();
    for address in addresses {
        if !distinct.contains(&address) {
            distinct.push(address);
        }
    }
    distinct
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rstest::rstest;

    #[rstest]
    #[case::plain("team@example.com", true)]
    #[case::trimmed_and_lowered(" Team+Ads@Example.com ", true)]
    #[case::apostrophe("o'neil@example.com", true)]
    #[case::header("a@example.com\r\nBcc: b@example.com", false)]
    #[case::line_feed("a@example.com\nb", false)]
    #[case::name("Team <team@example.com>", false)]
    #[case::brackets("<a@example.com>", false)]
    #[case::two("a@example.com,b@example.com", false)]
    #[case::quoted("\"a b\"@example.com", false)]
    #[case::other_letters("läufer@example.com", false)]
    #[case::other_letters_in_the_host("a@exämple.com", false)]
    #[case::no_dot("a@localhost", false)]
    #[case::literal("a@[127.0.0.1]", false)]
    #[case::hyphen("a@-example.com", false)]
    #[case::dots("a..b@example.com", false)]
    #[case::long_local(&format!("{}@example.com", "a".repeat(65)), false)]
    #[case::empty("", false)]
    fn parses_plain_addresses_only(#[case] text: &str, #[case] accepted: bool) {
        assert_eq!(MailAddress::parse(text).is_ok(), accepted);
    }

    proptest! {
        #[test]
        fn an_address_never_needs_quoting(text in "\\PC{0,20}@\\PC{0,20}") {
            if let Ok(address) = MailAddress::parse(&text) {
                let is_safe = |byte: u8| byte.is_ascii_graphic() && !b"<>,;:\"()[]\\".contains(&byte);
                prop_assert!(address.as_str().bytes().all(is_safe));
            }
        }
    }
}
