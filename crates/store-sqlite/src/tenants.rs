//! Organizations, users and API keys.

use crate::keys::KEY_COLUMNS;
use crate::rows::read_row;
use crate::tables::{SqliteTables, run};
use crate::{Failure, SqliteStore, refuse_duplicate};
use async_trait::async_trait;
use rusqlite::{OptionalExtension, params};
use tributary_domain::access::key::ApiKey;
use tributary_domain::access::person::{Email, SetupLink, User};
use tributary_domain::audit::AuditContext;
use tributary_domain::refusal::Refusal;
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::id::{KeyId, OrganizationId};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_recording::TenantTable;
use tributary_recording::admin::{
    create_first_organization, create_key, create_organization, create_setup_link,
    redeem_setup_link, revoke_key,
};
use tributary_store::records::{Columns, KeyRow, OrganizationRow, SetupLinkRow, UserRow};
use tributary_store::{
    ACCOUNTS_PER_EMAIL_MAX, NewKey, NewSetupLink, Organization, Redemption, StoreResult, Tenants,
};

impl TenantTable for SqliteTables<'_> {
    async fn mark_first_organization(&self, _: &Organization) -> Result<bool, Failure> {
        let mut find = self.0.prepare("select 1 from organizations limit 1")?;
        Ok(!find.exists(())?)
    }

    async fn insert_organization(&self, organization: &Organization) -> Result<(), Failure> {
        self.0.execute(
            "insert into organizations (organization_id, name, created_at) values (?1, ?2, ?3)",
            params![
                organization.id.as_bytes(),
                organization.name.as_str(),
                organization.created_at.as_millis()
            ],
        )?;
        Ok(())
    }

    async fn insert_user(&self, user: &User, password_hash: &str) -> Result<(), Failure> {
        let inserted = self.0.execute(
            "insert into users (user_id, organization_id, email, role, password_hash, created_at)
             values (?1, ?2, ?3, ?4, ?5, ?6)",
            params![
                user.id.as_bytes(),
                user.organization.as_bytes(),
                user.email.as_str(),
                user.role.as_str(),
                password_hash,
                user.created_at.as_millis()
            ],
        );
        refuse_duplicate(
            inserted,
            "users.email, users.organization_id",
            Refusal::EmailTaken,
        )?;
        Ok(())
    }

    async fn setup_link(&self, digest: Digest) -> Result<Option<SetupLink>, Failure> {
        let sql = format!(
            "select {} from setup_links where digest = ?1",
            SetupLinkRow::COLUMNS
        );
        let row = self
            .0
            .query_row(&sql, [digest.as_bytes()], read_row::<SetupLinkRow>)
            .optional()?;
        Ok(row.map(SetupLinkRow::read).transpose()?)
    }

    async fn lock_setup_links(&self, _: OrganizationId) -> Result<(), Failure> {
        Ok(())
    }

    async fn insert_setup_link(&self, new: &NewSetupLink) -> Result<(), Failure> {
        let row = SetupLinkRow::write(&new.link);
        self.0.execute(
            "insert into setup_links (digest, organization_id, role, email, expires_at, used_at,
                                      created_by)
             values (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            params![
                new.digest.as_bytes(),
                row.organization_id,
                row.role,
                row.email,
                row.expires_at,
                row.used_at,
                row.created_by
            ],
        )?;
        Ok(())
    }

    async fn mark_setup_link_used(&self, digest: Digest, at: Timestamp) -> Result<(), Failure> {
        self.0.execute(
            "update setup_links set used_at = ?2 where digest = ?1",
            params![digest.as_bytes(), at.as_millis()],
        )?;
        Ok(())
    }

    async fn mark_first_owner_links_used(
        &self,
        organization: OrganizationId,
        at: Timestamp,
    ) -> Result<(), Failure> {
        self.0.execute(
            "update setup_links set used_at = ?2
             where organization_id = ?1 and email is null and used_at is null",
            params![organization.as_bytes(), at.as_millis()],
        )?;
        Ok(())
    }
}

#[async_trait]
impl Tenants for SqliteStore {
    async fn create_organization(
        &self,
        organization: Organization,
        origin: AuditContext,
    ) -> StoreResult<()> {
        self.write("create_organization", move |connection| {
            run(create_organization(
                &SqliteTables(connection),
                &organization,
                &origin,
            ))
        })
        .await
    }

    async fn create_first_organization(
        &self,
        organization: Organization,
        origin: AuditContext,
    ) -> StoreResult<bool> {
        self.write("found", move |connection| {
            run(create_first_organization(
                &SqliteTables(connection),
                &organization,
                &origin,
            ))
        })
        .await
    }

    async fn organizations(&self) -> StoreResult<Vec<Organization>> {
        self.read("organizations", |connection| {
            let rows: Vec<OrganizationRow> = connection
                .prepare(
                    "select organization_id, name, created_at from organizations
                     order by organization_id",
                )?
                .query_map((), read_row::<OrganizationRow>)?
                .collect::<Result<_, _>>()?;
            Ok(rows
                .into_iter()
                .map(OrganizationRow::read)
                .collect::<Result<_, _>>()?)
        })
        .await
    }

    async fn organization_awaiting_its_owner(&self) -> StoreResult<Option<Organization>> {
        self.read("organization_awaiting_its_owner", |connection| {
            let row = connection
                .query_row(
                    "select organization_id, name, created_at from organizations
                     where not exists (select 1 from users)
                     order by organization_id limit 1",
                    (),
                    read_row::<OrganizationRow>,
                )
                .optional()?;
            Ok(row.map(OrganizationRow::read).transpose()?)
        })
        .await
    }

    async fn create_key(&self, key: NewKey, origin: AuditContext) -> StoreResult<ApiKey> {
        self.write("create_key", move |connection| {
            run(create_key(&SqliteTables(connection), &key, &origin))
        })
        .await
    }

    async fn keys(&self, organization: OrganizationId) -> StoreResult<Vec<ApiKey>> {
        self.read("keys", move |connection| {
            let sql = format!(
                "select {KEY_COLUMNS} from api_keys where organization_id = ?1 order by key_id"
            );
            let rows: Vec<KeyRow> = connection
                .prepare(&sql)?
                .query_map([organization.as_bytes()], read_row::<KeyRow>)?
                .collect::<Result<_, _>>()?;
            Ok(rows
                .into_iter()
                .map(KeyRow::read)
                .collect::<Result<_, _>>()?)
        })
        .await
    }

    async fn revoke_key(&self, key: KeyId, origin: AuditContext) -> StoreResult<ApiKey> {
        self.write_invalidating("revoke_key", move |connection| {
            run(revoke_key(&SqliteTables(connection), key, &origin))
        })
        .await
    }

    async fn key_by_digest(&self, digest: Digest) -> StoreResult<Option<ApiKey>> {
        self.read("key_by_digest", move |connection| {
            let sql = format!("select {KEY_COLUMNS} from api_keys where digest = ?1");
            let row = connection
                .prepare_cached(&sql)?
                .query_row([digest.as_bytes()], read_row::<KeyRow>)
                .optional()?;
            Ok(row.map(KeyRow::read).transpose()?)
        })
        .await
    }

    async fn note_key_use(&self, key: KeyId, at: Timestamp, range: String) -> StoreResult<()> {
        self.write_keeping_cache("note_key_use", move |connection| {
            connection
                .prepare_cached(
                    "update api_keys set last_used_at = ?2, last_used_from = ?3
                     where key_id = ?1 and (last_used_at is null or last_used_at < ?2)",
                )?
                .execute(params![key.as_bytes(), at.as_millis(), range])?;
            Ok(())
        })
        .await
    }

    async fn create_setup_link(&self, new: NewSetupLink, origin: AuditContext) -> StoreResult<()> {
        self.write("create_setup_link", move |connection| {
            run(create_setup_link(&SqliteTables(connection), &new, &origin))
        })
        .await
    }

    async fn setup_link(&self, digest: Digest) -> StoreResult<Option<SetupLink>> {
        self.read("setup_link", move |connection| {
            run(SqliteTables(connection).setup_link(digest))
        })
        .await
    }

    async fn redeem_setup_link(
        &self,
        digest: Digest,
        redemption: Redemption,
        origin: AuditContext,
    ) -> StoreResult<User> {
        self.write("redeem_setup_link", move |connection| {
            let tables = SqliteTables(connection);
            run(redeem_setup_link(&tables, digest, &redemption, &origin))
        })
        .await
    }

    async fn users_by_email(&self, email: &Email) -> StoreResult<Vec<(User, String)>> {
        let email = email.clone();
        self.read("users_by_email", move |connection| {
            let sql = format!(
                "select {}, password_hash from users where email = ?1 order by user_id limit ?2",
                UserRow::COLUMNS
            );
            let rows: Vec<(UserRow, String)> = connection
                .prepare_cached(&sql)?
                .query_map(params![email.as_str(), ACCOUNTS_PER_EMAIL_MAX], |row| {
                    let hash: String = row.get("password_hash")?;
                    Ok((read_row::<UserRow>(row)?, hash))
                })?
                .collect::<Result<_, _>>()?;
            rows.into_iter()
                .map(|(row, hash)| Ok((row.read()?, hash)))
                .collect()
        })
        .await
    }
}
