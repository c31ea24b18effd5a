//! Users: roles, email addresses, passwords and one-time setup links.

use super::key::{ApiKey, KeyText};
use super::{Actor, ScopeName};
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

/// Returns the member who answers for what an actor creates: the acting member, or the owner of the
/// acting key. `None` for the operator and for keys without a known owner. Refused if the member was
/// removed, or lost the role or key, since the request was authenticated.
pub fn answering_member(
    actor: &Actor,
    members: &[User],
    key: Option<&ApiKey>,
    (scope, now): (ScopeName, Timestamp),
) -> Result<Option<UserId>, Refusal> {
    match actor {
        Actor::User(id) => {
            let member = find_member(members, *id)?;
            let is_allowed = member.role.grants(scope);
            is_allowed
                .then_some(Some(*id))
                .ok_or(Refusal::MemberNotFound)
        }
        Actor::Key(_) => {
            let valid = key.filter(|key| key.is_valid(now));
            Ok(valid.ok_or(Refusal::MemberNotFound)?.owner)
        }
        Actor::Operator | Actor::DeviceUser | Actor::Service => Ok(None),
    }
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
    /// Member who created the link; `None` if the operator did, or an earlier version.
    pub created_by: Option<UserId>,
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

    /// Returns whether a member who gets another role, or is removed (`role` is `None`), loses the link.
    /// A removed member could come back with a link for their own address, or with one that they sent
    /// to another address of theirs. A member who may no longer invite could regain the role with it.
    pub fn is_lost(&self, member: &User, role: Option<Role>) -> bool {
        if self.organization != member.organization || self.used_at.is_some() {
            return false;
        }
        let is_creator = self.created_by == Some(member.id);
        match role {
            None => is_creator || self.email.as_ref() == Some(&member.email),
            Some(role) => is_creator && !role.grants(ScopeName::MembersWrite),
        }
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
    use crate::access::key::tests::any_key;
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
            created_by: None,
        };
        assert_eq!(link.is_valid(Timestamp::from_millis(now)), valid);
    }

    #[rstest]
    #[case::admin(Role::Admin, ScopeName::AppsWrite, true)]
    #[case::demoted(Role::Admin, ScopeName::MembersWrite, false)]
    fn a_member_answers_for_what_they_create(
        #[case] role: Role,
        #[case] scope: ScopeName,
        #[case] is_allowed: bool,
    ) {
        let (member, now) = (any_user(role), Timestamp::from_millis(0));
        let of = |actor: &Actor, key| {
            answering_member(actor, std::slice::from_ref(&member), key, (scope, now))
        };
        let expected = is_allowed
            .then_some(Some(member.id))
            .ok_or(Refusal::MemberNotFound);
        assert_eq!(of(&Actor::User(member.id), None), expected);
        let removed = Actor::User(UserId::from_bytes([9; 16]));
        assert_eq!(of(&removed, None), Err(Refusal::MemberNotFound));
        assert_eq!(of(&Actor::Operator, None), Ok(None));
        let mut key = any_key();
        key.owner = Some(member.id);
        let by_key = Actor::Key(key.id);
        assert_eq!(of(&by_key, Some(&key)), Ok(Some(member.id)));
        let mut revoked = key.clone();
        assert!(revoked.revoke(now));
        assert_eq!(of(&by_key, Some(&revoked)), Err(Refusal::MemberNotFound));
        assert_eq!(of(&by_key, None), Err(Refusal::MemberNotFound));
    }

    #[rstest]
    #[case::own_address("you@example.com", None, None, true)]
    #[case::own_address_of_a_demoted_member("you@example.com", None, Some(Role::Viewer), false)]
    #[case::created_and_removed("me@example.net", Some(1), None, true)]
    #[case::created_and_demoted("me@example.net", Some(1), Some(Role::Admin), true)]
    #[case::created_and_still_owner("me@example.net", Some(1), Some(Role::Owner), false)]
    #[case::of_a_colleague("me@example.net", Some(9), None, false)]
    #[case::of_the_operator("me@example.net", None, None, false)]
    fn a_changed_member_loses_links(
        #[case] email: &str,
        #[case] created_by: Option<u8>,
        #[case] role: Option<Role>,
        #[case] expected: bool,
    ) {
        let member = any_user(Role::Owner);
        let mut link = SetupLink {
            organization: member.organization,
            role: Role::Owner,
            email: Email::parse(email).ok(),
            expires_at: Timestamp::from_millis(100),
            used_at: None,
            created_by: created_by.map(|id| UserId::from_bytes([id; 16])),
        };
        assert_eq!(link.is_lost(&member, role), expected);
        link.used_at = Some(Timestamp::from_millis(1));
        assert!(!link.is_lost(&member, role));
        link.used_at = None;
        link.organization = OrganizationId::from_bytes([2; 16]);
        assert!(!link.is_lost(&member, role));
    }
}
