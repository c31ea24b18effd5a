//! Rows of API keys.

use super::audit::{read_actor, write_actor};
use super::columns::row;
use crate::StoreError;
use tributary_domain::access::key::ApiKey;
use tributary_domain::access::key_limits::{AddressLimit, AppLimit, KeyLimits};
use tributary_domain::access::{Environment, Permission};
use tributary_domain::vocabulary::address_range::AddressRange;
use tributary_domain::vocabulary::id::{AppId, KeyId, OrganizationId, UserId};
use tributary_domain::vocabulary::time::Timestamp;

row! {
    /// A row of `api_keys`.
    #[derive(Debug, Clone)]
    #[expect(missing_docs, reason = "columns")]
    pub struct KeyRow {
        pub key_id: [u8; 16],
        pub organization_id: [u8; 16],
        pub name: String,
        pub permission: String,
        pub environment: String,
        pub hint: String,
        pub created_at: i64,
        pub expires_at: Option<i64>,
        pub revoked_at: Option<i64>,
        pub last_used_at: Option<i64>,
        pub last_used_from: Option<String>,
        pub created_by_kind: Option<String>,
        pub created_by_id: Option<[u8; 16]>,
        pub owner_id: Option<[u8; 16]>,
        pub apps: Option<String>,
        pub addresses: Option<String>,
        pub successor_id: Option<[u8; 16]>,
    }
}

impl KeyRow {
    /// Converts a key to columns. Lists are separated by spaces.
    pub fn write(key: &ApiKey) -> Self {
        let creator = key.created_by.as_ref().map(write_actor);
        let apps = key.limits.apps.apps();
        let apps = apps.map(|apps| apps.iter().map(ToString::to_string).collect::<Vec<_>>());
        Self {
            key_id: *key.id.as_bytes(),
            organization_id: *key.organization.as_bytes(),
            name: key.name.clone(),
            permission: key.permission.as_str().to_owned(),
            environment: key.environment.as_str().to_owned(),
            hint: key.hint.clone(),
            created_at: key.created_at.as_millis(),
            expires_at: key.expires_at.map(Timestamp::as_millis),
            revoked_at: key.revoked_at.map(Timestamp::as_millis),
            last_used_at: key.last_used_at.map(Timestamp::as_millis),
            last_used_from: key.last_used_from.clone(),
            created_by_kind: creator.map(|(kind, _)| kind.to_owned()),
            created_by_id: creator.and_then(|(_, id)| id),
            owner_id: key.owner.map(|owner| *owner.as_bytes()),
            apps: apps.map(|apps| apps.join(" ")),
            addresses: key.limits.addresses.ranges().map(|ranges| ranges.join(" ")),
            successor_id: key.successor.map(|successor| *successor.as_bytes()),
        }
    }

    /// Reads the key.
    pub fn read(self) -> Result<ApiKey, StoreError> {
        let id = KeyId::from_bytes(self.key_id);
        let corrupt = |column| StoreError::corrupt("api_keys", column, id);
        let permission =
            Permission::parse(&self.permission).ok_or_else(|| corrupt("permission"))?;
        let environment =
            Environment::parse(&self.environment).ok_or_else(|| corrupt("environment"))?;
        let creator = self.created_by_kind.map(|kind| {
            read_actor(&kind, self.created_by_id).ok_or_else(|| corrupt("created_by_kind"))
        });
        // An unreadable limit is an error, because ignoring it would grant more.
        let apps = self.apps.map(|apps| {
            let apps: Result<Vec<_>, _> = apps.split_whitespace().map(AppId::parse).collect();
            apps.map(AppLimit::only).map_err(|_| corrupt("apps"))
        });
        let addresses = self.addresses.map(|ranges| {
            let ranges = ranges.split_whitespace().map(AddressRange::parse);
            let ranges: Result<Vec<_>, _> = ranges.collect();
            ranges
                .map(AddressLimit::only)
                .map_err(|_| corrupt("addresses"))
        });
        Ok(ApiKey {
            id,
            organization: OrganizationId::from_bytes(self.organization_id),
            name: self.name,
            permission,
            environment,
            limits: KeyLimits {
                apps: apps.transpose()?.unwrap_or_default(),
                addresses: addresses.transpose()?.unwrap_or_default(),
            },
            hint: self.hint,
            created_at: Timestamp::from_millis(self.created_at),
            created_by: creator.transpose()?,
            owner: self.owner_id.map(UserId::from_bytes),
            expires_at: self.expires_at.map(Timestamp::from_millis),
            revoked_at: self.revoked_at.map(Timestamp::from_millis),
            last_used_at: self.last_used_at.map(Timestamp::from_millis),
            last_used_from: self.last_used_from,
            successor: self.successor_id.map(KeyId::from_bytes),
        })
    }
}
