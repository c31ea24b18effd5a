//! Single sign-on, and removed members.

use crate::rows::read_row;
use crate::tables::{SqliteTables, run};
use crate::{Failure, SqliteStore};
use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, params};
use tributary_domain::access::person::{Email, Role, User};
use tributary_domain::access::session::SignInMethod;
use tributary_domain::access::single_sign_on::{IdentityState, SingleSignOn, SingleSignOnDraft};
use tributary_domain::access::{Authorized, MembersWrite};
use tributary_domain::audit::AuditContext;
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::id::{OrganizationId, UserId};
use tributary_domain::vocabulary::revision::Precondition;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_recording::{SingleSignOnTable, admin};
use tributary_store::records::{Columns, SetupLinkRow, SingleSignOnRow, stored_digest};
use tributary_store::{SignOn, SingleSignOns, StoreResult};

const COLUMNS: &str = SingleSignOnRow::COLUMNS;

fn find(
    connection: &Connection,
    organization: OrganizationId,
) -> Result<Option<SingleSignOn>, Failure> {
    let sql = format!("select {COLUMNS} from single_sign_on where organization_id = ?1");
    let row = connection
        .prepare_cached(&sql)?
        .query_row([organization.as_bytes()], read_row::<SingleSignOnRow>)
        .optional()?;
    Ok(row.map(SingleSignOnRow::read).transpose()?)
}

impl SingleSignOnTable for SqliteTables<'_> {
    async fn single_sign_on(
        &self,
        organization: OrganizationId,
    ) -> Result<Option<SingleSignOn>, Failure> {
        find(self.0, organization)
    }

    async fn write_single_sign_on(&self, settings: &SingleSignOn) -> Result<(), Failure> {
        let row = SingleSignOnRow::write(settings);
        let sql = format!(
            "insert or replace into single_sign_on ({COLUMNS})
             values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)"
        );
        self.0.execute(
            &sql,
            params![
                row.organization_id,
                row.issuer,
                row.client_id,
                row.client_secret,
                row.email_domains,
                row.default_role,
                row.allows_passwords,
                row.created_at,
                row.updated_at,
                row.revision
            ],
        )?;
        Ok(())
    }

    async fn delete_single_sign_on(&self, organization: OrganizationId) -> Result<bool, Failure> {
        let sql = "delete from single_sign_on where organization_id = ?1";
        Ok(self.0.execute(sql, [organization.as_bytes()])? > 0)
    }

    async fn identity(
        &self,
        organization: OrganizationId,
        identity: Digest,
    ) -> Result<IdentityState, Failure> {
        let found: Option<Option<[u8; 16]>> = self
            .0
            .query_row(
                "select user_id from single_sign_on_identities
                 where organization_id = ?1 and identity = ?2",
                params![organization.as_bytes(), identity.as_bytes()],
                |row| row.get(0),
            )
            .optional()?;
        Ok(match found {
            None => IdentityState::Unknown,
            Some(None) => IdentityState::Removed,
            Some(Some(user)) => IdentityState::Linked(UserId::from_bytes(user)),
        })
    }

    async fn is_linked(&self, user: UserId) -> Result<bool, Failure> {
        let sql = "select 1 from single_sign_on_identities where user_id = ?1";
        Ok(self.0.prepare_cached(sql)?.exists([user.as_bytes()])?)
    }

    async fn link_identity(
        &self,
        organization: OrganizationId,
        identity: Digest,
        user: UserId,
        at: Timestamp,
    ) -> Result<(), Failure> {
        self.0.execute(
            "insert or replace into single_sign_on_identities
                 (organization_id, identity, user_id, linked_at) values (?1, ?2, ?3, ?4)",
            params![
                organization.as_bytes(),
                identity.as_bytes(),
                user.as_bytes(),
                at.as_millis()
            ],
        )?;
        Ok(())
    }

    async fn forget_identities(&self, user: UserId) -> Result<(), Failure> {
        let sql = "delete from single_sign_on_identities where user_id = ?1";
        self.0.execute(sql, [user.as_bytes()])?;
        Ok(())
    }

    async fn forget_all_identities(&self, organization: OrganizationId) -> Result<(), Failure> {
        let sql = "delete from single_sign_on_identities where organization_id = ?1";
        self.0.execute(sql, [organization.as_bytes()])?;
        Ok(())
    }

    async fn release_identities(&self, user: UserId) -> Result<(), Failure> {
        let sql = "update single_sign_on_identities set user_id = null where user_id = ?1";
        self.0.execute(sql, [user.as_bytes()])?;
        Ok(())
    }

    async fn use_attempt(
        &self,
        attempt: Digest,
        expires_at: Timestamp,
        now: Timestamp,
    ) -> Result<bool, Failure> {
        let sql = "delete from single_sign_on_attempts where expires_at <= ?1";
        self.0.execute(sql, [now.as_millis()])?;
        let inserted = self.0.execute(
            "insert into single_sign_on_attempts (attempt, expires_at) values (?1, ?2)
             on conflict do nothing",
            params![attempt.as_bytes(), expires_at.as_millis()],
        )?;
        Ok(inserted > 0)
    }

    async fn invitation_for(
        &self,
        organization: OrganizationId,
        email: &Email,
        now: Timestamp,
    ) -> Result<Option<(Digest, Role)>, Failure> {
        let sql = format!(
            "select {}, digest from setup_links
             where organization_id = ?1 and email = ?2 and used_at is null and expires_at > ?3
             order by expires_at desc, digest limit 1",
            SetupLinkRow::COLUMNS
        );
        let found = self
            .0
            .query_row(
                &sql,
                params![organization.as_bytes(), email.as_str(), now.as_millis()],
                |row| {
                    let digest: Vec<u8> = row.get("digest")?;
                    Ok((read_row::<SetupLinkRow>(row)?, digest))
                },
            )
            .optional()?;
        let Some((link, digest)) = found else {
            return Ok(None);
        };
        Ok(Some((
            stored_digest("setup_links", &digest)?,
            link.read()?.role,
        )))
    }

    async fn was_removed(&self, member: Digest) -> Result<bool, Failure> {
        let sql = "select 1 from removed_members where member = ?1";
        Ok(self.0.prepare_cached(sql)?.exists([member.as_bytes()])?)
    }

    async fn mark_removed(&self, member: Digest, at: Timestamp) -> Result<(), Failure> {
        let sql = "insert or replace into removed_members (member, removed_at) values (?1, ?2)";
        self.0
            .execute(sql, params![member.as_bytes(), at.as_millis()])?;
        Ok(())
    }

    async fn unmark_removed(&self, member: Digest) -> Result<(), Failure> {
        let sql = "delete from removed_members where member = ?1";
        self.0.execute(sql, [member.as_bytes()])?;
        Ok(())
    }

    async fn owner_password_hashes(
        &self,
        organization: OrganizationId,
    ) -> Result<Vec<String>, Failure> {
        let sql = "select password_hash from users where organization_id = ?1 and role = ?2";
        let mut find = self.0.prepare_cached(sql)?;
        let rows = find.query_map(
            params![organization.as_bytes(), Role::Owner.as_str()],
            |row| row.get(0),
        )?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    async fn end_member_sessions(
        &self,
        organization: OrganizationId,
        except: Option<Role>,
        method: SignInMethod,
    ) -> Result<(), Failure> {
        self.0.execute(
            "delete from sessions where coalesce(method, ?4) = ?3 and user_id in
                 (select user_id from users where organization_id = ?1 and role <> ?2)",
            params![
                organization.as_bytes(),
                except.map_or("", Role::as_str),
                method.as_str(),
                SignInMethod::Password.as_str()
            ],
        )?;
        Ok(())
    }
}

#[async_trait]
impl SingleSignOns for SqliteStore {
    async fn single_sign_on(
        &self,
        organization: OrganizationId,
    ) -> StoreResult<Option<SingleSignOn>> {
        self.read("single_sign_on", move |connection| {
            find(connection, organization)
        })
        .await
    }

    async fn replace_single_sign_on(
        &self,
        caller: &Authorized<MembersWrite>,
        draft: SingleSignOnDraft,
        precondition: Precondition,
        origin: AuditContext,
    ) -> StoreResult<SingleSignOn> {
        let organization = caller.whole_organization()?;
        self.write("replace_single_sign_on", move |connection| {
            let tables = SqliteTables(connection);
            run(admin::replace_single_sign_on(
                &tables,
                organization,
                draft,
                &precondition,
                &origin,
            ))
        })
        .await
    }

    async fn remove_single_sign_on(
        &self,
        caller: &Authorized<MembersWrite>,
        origin: AuditContext,
    ) -> StoreResult<()> {
        let organization = caller.whole_organization()?;
        self.write("remove_single_sign_on", move |connection| {
            let tables = SqliteTables(connection);
            run(admin::remove_single_sign_on(&tables, organization, &origin))
        })
        .await
    }

    async fn sign_on(&self, sign_on: SignOn, origin: AuditContext) -> StoreResult<User> {
        self.write("sign_on", move |connection| {
            run(admin::sign_on(&SqliteTables(connection), &sign_on, &origin))
        })
        .await
    }

    async fn audit_failed_sign_on(
        &self,
        organization: OrganizationId,
        reason: String,
        origin: AuditContext,
    ) -> StoreResult<()> {
        self.write("audit_failed_sign_on", move |connection| {
            let tables = SqliteTables(connection);
            run(admin::audit_failed_sign_on(
                &tables,
                organization,
                &reason,
                &origin,
            ))
        })
        .await
    }
}
