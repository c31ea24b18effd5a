//! Dashboard sessions.

use crate::rows::insert_audit;
use crate::{Failure, SqliteStore};
use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, params};
use tributary_domain::access::person::User;
use tributary_domain::audit::{Action, AuditContext};
use tributary_domain::refusal::Refusal;
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::id::UserId;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::records::{OrganizationRow, SessionRow, UserRow, audit_row};
use tributary_store::{NewSession, Sessions, StoreResult, UserSession};

fn find_user(connection: &Connection, user: UserId) -> Result<User, Failure> {
    let row = connection
        .query_row(
            "select user_id, organization_id, email, role, created_at from users where user_id = ?1",
            [user.as_bytes()],
            |row| {
                Ok(UserRow {
                    user_id: row.get(0)?,
                    organization_id: row.get(1)?,
                    email: row.get(2)?,
                    role: row.get(3)?,
                    created_at: row.get(4)?,
                })
            },
        )
        .optional()?
        .ok_or(Refusal::MemberNotFound)?;
    Ok(row.read()?)
}

fn insert_session(connection: &Connection, new: &NewSession) -> Result<(), Failure> {
    let row = SessionRow::write(&new.session);
    connection.execute(
        "insert into sessions (digest, user_id, created_at, last_seen_at, expires_at)
         values (?1, ?2, ?3, ?4, ?5)",
        params![
            new.digest.as_bytes(),
            row.user_id,
            row.created_at,
            row.last_seen_at,
            row.expires_at
        ],
    )?;
    Ok(())
}

#[async_trait]
impl Sessions for SqliteStore {
    async fn begin_session(&self, new: NewSession, origin: AuditContext) -> StoreResult<()> {
        self.write("begin_session", move |connection| {
            let user = find_user(connection, new.session.user)?;
            connection.execute(
                "delete from sessions where expires_at <= ?1",
                [origin.at.as_millis()],
            )?;
            insert_session(connection, &new)?;
            let action = Action::UserSignedIn;
            let row = audit_row(user.organization, &origin, action, None, user.id, &[]);
            insert_audit(connection, &row)
        })
        .await
    }

    async fn session(&self, digest: Digest) -> StoreResult<Option<UserSession>> {
        self.read("session", move |connection| {
            let found = connection
                .prepare_cached(
                    "select s.user_id, s.created_at, s.last_seen_at, s.expires_at,
                            u.user_id, u.organization_id, u.email, u.role, u.created_at,
                            o.organization_id, o.name, o.created_at
                     from sessions s join users u on u.user_id = s.user_id
                     join organizations o on o.organization_id = u.organization_id
                     where s.digest = ?1",
                )?
                .query_row([digest.as_bytes()], |row| {
                    let session = SessionRow {
                        user_id: row.get(0)?,
                        created_at: row.get(1)?,
                        last_seen_at: row.get(2)?,
                        expires_at: row.get(3)?,
                    };
                    let user = UserRow {
                        user_id: row.get(4)?,
                        organization_id: row.get(5)?,
                        email: row.get(6)?,
                        role: row.get(7)?,
                        created_at: row.get(8)?,
                    };
                    let organization = OrganizationRow {
                        organization_id: row.get(9)?,
                        name: row.get(10)?,
                        created_at: row.get(11)?,
                    };
                    Ok((session, user, organization))
                })
                .optional()?;
            let Some((session, user, organization)) = found else {
                return Ok(None);
            };
            Ok(Some(UserSession {
                session: session.read(),
                user: user.read()?,
                organization: organization.read()?,
            }))
        })
        .await
    }

    async fn note_session_use(&self, digest: Digest, at: Timestamp) -> StoreResult<()> {
        self.write("note_session_use", move |connection| {
            connection.execute(
                "update sessions set last_seen_at = ?2 where digest = ?1 and last_seen_at < ?2",
                params![digest.as_bytes(), at.as_millis()],
            )?;
            Ok(())
        })
        .await
    }

    async fn end_session(&self, digest: Digest) -> StoreResult<()> {
        self.write("end_session", move |connection| {
            connection.execute(
                "delete from sessions where digest = ?1",
                [digest.as_bytes()],
            )?;
            Ok(())
        })
        .await
    }

    async fn change_password(
        &self,
        new: NewSession,
        password_hash: String,
        origin: AuditContext,
    ) -> StoreResult<()> {
        self.write("change_password", move |connection| {
            let user = find_user(connection, new.session.user)?;
            connection.execute(
                "update users set password_hash = ?2 where user_id = ?1",
                params![user.id.as_bytes(), password_hash],
            )?;
            connection.execute(
                "delete from sessions where user_id = ?1",
                [user.id.as_bytes()],
            )?;
            insert_session(connection, &new)?;
            let action = Action::UserPasswordChanged;
            let row = audit_row(user.organization, &origin, action, None, user.id, &[]);
            insert_audit(connection, &row)
        })
        .await
    }
}
