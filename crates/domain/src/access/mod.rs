//! Access control: keys, permissions, scopes and users.
//!
//! [`Authorized`] proves that a caller may act within a scope. Only [`authorize`] (API keys),
//! [`authorize_person`] (signed-in users), [`authorize_share`] (visitors of a shared report) and
//! [`Authorized::operator`] (command line) create one.
//! Store methods require it, so a handler cannot call the store without naming its scope.

pub mod admission;
pub mod key;
pub mod known_browser;
pub mod person;
pub mod resource;
pub mod session;
pub mod session_client;
pub mod sign_in;
pub mod unverified_writes;

use crate::report::view::ShareLink;
use crate::vocabulary::id::{KeyId, OrganizationId, UserId};
use crate::vocabulary::time::Timestamp;
use key::ApiKey;
use person::{Role, User};
use std::marker::PhantomData;

/// Live or test. Test data is kept apart from live data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Environment {
    /// Live data.
    Live,
    /// Test data.
    Test,
}

crate::keywords! {
    Environment {
        Live => "live",
        Test => "test",
    }
}

/// A key's permission level, chosen when the key is created.
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
    /// Returns whether the permission grants a scope.
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

/// Scope that an endpoint requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScopeName {
    /// Read stats, events and the overview.
    AnalyticsRead,
    /// Read apps, links, integrations, settings and the audit log.
    AppsRead,
    /// Change apps, links, integrations and settings, send web events, and erase personal data.
    AppsWrite,
    /// Invite members, change roles and remove members. No key has this scope.
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
    /// Returns whether the role grants a scope.
    pub const fn grants(self, scope: ScopeName) -> bool {
        match scope {
            ScopeName::AnalyticsRead => true,
            ScopeName::AppsRead => matches!(self, Self::Owner | Self::Admin | Self::Analyst),
            ScopeName::AppsWrite => matches!(self, Self::Owner | Self::Admin),
            ScopeName::MembersWrite => matches!(self, Self::Owner),
        }
    }
}

/// Scope as a type, so that function signatures state the required scope.
pub trait Scope: Send + Sync + 'static {
    /// Name of the scope.
    const NAME: ScopeName;
    /// Whether test keys are rejected. The live and test environments share the app's settings, and
    /// only live keys may change them.
    const LIVE_ONLY: bool;
}

/// Scope for reading analytics.
#[derive(Debug, Clone, Copy)]
pub struct AnalyticsRead;
/// Scope for reading apps and settings.
#[derive(Debug, Clone, Copy)]
pub struct AppsRead;
/// Scope for changing apps and settings.
#[derive(Debug, Clone, Copy)]
pub struct AppsWrite;
/// Scope for erasing personal data.
#[derive(Debug, Clone, Copy)]
pub struct PeopleErase;
/// Scope for releasing and rejecting held installs.
#[derive(Debug, Clone, Copy)]
pub struct InstallsReview;
/// Scope for managing the members of the organization.
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
    // Live and test devices are separate, so a test key cannot erase live data.
    const LIVE_ONLY: bool = false;
}
impl Scope for InstallsReview {
    const NAME: ScopeName = ScopeName::AppsWrite;
    // Live and test installs are separate, so a test key cannot release live installs.
    const LIVE_ONLY: bool = false;
}
impl Scope for MembersWrite {
    const NAME: ScopeName = ScopeName::MembersWrite;
    const LIVE_ONLY: bool = true;
}

/// Who made a change, as recorded in the audit log.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Actor {
    /// An API key.
    Key(KeyId),
    /// A signed-in user.
    User(UserId),
    /// An operator running commands on the server.
    Operator,
    /// The user of a device, who erases the device.
    DeviceUser,
    /// The service itself: on its first start, when an integration pauses, and when a sign-in fails.
    Service,
}

/// Proof that a caller may act within scope `S` on one organization.
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
    /// Returns the organization that all requested data must belong to.
    pub const fn organization(&self) -> OrganizationId {
        self.organization
    }

    /// Returns the environment of the requested data.
    pub const fn environment(&self) -> Environment {
        self.environment
    }

    /// Returns the acting key, user or operator.
    pub const fn actor(&self) -> &Actor {
        &self.actor
    }

    /// Authorizes the command line. Shell access to the server already implies access to the data.
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
    /// Derives read access. Write access includes it.
    pub fn read_access(&self) -> Authorized<AppsRead> {
        Authorized {
            organization: self.organization,
            environment: self.environment,
            actor: self.actor.clone(),
            scope: PhantomData,
        }
    }
}

impl Authorized<InstallsReview> {
    /// Derives read access. Write access includes it.
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
    /// Derives analytics access. Every permission that grants `apps:read` also grants
    /// `analytics:read`.
    pub fn analytics_access(&self) -> Authorized<AnalyticsRead> {
        Authorized {
            organization: self.organization,
            environment: self.environment,
            actor: self.actor.clone(),
            scope: PhantomData,
        }
    }
}

/// Reason why a valid key or user is denied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AccessDenied {
    /// The permission does not grant the scope.
    #[error("This key's permission does not allow this request. Use a key with more permissions.")]
    InsufficientPermission,
    /// A test key tried to change live settings.
    #[error("Test keys cannot change settings shared with live data. Use a live key.")]
    LiveOnly,
}

/// Checks whether a key may act within scope `S`.
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

/// Checks whether a user may act within scope `S`. Users may read both environments; their changes
/// always apply to live settings.
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

/// Authorizes a visitor of a link that shares a report, unless the link is closed.
pub fn authorize_share(share: &ShareLink, now: Timestamp) -> Option<Authorized<AnalyticsRead>> {
    share.is_open(now).then_some(Authorized {
        organization: share.organization,
        environment: share.environment,
        actor: Actor::Service,
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
    fn roles_grant_scopes(#[case] role: Role, #[case] expected: [bool; 4]) {
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
    fn users_read_either_environment_and_write_live() {
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
    fn permissions_grant_scopes(#[case] permission: Permission, #[case] row: [bool; 3]) {
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
    #[case::permission_is_checked_before_environment(
        Permission::Analytics,
        Environment::Test,
        Err(AccessDenied::InsufficientPermission)
    )]
    fn only_full_live_keys_may_write(
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
    fn full_keys_may_erase_in_their_environment(
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
    fn permissions_round_trip_and_accept_the_cli_spelling() {
        for permission in Permission::ALL {
            assert_eq!(Permission::parse(permission.as_str()), Some(*permission));
        }
        assert_eq!(Permission::parse("read-only"), Some(Permission::ReadOnly));
        assert_eq!(Permission::parse("root"), None);
    }
}
