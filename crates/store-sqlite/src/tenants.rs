//! Organizations, people and keys.

use crate::rows::{insert_audit, read_row};
use crate::{Failure, SqliteStore, refuse_duplicate};
use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, params};
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

fn insert_organization(
    connection: &Connection,
    organization: &Organization,
    origin: &Origin,
) -> Result<(), Failure> {
    connection.execute(
        "insert into organizations (organization_id, name, created_at) values (?1, ?2, ?3)",
        params![
            organization.id.as_bytes(),
            organization.name.as_str(),
            organization.created_at.as_millis()
        ],
    )?;
    let action = Action::OrganizationCreated;
    let id = organization.id;
    insert_audit(
        connection,
        &audit_row(id, origin, action, None, id, &organization.described()),
    )
}

fn insert_key(connection: &Connection, new: &NewKey, origin: &Origin) -> Result<(), Failure> {
    let row = KeyRow::write(&new.key);
    connection.execute(
        "insert into api_keys (key_id, organization_id, name, permission, environment, hint,
                               digest, created_at, expires_at, revoked_at, last_used_at)
         values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
        params![
            row.key_id,
            row.organization_id,
            row.name,
            row.permission,
            row.environment,
            row.hint,
            new.digest.as_bytes(),
            row.created_at,
            row.expires_at,
            row.revoked_at,
            row.last_used_at
        ],
    )?;
    let action = Action::KeyCreated;
    insert_audit(
        connection,
        &audit_row(
            new.key.organization,
            origin,
            action,
            None,
            new.key.id,
            &new.key.described(),
        ),
    )
}

fn find_setup_link(connection: &Connection, digest: Digest) -> Result<Option<SetupLink>, Failure> {
    let row = connection
        .query_row(
            "select organization_id, role, email, expires_at, used_at from setup_links
             where digest = ?1",
            [digest.as_bytes()],
            |row| {
                Ok(SetupLinkRow {
                    organization_id: row.get(0)?,
                    role: row.get(1)?,
                    email: row.get(2)?,
                    expires_at: row.get(3)?,
                    used_at: row.get(4)?,
                })
            },
        )
        .optional()?;
    Ok(row.map(SetupLinkRow::read).transpose()?)
}

/// Uses up the links for the organization's first owner: those that name no address.
fn use_up_first_links(
    connection: &Connection,
    organization: OrganizationId,
    at: Timestamp,
) -> Result<(), Failure> {
    connection.execute(
        "update setup_links set used_at = ?2
         where organization_id = ?1 and email is null and used_at is null",
        params![organization.as_bytes(), at.as_millis()],
    )?;
    Ok(())
}

fn redeem(
    connection: &Connection,
    digest: Digest,
    redemption: Redemption,
    origin: &Origin,
) -> Result<User, Failure> {
    let link = find_setup_link(connection, digest)?
        .filter(|link| link.is_valid(origin.at))
        .ok_or(Refusal::SetupLinkInvalid)?;
    let user = User {
        id: redemption.user,
        organization: link.organization,
        email: redemption.email,
        role: link.role,
        created_at: origin.at,
    };
    let inserted = connection.execute(
        "insert into users (user_id, organization_id, email, role, password_hash, created_at)
         values (?1, ?2, ?3, ?4, ?5, ?6)",
        params![
            user.id.as_bytes(),
            user.organization.as_bytes(),
            user.email.as_str(),
            user.role.as_str(),
            redemption.password_hash,
            user.created_at.as_millis()
        ],
    );
    refuse_duplicate(inserted, "users.email", Refusal::EmailTaken)?;
    connection.execute(
        "update setup_links set used_at = ?2 where digest = ?1",
        params![digest.as_bytes(), origin.at.as_millis()],
    )?;
    use_up_first_links(connection, link.organization, origin.at)?;
    let action = Action::UserCreated;
    insert_audit(
        connection,
        &audit_row(
            user.organization,
            origin,
            action,
            None,
            user.id,
            &user.described(),
        ),
    )?;
    let mut first_key = redemption.first_key;
    first_key.key.organization = link.organization;
    let origin = Origin {
        audit_id: redemption.first_key_audit_id,
        ..origin.clone()
    };
    insert_key(connection, &first_key, &origin)?;
    Ok(user)
}

#[async_trait]
impl Tenants for SqliteStore {
    async fn create_organization(
        &self,
        organization: Organization,
        origin: Origin,
    ) -> StoreResult<()> {
        self.write("create_organization", move |connection| {
            insert_organization(connection, &organization, &origin)
        })
        .await
    }

    async fn found(&self, organization: Organization, origin: Origin) -> StoreResult<bool> {
        self.write("found", move |connection| {
            let founded = connection
                .prepare("select 1 from organizations limit 1")?
                .exists(())?;
            if founded {
                return Ok(false);
            }
            insert_organization(connection, &organization, &origin)?;
            Ok(true)
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

    async fn create_key(&self, key: NewKey, origin: Origin) -> StoreResult<()> {
        self.write("create_key", move |connection| {
            insert_key(connection, &key, &origin)
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

    async fn revoke_key(&self, key: KeyId, origin: Origin) -> StoreResult<ApiKey> {
        self.change("revoke_key", move |connection| {
            let sql = format!("select {KEY_COLUMNS} from api_keys where key_id = ?1");
            let row = connection
                .query_row(&sql, [key.as_bytes()], read_row::<KeyRow>)
                .optional()?
                .ok_or(Refusal::KeyNotFound)?;
            let mut found = row.read()?;
            if found.revoked_at.is_none() {
                found.revoked_at = Some(origin.at);
                connection.execute(
                    "update api_keys set revoked_at = ?2 where key_id = ?1",
                    params![key.as_bytes(), origin.at.as_millis()],
                )?;
                let action = Action::KeyRevoked;
                let row = audit_row(found.organization, &origin, action, None, key, &[]);
                insert_audit(connection, &row)?;
            }
            Ok(found)
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

    async fn note_key_use(&self, key: KeyId, at: Timestamp) -> StoreResult<()> {
        self.write("note_key_use", move |connection| {
            connection
                .prepare_cached(
                    "update api_keys set last_used_at = ?2
                     where key_id = ?1 and (last_used_at is null or last_used_at < ?2)",
                )?
                .execute(params![key.as_bytes(), at.as_millis()])?;
            Ok(())
        })
        .await
    }

    async fn create_setup_link(&self, new: NewSetupLink, origin: Origin) -> StoreResult<()> {
        self.write("create_setup_link", move |connection| {
            if new.link.email.is_none() {
                use_up_first_links(connection, new.link.organization, origin.at)?;
            }
            let row = SetupLinkRow::write(&new.link);
            connection.execute(
                "insert into setup_links (digest, organization_id, role, email, expires_at, used_at)
                 values (?1, ?2, ?3, ?4, ?5, ?6)",
                params![
                    new.digest.as_bytes(),
                    row.organization_id,
                    row.role,
                    row.email,
                    row.expires_at,
                    row.used_at
                ],
            )?;
            let (action, role) = (Action::SetupLinkCreated, new.link.role.as_str());
            let row = audit_row(
                new.link.organization,
                &origin,
                action,
                None,
                role,
                &new.link.described(),
            );
            insert_audit(connection, &row)
        })
        .await
    }

    async fn setup_link(&self, digest: Digest) -> StoreResult<Option<SetupLink>> {
        self.read("setup_link", move |connection| {
            find_setup_link(connection, digest)
        })
        .await
    }

    async fn redeem_setup_link(
        &self,
        digest: Digest,
        redemption: Redemption,
        origin: Origin,
    ) -> StoreResult<User> {
        self.write("redeem_setup_link", move |connection| {
            redeem(connection, digest, redemption, &origin)
        })
        .await
    }

    async fn user_by_email(&self, email: &Email) -> StoreResult<Option<(User, String)>> {
        let email = email.clone();
        self.read("user_by_email", move |connection| {
            let row = connection
                .query_row(
                    "select user_id, organization_id, email, role, created_at, password_hash
                     from users where email = ?1",
                    [email.as_str()],
                    |row| {
                        let user = UserRow {
                            user_id: row.get(0)?,
                            organization_id: row.get(1)?,
                            email: row.get(2)?,
                            role: row.get(3)?,
                            created_at: row.get(4)?,
                        };
                        Ok((user, row.get::<_, String>(5)?))
                    },
                )
                .optional()?;
            let Some((row, hash)) = row else {
                return Ok(None);
            };
            Ok(Some((row.read()?, hash)))
        })
        .await
    }
}
