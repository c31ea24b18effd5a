//! The audit log: who changed what, when, from where.

use crate::access::Actor;
use crate::vocabulary::id::{AppId, AuditId, OrganizationId};
use crate::vocabulary::time::Timestamp;

/// What was done. One per kind of change, named `<noun>.<verb>`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// An organization was made.
    OrganizationCreated,
    /// A person set up an account.
    UserCreated,
    /// A person signed in.
    UserSignedIn,
    /// A person changed the password.
    UserPasswordChanged,
    /// A member got another role.
    UserUpdated,
    /// A member was removed.
    UserRemoved,
    /// A one-time set-up link was made.
    SetupLinkCreated,
    /// A one-time set-up link was withdrawn.
    SetupLinkRevoked,
    /// An API key was made.
    KeyCreated,
    /// An API key was revoked.
    KeyRevoked,
    /// An app was made.
    AppCreated,
    /// An app was changed.
    AppUpdated,
    /// A link was made.
    LinkCreated,
    /// A link was changed.
    LinkUpdated,
    /// A link was archived.
    LinkDeleted,
    /// An integration's settings were changed.
    IntegrationUpdated,
    /// A paused integration was let go on.
    IntegrationResumed,
    /// Deliveries were brought back into their queues.
    DeliveriesRetried,
    /// The conversion-value configuration was changed.
    SkanUpdated,
    /// Costs of ads were told.
    CostsUpdated,
    /// A device was erased, and goes on under the name that the entry tells.
    DeviceErased,
}

crate::keywords! {
    Action {
        OrganizationCreated => "organization.created",
        UserCreated => "user.created",
        UserSignedIn => "user.signed_in",
        UserPasswordChanged => "user.password_changed",
        UserUpdated => "user.updated",
        UserRemoved => "user.removed",
        SetupLinkCreated => "setup_link.created",
        SetupLinkRevoked => "setup_link.revoked",
        KeyCreated => "key.created",
        KeyRevoked => "key.revoked",
        AppCreated => "app.created",
        AppUpdated => "app.updated",
        LinkCreated => "link.created",
        LinkUpdated => "link.updated",
        LinkDeleted => "link.deleted",
        IntegrationUpdated => "integration.updated",
        IntegrationResumed => "integration.resumed",
        DeliveriesRetried => "deliveries.retried",
        SkanUpdated => "skan.updated",
        CostsUpdated => "costs.updated",
        DeviceErased => "device.erased",
    }
}

/// Who is at the other end of a request. Whoever receives requests puts it among a request's extensions;
/// whoever changes something takes it from there.
#[derive(Debug, Clone)]
pub struct Client {
    /// The address, proxies seen through.
    pub address: std::net::IpAddr,
    /// The request's id, as the log and the answer name it.
    pub request_id: std::sync::Arc<str>,
}

/// From where a change came: told to the store with every change.
#[derive(Debug, Clone)]
pub struct AuditContext {
    /// Who.
    pub actor: Actor,
    /// The client's address; none on the command line.
    pub address: Option<std::net::IpAddr>,
    /// The request it came in; none on the command line.
    pub request_id: Option<String>,
    /// When.
    pub at: Timestamp,
    /// The id of the line to be written.
    pub audit_id: AuditId,
}

/// One line of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEntry {
    /// Its id.
    pub id: AuditId,
    /// Whose log.
    pub organization: OrganizationId,
    /// When.
    pub at: Timestamp,
    /// Who.
    pub actor: Actor,
    /// What was done.
    pub action: Action,
    /// To which app, where one is concerned.
    pub app: Option<AppId>,
    /// To what: the id or name of the object.
    pub target: String,
    /// The fields that changed, before and after, without secrets.
    pub changes: Vec<FieldChange>,
    /// The client's address.
    pub address: Option<String>,
    /// The request.
    pub request_id: Option<String>,
}

/// What a field was and is. Secrets show as `set` or `not set`, never as themselves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldChange {
    /// The field's path, as in the interface.
    pub field: String,
    /// What it was; none when it was not there.
    pub before: Option<String>,
    /// What it is; none when it is gone.
    pub after: Option<String>,
}

/// Notes the fields that differ.
#[derive(Debug, Default)]
pub struct Changes(Vec<FieldChange>);

impl Changes {
    /// Nothing noted yet.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Notes a field whose two texts differ.
    pub fn compare(&mut self, field: &str, before: Option<String>, after: Option<String>) {
        if before != after {
            self.0.push(FieldChange {
                field: field.to_owned(),
                before,
                after,
            });
        }
    }

    /// Notes what a field of something new is, where it is anything.
    pub fn initial(&mut self, field: &str, value: Option<String>) {
        self.compare(field, None, value.filter(|text| !text.is_empty()));
    }

    /// Notes a field whose two values differ.
    pub fn compare_values(&mut self, field: &str, before: impl ToString, after: impl ToString) {
        self.compare(field, Some(before.to_string()), Some(after.to_string()));
    }

    /// What was noted.
    pub fn into_vec(self) -> Vec<FieldChange> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_action_survives_its_text() {
        for action in Action::ALL {
            assert_eq!(Action::parse(action.as_str()), Some(*action));
        }
        assert_eq!(Action::parse("app.eaten"), None);
    }

    #[test]
    fn only_what_differs_is_noted() {
        let mut changes = Changes::new();
        changes.compare_values("name", "a", "a");
        changes.compare_values("archived", false, true);
        let noted = changes.into_vec();
        assert_eq!(noted.len(), 1);
        assert_eq!(noted[0].field, "archived");
    }
}
