//! Who may do what: keys, permissions, scopes, people.
//!
//! [`Authorized`] is the proof that a caller may do something. Only [`authorize`] (for API keys),
//! [`authorize_person`] (for people, signed in) and [`Authorized::operator`] (for the command line of the
//! machine itself) make one, and the store asks for it: a handler that does not say which scope it needs has
//! nothing to call the store with.

pub mod key;
pub mod person;
pub mod session;
pub mod sign_in;

use crate::vocabulary::id::{KeyId, OrganizationId, UserId};
use key::ApiKey;
use person::{Role, User};
use std::marker::PhantomData;

/// Live or test. What a test key sees and makes stays apart from everything live.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Environment {
    /// Live.
    Live,
    /// Test.
    Test,
}

crate::keywords! {
    Environment {
        Live => "live",
        Test => "test",
    }
}

/// What a key is for, as people choose it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Permission {
    /// Read and write everything.
    Full,
    /// Read everything.
    ReadOnly,
    /// Read analytics and stats.
    Analytics,
}

crate::keywords! {
    Permission {
        Full => "full",
        ReadOnly => "read_only" | "read-only",
        Analytics => "analytics",
    }
}

impl Permission {
    /// The table of the contract: which permission carries which scope.
    pub const fn grants(self, scope: ScopeName) -> bool {
        matches!(
            (self, scope),
            (
                Self::Full,
                ScopeName::AnalyticsRead | ScopeName::AppsRead | ScopeName::AppsWrite
            ) | (
                Self::ReadOnly,
                ScopeName::AnalyticsRead | ScopeName::AppsRead
            ) | (Self::Analytics, ScopeName::AnalyticsRead)
        )
    }
}

/// What an endpoint asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScopeName {
    /// Stats, events, overview.
    AnalyticsRead,
    /// Apps, links, integrations, settings, audit log.
    AppsRead,
    /// Changing any of these, and web events.
    AppsWrite,
    /// Inviting people, changing their roles, removing them. No key carries it.
    MembersWrite,
}

crate::keywords! {
    ScopeName {
        AnalyticsRead => "analytics:read",
        AppsRead => "apps:read",
        AppsWrite => "apps:write",
        MembersWrite => "members:write",
    }
}

impl Role {
    /// Which role carries which scope.
    pub const fn grants(self, scope: ScopeName) -> bool {
        match scope {
            ScopeName::AnalyticsRead => true,
            ScopeName::AppsRead => matches!(self, Self::Owner | Self::Admin | Self::Analyst),
            ScopeName::AppsWrite => matches!(self, Self::Owner | Self::Admin),
            ScopeName::MembersWrite => matches!(self, Self::Owner),
        }
    }
}

/// A scope as a type, so that a signature says what may be done.
pub trait Scope: Send + Sync + 'static {
    /// Which scope.
    const NAME: ScopeName;
    /// True when a test key is refused: what both environments share is changed by live keys only.
    const LIVE_ONLY: bool;
}

/// Reads analytics.
#[derive(Debug, Clone, Copy)]
pub struct AnalyticsRead;
/// Reads apps and their settings.
#[derive(Debug, Clone, Copy)]
pub struct AppsRead;
/// Changes apps and their settings.
#[derive(Debug, Clone, Copy)]
pub struct AppsWrite;
/// Erases what is known of people.
#[derive(Debug, Clone, Copy)]
pub struct PeopleErase;
/// Manages the members of the organization.
#[derive(Debug, Clone, Copy)]
pub struct MembersWrite;

impl Scope for AnalyticsRead {
    const NAME: ScopeName = ScopeName::AnalyticsRead;
    const LIVE_ONLY: bool = false;
}
impl Scope for AppsRead {
    const NAME: ScopeName = ScopeName::AppsRead;
    const LIVE_ONLY: bool = false;
}
impl Scope for AppsWrite {
    const NAME: ScopeName = ScopeName::AppsWrite;
    const LIVE_ONLY: bool = true;
}
impl Scope for PeopleErase {
    const NAME: ScopeName = ScopeName::AppsWrite;
    // The devices of the two environments have nothing in common.
    const LIVE_ONLY: bool = false;
}
impl Scope for MembersWrite {
    const NAME: ScopeName = ScopeName::MembersWrite;
    const LIVE_ONLY: bool = true;
}

/// Who does something, as the audit log will say it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Actor {
    /// An API key.
    Key(KeyId),
    /// A person, signed in.
    User(UserId),
    /// Whoever runs commands on the machine of the service.
    Operator,
    /// The service itself, at its first start.
    Service,
}

/// The proof that somebody may act within scope `S` on one organization.
#[derive(Debug)]
pub struct Authorized<S> {
    organization: OrganizationId,
    environment: Environment,
    actor: Actor,
    scope: PhantomData<S>,
}

impl<S> Clone for Authorized<S> {
    fn clone(&self) -> Self {
        Self {
            organization: self.organization,
            environment: self.environment,
            actor: self.actor.clone(),
            scope: PhantomData,
        }
    }
}

impl<S> Authorized<S> {
    /// The organization that everything asked for must belong to.
    pub const fn organization(&self) -> OrganizationId {
        self.organization
    }

    /// Which of the two worlds of data is meant.
    pub const fn environment(&self) -> Environment {
        self.environment
    }

    /// Who it is.
    pub const fn actor(&self) -> &Actor {
        &self.actor
    }

    /// Whoever can run commands on the machine owns the data.
    pub const fn operator(organization: OrganizationId) -> Self {
        Self {
            organization,
            environment: Environment::Live,
            actor: Actor::Operator,
            scope: PhantomData,
        }
    }
}

impl Authorized<AppsWrite> {
    /// Who may change may look.
    pub fn read_access(&self) -> Authorized<AppsRead> {
        Authorized {
            organization: self.organization,
            environment: self.environment,
            actor: self.actor.clone(),
            scope: PhantomData,
        }
    }
}

impl Authorized<AppsRead> {
    /// Who may read an app may read what happened in it: every permission that carries the one scope carries
    /// the other.
    pub fn analytics_access(&self) -> Authorized<AnalyticsRead> {
        Authorized {
            organization: self.organization,
            environment: self.environment,
            actor: self.actor.clone(),
            scope: PhantomData,
        }
    }
}

/// Why a valid key may not do what it asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AccessDenied {
    /// The permission does not carry the scope.
    #[error("This key's permission does not cover this method and resource; use another key.")]
    InsufficientPermission,
    /// A test key where live settings are changed.
    #[error("Test keys cannot change what live data shares; use a live key.")]
    LiveOnly,
}

/// Decides whether a key may act within scope `S`.
pub fn authorize<S: Scope>(key: &ApiKey) -> Result<Authorized<S>, AccessDenied> {
    if !key.permission.grants(S::NAME) {
        return Err(AccessDenied::InsufficientPermission);
    }
    if S::LIVE_ONLY && key.environment != Environment::Live {
        return Err(AccessDenied::LiveOnly);
    }
    Ok(Authorized {
        organization: key.organization,
        environment: key.environment,
        actor: Actor::Key(key.id),
        scope: PhantomData,
    })
}

/// Decides whether a person may act within scope `S`. People look at either world and change the one that both
/// share.
pub fn authorize_person<S: Scope>(
    user: &User,
    environment: Environment,
) -> Result<Authorized<S>, AccessDenied> {
    if !user.role.grants(S::NAME) {
        return Err(AccessDenied::InsufficientPermission);
    }
    Ok(Authorized {
        organization: user.organization,
        environment: if S::LIVE_ONLY {
            Environment::Live
        } else {
            environment
        },
        actor: Actor::User(user.id),
        scope: PhantomData,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::owner(Role::Owner, [true, true, true, true])]
    #[case::admin(Role::Admin, [true, true, true, false])]
    #[case::analyst(Role::Analyst, [true, true, false, false])]
    #[case::viewer(Role::Viewer, [true, false, false, false])]
    fn what_a_role_may(#[case] role: Role, #[case] expected: [bool; 4]) {
        let user = person::tests::any_user(role);
        let test = Environment::Test;
        let found = [
            authorize_person::<AnalyticsRead>(&user, test).is_ok(),
            authorize_person::<AppsRead>(&user, test).is_ok(),
            authorize_person::<AppsWrite>(&user, test).is_ok(),
            authorize_person::<MembersWrite>(&user, test).is_ok(),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn people_look_at_either_world_and_change_one() {
        let user = person::tests::any_user(Role::Owner);
        let reader = authorize_person::<AppsRead>(&user, Environment::Test).unwrap();
        assert_eq!(reader.environment(), Environment::Test);
        assert_eq!(reader.actor(), &Actor::User(user.id));
        let writer = authorize_person::<AppsWrite>(&user, Environment::Test).unwrap();
        assert_eq!(writer.environment(), Environment::Live);
    }

    #[rstest]
    #[case::full(Permission::Full, [true, true, true])]
    #[case::read_only(Permission::ReadOnly, [true, true, false])]
    #[case::analytics(Permission::Analytics, [true, false, false])]
    fn the_table_of_permissions_and_scopes(#[case] permission: Permission, #[case] row: [bool; 3]) {
        let scopes = [
            ScopeName::AnalyticsRead,
            ScopeName::AppsRead,
            ScopeName::AppsWrite,
        ];
        assert_eq!(scopes.map(|scope| permission.grants(scope)), row);
    }

    #[rstest]
    #[case::live_full(Permission::Full, Environment::Live, Ok(()))]
    #[case::test_full(Permission::Full, Environment::Test, Err(AccessDenied::LiveOnly))]
    #[case::live_read_only(
        Permission::ReadOnly,
        Environment::Live,
        Err(AccessDenied::InsufficientPermission)
    )]
    #[case::permission_is_judged_before_environment(
        Permission::Analytics,
        Environment::Test,
        Err(AccessDenied::InsufficientPermission)
    )]
    fn who_may_change(
        #[case] permission: Permission,
        #[case] environment: Environment,
        #[case] expected: Result<(), AccessDenied>,
    ) {
        let key = ApiKey {
            permission,
            environment,
            ..key::tests::any_key()
        };
        assert_eq!(authorize::<AppsWrite>(&key).map(|_| ()), expected);
    }

    #[rstest]
    #[case::live_full(Permission::Full, Environment::Live, true)]
    #[case::test_full(Permission::Full, Environment::Test, true)]
    #[case::read_only(Permission::ReadOnly, Environment::Test, false)]
    #[case::analytics(Permission::Analytics, Environment::Live, false)]
    fn who_may_erase(
        #[case] permission: Permission,
        #[case] environment: Environment,
        #[case] expected: bool,
    ) {
        let key = ApiKey {
            permission,
            environment,
            ..key::tests::any_key()
        };
        let erases = authorize::<PeopleErase>(&key);
        assert_eq!(erases.is_ok(), expected);
        assert!(erases.is_err() || erases.unwrap().environment() == environment);
    }

    #[test]
    fn a_test_key_reads_its_own_environment() {
        let key = ApiKey {
            environment: Environment::Test,
            ..key::tests::any_key()
        };
        let caller = authorize::<AnalyticsRead>(&key).unwrap();
        assert_eq!(caller.environment(), Environment::Test);
        assert_eq!(caller.organization(), key.organization);
    }

    #[test]
    fn permissions_survive_their_text_and_the_command_line_spelling() {
        for permission in Permission::ALL {
            assert_eq!(Permission::parse(permission.as_str()), Some(*permission));
        }
        assert_eq!(Permission::parse("read-only"), Some(Permission::ReadOnly));
        assert_eq!(Permission::parse("root"), None);
    }
}
