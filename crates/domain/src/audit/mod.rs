//! The audit log: who changed what, when and from where.

pub mod chain;
pub mod json;
pub mod stream;

use crate::access::{Actor, AppsRead, Authorized, Environment};
use crate::vocabulary::id::{AppId, AuditId, OrganizationId};
use crate::vocabulary::time::Timestamp;
use std::fmt;

/// Audited action, named `<noun>.<verb>`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// An organization was created.
    OrganizationCreated,
    /// An organization's settings were changed.
    OrganizationUpdated,
    /// A user set up an account.
    UserCreated,
    /// A user signed in.
    UserSignedIn,
    /// A user signed out.
    UserSignedOut,
    /// A user ended sessions of their own.
    UserSessionsEnded,
    /// A sign-in, or the proof for a sensitive action, failed because of a wrong password or code.
    UserSignInFailed,
    /// A user changed the password.
    UserPasswordChanged,
    /// A one-time link for a new password was created.
    PasswordResetCreated,
    /// A user set a new password with a one-time link.
    UserPasswordReset,
    /// A user added a second factor.
    FactorAdded,
    /// A second factor was removed, by its user or by the operator.
    FactorRemoved,
    /// A user created new recovery codes.
    RecoveryCodesReplaced,
    /// A recovery code was used.
    RecoveryCodeUsed,
    /// A user's account was linked to the provider for single sign-on.
    UserLinked,
    /// A member's role was changed.
    UserUpdated,
    /// A member was removed.
    UserRemoved,
    /// The settings for single sign-on were changed.
    SingleSignOnUpdated,
    /// The settings for single sign-on were removed.
    SingleSignOnRemoved,
    /// The operator began to replace the secret key of the server.
    SecretKeyRotationBegun,
    /// The operator replaced the secret key of the server.
    SecretKeyRotated,
    /// A one-time setup link was created.
    SetupLinkCreated,
    /// A one-time setup link was revoked.
    SetupLinkRevoked,
    /// An API key was created.
    KeyCreated,
    /// An API key was revoked.
    KeyRevoked,
    /// An API key was rotated. The entry names its successor.
    KeyRotated,
    /// A member took over an API key.
    KeyTakenOver,
    /// An app was created.
    AppCreated,
    /// An app was changed.
    AppUpdated,
    /// A link was created.
    LinkCreated,
    /// A link was changed.
    LinkUpdated,
    /// A link was archived.
    LinkDeleted,
    /// An integration's settings were changed.
    IntegrationUpdated,
    /// A paused integration was resumed.
    IntegrationResumed,
    /// An integration paused because of a problem.
    IntegrationPaused,
    /// A notice was created.
    NoticeCreated,
    /// A notice was changed.
    NoticeUpdated,
    /// A notice was deleted.
    NoticeDeleted,
    /// Deliveries were queued for another attempt.
    DeliveriesRetried,
    /// The conversion-value configuration was changed.
    SkanUpdated,
    /// Ad costs were updated.
    CostsUpdated,
    /// A link that shares a report was created.
    ShareLinkCreated,
    /// A link that shares a report was revoked.
    ShareLinkRevoked,
    /// A cost source was changed.
    CostSourceUpdated,
    /// A cost source was removed.
    CostSourceRemoved,
    /// A pull of costs was requested.
    CostSourcePulled,
    /// Held installs were released.
    HeldReleased,
    /// Held installs were rejected.
    HeldRejected,
    /// The data of a device was exported. The entry names the attribution of the install, because the
    /// log outlives an erased device.
    DeviceExported,
    /// The data of an app's user was exported. The entry names the attributions of the user's devices.
    AppUserExported,
    /// A device was erased. The entry records the device's pseudonym.
    DeviceErased,
    /// The test data of an app was wiped.
    TestDataWiped,
    /// Events, installs or clicks of an app were exported.
    DataExported,
    /// Events were imported into an app.
    EventsImported,
    /// The audit log was exported.
    AuditLogExported,
}

crate::keywords! {
    Action {
        OrganizationCreated => "organization.created",
        OrganizationUpdated => "organization.updated",
        UserCreated => "user.created",
        UserSignedIn => "user.signed_in",
        UserSignedOut => "user.signed_out",
        UserSessionsEnded => "user.sessions_ended",
        UserSignInFailed => "user.sign_in_failed",
        UserPasswordChanged => "user.password_changed",
        PasswordResetCreated => "password_reset.created",
        UserPasswordReset => "user.password_reset",
        FactorAdded => "user.factor_added",
        FactorRemoved => "user.factor_removed",
        RecoveryCodesReplaced => "user.recovery_codes_replaced",
        RecoveryCodeUsed => "user.recovery_code_used",
        UserLinked => "user.linked",
        UserUpdated => "user.updated",
        UserRemoved => "user.removed",
        SingleSignOnUpdated => "single_sign_on.updated",
        SingleSignOnRemoved => "single_sign_on.removed",
        SecretKeyRotationBegun => "secret_key.rotation_begun",
        SecretKeyRotated => "secret_key.rotated",
        SetupLinkCreated => "setup_link.created",
        SetupLinkRevoked => "setup_link.revoked",
        KeyCreated => "key.created",
        KeyRevoked => "key.revoked",
        KeyRotated => "key.rotated",
        KeyTakenOver => "key.taken_over",
        AppCreated => "app.created",
        AppUpdated => "app.updated",
        LinkCreated => "link.created",
        LinkUpdated => "link.updated",
        LinkDeleted => "link.deleted",
        IntegrationUpdated => "integration.updated",
        IntegrationResumed => "integration.resumed",
        IntegrationPaused => "integration.paused",
        NoticeCreated => "notice.created",
        NoticeUpdated => "notice.updated",
        NoticeDeleted => "notice.deleted",
        DeliveriesRetried => "deliveries.retried",
        SkanUpdated => "skan.updated",
        CostsUpdated => "costs.updated",
        ShareLinkCreated => "share_link.created",
        ShareLinkRevoked => "share_link.revoked",
        CostSourceUpdated => "cost_source.updated",
        CostSourceRemoved => "cost_source.removed",
        CostSourcePulled => "cost_source.pulled",
        HeldReleased => "held.released",
        HeldRejected => "held.rejected",
        DeviceExported => "device.exported",
        AppUserExported => "app_user.exported",
        DeviceErased => "device.erased",
        TestDataWiped => "test_data.wiped",
        DataExported => "data.exported",
        EventsImported => "events.imported",
        AuditLogExported => "audit_log.exported",
    }
}

/// Id of a request, as in the log and the response. Every request has one, but few print it more
/// than once, so it is kept as bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestId([u8; Self::RANDOM_BYTES]);

impl RequestId {
    /// Number of random bytes: enough that ids never collide within the lifetime of a log.
    const RANDOM_BYTES: usize = 12;
    /// Prefix of the text, which tells request ids from other ids.
    const PREFIX: &str = "req_";
    /// Length of the text: the prefix and two hex digits per byte.
    const TEXT_BYTES: usize = Self::PREFIX.len() + 2 * Self::RANDOM_BYTES;

    /// Creates an id from random bytes.
    pub const fn new(random: [u8; Self::RANDOM_BYTES]) -> Self {
        Self(random)
    }

    /// Returns the text as ASCII, without allocating.
    pub fn to_ascii(self) -> [u8; Self::TEXT_BYTES] {
        let mut text = [0; Self::TEXT_BYTES];
        let digits = self.0.iter().flat_map(|byte| [byte >> 4, byte & 0xf]);
        let digits = digits.map(|digit| match digit {
            0..10 => b'0' + digit,
            _ => b'a' + digit - 10,
        });
        let characters = Self::PREFIX.bytes().chain(digits);
        for (place, character) in text.iter_mut().zip(characters) {
            *place = character;
        }
        text
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.to_ascii();
        formatter.write_str(str::from_utf8(&text).unwrap_or_default())
    }
}

/// Client of a request. The HTTP layer stores it in the request's extensions, and handlers that
/// change something read it from there.
#[derive(Debug, Clone, Copy)]
pub struct Client {
    /// Client address, after resolving trusted proxies.
    pub address: std::net::IpAddr,
    /// Request id.
    pub request_id: RequestId,
}

/// Context of a change, passed to the store with every change.
#[derive(Debug, Clone)]
pub struct AuditContext {
    /// Who made the change.
    pub actor: Actor,
    /// Client address; `None` on the command line.
    pub address: Option<std::net::IpAddr>,
    /// Request id; `None` on the command line.
    pub request_id: Option<String>,
    /// Environment of the changed data. Changes to settings are live, because both environments
    /// share them.
    pub environment: Environment,
    /// Time of the change.
    pub at: Timestamp,
    /// Id of the audit entry to write.
    pub audit_id: AuditId,
}

impl AuditContext {
    /// Returns the context of a further entry about the same change. Its id sorts right after this
    /// one's.
    #[must_use]
    pub fn following(&self) -> Self {
        Self {
            audit_id: self.audit_id.following(),
            ..self.clone()
        }
    }
}

/// An audit log entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEntry {
    /// Entry id.
    pub id: AuditId,
    /// Organization.
    pub organization: OrganizationId,
    /// Sequence number in the organization's chain; `None` until the entry has its place.
    pub sequence: Option<u64>,
    /// Time of the change.
    pub at: Timestamp,
    /// Who made the change.
    pub actor: Actor,
    /// Audited action.
    pub action: Action,
    /// Affected app, if any.
    pub app: Option<AppId>,
    /// Id or name of the affected object.
    pub target: String,
    /// Changed fields with old and new values, without secrets.
    pub changes: Vec<FieldChange>,
    /// Client address.
    pub address: Option<String>,
    /// Request id.
    pub request_id: Option<String>,
    /// Environment of the changed data.
    pub environment: Environment,
}

impl Action {
    /// Returns whether the action changes an existing key, app, conversion-value
    /// configuration or link. Nodes cache these, so the
    /// configuration gets a new version. A new object needs none, because a lookup that finds
    /// nothing is never cached.
    pub const fn changes_cached_configuration(self) -> bool {
        match self {
            Self::KeyRevoked
            | Self::KeyRotated
            | Self::KeyTakenOver
            | Self::AppUpdated
            | Self::SkanUpdated
            | Self::LinkUpdated
            | Self::LinkDeleted => true,
            Self::OrganizationCreated
            | Self::OrganizationUpdated
            | Self::UserCreated
            | Self::UserSignedIn
            | Self::UserSignedOut
            | Self::UserSessionsEnded
            | Self::UserSignInFailed
            | Self::UserPasswordChanged
            | Self::PasswordResetCreated
            | Self::UserPasswordReset
            | Self::FactorAdded
            | Self::FactorRemoved
            | Self::RecoveryCodesReplaced
            | Self::RecoveryCodeUsed
            | Self::UserLinked
            | Self::UserUpdated
            | Self::UserRemoved
            | Self::SingleSignOnUpdated
            | Self::SingleSignOnRemoved
            | Self::SecretKeyRotationBegun
            | Self::SecretKeyRotated
            | Self::SetupLinkCreated
            | Self::SetupLinkRevoked
            | Self::KeyCreated
            | Self::AppCreated
            | Self::LinkCreated
            | Self::IntegrationUpdated
            | Self::IntegrationResumed
            | Self::IntegrationPaused
            | Self::NoticeCreated
            | Self::NoticeUpdated
            | Self::NoticeDeleted
            | Self::DeliveriesRetried
            | Self::ShareLinkCreated
            | Self::ShareLinkRevoked
            | Self::CostsUpdated
            | Self::CostSourceUpdated
            | Self::CostSourceRemoved
            | Self::CostSourcePulled
            | Self::HeldReleased
            | Self::HeldRejected
            | Self::DeviceExported
            | Self::AppUserExported
            | Self::DeviceErased
            | Self::TestDataWiped
            | Self::DataExported
            | Self::EventsImported
            | Self::AuditLogExported => false,
        }
    }
}

impl Authorized<AppsRead> {
    /// Returns the environment that the caller's audit log is limited to; `None` means no limit.
    /// Test keys are handed out more freely than live keys, so they do not read who changed live
    /// settings. Live callers read the whole log.
    pub const fn audited_environment(&self) -> Option<Environment> {
        match self.environment() {
            Environment::Live => None,
            Environment::Test => Some(Environment::Test),
        }
    }
}

/// Old and new value of a field. Secrets appear only as `set` or `not set`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldChange {
    /// Field path, as in the API.
    pub field: String,
    /// Old value; `None` if the field was not set.
    pub before: Option<String>,
    /// New value; `None` if the field was removed.
    pub after: Option<String>,
}

/// Collector of changed fields.
#[derive(Debug, Default)]
pub struct Changes(Vec<FieldChange>);

impl Changes {
    /// Creates an empty collector.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Adds a field if its old and new text differ.
    pub fn compare(&mut self, field: &str, before: Option<String>, after: Option<String>) {
        if before != after {
            self.0.push(FieldChange {
                field: field.to_owned(),
                before,
                after,
            });
        }
    }

    /// Adds a field of a new object, if it has a value.
    pub fn initial(&mut self, field: &str, value: Option<String>) {
        self.compare(field, None, value.filter(|text| !text.is_empty()));
    }

    /// Adds a field if its old and new value differ.
    pub fn compare_values(&mut self, field: &str, before: impl ToString, after: impl ToString) {
        self.compare(field, Some(before.to_string()), Some(after.to_string()));
    }

    /// Returns the collected changes.
    pub fn into_vec(self) -> Vec<FieldChange> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actions_round_trip_through_their_text() {
        for action in Action::ALL {
            assert_eq!(Action::parse(action.as_str()), Some(*action));
        }
        assert_eq!(Action::parse("app.unknown"), None);
    }

    #[test]
    fn a_request_id_prints_its_prefix_and_hex_digits() {
        let id = RequestId::new([0, 1, 0x9a, 0xbc, 0xde, 0xf0, 7, 8, 9, 10, 11, 255]);
        assert_eq!(id.to_string(), "req_00019abcdef00708090a0bff");
    }

    #[test]
    fn collects_only_differences() {
        let mut changes = Changes::new();
        changes.compare_values("name", "a", "a");
        changes.compare_values("archived", false, true);
        let collected = changes.into_vec();
        assert_eq!(collected.len(), 1);
        assert_eq!(collected[0].field, "archived");
    }
}
