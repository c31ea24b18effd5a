//! Single sign-on, and removed members.

use crate::rows::{optional_id, read_row, uuid};
use crate::tx::Tx;
use crate::{Failure, PostgresStore};
use async_trait::async_trait;
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

impl SingleSignOnTable for Tx {
    async fn single_sign_on(
        &self,
        organization: OrganizationId,
    ) -> Result<Option<SingleSignOn>, Failure> {
        let sql = format!("select {COLUMNS} from single_sign_on where organization_id = $1");
        let row = self
            .query_opt(&sql, &[&uuid(organization.as_bytes())])
            .await?;
        let read = |row| Ok(read_row::<SingleSignOnRow>(&row)?.read()?);
        row.map(read).transpose()
    }

    async fn write_single_sign_on(&self, settings: &SingleSignOn) -> Result<(), Failure> {
        let row = SingleSignOnRow::write(settings);
        let sql = format!(
            "insert into single_sign_on ({COLUMNS})
             values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
             on conflict (organization_id) do update set
                 issuer = excluded.issuer, client_id = excluded.client_id,
                 client_secret = excluded.client_secret, email_domains = excluded.email_domains,
                 default_role = excluded.default_role,
                 allows_passwords = excluded.allows_passwords, updated_at = excluded.updated_at,
                 revision = excluded.revision"
        );
        self.execute(
            &sql,
            &[
                &uuid(&row.organization_id),
                &row.issuer,
                &row.client_id,
                &row.client_secret.as_slice(),
                &row.email_domains,
                &row.default_role,
                &row.allows_passwords,
                &row.created_at,
                &row.updated_at,
                &row.revision,
            ],
        )
        .await
    }

    async fn delete_single_sign_on(&self, organization: OrganizationId) -> Result<bool, Failure> {
        let sql = "delete from single_sign_on where organization_id = $1";
        let deleted = self
            .execute_counting(sql, &[&uuid(organization.as_bytes())])
            .await?;
        Ok(deleted > 0)
    }

    async fn identity(
        &self,
        organization: OrganizationId,
        identity: Digest,
    ) -> Result<IdentityState, Failure> {
        let found = self
            .query_opt(
                "select user_id from single_sign_on_identities
                 where organization_id = $1 and identity = $2",
                &[
                    &uuid(organization.as_bytes()),
                    &identity.as_bytes().as_slice(),
                ],
            )
            .await?;
        let Some(row) = found else {
            return Ok(IdentityState::Unknown);
        };
        Ok(match optional_id(&row, 0)? {
            None => IdentityState::Removed,
            Some(user) => IdentityState::Linked(UserId::from_bytes(user)),
        })
    }

    async fn is_linked(&self, user: UserId) -> Result<bool, Failure> {
        let sql = "select 1 from single_sign_on_identities where user_id = $1 limit 1";
        let found = self.query_opt(sql, &[&uuid(user.as_bytes())]).await?;
        Ok(found.is_some())
    }

    async fn link_identity(
        &self,
        organization: OrganizationId,
        identity: Digest,
        user: UserId,
        at: Timestamp,
    ) -> Result<(), Failure> {
        self.execute(
            "insert into single_sign_on_identities (organization_id, identity, user_id, linked_at)
             values ($1, $2, $3, $4)
             on conflict (organization_id, identity) do update set
                 user_id = excluded.user_id, linked_at = excluded.linked_at",
            &[
                &uuid(organization.as_bytes()),
                &identity.as_bytes().as_slice(),
                &uuid(user.as_bytes()),
                &at.as_millis(),
            ],
        )
        .await
    }

    async fn forget_identities(&self, user: UserId) -> Result<(), Failure> {
        let sql = "delete from single_sign_on_identities where user_id = $1";
        self.execute(sql, &[&uuid(user.as_bytes())]).await
    }

    async fn forget_all_identities(&self, organization: OrganizationId) -> Result<(), Failure> {
        let sql = "delete from single_sign_on_identities where organization_id = $1";
        self.execute(sql, &[&uuid(organization.as_bytes())]).await
    }

    async fn release_identities(&self, user: UserId) -> Result<(), Failure> {
        let sql = "update single_sign_on_identities set user_id = null where user_id = $1";
        self.execute(sql, &[&uuid(user.as_bytes())]).await
    }

    async fn use_attempt(
        &self,
        attempt: Digest,
        expires_at: Timestamp,
        now: Timestamp,
    ) -> Result<bool, Failure> {
        self.execute(
            "delete from single_sign_on_attempts where attempt in
                 (select attempt from single_sign_on_attempts where expires_at <= $1
                  for update skip locked)",
            &[&now.as_millis()],
        )
        .await?;
        let inserted = self
            .query_opt(
                "insert into single_sign_on_attempts (attempt, expires_at) values ($1, $2)
                 on conflict do nothing returning 1",
                &[&attempt.as_bytes().as_slice(), &expires_at.as_millis()],
            )
            .await?;
        Ok(inserted.is_some())
    }

    async fn invitation_for(
        &self,
        organization: OrganizationId,
        email: &Email,
        now: Timestamp,
    ) -> Result<Option<(Digest, Role)>, Failure> {
        let sql = format!(
            "select {}, digest from setup_links
             where organization_id = $1 and email = $2 and used_at is null and expires_at > $3
             order by expires_at desc, digest limit 1",
            SetupLinkRow::COLUMNS
        );
        let found = self
            .query_opt(
                &sql,
                &[
                    &uuid(organization.as_bytes()),
                    &email.as_str(),
                    &now.as_millis(),
                ],
            )
            .await?;
        let Some(row) = found else {
            return Ok(None);
        };
        let digest = stored_digest("setup_links", row.try_get("digest")?)?;
        let link = read_row::<SetupLinkRow>(&row)?.read()?;
        Ok(Some((digest, link.role)))
    }

    async fn was_removed(&self, member: Digest) -> Result<bool, Failure> {
        let sql = "select 1 from removed_members where member = $1";
        let found = self
            .query_opt(sql, &[&member.as_bytes().as_slice()])
            .await?;
        Ok(found.is_some())
    }

    async fn mark_removed(&self, member: Digest, at: Timestamp) -> Result<(), Failure> {
        self.execute(
            "insert into removed_members (member, removed_at) values ($1, $2)
             on conflict (member) do update set removed_at = excluded.removed_at",
            &[&member.as_bytes().as_slice(), &at.as_millis()],
        )
        .await
    }

    async fn unmark_removed(&self, member: Digest) -> Result<(), Failure> {
        let sql = "delete from removed_members where member = $1";
        self.execute(sql, &[&member.as_bytes().as_slice()]).await
    }

    async fn owner_password_hashes(
        &self,
        organization: OrganizationId,
    ) -> Result<Vec<String>, Failure> {
        let sql = "select password_hash from users where organization_id = $1 and role = $2";
        let rows = self
            .query(
                sql,
                &[&uuid(organization.as_bytes()), &Role::Owner.as_str()],
            )
            .await?;
        rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
    }

    async fn end_member_sessions(
        &self,
        organization: OrganizationId,
        except: Option<Role>,
        method: SignInMethod,
    ) -> Result<(), Failure> {
        self.execute(
            "delete from sessions where coalesce(method, $4) = $3 and user_id in
                 (select user_id from users where organization_id = $1 and role <> $2)",
            &[
                &uuid(organization.as_bytes()),
                &except.map_or("", Role::as_str),
                &method.as_str(),
                &SignInMethod::Password.as_str(),
            ],
        )
        .await
    }
}

#[async_trait]
impl SingleSignOns for PostgresStore {
    async fn single_sign_on(
        &self,
        organization: OrganizationId,
    ) -> StoreResult<Option<SingleSignOn>> {
        self.read("single_sign_on", async move |tx| {
            SingleSignOnTable::single_sign_on(tx, organization).await
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
        self.write("replace_single_sign_on", async move |tx| {
            let draft = draft.clone();
            admin::replace_single_sign_on(tx, organization, draft, &precondition, &origin).await
        })
        .await
    }

    async fn remove_single_sign_on(
        &self,
        caller: &Authorized<MembersWrite>,
        origin: AuditContext,
    ) -> StoreResult<()> {
        let organization = caller.whole_organization()?;
        self.write("remove_single_sign_on", async move |tx| {
            admin::remove_single_sign_on(tx, organization, &origin).await
        })
        .await
    }

    async fn sign_on(&self, sign_on: SignOn, origin: AuditContext) -> StoreResult<User> {
        self.write("sign_on", async move |tx| {
            admin::sign_on(tx, &sign_on, &origin).await
        })
        .await
    }

    async fn audit_failed_sign_on(
        &self,
        organization: OrganizationId,
        reason: String,
        origin: AuditContext,
    ) -> StoreResult<()> {
        self.write("audit_failed_sign_on", async move |tx| {
            admin::audit_failed_sign_on(tx, organization, &reason, &origin).await
        })
        .await
    }
}
