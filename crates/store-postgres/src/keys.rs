//! API keys.

use crate::params::placeholders;
use crate::rows::{read_row, uuid};
use crate::tx::Tx;
use crate::{Failure, PostgresStore};
use async_trait::async_trait;
use tributary_domain::access::key::ApiKey;
use tributary_domain::access::key_management::KeyRotation;
use tributary_domain::access::{AnalyticsRead, AppsRead, Authorized, KeysWrite};
use tributary_domain::audit::AuditContext;
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::id::{AppId, KeyId, OrganizationId};
use tributary_domain::vocabulary::page::{Page, PageRequest};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_recording::KeyTable;
use tributary_recording::admin::{
    find_key, key_page, own_keys, revoke_managed_key, rotate_key, take_over_key,
};
use tributary_store::records::{Columns, KeyRow};
use tributary_store::{ApiKeys, KeyFilter, NewKey, StoreResult};

pub(crate) const KEY_COLUMNS: &str = KeyRow::COLUMNS;

impl KeyTable for Tx {
    async fn insert_key(&self, new: &NewKey) -> Result<(), Failure> {
        let row = KeyRow::write(&new.key);
        let sql = format!(
            "insert into api_keys ({KEY_COLUMNS}, digest) values ({})",
            placeholders(18)
        );
        self.execute(
            &sql,
            &[
                &uuid(&row.key_id),
                &uuid(&row.organization_id),
                &row.name,
                &row.permission,
                &row.environment,
                &row.hint,
                &row.created_at,
                &row.expires_at,
                &row.revoked_at,
                &row.last_used_at,
                &row.last_used_from,
                &row.created_by_kind,
                &row.created_by_id.as_ref().map(uuid),
                &row.owner_id.as_ref().map(uuid),
                &row.apps,
                &row.addresses,
                &row.successor_id.as_ref().map(uuid),
                &new.digest.as_bytes().as_slice(),
            ],
        )
        .await?;
        Ok(())
    }

    async fn lock_key(&self, key: KeyId) -> Result<Option<ApiKey>, Failure> {
        let sql = format!("select {KEY_COLUMNS} from api_keys where key_id = $1 for update");
        let row = self.query_opt(&sql, &[&uuid(key.as_bytes())]).await?;
        let row = row.as_ref().map(read_row::<KeyRow>).transpose()?;
        Ok(row.map(KeyRow::read).transpose()?)
    }

    async fn write_key(&self, key: &ApiKey) -> Result<(), Failure> {
        self.execute(
            "update api_keys
             set owner_id = $2, expires_at = $3, revoked_at = $4, successor_id = $5
             where key_id = $1",
            &[
                &uuid(key.id.as_bytes()),
                &key.owner.as_ref().map(|owner| uuid(owner.as_bytes())),
                &key.expires_at.map(Timestamp::as_millis),
                &key.revoked_at.map(Timestamp::as_millis),
                &key.successor.as_ref().map(|key| uuid(key.as_bytes())),
            ],
        )
        .await?;
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
             where organization_id = $1 and ($2::uuid is null or key_id < $2)
               and ($3::bigint is null
                    or (revoked_at is null and coalesce(expires_at > $3, true)))
             order by key_id desc limit $4"
        );
        let rows = self
            .query(
                &sql,
                &[
                    &uuid(organization.as_bytes()),
                    &before.as_ref().map(uuid),
                    &valid_at.map(Timestamp::as_millis),
                    &limit,
                ],
            )
            .await?;
        rows.iter()
            .map(|row| Ok(read_row::<KeyRow>(row)?.read()?))
            .collect()
    }

    async fn has_app(&self, organization: OrganizationId, app: AppId) -> Result<bool, Failure> {
        let sql = "select 1 from apps where app_id = $1 and organization_id = $2";
        let ids = [
            &uuid(app.as_bytes()) as _,
            &uuid(organization.as_bytes()) as _,
        ];
        Ok(self.query_opt(sql, &ids).await?.is_some())
    }
}

#[async_trait]
impl ApiKeys for PostgresStore {
    async fn key_page(
        &self,
        caller: &Authorized<AppsRead>,
        filter: KeyFilter,
        page: PageRequest,
    ) -> StoreResult<Page<ApiKey>> {
        let caller = caller.clone();
        self.read("key_page", async move |tx| {
            key_page(tx, &caller, filter, page).await
        })
        .await
    }

    async fn own_keys(
        &self,
        caller: &Authorized<AnalyticsRead>,
        now: Timestamp,
    ) -> StoreResult<Vec<ApiKey>> {
        let caller = caller.clone();
        self.read("own_keys", async move |tx| own_keys(tx, &caller, now).await)
            .await
    }

    async fn key(&self, caller: &Authorized<AppsRead>, key: KeyId) -> StoreResult<ApiKey> {
        let caller = caller.clone();
        self.read("key", async move |tx| find_key(tx, &caller, key).await)
            .await
    }

    async fn revoke_managed_key(
        &self,
        caller: &Authorized<KeysWrite>,
        key: KeyId,
        origin: AuditContext,
    ) -> StoreResult<ApiKey> {
        let organization = caller.organization_and_apps().0;
        self.write_invalidating("revoke_key", async move |tx| {
            revoke_managed_key(tx, organization, key, &origin).await
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
        self.write_invalidating("rotate_key", async move |tx| {
            rotate_key(tx, of, &rotation, digest, &origin).await
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
        self.write_invalidating("take_over_key", async move |tx| {
            take_over_key(tx, organization, key, &origin).await
        })
        .await
    }
}
