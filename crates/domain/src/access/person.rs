//! People: their roles, their e-mail addresses, and the one-time links by which they set up an account.

use super::key::KeyText;
use crate::audit::{Changes, FieldChange};
use crate::refusal::Refusal;
use crate::vocabulary::fault::{FaultCode, Problem};
use crate::vocabulary::id::{OrganizationId, UserId};
use crate::vocabulary::text::{check_length, reject_nul};
use crate::vocabulary::time::Timestamp;
use std::time::Duration;

/// What a person may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Everything, members included.
    Owner,
    /// Everything but members.
    Admin,
    /// Looks at everything.
    Analyst,
    /// Looks at reports.
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

/// An e-mail address, good enough to sign in with: something, an `@`, a host with a dot. Whether mail
/// arrives there only mail can tell.
#[derive(Clone, PartialEq, Eq)]
pub struct Email(String);

/// The longest address that mail systems carry.
const EMAIL_CHARS_MAX: usize = 254;

impl Email {
    /// Reads an address; it is kept in lower case, since people do not remember theirs.
    pub fn parse(text: &str) -> Result<Self, Problem> {
        let text = text.trim().to_lowercase();
        check_length(&text, 3, EMAIL_CHARS_MAX)?;
        let parts = text.split_once('@').filter(|(local, host)| {
            let odd = |c: char| c.is_whitespace() || c.is_control() || c == '@';
            !local.is_empty()
                && host.contains('.')
                && !host.starts_with('.')
                && !host.ends_with('.')
                && !local.contains(odd)
                && !host.contains(odd)
        });
        match parts {
            Some(_) => Ok(Self(text)),
            None => Err(Problem::new(
                FaultCode::InvalidFormat,
                "Must be an e-mail address, for example you@example.com.",
            )),
        }
    }

    /// The address.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Email {
    /// Addresses do not belong in logs.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Email(***)")
    }
}

/// Characters a password must have.
pub const PASSWORD_CHARS_MIN: usize = 12;
/// Characters a password may have; more would only feed the hash function.
pub const PASSWORD_CHARS_MAX: usize = 256;

/// Passwords that everybody tries first, of those that are long enough to pass otherwise.
const COMMON_PASSWORDS: &[&str] = &[
    "123456789012",
    "1234567890123",
    "12345678901234",
    "123456123456",
    "111111111111",
    "000000000000",
    "qwertyuiop123",
    "qwertyuiopas",
    "passwordpassword",
    "password1234",
    "password12345",
    "password123456",
    "administrator",
    "iloveyouforever",
    "letmeinletmein",
    "welcome12345",
    "changemeplease",
    "correcthorsebatterystaple",
    "1q2w3e4r5t6y",
    "q1w2e3r4t5y6",
    "abcdefghijkl",
    "aaaaaaaaaaaa",
    "tributarytributary",
    "qwerty123456",
];

/// Whether a password will do: long enough, not everybody's. Composition is nobody's business.
pub fn check_password(password: &str) -> Result<(), Problem> {
    reject_nul(password)?;
    check_length(password, PASSWORD_CHARS_MIN, PASSWORD_CHARS_MAX)?;
    if COMMON_PASSWORDS.contains(&password.to_lowercase().as_str()) {
        return Err(Problem::new(
            FaultCode::NotAllowed,
            "This password is among the first that anybody would try; choose another one.",
        ));
    }
    Ok(())
}

/// A person with an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// The person's id.
    pub id: UserId,
    /// The organization.
    pub organization: OrganizationId,
    /// What they sign in with.
    pub email: Email,
    /// What they may do.
    pub role: Role,
    /// Since when.
    pub created_at: Timestamp,
}

impl User {
    /// What the audit log says of a new one.
    pub fn creation_changes(&self) -> Vec<FieldChange> {
        role_changes(self.role)
    }
}

/// Decides on a new role for a member, or on none: whether the person may be removed. An organization keeps an
/// owner, since nobody else could make one.
pub fn change_member(
    members: &[User],
    member: UserId,
    role: Option<Role>,
) -> Result<(User, Vec<FieldChange>), Refusal> {
    let user = members
        .iter()
        .find(|user| user.id == member)
        .ok_or(Refusal::MemberNotFound)?;
    let other_owner = members
        .iter()
        .any(|user| user.role == Role::Owner && user.id != member);
    if user.role == Role::Owner && role != Some(Role::Owner) && !other_owner {
        return Err(Refusal::LastOwner);
    }
    let mut changes = Changes::new();
    let after = role.map(|role| role.as_str().to_owned());
    changes.compare("role", Some(user.role.as_str().to_owned()), after);
    let after = User {
        role: role.unwrap_or(user.role),
        ..user.clone()
    };
    Ok((after, changes.into_vec()))
}

fn role_changes(role: Role) -> Vec<FieldChange> {
    let mut changes = Changes::new();
    changes.initial("role", Some(role.as_str().to_owned()));
    changes.into_vec()
}

/// How long a set-up link is good for.
pub const SETUP_LINK_LIFETIME: Duration = Duration::from_hours(7 * 24);

/// A one-time link by which a person sets up an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetupLink {
    /// The organization the account will belong to.
    pub organization: OrganizationId,
    /// What the person will be allowed to do.
    pub role: Role,
    /// The address, where whoever made the link knew it.
    pub email: Option<Email>,
    /// From when it is refused.
    pub expires_at: Timestamp,
    /// Since when it is refused.
    pub used_at: Option<Timestamp>,
}

impl SetupLink {
    /// What the audit log says of a new one.
    pub fn creation_changes(&self) -> Vec<FieldChange> {
        role_changes(self.role)
    }

    /// Neither used nor expired.
    pub fn is_valid(&self, now: Timestamp) -> bool {
        self.used_at.is_none() && now < self.expires_at
    }
}

/// The address that a set-up link is opened at.
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
    fn members(
        #[case] member: Role,
        #[case] role: Option<Role>,
        #[case] expected: Result<Role, Refusal>,
    ) {
        let all: Vec<User> = Role::ALL.iter().map(|role| any_user(*role)).collect();
        let changed = change_member(&all, any_user(member).id, role);
        assert_eq!(changed.map(|(user, _)| user.role), expected);
    }

    #[test]
    fn one_of_two_owners_may_go() {
        let other = User {
            id: UserId::from_bytes([9; 16]),
            ..any_user(Role::Owner)
        };
        let all = [any_user(Role::Owner), other];
        assert!(change_member(&all, all[0].id, None).is_ok());
        let stranger = UserId::from_bytes([8; 16]);
        assert_eq!(
            change_member(&all, stranger, None).map(|_| ()),
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
    fn addresses(#[case] text: &str, #[case] expected: Option<&str>) {
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
    #[case::nul("a lazy fox\0..", false)]
    fn passwords(#[case] password: &str, #[case] accepted: bool) {
        assert_eq!(check_password(password).is_ok(), accepted);
    }

    #[rstest]
    #[case::fresh(None, 99, true)]
    #[case::used(Some(1), 99, false)]
    #[case::at_its_end(None, 100, false)]
    fn a_set_up_link_works_once_and_not_for_ever(
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
