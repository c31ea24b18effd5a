//! Users: roles, email addresses, passwords and one-time setup links.

use super::key::KeyText;
use crate::audit::{Changes, FieldChange};
use crate::refusal::Refusal;
use crate::vocabulary::fault::{FaultCode, Problem};
use crate::vocabulary::id::{OrganizationId, UserId};
use crate::vocabulary::text::{check_length, reject_nul};
use crate::vocabulary::time::Timestamp;
use std::time::Duration;
use zxcvbn::{Score, zxcvbn};

/// A user's role.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Full access, including members.
    Owner,
    /// Full access except members.
    Admin,
    /// Read access to everything.
    Analyst,
    /// Read access to reports.
    Viewer,
}

crate::keywords! {
    Role {
        Owner => "owner",
        Admin => "admin",
        Analyst => "analyst",
        Viewer => "viewer",
    }
}

/// A plausible email address: local part, `@`, host with a dot. Whether the address can receive
/// mail is not checked.
#[derive(Clone, PartialEq, Eq)]
pub struct Email(String);

/// Maximum length of an email address.
const EMAIL_CHARS_MAX: usize = 254;

impl Email {
    /// Parses an address and lower-cases it, so that sign-in ignores case.
    pub fn parse(text: &str) -> Result<Self, Problem> {
        let text = text.trim().to_lowercase();
        check_length(&text, 3, EMAIL_CHARS_MAX)?;
        let parts = text.split_once('@').filter(|(local, host)| {
            let is_invalid = |c: char| c.is_whitespace() || c.is_control() || c == '@';
            !local.is_empty()
                && host.contains('.')
                && !host.starts_with('.')
                && !host.ends_with('.')
                && !local.contains(is_invalid)
                && !host.contains(is_invalid)
        });
        match parts {
            Some(_) => Ok(Self(text)),
            None => Err(Problem::new(
                FaultCode::InvalidFormat,
                "Must be an email address, for example you@example.com.",
            )),
        }
    }

    /// Returns the address.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Email {
    /// Hides the address from logs.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Email(***)")
    }
}

/// Minimum password length in characters.
pub const PASSWORD_CHARS_MIN: usize = 12;
/// Maximum password length in characters. It limits the cost of hashing.
pub const PASSWORD_CHARS_MAX: usize = 256;

/// Minimum strength, from 0 to 4: the password withstands an attacker who has stolen its slow hash.
const PASSWORD_SCORE_MIN: Score = Score::Three;

/// Rejects passwords that are too short, too long or easy to guess by someone who knows the email
/// address and the organizations of the person. There are no composition rules.
pub fn check_password(
    password: &str,
    email: &str,
    organizations: &[String],
) -> Result<(), Problem> {
    reject_nul(password)?;
    check_length(password, PASSWORD_CHARS_MIN, PASSWORD_CHARS_MAX)?;
    let texts = || organizations.iter().map(String::as_str).chain([email]);
    let known: Vec<&str> = texts()
        .flat_map(|text| text.split(|c: char| !c.is_alphanumeric()))
        .chain(texts())
        .chain(["tributary"])
        .filter(|word| !word.is_empty())
        .collect();
    if zxcvbn(password, &known).score() < PASSWORD_SCORE_MIN {
        return Err(Problem::new(
            FaultCode::NotAllowed,
            "This password is easy to guess. Choose a longer one, for example of four random words.",
        ));
    }
    Ok(())
}

/// A user account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// User id.
    pub id: UserId,
    /// Owning organization.
    pub organization: OrganizationId,
    /// Email address for sign-in.
    pub email: Email,
    /// The user's role.
    pub role: Role,
    /// Creation time.
    pub created_at: Timestamp,
}

impl User {
    /// Returns the audit log fields for a new user.
    pub fn creation_changes(&self) -> Vec<FieldChange> {
        role_changes(self.role)
    }
}

/// Returns the member after the change, with the audit log fields. `role` is the new role; `None`
/// removes the member. Rejects a change that would leave the organization without an owner, because
/// only an owner can make someone an owner.
pub fn change_member(
    members: &[User],
    member: UserId,
    role: Option<Role>,
) -> Result<(User, Vec<FieldChange>), Refusal> {
    let user = find_member(members, member)?;
    let other_owner = members
        .iter()
        .any(|user| user.role == Role::Owner && user.id != member);
    if user.role == Role::Owner && role != Some(Role::Owner) && !other_owner {
        return Err(Refusal::LastOwner);
    }
    Ok(changed_member(user, role))
}

/// Returns the member whom the operator removes, with the audit log fields. Unlike [`change_member`],
/// this may leave the organization without an owner: the operator can invite another one.
pub fn remove_any_member(
    members: &[User],
    member: UserId,
) -> Result<(User, Vec<FieldChange>), Refusal> {
    find_member(members, member).map(|user| changed_member(user, None))
}

fn find_member(members: &[User], member: UserId) -> Result<&User, Refusal> {
    let found = members.iter().find(|user| user.id == member);
    found.ok_or(Refusal::MemberNotFound)
}

fn changed_member(user: &User, role: Option<Role>) -> (User, Vec<FieldChange>) {
    let mut changes = Changes::new();
    let after = role.map(|role| role.as_str().to_owned());
    changes.compare("role", Some(user.role.as_str().to_owned()), after);
    let after = User {
        role: role.unwrap_or(user.role),
        ..user.clone()
    };
    (after, changes.into_vec())
}

fn role_changes(role: Role) -> Vec<FieldChange> {
    let mut changes = Changes::new();
    changes.initial("role", Some(role.as_str().to_owned()));
    changes.into_vec()
}

/// Lifetime of a setup link.
pub const SETUP_LINK_LIFETIME: Duration = Duration::from_hours(7 * 24);

/// A one-time link for setting up an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetupLink {
    /// Organization of the new account.
    pub organization: OrganizationId,
    /// Role of the new account.
    pub role: Role,
    /// Email address, if known when the link was created.
    pub email: Option<Email>,
    /// Expiry time.
    pub expires_at: Timestamp,
    /// Time of use. The link works once.
    pub used_at: Option<Timestamp>,
}

impl SetupLink {
    /// Returns the audit log fields for a new setup link.
    pub fn creation_changes(&self) -> Vec<FieldChange> {
        role_changes(self.role)
    }

    /// Returns whether the link is neither used nor expired.
    pub fn is_valid(&self, now: Timestamp) -> bool {
        self.used_at.is_none() && now < self.expires_at
    }
}

/// Returns the URL of a setup link.
pub fn setup_url(base_url: &str, token: &KeyText) -> String {
    format!(
        "{}/setup/{}",
        base_url.trim_end_matches('/'),
        token.reveal()
    )
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;
    use rstest::rstest;

    pub(crate) fn any_user(role: Role) -> User {
        User {
            id: UserId::from_bytes([role as u8 + 1; 16]),
            organization: OrganizationId::from_bytes([1; 16]),
            email: Email::parse("you@example.com").unwrap(),
            role,
            created_at: Timestamp::from_millis(0),
        }
    }

    #[rstest]
    #[case::demoted(Role::Admin, Some(Role::Viewer), Ok(Role::Viewer))]
    #[case::promoted(Role::Viewer, Some(Role::Owner), Ok(Role::Owner))]
    #[case::removed(Role::Admin, None, Ok(Role::Admin))]
    #[case::the_last_owner_stays_owner(Role::Owner, Some(Role::Owner), Ok(Role::Owner))]
    #[case::the_last_owner_demoted(Role::Owner, Some(Role::Admin), Err(Refusal::LastOwner))]
    #[case::the_last_owner_removed(Role::Owner, None, Err(Refusal::LastOwner))]
    fn changes_and_removes_members(
        #[case] member: Role,
        #[case] role: Option<Role>,
        #[case] expected: Result<Role, Refusal>,
    ) {
        let all: Vec<User> = Role::ALL.iter().map(|role| any_user(*role)).collect();
        let changed = change_member(&all, any_user(member).id, role);
        assert_eq!(changed.map(|(user, _)| user.role), expected);
    }

    #[test]
    fn the_operator_removes_the_last_owner_as_well() {
        let all = [any_user(Role::Owner)];
        assert!(remove_any_member(&all, all[0].id).is_ok());
        let unknown = UserId::from_bytes([8; 16]);
        let removed = remove_any_member(&all, unknown).map(|_| ());
        assert_eq!(removed, Err(Refusal::MemberNotFound));
    }

    #[test]
    fn one_of_two_owners_can_be_removed() {
        let other = User {
            id: UserId::from_bytes([9; 16]),
            ..any_user(Role::Owner)
        };
        let all = [any_user(Role::Owner), other];
        assert!(change_member(&all, all[0].id, None).is_ok());
        let unknown = UserId::from_bytes([8; 16]);
        assert_eq!(
            change_member(&all, unknown, None).map(|_| ()),
            Err(Refusal::MemberNotFound)
        );
    }

    #[rstest]
    #[case::plain("You@Example.com", Some("you@example.com"))]
    #[case::tagged("you+ads@example.co.uk", Some("you+ads@example.co.uk"))]
    #[case::no_at("example.com", None)]
    #[case::no_local("@example.com", None)]
    #[case::no_dot("you@localhost", None)]
    #[case::two_ats("you@me@example.com", None)]
    #[case::inner_space("y ou@example.com", None)]
    #[case::nul("you\0@example.com", None)]
    #[case::empty("", None)]
    fn parses_addresses(#[case] text: &str, #[case] expected: Option<&str>) {
        assert_eq!(
            Email::parse(text).ok().as_ref().map(Email::as_str),
            expected
        );
    }

    #[rstest]
    #[case::twelve("a lazy fox..", true)]
    #[case::eleven("a lazy fox.", false)]
    #[case::sixty_four(&"long and odd passphrase ".repeat(4), true)]
    #[case::far_too_long(&"x".repeat(257), false)]
    #[case::common("Password1234", false)]
    #[case::common_words("iloveyouforever", false)]
    #[case::keyboard("qwertyuiopasdf", false)]
    #[case::repeated("abcabcabcabcabc", false)]
    #[case::product("tributarytributary", false)]
    #[case::address("you@example.com", false)]
    #[case::organization("zorblatt-wunderlich", false)]
    #[case::words_of_the_organization("wunderlichzorblatt", false)]
    #[case::random("mq2x-7fdk-w9tz", true)]
    #[case::words("a lazy fox in the coal mine", true)]
    #[case::other_letters("ленивая лиса в шахте", true)]
    #[case::nul("a lazy fox\0..", false)]
    fn checks_passwords(#[case] password: &str, #[case] accepted: bool) {
        let organizations = ["Zorblatt-Wunderlich".to_owned()];
        let checked = check_password(password, "you@example.com", &organizations);
        assert_eq!(checked.is_ok(), accepted);
    }

    #[test]
    fn another_organization_does_not_make_a_password_weak() {
        let password = "zorblatt-wunderlich";
        assert!(check_password(password, "you@example.com", &[]).is_ok());
    }

    proptest! {
        #[test]
        fn any_text_is_checked(password in "\\PC{0,300}", email in "\\PC{0,300}") {
            // Only whether it returns at all: most such texts are not guessed.
            let _either = check_password(&password, &email, &[]);
        }
    }

    #[rstest]
    #[case::fresh(None, 99, true)]
    #[case::used(Some(1), 99, false)]
    #[case::at_expiry(None, 100, false)]
    fn a_set_up_link_works_once_and_expires(
        #[case] used: Option<i64>,
        #[case] now: i64,
        #[case] valid: bool,
    ) {
        let link = SetupLink {
            organization: OrganizationId::from_bytes([1; 16]),
            role: Role::Owner,
            email: None,
            expires_at: Timestamp::from_millis(100),
            used_at: used.map(Timestamp::from_millis),
        };
        assert_eq!(link.is_valid(Timestamp::from_millis(now)), valid);
    }
}
