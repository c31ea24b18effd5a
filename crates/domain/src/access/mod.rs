//! Access control: keys, permissions, scopes and users.
//!
//! [`Authorized`] proves that a caller may act within a scope. Only [`authorize`] (API keys),
//! [`authorize_person`] (signed-in users), [`authorize_share`] (visitors of a shared report) and
//! [`Authorized::operator`] (command line) create one.
//! Store methods require it, so a handler cannot call the store without naming its scope.

pub mod admission;
pub mod credential;
pub mod factor;
pub mod key;
pub mod key_limits;
pub mod key_management;
pub mod known_browser;
pub mod letter;
pub mod password_reset;
pub mod person;
pub mod proof;
pub mod resource;
pub mod session;
pub mod session_client;
pub mod sign_in;
pub mod single_sign_on;
pub mod unverified_writes;

use crate::refusal::Refusal;
use crate::report::view::ShareLink;
use crate::vocabulary::id::{AppId, KeyId, OrganizationId, UserId};
use crate::vocabulary::time::Timestamp;
use key::ApiKey;
use key_limits::AppLimit;
use person::{Role, User};
use std::marker::PhantomData;
use std::net::IpAddr;

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
                ScopeName::AnalyticsRead
                    | ScopeName::AppsRead
                    | ScopeName::AppsWrite
                    | ScopeName::KeysWrite
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
    /// Change apps, links, integrations and settings, send web events, and export and
    /// erase personal data.
    AppsWrite,
    /// Create, rotate and revoke API keys.
    KeysWrite,
    /// Invite members, change roles and remove members. No key has this scope.
    MembersWrite,
}

crate::keywords! {
    ScopeName {
        AnalyticsRead => "analytics:read",
        AppsRead => "apps:read",
        AppsWrite => "apps:write",
        KeysWrite => "keys:write",
        MembersWrite => "members:write",
    }
}

impl Role {
    /// Returns whether the role grants a scope.
    pub const fn grants(self, scope: ScopeName) -> bool {
        match scope {
            ScopeName::AnalyticsRead => true,
            ScopeName::AppsRead => matches!(self, Self::Owner | Self::Admin | Self::Analyst),
            ScopeName::AppsWrite | ScopeName::KeysWrite => {
                matches!(self, Self::Owner | Self::Admin)
            }
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
/// Scope for exporting everything that is stored about a person. It needs the same permission as
/// erasing it: the export contains addresses, hashes and user ids that no other page shows.
#[derive(Debug, Clone, Copy)]
pub struct PeopleExport;
/// Scope for exporting the audit log. A test key reads entries about test data only, which are no
/// chain.
#[derive(Debug, Clone, Copy)]
pub struct AuditExport;
/// Scope for erasing personal data.
#[derive(Debug, Clone, Copy)]
pub struct PeopleErase;
/// Scope for wiping an app's test data, for the operator.
#[derive(Debug, Clone, Copy)]
pub struct TestDataWipe;
/// Scope for validating web events. It needs the same permission as sending them.
#[derive(Debug, Clone, Copy)]
pub struct WebEventsValidate;
/// Scope for releasing and rejecting held installs.
#[derive(Debug, Clone, Copy)]
pub struct InstallsReview;
/// Scope for creating, rotating and revoking API keys.
#[derive(Debug, Clone, Copy)]
pub struct KeysWrite;
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
impl Scope for PeopleExport {
    const NAME: ScopeName = ScopeName::AppsWrite;
    // Live and test devices are separate, so a test key reads no live data.
    const LIVE_ONLY: bool = false;
}
impl Scope for AuditExport {
    const NAME: ScopeName = ScopeName::AppsRead;
    const LIVE_ONLY: bool = true;
}
impl Scope for PeopleErase {
    const NAME: ScopeName = ScopeName::AppsWrite;
    // Live and test devices are separate, so a test key cannot erase live data.
    const LIVE_ONLY: bool = false;
}
impl Scope for TestDataWipe {
    const NAME: ScopeName = ScopeName::AppsWrite;
    const LIVE_ONLY: bool = true;
}
impl Scope for WebEventsValidate {
    const NAME: ScopeName = ScopeName::AppsWrite;
    // Nothing is stored, so a test key changes no live data.
    const LIVE_ONLY: bool = false;
}
impl Scope for InstallsReview {
    const NAME: ScopeName = ScopeName::AppsWrite;
    // Live and test installs are separate, so a test key cannot release live installs.
    const LIVE_ONLY: bool = false;
}
impl Scope for KeysWrite {
    const NAME: ScopeName = ScopeName::KeysWrite;
    // A test key manages test keys only; `key_management` checks this.
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
    apps: AppLimit,
    actor: Actor,
    scope: PhantomData<S>,
}

impl<S> Clone for Authorized<S> {
    fn clone(&self) -> Self {
        self.with_scope()
    }
}

impl<S> Authorized<S> {
    /// Returns the same access with another scope, which the caller's scope must include.
    fn with_scope<T>(&self) -> Authorized<T> {
        Authorized {
            organization: self.organization,
            environment: self.environment,
            apps: self.apps.clone(),
            actor: self.actor.clone(),
            scope: PhantomData,
        }
    }

    /// Returns the organization of the caller, for logs, cursors and encryption. Store methods must
    /// not use it to decide about access: the caller may be limited to some of its apps.
    pub const fn organization(&self) -> OrganizationId {
        self.organization
    }

    /// Returns the organization that an app must belong to. An app outside of the caller's limit is
    /// not found, like an app of another organization.
    pub fn organization_of(&self, app: AppId) -> Result<OrganizationId, Refusal> {
        self.organization_of_all([app])
    }

    /// Returns the organization that all of these apps must belong to.
    pub fn organization_of_all(
        &self,
        apps: impl IntoIterator<Item = AppId>,
    ) -> Result<OrganizationId, Refusal> {
        let mut apps = apps.into_iter();
        if apps.all(|app| self.apps.allows(app)) {
            Ok(self.organization)
        } else {
            Err(Refusal::AppNotFound)
        }
    }

    /// Returns the organization whose apps are listed, and the apps that the list may show.
    pub const fn organization_and_apps(&self) -> (OrganizationId, &AppLimit) {
        (self.organization, &self.apps)
    }

    /// Returns the organization, for changes and lists that concern all of it.
    pub fn whole_organization(&self) -> Result<OrganizationId, Refusal> {
        match self.apps {
            AppLimit::All => Ok(self.organization),
            AppLimit::Only(_) => Err(Refusal::AppNotAllowed),
        }
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
            apps: AppLimit::All,
            actor: Actor::Operator,
            scope: PhantomData,
        }
    }
}

impl Authorized<AppsWrite> {
    /// Derives read access. Write access includes it.
    pub fn read_access(&self) -> Authorized<AppsRead> {
        self.with_scope()
    }
}

impl Authorized<KeysWrite> {
    /// Derives read access. Every permission and role that grants `keys:write` also grants
    /// `apps:read`.
    pub fn read_access(&self) -> Authorized<AppsRead> {
        self.with_scope()
    }
}

impl Authorized<WebEventsValidate> {
    /// Derives read access. Write access includes it.
    pub fn read_access(&self) -> Authorized<AppsRead> {
        self.with_scope()
    }
}

impl Authorized<InstallsReview> {
    /// Derives read access. Write access includes it.
    pub fn read_access(&self) -> Authorized<AppsRead> {
        self.with_scope()
    }
}

impl Authorized<AppsRead> {
    /// Derives analytics access. Every permission that grants `apps:read` also grants
    /// `analytics:read`.
    pub fn analytics_access(&self) -> Authorized<AnalyticsRead> {
        self.with_scope()
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
    /// The key is limited to addresses, and the client's is none of them.
    #[error("This key may not be used from this address. Use it from an address that it allows.")]
    AddressNotAllowed,
}

/// Checks whether a client at `address` may use a key to act within scope `S`.
pub fn authorize<S: Scope>(key: &ApiKey, address: IpAddr) -> Result<Authorized<S>, AccessDenied> {
    // First, so that a stolen key does not tell from elsewhere what it could do.
    if !key.limits.addresses.allows(address) {
        return Err(AccessDenied::AddressNotAllowed);
    }
    if !key.permission.grants(S::NAME) {
        return Err(AccessDenied::InsufficientPermission);
    }
    if S::LIVE_ONLY && key.environment != Environment::Live {
        return Err(AccessDenied::LiveOnly);
    }
    Ok(Authorized {
        organization: key.organization,
        environment: key.environment,
        apps: key.limits.apps.clone(),
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
        apps: AppLimit::All,
        actor: Actor::User(user.id),
        scope: PhantomData,
    })
}

/// Authorizes a visitor of a link that shares a report, unless the link is closed. The visitor sees
/// the shared app only.
pub fn authorize_share(share: &ShareLink, now: Timestamp) -> Option<Authorized<AnalyticsRead>> {
    share.is_open(now).then_some(Authorized {
        organization: share.organization,
        environment: share.environment,
        apps: AppLimit::only([share.app]),
        actor: Actor::Service,
        scope: PhantomData,
    })
}

#[cfg(test)]
mod tests;
