//! Rows of the audit log.

use super::columns::row;
use super::{from_json, to_json};
use crate::StoreError;
use serde::{Deserialize, Serialize};
use tributary_domain::access::{Actor, Environment};
use tributary_domain::audit::{Action, AuditContext, AuditEntry, FieldChange};
use tributary_domain::vocabulary::id::{AppId, AuditId, KeyId, OrganizationId, UserId};
use tributary_domain::vocabulary::time::Timestamp;

row! {
    /// A row of `audit_log`.
    #[derive(Debug, Clone)]
    #[expect(missing_docs, reason = "columns")]
    pub struct AuditRow {
        pub organization_id: [u8; 16],
        pub audit_id: [u8; 16],
        pub at: i64,
        pub actor_kind: String,
        pub actor_id: Option<[u8; 16]>,
        pub action: String,
        pub app_id: Option<[u8; 16]>,
        pub target: String,
        pub changes: String,
        pub address: Option<String>,
        pub request_id: Option<String>,
        pub environment: String,
    }
}

#[derive(Serialize, Deserialize)]
struct StoredChange {
    field: String,
    before: Option<String>,
    after: Option<String>,
}

/// Builds the audit log entry for a change.
pub fn audit_row(
    organization: OrganizationId,
    origin: &AuditContext,
    action: Action,
    app: Option<AppId>,
    target: impl ToString,
    changes: &[FieldChange],
) -> AuditRow {
    let (actor_kind, actor_id) = match &origin.actor {
        Actor::Key(id) => ("key", Some(*id.as_bytes())),
        Actor::User(id) => ("user", Some(*id.as_bytes())),
        Actor::Operator => ("operator", None),
        Actor::DeviceUser => ("device_user", None),
        Actor::Service => ("service", None),
    };
    let stored = |change: &FieldChange| StoredChange {
        field: change.field.clone(),
        before: change.before.clone(),
        after: change.after.clone(),
    };
    AuditRow {
        organization_id: *organization.as_bytes(),
        audit_id: *origin.audit_id.as_bytes(),
        at: origin.at.as_millis(),
        actor_kind: actor_kind.to_owned(),
        actor_id,
        action: action.as_str().to_owned(),
        app_id: app.map(|app| *app.as_bytes()),
        target: target.to_string(),
        changes: to_json(&changes.iter().map(stored).collect::<Vec<_>>()),
        address: origin.address.map(|address| address.to_string()),
        request_id: origin.request_id.clone(),
        environment: origin.environment.as_str().to_owned(),
    }
}

impl AuditRow {
    /// Returns whether the audited change needs a new version of the configuration.
    pub fn changes_cached_configuration(&self) -> bool {
        Action::parse(&self.action).is_some_and(Action::changes_cached_configuration)
    }

    /// Reads the entry.
    pub fn read(self) -> Result<AuditEntry, StoreError> {
        let id = AuditId::from_bytes(self.audit_id);
        let corrupt = |column| StoreError::corrupt("audit_log", column, id);
        let actor = match (self.actor_kind.as_str(), self.actor_id) {
            ("key", Some(key)) => Actor::Key(KeyId::from_bytes(key)),
            ("user", Some(user)) => Actor::User(UserId::from_bytes(user)),
            ("operator", None) => Actor::Operator,
            ("device_user", None) => Actor::DeviceUser,
            ("service", None) => Actor::Service,
            _ => return Err(corrupt("actor_kind")),
        };
        let changes: Vec<StoredChange> = from_json("audit_log", "changes", id, &self.changes)?;
        let change = |change: StoredChange| FieldChange {
            field: change.field,
            before: change.before,
            after: change.after,
        };
        Ok(AuditEntry {
            id,
            organization: OrganizationId::from_bytes(self.organization_id),
            at: Timestamp::from_millis(self.at),
            actor,
            action: Action::parse(&self.action).ok_or_else(|| corrupt("action"))?,
            app: self.app_id.map(AppId::from_bytes),
            target: self.target,
            changes: changes.into_iter().map(change).collect(),
            address: self.address,
            request_id: self.request_id,
            environment: Environment::parse(&self.environment)
                .ok_or_else(|| corrupt("environment"))?,
        })
    }
}
