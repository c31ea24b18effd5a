//! Members and invitations of an organization.

use crate::rows::read_row;
use crate::tables::{SqliteTables, run};
use crate::{Failure, SqliteStore};
use async_trait::async_trait;
use rusqlite::{Connection, params};
use std::collections::BTreeSet;
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

fn find_members(
    connection: &Connection,
    organization: OrganizationId,
) -> Result<Vec<User>, Failure> {
    let sql = format!(
        "select {} from users where organization_id = ?1 order by user_id",
        UserRow::COLUMNS
    );
    let mut find = connection.prepare_cached(&sql)?;
    let rows = find.query_map([organization.as_bytes()], read_row::<UserRow>)?;
    rows.map(|row| Ok(row?.read()?)).collect()
}

impl MemberTable for SqliteTables<'_> {
    async fn lock_members(&self, organization: OrganizationId) -> Result<Vec<User>, Failure> {
        find_members(self.0, organization)
    }

    async fn write_role(&self, member: UserId, role: Role) -> Result<(), Failure> {
        self.0.execute(
            "update users set role = ?2 where user_id = ?1",
            params![member.as_bytes(), role.as_str()],
        )?;
        Ok(())
    }

    async fn remove_user(&self, member: UserId) -> Result<(), Failure> {
        for sql in [
            "delete from sessions where user_id = ?1",
            "delete from saved_views where user_id = ?1",
            "delete from share_links where created_by = ?1",
            "delete from users where user_id = ?1",
        ] {
            self.0.execute(sql, [member.as_bytes()])?;
        }
        Ok(())
    }

    async fn remove_sessions(&self, member: UserId) -> Result<u64, Failure> {
        let sql = "delete from sessions where user_id = ?1";
        Ok(self.0.execute(sql, [member.as_bytes()])? as u64)
    }

    async fn unused_setup_links(
        &self,
        organization: OrganizationId,
    ) -> Result<Vec<Invitation>, Failure> {
        let sql = format!(
            "select {}, digest from setup_links
             where organization_id = ?1 and used_at is null
             order by expires_at desc, digest",
            SetupLinkRow::COLUMNS
        );
        let mut find = self.0.prepare_cached(&sql)?;
        let rows = find.query_map([organization.as_bytes()], |row| {
            let digest: Vec<u8> = row.get("digest")?;
            Ok((read_row::<SetupLinkRow>(row)?, digest))
        })?;
        rows.map(|row| {
            let (link, digest) = row?;
            Ok(Invitation {
                digest: stored_digest("setup_links", &digest)?,
                link: link.read()?,
            })
        })
        .collect()
    }

    async fn active_notices(
        &self,
        organization: OrganizationId,
        owner: Option<UserId>,
    ) -> Result<Vec<Notice>, Failure> {
        let sql = format!(
            "select {} from notices
             where app_id in (select app_id from apps where organization_id = ?1)
                 and owner_id is ?2 and active
             order by app_id, notice_id",
            NoticeRow::COLUMNS
        );
        let mut find = self.0.prepare_cached(&sql)?;
        let owner = owner.as_ref().map(UserId::as_bytes);
        let rows = find.query_map(
            params![organization.as_bytes(), owner],
            read_row::<NoticeRow>,
        )?;
        rows.map(|row| Ok(row?.read()?)).collect()
    }

    async fn withdraw_setup_link(
        &self,
        organization: OrganizationId,
        invitation: Digest,
        at: Timestamp,
    ) -> Result<bool, Failure> {
        let withdrawn = self.0.execute(
            "update setup_links set used_at = ?3
             where digest = ?1 and organization_id = ?2 and used_at is null",
            params![
                invitation.as_bytes(),
                organization.as_bytes(),
                at.as_millis()
            ],
        )?;
        Ok(withdrawn > 0)
    }
}

#[async_trait]
impl Members for SqliteStore {
    async fn members(&self, caller: &Authorized<AppsRead>) -> StoreResult<Vec<User>> {
        let organization = caller.whole_organization()?;
        self.read("members", move |connection| {
            find_members(connection, organization)
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
        self.write_invalidating("change_member_role", move |connection| {
            run(change_member_role(
                &SqliteTables(connection),
                (organization, member),
                role,
                &take_over,
                &origin,
            ))
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
        self.write_invalidating("remove_member", move |connection| {
            run(remove_member(
                &SqliteTables(connection),
                (organization, member),
                &take_over,
                &origin,
            ))
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
        self.write("end_member_sessions", move |connection| {
            run(end_member_sessions(
                &SqliteTables(connection),
                (organization, member),
                &origin,
            ))
        })
        .await
    }

    async fn invitations(&self, caller: &Authorized<MembersWrite>) -> StoreResult<Vec<Invitation>> {
        let organization = caller.whole_organization()?;
        self.read("invitations", move |connection| {
            run(SqliteTables(connection).unused_setup_links(organization))
        })
        .await
    }

    async fn active_notices(
        &self,
        caller: &Authorized<MembersWrite>,
        owner: Option<UserId>,
    ) -> StoreResult<Vec<Notice>> {
        let organization = caller.whole_organization()?;
        self.read("active_notices", move |connection| {
            run(SqliteTables(connection).active_notices(organization, owner))
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
        self.write("withdraw_invitation", move |connection| {
            run(withdraw_invitation(
                &SqliteTables(connection),
                organization,
                invitation,
                &origin,
            ))
        })
        .await
    }
}
