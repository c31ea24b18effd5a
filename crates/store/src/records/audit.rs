//! Rows of the audit log.

use super::columns::row;
use super::{from_json, to_json};
use crate::StoreError;
use serde::{Deserialize, Serialize};
use tributary_domain::access::{Actor, Environment};
use tributary_domain::audit::chain::{Anchor, AuditChain, ChainEnd, ChainedId};
use tributary_domain::audit::json::HashedEntry;
use tributary_domain::audit::{Action, AuditContext, AuditEntry, FieldChange};
use tributary_domain::vocabulary::digest::Digest;
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

row! {
    /// The place of an entry in its chain.
    #[derive(Debug, Clone)]
    #[expect(missing_docs, reason = "columns")]
    pub struct AuditPlaceRow {
        pub audit_id: [u8; 16],
        pub sequence: i64,
        pub hash: Vec<u8>,
    }
}

row! {
    /// A row of `audit_chains`.
    #[derive(Debug, Clone)]
    #[expect(missing_docs, reason = "columns")]
    pub struct AuditChainRow {
        pub organization_id: [u8; 16],
        pub last_sequence: i64,
        pub last_hash: Vec<u8>,
        pub removed_sequence: i64,
        pub removed_hash: Vec<u8>,
        pub removed_at: Option<i64>,
        pub missing: i64,
        pub is_waiting: bool,
    }
}

#[derive(Serialize, Deserialize)]
struct StoredChange {
    field: String,
    before: Option<String>,
    after: Option<String>,
}

/// Converts an actor to the columns of its kind and id.
pub(super) const fn write_actor(actor: &Actor) -> (&'static str, Option<[u8; 16]>) {
    match actor {
        Actor::Key(id) => ("key", Some(*id.as_bytes())),
        Actor::User(id) => ("user", Some(*id.as_bytes())),
        Actor::Operator => ("operator", None),
        Actor::DeviceUser => ("device_user", None),
        Actor::Service => ("service", None),
    }
}

/// Reads an actor from its kind and id.
pub(super) fn read_actor(kind: &str, id: Option<[u8; 16]>) -> Option<Actor> {
    match (kind, id) {
        ("key", Some(key)) => Some(Actor::Key(KeyId::from_bytes(key))),
        ("user", Some(user)) => Some(Actor::User(UserId::from_bytes(user))),
        ("operator", None) => Some(Actor::Operator),
        ("device_user", None) => Some(Actor::DeviceUser),
        ("service", None) => Some(Actor::Service),
        _ => None,
    }
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
    let (actor_kind, actor_id) = write_actor(&origin.actor);
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

/// Reads the end of a chain. A stored value that no chain has, such as a negative number or a short
/// hash, was changed from outside. It reads as a value that verifies nothing, so that it is reported
/// as a break and not as an error.
fn chain_end(sequence: i64, hash: &[u8]) -> ChainEnd {
    ChainEnd {
        sequence: u64::try_from(sequence).unwrap_or(0),
        hash: <[u8; 32]>::try_from(hash).map_or(ChainEnd::START.hash, Digest::from_bytes),
    }
}

/// Converts a sequence number to its column.
pub fn stored_sequence(sequence: u64) -> i64 {
    i64::try_from(sequence).unwrap_or(i64::MAX)
}

impl AuditPlaceRow {
    /// Reads the place.
    pub fn read(&self) -> ChainedId {
        ChainedId {
            id: AuditId::from_bytes(self.audit_id),
            place: chain_end(self.sequence, &self.hash),
        }
    }
}

impl AuditChainRow {
    /// Converts a chain to its row.
    pub fn write(organization: OrganizationId, chain: &AuditChain) -> Self {
        Self {
            organization_id: *organization.as_bytes(),
            last_sequence: stored_sequence(chain.end.sequence),
            last_hash: chain.end.hash.as_bytes().to_vec(),
            removed_sequence: stored_sequence(chain.anchor.end.sequence),
            removed_hash: chain.anchor.end.hash.as_bytes().to_vec(),
            removed_at: chain.anchor.at.map(Timestamp::as_millis),
            missing: stored_sequence(chain.anchor.missing),
            is_waiting: chain.is_waiting,
        }
    }

    /// Reads the chain.
    pub fn read(&self) -> AuditChain {
        AuditChain {
            end: chain_end(self.last_sequence, &self.last_hash),
            anchor: Anchor {
                end: chain_end(self.removed_sequence, &self.removed_hash),
                at: self.removed_at.map(Timestamp::from_millis),
                missing: u64::try_from(self.missing).unwrap_or(0),
            },
            is_waiting: self.is_waiting,
        }
    }
}

impl AuditRow {
    /// Returns the entry as it is hashed. Changes that cannot be read are hashed as their text, so
    /// that a change of the column is found instead of an error.
    pub fn hashed(&self) -> HashedEntry {
        let changes: Result<Vec<StoredChange>, _> = serde_json::from_str(&self.changes);
        let changes = changes.unwrap_or_else(|_| {
            vec![StoredChange {
                field: String::new(),
                before: None,
                after: Some(self.changes.clone()),
            }]
        });
        let change = |change: StoredChange| FieldChange {
            field: change.field,
            before: change.before,
            after: change.after,
        };
        HashedEntry {
            organization: OrganizationId::from_bytes(self.organization_id),
            id: AuditId::from_bytes(self.audit_id),
            at: Timestamp::from_millis(self.at),
            actor_kind: self.actor_kind.clone(),
            actor: self.actor_id,
            action: self.action.clone(),
            app: self.app_id.map(AppId::from_bytes),
            target: self.target.clone(),
            changes: changes.into_iter().map(change).collect(),
            environment: self.environment.clone(),
            address: self.address.clone(),
            request_id: self.request_id.clone(),
        }
    }

    /// Returns whether the audited change needs a new version of the configuration.
    pub fn changes_cached_configuration(&self) -> bool {
        Action::parse(&self.action).is_some_and(Action::changes_cached_configuration)
    }

    /// Reads the entry, which has this place in its chain.
    pub fn read(self, sequence: Option<i64>) -> Result<AuditEntry, StoreError> {
        let id = AuditId::from_bytes(self.audit_id);
        let corrupt = |column| StoreError::corrupt("audit_log", column, id);
        let actor = read_actor(&self.actor_kind, self.actor_id);
        let actor = actor.ok_or_else(|| corrupt("actor_kind"))?;
        let changes: Vec<StoredChange> = from_json("audit_log", "changes", id, &self.changes)?;
        let change = |change: StoredChange| FieldChange {
            field: change.field,
            before: change.before,
            after: change.after,
        };
        Ok(AuditEntry {
            id,
            organization: OrganizationId::from_bytes(self.organization_id),
            sequence: sequence.and_then(|number| u64::try_from(number).ok()),
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
