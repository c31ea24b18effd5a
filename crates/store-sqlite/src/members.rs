//! The people of an organization.

use crate::rows::insert_audit;
use crate::{Failure, SqliteStore};
use async_trait::async_trait;
use rusqlite::{Connection, params};
use tributary_domain::access::person::{Role, User, change_member};
use tributary_domain::access::{AppsRead, Authorized, MembersWrite};
use tributary_domain::audit::{Action, Origin};
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::id::{OrganizationId, UserId};
use tributary_store::records::{SetupLinkRow, UserRow, audit_row, stored_digest};
use tributary_store::{Invitation, Members, StoreResult};

fn find_members(
    connection: &Connection,
    organization: OrganizationId,
) -> Result<Vec<User>, Failure> {
    let rows: Vec<UserRow> = connection
        .prepare_cached(
            "select user_id, organization_id, email, role, created_at from users
             where organization_id = ?1 order by user_id",
        )?
        .query_map([organization.as_bytes()], |row| {
            Ok(UserRow {
                user_id: row.get(0)?,
                organization_id: row.get(1)?,
                email: row.get(2)?,
                role: row.get(3)?,
                created_at: row.get(4)?,
            })
        })?
        .collect::<Result<_, _>>()?;
    Ok(rows
        .into_iter()
        .map(UserRow::read)
        .collect::<Result<_, _>>()?)
}

#[async_trait]
impl Members for SqliteStore {
    async fn members(&self, caller: &Authorized<AppsRead>) -> StoreResult<Vec<User>> {
        let organization = caller.organization();
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
        origin: Origin,
    ) -> StoreResult<User> {
        let organization = caller.organization();
        self.write("change_member_role", move |connection| {
            let members = find_members(connection, organization)?;
            let (user, changes) = change_member(&members, member, Some(role))?;
            if !changes.is_empty() {
                connection.execute(
                    "update users set role = ?2 where user_id = ?1",
                    params![member.as_bytes(), role.as_str()],
                )?;
                let action = Action::UserUpdated;
                let row = audit_row(organization, &origin, action, None, member, &changes);
                insert_audit(connection, &row)?;
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
        self.write("remove_member", move |connection| {
            let members = find_members(connection, organization)?;
            let (_, changes) = change_member(&members, member, None)?;
            for sql in [
                "delete from sessions where user_id = ?1",
                "delete from users where user_id = ?1",
            ] {
                connection.execute(sql, [member.as_bytes()])?;
            }
            let action = Action::UserRemoved;
            let row = audit_row(organization, &origin, action, None, member, &changes);
            insert_audit(connection, &row)
        })
        .await
    }

    async fn invitations(&self, caller: &Authorized<MembersWrite>) -> StoreResult<Vec<Invitation>> {
        let organization = caller.organization();
        self.read("invitations", move |connection| {
            let rows: Vec<(Vec<u8>, SetupLinkRow)> = connection
                .prepare_cached(
                    "select digest, organization_id, role, email, expires_at, used_at
                     from setup_links where organization_id = ?1 and used_at is null
                     order by expires_at desc, digest",
                )?
                .query_map([organization.as_bytes()], |row| {
                    let link = SetupLinkRow {
                        organization_id: row.get(1)?,
                        role: row.get(2)?,
                        email: row.get(3)?,
                        expires_at: row.get(4)?,
                        used_at: row.get(5)?,
                    };
                    Ok((row.get(0)?, link))
                })?
                .collect::<Result<_, _>>()?;
            let invitation = |(digest, link): (Vec<u8>, SetupLinkRow)| {
                Ok(Invitation {
                    digest: stored_digest("setup_links", &digest)?,
                    link: link.read()?,
                })
            };
            rows.into_iter().map(invitation).collect()
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
        self.write("withdraw_invitation", move |connection| {
            let withdrawn = connection.execute(
                "update setup_links set used_at = ?3
                 where digest = ?1 and organization_id = ?2 and used_at is null",
                params![
                    invitation.as_bytes(),
                    organization.as_bytes(),
                    origin.at.as_millis()
                ],
            )?;
            if withdrawn > 0 {
                let action = Action::SetupLinkRevoked;
                let row = audit_row(organization, &origin, action, None, organization, &[]);
                insert_audit(connection, &row)?;
            }
            Ok(())
        })
        .await
    }
}
