//! The people of an organization.

use crate::rows::{id, insert_audit, uuid};
use crate::tx::Tx;
use crate::{Failure, PostgresStore};
use async_trait::async_trait;
use tributary_domain::access::person::{Role, User, change_member};
use tributary_domain::access::{AppsRead, Authorized, MembersWrite};
use tributary_domain::audit::{Action, Origin};
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::id::{OrganizationId, UserId};
use tributary_store::records::{SetupLinkRow, UserRow, audit_row, stored_digest};
use tributary_store::{Invitation, Members, StoreResult};

async fn find_members(tx: &Tx, organization: OrganizationId) -> Result<Vec<User>, Failure> {
    let rows = tx
        .query(
            "select user_id, organization_id, email, role, created_at from users
             where organization_id = $1 order by user_id",
            &[&uuid(organization.as_bytes())],
        )
        .await?;
    let mut members = Vec::new();
    for row in &rows {
        let row = UserRow {
            user_id: id(row, 0)?,
            organization_id: id(row, 1)?,
            email: row.try_get(2)?,
            role: row.try_get(3)?,
            created_at: row.try_get(4)?,
        };
        members.push(row.read()?);
    }
    Ok(members)
}

/// Whoever changes a member changes the last owner, perhaps: one at a time.
async fn lock_members(tx: &Tx, organization: OrganizationId) -> Result<Vec<User>, Failure> {
    tx.query_opt(
        "select 1 from organizations where organization_id = $1 for no key update",
        &[&uuid(organization.as_bytes())],
    )
    .await?;
    find_members(tx, organization).await
}

#[async_trait]
impl Members for PostgresStore {
    async fn members(&self, caller: &Authorized<AppsRead>) -> StoreResult<Vec<User>> {
        let organization = caller.organization();
        self.read("members", async move |tx| {
            find_members(tx, organization).await
        })
        .await
    }

    async fn change_member_role(
        &self,
        caller: &Authorized<MembersWrite>,
        member: UserId,
        role: Role,
        origin: Origin,
    ) -> StoreResult<User> {
        let organization = caller.organization();
        self.write("change_member_role", async move |tx| {
            let members = lock_members(tx, organization).await?;
            let (user, changes) = change_member(&members, member, Some(role))?;
            if !changes.is_empty() {
                tx.execute(
                    "update users set role = $2 where user_id = $1",
                    &[&uuid(member.as_bytes()), &role.as_str()],
                )
                .await?;
                let action = Action::UserUpdated;
                let row = audit_row(organization, &origin, action, None, member, &changes);
                insert_audit(tx, &row).await?;
            }
            Ok(user)
        })
        .await
    }

    async fn remove_member(
        &self,
        caller: &Authorized<MembersWrite>,
        member: UserId,
        origin: Origin,
    ) -> StoreResult<()> {
        let organization = caller.organization();
        self.write("remove_member", async move |tx| {
            let members = lock_members(tx, organization).await?;
            let (_, changes) = change_member(&members, member, None)?;
            // Locked first: a session that begins meanwhile waits, and then finds nobody.
            for sql in [
                "select 1 from users where user_id = $1 for update",
                "delete from sessions where user_id = $1",
                "delete from users where user_id = $1",
            ] {
                tx.execute(sql, &[&uuid(member.as_bytes())]).await?;
            }
            let action = Action::UserRemoved;
            let row = audit_row(organization, &origin, action, None, member, &changes);
            insert_audit(tx, &row).await
        })
        .await
    }

    async fn invitations(&self, caller: &Authorized<MembersWrite>) -> StoreResult<Vec<Invitation>> {
        let organization = uuid(caller.organization().as_bytes());
        self.read("invitations", async move |tx| {
            let rows = tx
                .query(
                    "select digest, organization_id, role, email, expires_at, used_at
                     from setup_links where organization_id = $1 and used_at is null
                     order by expires_at desc, digest",
                    &[&organization],
                )
                .await?;
            let mut invitations = Vec::new();
            for row in &rows {
                let link = SetupLinkRow {
                    organization_id: id(row, 1)?,
                    role: row.try_get(2)?,
                    email: row.try_get(3)?,
                    expires_at: row.try_get(4)?,
                    used_at: row.try_get(5)?,
                };
                invitations.push(Invitation {
                    digest: stored_digest("setup_links", row.try_get(0)?)?,
                    link: link.read()?,
                });
            }
            Ok(invitations)
        })
        .await
    }

    async fn withdraw_invitation(
        &self,
        caller: &Authorized<MembersWrite>,
        invitation: Digest,
        origin: Origin,
    ) -> StoreResult<()> {
        let organization = caller.organization();
        self.write("withdraw_invitation", async move |tx| {
            let withdrawn = tx
                .execute(
                    "update setup_links set used_at = $3
                     where digest = $1 and organization_id = $2 and used_at is null",
                    &[
                        &invitation.as_bytes().as_slice(),
                        &uuid(organization.as_bytes()),
                        &origin.at.as_millis(),
                    ],
                )
                .await?;
            if withdrawn > 0 {
                let action = Action::SetupLinkRevoked;
                let row = audit_row(organization, &origin, action, None, organization, &[]);
                insert_audit(tx, &row).await?;
            }
            Ok(())
        })
        .await
    }
}
