//! An API key as a line of a table.

use crate::text;
use tributary_domain::access::key::{ApiKey, KeyState};
use tributary_domain::access::person::User;
use tributary_domain::access::{Actor, Environment, Permission};
use tributary_domain::vocabulary::id::UserId;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::AppName;

/// A line of a table of keys.
pub(crate) struct KeyLine {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) shown: String,
    pub(crate) permission: &'static str,
    pub(crate) is_test: bool,
    pub(crate) created: String,
    /// Who created the key, if that is not the owner.
    pub(crate) created_by: Option<String>,
    pub(crate) owner: String,
    pub(crate) is_own: bool,
    pub(crate) last_used: String,
    /// Address range of the last use.
    pub(crate) last_used_from: Option<String>,
    /// Apps and addresses that the key is limited to.
    pub(crate) limits: Vec<String>,
    pub(crate) ends: String,
    pub(crate) state: &'static str,
    pub(crate) is_valid: bool,
    /// Whether the key has a successor, so that it cannot be rotated again.
    pub(crate) is_rotated: bool,
}

/// What the lines of a table have in common.
pub(crate) struct KeyNames<'a> {
    pub(crate) members: &'a [User],
    pub(crate) apps: &'a [AppName],
    pub(crate) me: UserId,
    pub(crate) now: Timestamp,
}

impl KeyNames<'_> {
    pub(crate) fn line(&self, key: ApiKey) -> KeyLine {
        let state = key.state(self.now);
        let owner = key.owner.and_then(|id| self.email(id));
        let creator = key.created_by.as_ref().map(|creator| self.creator(creator));
        KeyLine {
            id: key.id.to_string(),
            shown: format!("ak_{}_…{}", key.environment.as_str(), key.hint),
            permission: permission_label(key.permission),
            is_test: key.environment == Environment::Test,
            created: text::moment_utc(key.created_at),
            created_by: creator
                .clone()
                .filter(|creator| owner != Some(creator.as_str())),
            owner: match (owner, key.owner, creator) {
                (Some(email), ..) => email.to_owned(),
                (None, Some(_), _) => "removed member".to_owned(),
                (None, None, Some(creator)) => creator,
                (None, None, None) => "unknown".to_owned(),
            },
            is_own: key.owner == Some(self.me),
            last_used: key
                .last_used_at
                .map_or_else(|| "never".to_owned(), |at| text::ago(at, self.now)),
            limits: self.limits(&key),
            ends: key
                .expires_at
                .map_or_else(|| "never".to_owned(), text::moment_utc),
            state: state.as_str(),
            is_valid: state == KeyState::Valid,
            is_rotated: key.successor.is_some(),
            last_used_from: key.last_used_from,
            name: key.name,
        }
    }

    fn email(&self, id: UserId) -> Option<&str> {
        let member = self.members.iter().find(|member| member.id == id);
        member.map(|member| member.email.as_str())
    }

    fn creator(&self, creator: &Actor) -> String {
        match creator {
            Actor::User(id) => self.email(*id).unwrap_or("removed member").to_owned(),
            Actor::Key(id) => format!("key {id}"),
            Actor::Operator => "command line".to_owned(),
            Actor::DeviceUser | Actor::Service => "server".to_owned(),
        }
    }

    fn limits(&self, key: &ApiKey) -> Vec<String> {
        let name = |id| {
            let app = self.apps.iter().find(|app| app.id == id);
            app.map_or_else(|| id.to_string(), |app| app.name.as_str().to_owned())
        };
        let apps = key.limits.apps.apps().into_iter().flatten().map(name);
        let addresses = key.limits.addresses.ranges().into_iter().flatten();
        apps.chain(addresses).collect()
    }
}

const fn permission_label(permission: Permission) -> &'static str {
    match permission {
        Permission::Full => "Full",
        Permission::ReadOnly => "Read-only",
        Permission::Analytics => "Analytics",
    }
}
