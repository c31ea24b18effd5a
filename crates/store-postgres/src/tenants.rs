//! Organizations, people and keys.

use crate::rows::{id, insert_audit, read_row, uuid};
use crate::tx::Tx;
use crate::{Failure, PostgresStore, refuse_duplicate};
use async_trait::async_trait;
use tributary_domain::access::key::ApiKey;
use tributary_domain::access::person::{Email, SetupLink, User};
use tributary_domain::audit::{Action, Origin};
use tributary_domain::refusal::Refusal;
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::id::{KeyId, OrganizationId};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::records::{
    Columns, KeyRow, OrganizationRow, SetupLinkRow, UserRow, audit_row,
};
use tributary_store::{NewKey, NewSetupLink, Organization, Redemption, StoreResult, Tenants};

const KEY_COLUMNS: &str = KeyRow::COLUMNS;
const SETUP_LINK_COLUMNS: &str = "organization_id, role, email, expires_at, used_at";

/// Notes that there is an organization; false when it was noted before. Whoever is just founding one is
/// waited for.
async fn note_foundation(tx: &Tx, organization: &Organization) -> Result<bool, Failure> {
    let noted = tx
        .execute(
            "insert into instance (name, value) values ('founded', $1) on conflict (name) do nothing",
            &[&organization.id.as_bytes().as_slice()],
        )
        .await?;
    Ok(noted == 1)
}

async fn insert_organization(
    tx: &Tx,
    organization: &Organization,
    origin: &Origin,
) -> Result<(), Failure> {
    tx.execute(
        "insert into organizations (organization_id, name, created_at) values ($1, $2, $3)",
        &[
            &uuid(organization.id.as_bytes()),
            &organization.name.as_str(),
            &organization.created_at.as_millis(),
        ],
    )
    .await?;
    let action = Action::OrganizationCreated;
    let id = organization.id;
    insert_audit(
        tx,
        &audit_row(id, origin, action, None, id, &organization.described()),
    )
    .await
}

async fn insert_key(tx: &Tx, new: &NewKey, origin: &Origin) -> Result<(), Failure> {
    let row = KeyRow::write(&new.key);
    tx.execute(
        "insert into api_keys (key_id, organization_id, name, permission, environment, hint,
                               digest, created_at, expires_at, revoked_at, last_used_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
        &[
            &uuid(&row.key_id),
            &uuid(&row.organization_id),
            &row.name,
            &row.permission,
            &row.environment,
            &row.hint,
            &new.digest.as_bytes().as_slice(),
            &row.created_at,
            &row.expires_at,
            &row.revoked_at,
            &row.last_used_at,
        ],
    )
    .await?;
    let action = Action::KeyCreated;
    let row = audit_row(
        new.key.organization,
        origin,
        action,
        None,
        new.key.id,
        &new.key.described(),
    );
    insert_audit(tx, &row).await
}

/// Nobody else changes the organization's set-up links until this transaction ends. Of several links at a
/// time each would wait for the other's; of the organization there is one.
async fn lock_setup_links(tx: &Tx, organization: OrganizationId) -> Result<(), Failure> {
    tx.query_opt(
        "select 1 from organizations where organization_id = $1 for no key update",
        &[&uuid(organization.as_bytes())],
    )
    .await?;
    Ok(())
}

/// Uses up the links for the organization's first owner: those that name no address. They must be locked.
async fn use_up_first_links(
    tx: &Tx,
    organization: OrganizationId,
    at: Timestamp,
) -> Result<(), Failure> {
    tx.execute(
        "update setup_links set used_at = $2
         where organization_id = $1 and email is null and used_at is null",
        &[&uuid(organization.as_bytes()), &at.as_millis()],
    )
    .await?;
    Ok(())
}

async fn find_setup_link(tx: &Tx, digest: Digest) -> Result<Option<SetupLink>, Failure> {
    let sql = format!("select {SETUP_LINK_COLUMNS} from setup_links where digest = $1");
    let row = tx.query_opt(&sql, &[&digest.as_bytes().as_slice()]).await?;
    let row = row.as_ref().map(read_row::<SetupLinkRow>).transpose()?;
    Ok(row.map(SetupLinkRow::read).transpose()?)
}

async fn redeem(
    tx: &Tx,
    digest: Digest,
    redemption: &Redemption,
    origin: &Origin,
) -> Result<User, Failure> {
    let link = find_setup_link(tx, digest)
        .await?
        .ok_or(Refusal::SetupLinkInvalid)?;
    lock_setup_links(tx, link.organization).await?;
    // Read again, since it may have been used before the lock was got.
    let link = find_setup_link(tx, digest)
        .await?
        .filter(|link| link.is_valid(origin.at))
        .ok_or(Refusal::SetupLinkInvalid)?;
    let user = User {
        id: redemption.user,
        organization: link.organization,
        email: redemption.email.clone(),
        role: link.role,
        created_at: origin.at,
    };
    let inserted = tx
        .execute(
            "insert into users (user_id, organization_id, email, role, password_hash, created_at)
             values ($1, $2, $3, $4, $5, $6)",
            &[
                &uuid(user.id.as_bytes()),
                &uuid(user.organization.as_bytes()),
                &user.email.as_str(),
                &user.role.as_str(),
                &redemption.password_hash,
                &user.created_at.as_millis(),
            ],
        )
        .await;
    refuse_duplicate(inserted, "users_email_unique", Refusal::EmailTaken)?;
    tx.execute(
        "update setup_links set used_at = $2 where digest = $1",
        &[&digest.as_bytes().as_slice(), &origin.at.as_millis()],
    )
    .await?;
    use_up_first_links(tx, link.organization, origin.at).await?;
    let action = Action::UserCreated;
    let row = audit_row(
        user.organization,
        origin,
        action,
        None,
        user.id,
        &user.described(),
    );
    insert_audit(tx, &row).await?;
    let mut first_key = redemption.first_key.clone();
    first_key.key.organization = link.organization;
    let origin = Origin {
        audit_id: redemption.first_key_audit_id,
        ..origin.clone()
    };
    insert_key(tx, &first_key, &origin).await?;
    Ok(user)
}

#[async_trait]
impl Tenants for PostgresStore {
    async fn create_organization(
        &self,
        organization: Organization,
        origin: Origin,
    ) -> StoreResult<()> {
        self.write("create_organization", async move |tx| {
            note_foundation(tx, &organization).await?;
            insert_organization(tx, &organization, &origin).await
        })
        .await
    }

    async fn found(&self, organization: Organization, origin: Origin) -> StoreResult<bool> {
        self.write("found", async move |tx| {
            if !note_foundation(tx, &organization).await? {
                return Ok(false);
            }
            insert_organization(tx, &organization, &origin).await?;
            Ok(true)
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

    async fn create_key(&self, key: NewKey, origin: Origin) -> StoreResult<()> {
        self.write("create_key", async move |tx| {
            insert_key(tx, &key, &origin).await
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

    async fn revoke_key(&self, key: KeyId, origin: Origin) -> StoreResult<ApiKey> {
        self.change("revoke_key", async move |tx| {
            let sql = format!("select {KEY_COLUMNS} from api_keys where key_id = $1 for update");
            let row = tx
                .query_opt(&sql, &[&uuid(key.as_bytes())])
                .await?
                .ok_or(Refusal::KeyNotFound)?;
            let mut found = read_row::<KeyRow>(&row)?.read()?;
            if found.revoked_at.is_none() {
                found.revoked_at = Some(origin.at);
                tx.execute(
                    "update api_keys set revoked_at = $2 where key_id = $1",
                    &[&uuid(key.as_bytes()), &origin.at.as_millis()],
                )
                .await?;
                let action = Action::KeyRevoked;
                let row = audit_row(found.organization, &origin, action, None, key, &[]);
                insert_audit(tx, &row).await?;
            }
            Ok(found)
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

    async fn note_key_use(&self, key: KeyId, at: Timestamp) -> StoreResult<()> {
        self.write("note_key_use", async move |tx| {
            tx.execute(
                "update api_keys set last_used_at = $2
                 where key_id = $1 and (last_used_at is null or last_used_at < $2)",
                &[&uuid(key.as_bytes()), &at.as_millis()],
            )
            .await?;
            Ok(())
        })
        .await
    }

    async fn create_setup_link(&self, new: NewSetupLink, origin: Origin) -> StoreResult<()> {
        self.write("create_setup_link", async move |tx| {
            if new.link.email.is_none() {
                lock_setup_links(tx, new.link.organization).await?;
                use_up_first_links(tx, new.link.organization, origin.at).await?;
            }
            let row = SetupLinkRow::write(&new.link);
            tx.execute(
                "insert into setup_links (digest, organization_id, role, email, expires_at, used_at)
                 values ($1, $2, $3, $4, $5, $6)",
                &[
                    &new.digest.as_bytes().as_slice(),
                    &uuid(&row.organization_id),
                    &row.role,
                    &row.email,
                    &row.expires_at,
                    &row.used_at,
                ],
            )
            .await?;
            let (action, role) = (Action::SetupLinkCreated, new.link.role.as_str());
            let row = audit_row(
                new.link.organization,
                &origin,
                action,
                None,
                role,
                &new.link.described(),
            );
            insert_audit(tx, &row).await
        })
        .await
    }

    async fn setup_link(&self, digest: Digest) -> StoreResult<Option<SetupLink>> {
        self.read("setup_link", async move |tx| {
            find_setup_link(tx, digest).await
        })
        .await
    }

    async fn redeem_setup_link(
        &self,
        digest: Digest,
        redemption: Redemption,
        origin: Origin,
    ) -> StoreResult<User> {
        self.write("redeem_setup_link", async move |tx| {
            redeem(tx, digest, &redemption, &origin).await
        })
        .await
    }

    async fn user_by_email(&self, email: &Email) -> StoreResult<Option<(User, String)>> {
        let email = email.clone();
        self.read("user_by_email", async move |tx| {
            let row = tx
                .query_opt(
                    "select user_id, organization_id, email, role, created_at, password_hash
                     from users where email = $1",
                    &[&email.as_str()],
                )
                .await?;
            let Some(row) = row else {
                return Ok(None);
            };
            let user = UserRow {
                user_id: id(&row, 0)?,
                organization_id: id(&row, 1)?,
                email: row.try_get(2)?,
                role: row.try_get(3)?,
                created_at: row.try_get(4)?,
            };
            Ok(Some((user.read()?, row.try_get(5)?)))
        })
        .await
    }
}
