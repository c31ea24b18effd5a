//! Organizations, users and API keys.

use crate::keys::KEY_COLUMNS;
use crate::rows::{read_row, uuid};
use crate::tx::Tx;
use crate::{Failure, PostgresStore, refuse_duplicate};
use async_trait::async_trait;
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

impl TenantTable for Tx {
    async fn mark_first_organization(&self, organization: &Organization) -> Result<bool, Failure> {
        // A move copies the organizations without this mark.
        let sql = "select 1 from organizations limit 1";
        if self.query_opt(sql, &[]).await?.is_some() {
            return Ok(false);
        }
        // Of two nodes that find no organization, one stores the mark.
        let noted = self
            .query_opt(
                "insert into instance (name, value) values ('founded', $1)
                 on conflict (name) do nothing returning name",
                &[&organization.id.as_bytes().as_slice()],
            )
            .await?;
        Ok(noted.is_some())
    }

    async fn insert_organization(&self, organization: &Organization) -> Result<(), Failure> {
        self.execute(
            "insert into organizations (organization_id, name, created_at) values ($1, $2, $3)",
            &[
                &uuid(organization.id.as_bytes()),
                &organization.name.as_str(),
                &organization.created_at.as_millis(),
            ],
        )
        .await?;
        Ok(())
    }

    async fn insert_user(&self, user: &User, password_hash: &str) -> Result<(), Failure> {
        let inserted = self
            .execute(
                "insert into users (user_id, organization_id, email, role, password_hash,
                                    created_at)
                 values ($1, $2, $3, $4, $5, $6)",
                &[
                    &uuid(user.id.as_bytes()),
                    &uuid(user.organization.as_bytes()),
                    &user.email.as_str(),
                    &user.role.as_str(),
                    &password_hash,
                    &user.created_at.as_millis(),
                ],
            )
            .await;
        refuse_duplicate(inserted, "users_email_unique", Refusal::EmailTaken)
    }

    async fn setup_link(&self, digest: Digest) -> Result<Option<SetupLink>, Failure> {
        let sql = format!(
            "select {} from setup_links where digest = $1",
            SetupLinkRow::COLUMNS
        );
        let row = self
            .query_opt(&sql, &[&digest.as_bytes().as_slice()])
            .await?;
        let row = row.as_ref().map(read_row::<SetupLinkRow>).transpose()?;
        Ok(row.map(SetupLinkRow::read).transpose()?)
    }

    async fn lock_setup_links(&self, organization: OrganizationId) -> Result<(), Failure> {
        self.query_opt(
            "select 1 from organizations where organization_id = $1 for no key update",
            &[&uuid(organization.as_bytes())],
        )
        .await?;
        Ok(())
    }

    async fn insert_setup_link(&self, new: &NewSetupLink) -> Result<(), Failure> {
        let row = SetupLinkRow::write(&new.link);
        self.execute(
            "insert into setup_links (digest, organization_id, role, email, expires_at, used_at,
                                      created_by)
             values ($1, $2, $3, $4, $5, $6, $7)",
            &[
                &new.digest.as_bytes().as_slice(),
                &uuid(&row.organization_id),
                &row.role,
                &row.email,
                &row.expires_at,
                &row.used_at,
                &row.created_by.as_ref().map(uuid),
            ],
        )
        .await?;
        Ok(())
    }

    async fn mark_setup_link_used(&self, digest: Digest, at: Timestamp) -> Result<(), Failure> {
        self.execute(
            "update setup_links set used_at = $2 where digest = $1",
            &[&digest.as_bytes().as_slice(), &at.as_millis()],
        )
        .await?;
        Ok(())
    }

    async fn mark_first_owner_links_used(
        &self,
        organization: OrganizationId,
        at: Timestamp,
    ) -> Result<(), Failure> {
        self.execute(
            "update setup_links set used_at = $2
             where organization_id = $1 and email is null and used_at is null",
            &[&uuid(organization.as_bytes()), &at.as_millis()],
        )
        .await?;
        Ok(())
    }
}

#[async_trait]
impl Tenants for PostgresStore {
    async fn create_organization(
        &self,
        organization: Organization,
        origin: AuditContext,
    ) -> StoreResult<()> {
        self.write("create_organization", async move |tx| {
            create_organization(tx, &organization, &origin).await
        })
        .await
    }

    async fn create_first_organization(
        &self,
        organization: Organization,
        origin: AuditContext,
    ) -> StoreResult<bool> {
        self.write("found", async move |tx| {
            create_first_organization(tx, &organization, &origin).await
        })
        .await
    }

    async fn organizations(&self) -> StoreResult<Vec<Organization>> {
        self.read("organizations", async move |tx| {
            let rows = tx
                .query(
                    "select organization_id, name, created_at from organizations
                     order by organization_id",
                    &[],
                )
                .await?;
            rows.iter()
                .map(|row| Ok(read_row::<OrganizationRow>(row)?.read()?))
                .collect()
        })
        .await
    }

    async fn organization_awaiting_its_owner(&self) -> StoreResult<Option<Organization>> {
        self.read("organization_awaiting_its_owner", async move |tx| {
            let row = tx
                .query_opt(
                    "select organization_id, name, created_at from organizations
                     where not exists (select 1 from users)
                     order by organization_id limit 1",
                    &[],
                )
                .await?;
            let row = row.as_ref().map(read_row::<OrganizationRow>).transpose()?;
            Ok(row.map(OrganizationRow::read).transpose()?)
        })
        .await
    }

    async fn create_key(&self, key: NewKey, origin: AuditContext) -> StoreResult<ApiKey> {
        self.write("create_key", async move |tx| {
            create_key(tx, &key, &origin).await
        })
        .await
    }

    async fn keys(&self, organization: OrganizationId) -> StoreResult<Vec<ApiKey>> {
        self.read("keys", async move |tx| {
            let sql = format!(
                "select {KEY_COLUMNS} from api_keys where organization_id = $1 order by key_id"
            );
            let rows = tx.query(&sql, &[&uuid(organization.as_bytes())]).await?;
            rows.iter()
                .map(|row| Ok(read_row::<KeyRow>(row)?.read()?))
                .collect()
        })
        .await
    }

    async fn revoke_key(&self, key: KeyId, origin: AuditContext) -> StoreResult<ApiKey> {
        self.write_invalidating("revoke_key", async move |tx| {
            revoke_key(tx, key, &origin).await
        })
        .await
    }

    async fn key_by_digest(&self, digest: Digest) -> StoreResult<Option<ApiKey>> {
        self.read("key_by_digest", async move |tx| {
            let sql = format!("select {KEY_COLUMNS} from api_keys where digest = $1");
            let row = tx.query_opt(&sql, &[&digest.as_bytes().as_slice()]).await?;
            let row = row.as_ref().map(read_row::<KeyRow>).transpose()?;
            Ok(row.map(KeyRow::read).transpose()?)
        })
        .await
    }

    async fn note_key_use(&self, key: KeyId, at: Timestamp, range: String) -> StoreResult<()> {
        self.write("note_key_use", async move |tx| {
            tx.execute(
                "update api_keys set last_used_at = $2, last_used_from = $3
                 where key_id = $1 and (last_used_at is null or last_used_at < $2)",
                &[&uuid(key.as_bytes()), &at.as_millis(), &range],
            )
            .await?;
            Ok(())
        })
        .await
    }

    async fn create_setup_link(&self, new: NewSetupLink, origin: AuditContext) -> StoreResult<()> {
        self.write("create_setup_link", async move |tx| {
            create_setup_link(tx, &new, &origin).await
        })
        .await
    }

    async fn setup_link(&self, digest: Digest) -> StoreResult<Option<SetupLink>> {
        self.read("setup_link", async move |tx| tx.setup_link(digest).await)
            .await
    }

    async fn redeem_setup_link(
        &self,
        digest: Digest,
        redemption: Redemption,
        origin: AuditContext,
    ) -> StoreResult<User> {
        self.write("redeem_setup_link", async move |tx| {
            redeem_setup_link(tx, digest, &redemption, &origin).await
        })
        .await
    }

    async fn users_by_email(&self, email: &Email) -> StoreResult<Vec<(User, String)>> {
        let email = email.clone();
        self.read("users_by_email", async move |tx| {
            let sql = format!(
                "select {}, password_hash from users where email = $1 order by user_id limit $2",
                UserRow::COLUMNS
            );
            let limit = i64::from(ACCOUNTS_PER_EMAIL_MAX);
            let rows = tx.query(&sql, &[&email.as_str(), &limit]).await?;
            rows.iter()
                .map(|row| {
                    let user = read_row::<UserRow>(row)?.read()?;
                    Ok((user, row.try_get("password_hash")?))
                })
                .collect()
        })
        .await
    }
}
