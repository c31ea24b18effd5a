//! Members and invitations of an organization.

use crate::rows::{read_row, uuid};
use crate::tx::Tx;
use crate::{Failure, PostgresStore};
use async_trait::async_trait;
use std::collections::BTreeSet;
use tokio_postgres::Row;
use tributary_domain::access::person::{Role, User};
use tributary_domain::access::{AppsRead, Authorized, MembersWrite};
use tributary_domain::audit::AuditContext;
use tributary_domain::notice::Notice;
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::id::{KeyId, OrganizationId, UserId};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_recording::MemberTable;
use tributary_recording::admin::{
    change_member_role, end_member_sessions, remove_member, withdraw_invitation,
};
use tributary_store::records::{Columns, NoticeRow, SetupLinkRow, UserRow, stored_digest};
use tributary_store::{Invitation, Members, StoreResult, TakeOver};

async fn find_members(tx: &Tx, organization: OrganizationId) -> Result<Vec<User>, Failure> {
    let sql = format!(
        "select {} from users where organization_id = $1 order by user_id",
        UserRow::COLUMNS
    );
    let rows = tx.query(&sql, &[&uuid(organization.as_bytes())]).await?;
    let user = |row| Ok(read_row::<UserRow>(row)?.read()?);
    rows.iter().map(user).collect()
}

impl MemberTable for Tx {
    async fn lock_members(&self, organization: OrganizationId) -> Result<Vec<User>, Failure> {
        self.query_opt(
            "select 1 from organizations where organization_id = $1 for no key update",
            &[&uuid(organization.as_bytes())],
        )
        .await?;
        find_members(self, organization).await
    }

    async fn write_role(&self, member: UserId, role: Role) -> Result<(), Failure> {
        self.execute(
            "update users set role = $2 where user_id = $1",
            &[&uuid(member.as_bytes()), &role.as_str()],
        )
        .await?;
        Ok(())
    }

    async fn remove_user(&self, member: UserId) -> Result<(), Failure> {
        // The user is locked first, so that a concurrent sign-in waits and then finds no user.
        for sql in [
            "select 1 from users where user_id = $1 for update",
            "delete from sessions where user_id = $1",
            "delete from saved_views where user_id = $1",
            "delete from share_links where created_by = $1",
            "delete from users where user_id = $1",
        ] {
            self.execute(sql, &[&uuid(member.as_bytes())]).await?;
        }
        Ok(())
    }

    async fn remove_sessions(&self, member: UserId) -> Result<u64, Failure> {
        let sql = "delete from sessions where user_id = $1";
        self.execute_counting(sql, &[&uuid(member.as_bytes())])
            .await
    }

    async fn unused_setup_links(
        &self,
        organization: OrganizationId,
    ) -> Result<Vec<Invitation>, Failure> {
        let sql = format!(
            "select {}, digest from setup_links
             where organization_id = $1 and used_at is null
             order by expires_at desc, digest",
            SetupLinkRow::COLUMNS
        );
        let rows = self.query(&sql, &[&uuid(organization.as_bytes())]).await?;
        let invitation = |row: &Row| {
            Ok(Invitation {
                digest: stored_digest("setup_links", row.try_get("digest")?)?,
                link: read_row::<SetupLinkRow>(row)?.read()?,
            })
        };
        rows.iter().map(invitation).collect()
    }

    async fn active_notices(
        &self,
        organization: OrganizationId,
        owner: Option<UserId>,
    ) -> Result<Vec<Notice>, Failure> {
        let sql = format!(
            "select {} from notices
             where app_id in (select app_id from apps where organization_id = $1)
                 and owner_id is not distinct from $2 and active
             order by app_id, notice_id",
            NoticeRow::COLUMNS
        );
        let owner = owner.map(|owner| uuid(owner.as_bytes()));
        let rows = self
            .query(&sql, &[&uuid(organization.as_bytes()), &owner])
            .await?;
        let notice = |row: &Row| Ok(read_row::<NoticeRow>(row)?.read()?);
        rows.iter().map(notice).collect()
    }

    async fn withdraw_setup_link(
        &self,
        organization: OrganizationId,
        invitation: Digest,
        at: Timestamp,
    ) -> Result<bool, Failure> {
        let withdrawn = self
            .execute_counting(
                "update setup_links set used_at = $3
                 where digest = $1 and organization_id = $2 and used_at is null",
                &[
                    &invitation.as_bytes().as_slice(),
                    &uuid(organization.as_bytes()),
                    &at.as_millis(),
                ],
            )
            .await?;
        Ok(withdrawn > 0)
    }
}

#[async_trait]
impl Members for PostgresStore {
    async fn members(&self, caller: &Authorized<AppsRead>) -> StoreResult<Vec<User>> {
        let organization = caller.whole_organization()?;
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
        take_over: BTreeSet<KeyId>,
        origin: AuditContext,
    ) -> StoreResult<User> {
        let organization = caller.whole_organization()?;
        self.write_invalidating("change_member_role", async move |tx| {
            change_member_role(tx, (organization, member), role, &take_over, &origin).await
        })
        .await
    }

    async fn remove_member(
        &self,
        caller: &Authorized<MembersWrite>,
        member: UserId,
        take_over: TakeOver,
        origin: AuditContext,
    ) -> StoreResult<()> {
        let organization = caller.whole_organization()?;
        self.write_invalidating("remove_member", async move |tx| {
            remove_member(tx, (organization, member), &take_over, &origin).await
        })
        .await
    }

    async fn end_member_sessions(
        &self,
        caller: &Authorized<MembersWrite>,
        member: UserId,
        origin: AuditContext,
    ) -> StoreResult<u64> {
        let organization = caller.whole_organization()?;
        self.write("end_member_sessions", async move |tx| {
            end_member_sessions(tx, (organization, member), &origin).await
        })
        .await
    }

    async fn invitations(&self, caller: &Authorized<MembersWrite>) -> StoreResult<Vec<Invitation>> {
        let organization = caller.whole_organization()?;
        self.read("invitations", async move |tx| {
            tx.unused_setup_links(organization).await
        })
        .await
    }

    async fn active_notices(
        &self,
        caller: &Authorized<MembersWrite>,
        owner: Option<UserId>,
    ) -> StoreResult<Vec<Notice>> {
        let organization = caller.whole_organization()?;
        self.read("active_notices", async move |tx| {
            tx.active_notices(organization, owner).await
        })
        .await
    }

    async fn withdraw_invitation(
        &self,
        caller: &Authorized<MembersWrite>,
        invitation: Digest,
        origin: AuditContext,
    ) -> StoreResult<()> {
        let organization = caller.whole_organization()?;
        self.write("withdraw_invitation", async move |tx| {
            withdraw_invitation(tx, organization, invitation, &origin).await
        })
        .await
    }
}
