//! E-mails about accounts: invitations and links for a new password.
//!
//! They contain no figures, and of what others typed only the names that the recipient needs.

use super::key::KeyText;
use super::password_reset::{PasswordReset, reset_url};
use super::person::{Email, Role, SETUP_LINK_LIFETIME};
use crate::notice::{Message, one_line};
use crate::vocabulary::text::Name;
use crate::vocabulary::time::Timestamp;
use std::time::Duration;

/// Who invites a new member, and to what.
#[derive(Debug, Clone, Copy)]
pub struct InvitationFacts<'a> {
    /// Name of the organization.
    pub organization: &'a Name,
    /// The member who invites.
    pub inviter: &'a Email,
    /// Role of the new member.
    pub role: Role,
    /// The link, which is shown on the page as well.
    pub link: &'a str,
}

fn letter(subject: &str, lines: Vec<String>, link: String, footer: &str) -> Message {
    Message {
        subject: one_line(subject),
        lines,
        values: Vec::new(),
        table: None,
        link,
        footer: footer.to_owned(),
    }
}

/// Names a lifetime: `7 days`, `24 hours` or `1 hour`.
fn lifetime(time: Duration) -> String {
    let hours = time.as_secs() / 3_600;
    match (hours / 24, hours) {
        (days @ 2.., _) => format!("{days} days"),
        (_, 1) => "1 hour".to_owned(),
        (_, hours) => format!("{hours} hours"),
    }
}

/// Writes an invitation.
pub fn invitation_letter(facts: &InvitationFacts<'_>) -> Message {
    let name = facts.organization.as_str();
    let (inviter, role) = (facts.inviter.as_str(), facts.role.as_str());
    let lines = vec![
        format!("{inviter} invites you to the organization “{name}” on Tributary, as {role}."),
        format!(
            "Open this link to set up your account. It works once and for {}.",
            lifetime(SETUP_LINK_LIFETIME)
        ),
    ];
    let footer = "You get this message because someone invited this address. If you do not know the \
                  sender, ignore it.";
    let subject = format!("Invitation to {name}");
    letter(&subject, lines, facts.link.to_owned(), footer)
}

/// Writes a link for a new password.
pub fn reset_letter(
    base_url: &str,
    token: &KeyText,
    reset: &PasswordReset,
    now: Timestamp,
) -> Message {
    let lines = vec![format!(
        "Open this link to choose a new password for Tributary. It works once and for {}.",
        lifetime(reset.expires_at.since(now))
    )];
    let footer = "You get this message because someone asked for a new password for this address. If \
                  it was not you, ignore the message: your password stays as it is unless the link is \
                  used.";
    let link = reset_url(base_url, token);
    letter("Choose a new password", lines, link, footer)
}

/// Writes the operator's link for a new password. The old password has ended already.
pub fn operator_reset_letter(
    base_url: &str,
    token: &KeyText,
    reset: &PasswordReset,
    now: Timestamp,
) -> Message {
    let lines = vec![
        "The operator of Tributary has ended your password and your sessions.".to_owned(),
        format!(
            "Open this link to choose a new password. It works once and for {}.",
            lifetime(reset.expires_at.since(now))
        ),
    ];
    let footer = "You get this message because you have an account on this server. If you did not \
                  expect it, ask the operator.";
    let link = reset_url(base_url, token);
    letter("Choose a new password", lines, link, footer)
}

/// Writes the advice to sign in at the organization's provider, for a person who asked for a new
/// password and can have none.
pub fn provider_letter(base_url: &str) -> Message {
    let lines = vec![
        "You asked for a new password for Tributary. Your organization uses single sign-on, so your \
         account has no password here."
            .to_owned(),
        "Open the sign-in link of your organization, or ask one of its owners for it. The general \
         sign-in page shows it in browsers that have used it before."
            .to_owned(),
    ];
    let footer = "You get this message because someone asked for a new password for this address. If \
                  it was not you, ignore the message: nothing has changed.";
    let link = format!("{}/sign-in", base_url.trim_end_matches('/'));
    letter("Sign in with your organization", lines, link, footer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::Environment;
    use crate::access::key::KeyKind;
    use crate::access::password_reset::{MAILED_RESET_LIFETIME, OPERATOR_RESET_LIFETIME};
    use crate::notice::SUBJECT_CHARS_MAX;
    use rstest::rstest;

    const NOW: Timestamp = Timestamp::from_millis(1_790_000_000_000);

    fn reset(life: Duration) -> PasswordReset {
        PasswordReset {
            email: Email::parse("you@example.com").unwrap(),
            expires_at: NOW.plus(life),
        }
    }

    #[rstest]
    #[case(SETUP_LINK_LIFETIME, "7 days")]
    #[case(OPERATOR_RESET_LIFETIME, "24 hours")]
    #[case(MAILED_RESET_LIFETIME, "1 hour")]
    fn lifetimes_have_names(#[case] time: Duration, #[case] expected: &str) {
        assert_eq!(lifetime(time), expected);
    }

    #[test]
    fn an_invitation_names_organization_sender_role_and_link() {
        let facts = InvitationFacts {
            organization: &Name::parse("Runner <b>").unwrap(),
            inviter: &Email::parse("owner@example.com").unwrap(),
            role: Role::Analyst,
            link: "https://t.example.com/setup/setup_x",
        };
        let written = invitation_letter(&facts);
        assert_eq!(written.subject, "Invitation to Runner <b>");
        let text = written.text();
        for part in [
            "owner@example.com",
            "“Runner <b>”",
            "analyst",
            "7 days",
            facts.link,
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let html = written.html();
        assert!(html.contains("Runner &lt;b&gt;"), "{html}");
        assert!(!html.contains("<b>"), "{html}");
    }

    #[test]
    fn a_long_name_fits_into_the_subject() {
        let facts = InvitationFacts {
            organization: &Name::parse(&"n".repeat(200)).unwrap(),
            inviter: &Email::parse("owner@example.com").unwrap(),
            role: Role::Viewer,
            link: "https://t.example.com/setup/setup_x",
        };
        let subject = invitation_letter(&facts).subject;
        assert_eq!(subject.chars().count(), SUBJECT_CHARS_MAX);
    }

    #[test]
    fn links_for_a_new_password_name_their_lifetime() {
        let token = KeyText::generate(KeyKind::Reset, Environment::Live, [1; 24]);
        let base = "https://t.example.com/";
        let link = format!("https://t.example.com/reset/{}", token.reveal());
        let own = reset_letter(base, &token, &reset(MAILED_RESET_LIFETIME), NOW);
        let operator = operator_reset_letter(base, &token, &reset(OPERATOR_RESET_LIFETIME), NOW);
        for (written, life) in [(own, "1 hour"), (operator, "24 hours")] {
            assert_eq!(written.link, link);
            assert!(written.text().contains(life), "{}", written.text());
        }
    }

    #[test]
    fn the_advice_to_use_the_provider_contains_no_secret() {
        let written = provider_letter("https://t.example.com");
        assert_eq!(written.link, "https://t.example.com/sign-in");
        assert!(!written.text().contains("/reset/"));
    }
}
