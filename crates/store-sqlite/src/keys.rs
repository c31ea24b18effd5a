//! API keys.

use crate::rows::{page_start, read_row};
use crate::tables::{SqliteTables, run};
use crate::{Failure, SqliteStore};
use async_trait::async_trait;
use rusqlite::{OptionalExtension, params};
use tributary_domain::access::key::ApiKey;
use tributary_domain::access::key_management::KeyRotation;
use tributary_domain::access::{AnalyticsRead, AppsRead, Authorized, KeysWrite};
use tributary_domain::audit::AuditContext;
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::id::{AppId, KeyId, OrganizationId, UserId};
use tributary_domain::vocabulary::page::{Page, PageRequest};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_recording::KeyTable;
use tributary_recording::admin::{
    find_key, key_page, own_keys, revoke_managed_key, rotate_key, take_over_key,
};
use tributary_store::records::{Columns, KeyRow};
use tributary_store::{ApiKeys, KeyFilter, NewKey, StoreResult};

pub(crate) const KEY_COLUMNS: &str = KeyRow::COLUMNS;

impl KeyTable for SqliteTables<'_> {
    async fn insert_key(&self, new: &NewKey) -> Result<(), Failure> {
        let row = KeyRow::write(&new.key);
        let sql = format!(
            "insert into api_keys ({KEY_COLUMNS}, digest)
             values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17,
                     ?18)"
        );
        self.0.execute(
            &sql,
            params![
                row.key_id,
                row.organization_id,
                row.name,
                row.permission,
                row.environment,
                row.hint,
                row.created_at,
                row.expires_at,
                row.revoked_at,
                row.last_used_at,
                row.last_used_from,
                row.created_by_kind,
                row.created_by_id,
                row.owner_id,
                row.apps,
                row.addresses,
                row.successor_id,
                new.digest.as_bytes()
            ],
        )?;
        Ok(())
    }

    async fn lock_key(&self, key: KeyId) -> Result<Option<ApiKey>, Failure> {
        let sql = format!("select {KEY_COLUMNS} from api_keys where key_id = ?1");
        let row = self
            .0
            .query_row(&sql, [key.as_bytes()], read_row::<KeyRow>)
            .optional()?;
        Ok(row.map(KeyRow::read).transpose()?)
    }

    async fn write_key(&self, key: &ApiKey) -> Result<(), Failure> {
        self.0.execute(
            "update api_keys
             set owner_id = ?2, expires_at = ?3, revoked_at = ?4, successor_id = ?5
             where key_id = ?1",
            params![
                key.id.as_bytes(),
                key.owner.as_ref().map(UserId::as_bytes),
                key.expires_at.map(Timestamp::as_millis),
                key.revoked_at.map(Timestamp::as_millis),
                key.successor.as_ref().map(KeyId::as_bytes)
            ],
        )?;
        Ok(())
    }

    async fn organization_keys(
        &self,
        organization: OrganizationId,
        valid_at: Option<Timestamp>,
        before: Option<[u8; 16]>,
        limit: i64,
    ) -> Result<Vec<ApiKey>, Failure> {
        let sql = format!(
            "select {KEY_COLUMNS} from api_keys
             where organization_id = ?1 and key_id < ?2
               and (?3 is null or (revoked_at is null and coalesce(expires_at > ?3, true)))
             order by key_id desc limit ?4"
        );
        let mut find = self.0.prepare_cached(&sql)?;
        let rows = find.query_map(
            params![
                organization.as_bytes(),
                page_start(before),
                valid_at.map(Timestamp::as_millis),
                limit
            ],
            read_row::<KeyRow>,
        )?;
        rows.map(|row| Ok(row?.read()?)).collect()
    }

    async fn has_app(&self, organization: OrganizationId, app: AppId) -> Result<bool, Failure> {
        let mut find = self
            .0
            .prepare_cached("select 1 from apps where app_id = ?1 and organization_id = ?2")?;
        Ok(find.exists((app.as_bytes(), organization.as_bytes()))?)
    }
}

#[async_trait]
impl ApiKeys for SqliteStore {
    async fn key_page(
        &self,
        caller: &Authorized<AppsRead>,
        filter: KeyFilter,
        page: PageRequest,
    ) -> StoreResult<Page<ApiKey>> {
        let caller = caller.clone();
        self.read("key_page", move |connection| {
            run(key_page(&SqliteTables(connection), &caller, filter, page))
        })
        .await
    }

    async fn own_keys(
        &self,
        caller: &Authorized<AnalyticsRead>,
        now: Timestamp,
    ) -> StoreResult<Vec<ApiKey>> {
        let caller = caller.clone();
        self.read("own_keys", move |connection| {
            run(own_keys(&SqliteTables(connection), &caller, now))
        })
        .await
    }

    async fn key(&self, caller: &Authorized<AppsRead>, key: KeyId) -> StoreResult<ApiKey> {
        let caller = caller.clone();
        self.read("key", move |connection| {
            run(find_key(&SqliteTables(connection), &caller, key))
        })
        .await
    }

    async fn revoke_managed_key(
        &self,
        caller: &Authorized<KeysWrite>,
        key: KeyId,
        origin: AuditContext,
    ) -> StoreResult<ApiKey> {
        let organization = caller.organization_and_apps().0;
        self.write_invalidating("revoke_key", move |connection| {
            let tables = SqliteTables(connection);
            run(revoke_managed_key(&tables, organization, key, &origin))
        })
        .await
    }

    async fn rotate_key(
        &self,
        caller: &Authorized<KeysWrite>,
        key: KeyId,
        rotation: KeyRotation,
        digest: Digest,
        origin: AuditContext,
    ) -> StoreResult<ApiKey> {
        let of = (caller.organization_and_apps().0, key);
        self.write_invalidating("rotate_key", move |connection| {
            let tables = SqliteTables(connection);
            run(rotate_key(&tables, of, &rotation, digest, &origin))
        })
        .await
    }

    async fn take_over_key(
        &self,
        caller: &Authorized<KeysWrite>,
        key: KeyId,
        origin: AuditContext,
    ) -> StoreResult<ApiKey> {
        let organization = caller.organization_and_apps().0;
        self.write_invalidating("take_over_key", move |connection| {
            let tables = SqliteTables(connection);
            run(take_over_key(&tables, organization, key, &origin))
        })
        .await
    }
}
