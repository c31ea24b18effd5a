//! Dashboard sessions.

use crate::rows::read_row;
use crate::tables::{SqliteTables, run};
use crate::{Failure, SqliteStore};
use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, params};
use tributary_domain::access::factor::FactorState;
use tributary_domain::access::person::User;
use tributary_domain::access::session::{SESSIONS_LISTED_MAX, Session};
use tributary_domain::access::session_client::SessionClient;
use tributary_domain::audit::{Action, AuditContext};
use tributary_domain::refusal::Refusal;
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::id::UserId;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_recording::{AuditTable as _, SessionTable, admin};
use tributary_store::records::{
    Columns, OrganizationRow, SessionRow, UserRow, audit_row, stored_digest,
};
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

impl SessionTable for SqliteTables<'_> {
    async fn lock_account(&self, user: UserId) -> Result<Option<(User, String)>, Failure> {
        let sql = format!(
            "select {}, password_hash from users where user_id = ?1",
            UserRow::COLUMNS
        );
        let found = self.0.query_row(&sql, [user.as_bytes()], |row| {
            let hash: String = row.get("password_hash")?;
            Ok((read_row::<UserRow>(row)?, hash))
        });
        let account = |(row, hash): (UserRow, String)| Ok((row.read()?, hash));
        found.optional()?.map(account).transpose()
    }

    async fn remove_expired_sessions(&self, now: Timestamp) -> Result<(), Failure> {
        let sql = "delete from sessions where expires_at <= ?1";
        self.0.execute(sql, [now.as_millis()])?;
        Ok(())
    }

    async fn insert_session(&self, new: &NewSession) -> Result<(), Failure> {
        let row = SessionRow::write(&new.session);
        self.0.execute(
            "insert into sessions
                 (digest, user_id, created_at, last_seen_at, proved_at, expires_at, browser,
                  network, method)
             values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            params![
                new.digest.as_bytes(),
                row.user_id,
                row.created_at,
                row.last_seen_at,
                row.proved_at,
                row.expires_at,
                row.browser,
                row.network,
                row.method
            ],
        )?;
        Ok(())
    }

    async fn end_other_sessions(&self, user: UserId, kept: Digest) -> Result<u64, Failure> {
        let sql = "delete from sessions where user_id = ?1 and digest <> ?2";
        let ended = self
            .0
            .execute(sql, params![user.as_bytes(), kept.as_bytes()])?;
        Ok(ended as u64)
    }

    async fn note_sign_in(&self, user: UserId, at: Timestamp) -> Result<(), Failure> {
        let sql = "update users set last_sign_in_at = ?2 where user_id = ?1";
        self.0
            .execute(sql, params![user.as_bytes(), at.as_millis()])?;
        Ok(())
    }

    async fn replace_password(&self, user: UserId, password_hash: &str) -> Result<(), Failure> {
        let sql = "update users set password_hash = ?2 where user_id = ?1";
        self.0
            .execute(sql, params![user.as_bytes(), password_hash])?;
        let sql = "delete from sessions where user_id = ?1";
        self.0.execute(sql, [user.as_bytes()])?;
        Ok(())
    }
}

#[async_trait]
impl Sessions for SqliteStore {
    async fn begin_session(&self, new: NewSession, origin: AuditContext) -> StoreResult<()> {
        self.write("begin_session", move |connection| {
            run(admin::begin_session(
                &SqliteTables(connection),
                &new,
                &origin,
            ))
        })
        .await
    }

    async fn session(&self, digest: Digest) -> StoreResult<Option<UserSession>> {
        self.read("session", move |connection| {
            let found = connection
                .prepare_cached(
                    "select s.user_id, s.created_at, s.last_seen_at, s.proved_at, s.expires_at,
                            s.browser, s.network, s.method, u.user_id, u.organization_id, u.email, u.role, u.created_at,
                            o.organization_id, o.name, o.created_at, o.is_factor_required,
                            exists (select 1 from factors f where f.user_id = u.user_id)
                     from sessions s join users u on u.user_id = s.user_id
                     join organizations o on o.organization_id = u.organization_id
                     where s.digest = ?1",
                )?
                .query_row([digest.as_bytes()], |row| {
                    let session = SessionRow {
                        user_id: row.get(0)?,
                        created_at: row.get(1)?,
                        last_seen_at: row.get(2)?,
                        proved_at: row.get(3)?,
                        expires_at: row.get(4)?,
                        browser: row.get(5)?,
                        network: row.get(6)?,
                        method: row.get(7)?,
                    };
                    let user = UserRow {
                        user_id: row.get(8)?,
                        organization_id: row.get(9)?,
                        email: row.get(10)?,
                        role: row.get(11)?,
                        created_at: row.get(12)?,
                    };
                    let organization = OrganizationRow {
                        organization_id: row.get(13)?,
                        name: row.get(14)?,
                        created_at: row.get(15)?,
                    };
                    let factors = FactorState {
                        is_required: row.get(16)?,
                        is_set_up: row.get(17)?,
                    };
                    Ok((session, user, organization, factors))
                })
                .optional()?;
            let Some((session, user, organization, factors)) = found else {
                return Ok(None);
            };
            Ok(Some(UserSession {
                session: session.read(),
                user: user.read()?,
                organization: organization.read()?,
                factors,
            }))
        })
        .await
    }

    async fn note_session_use(
        &self,
        digest: Digest,
        at: Timestamp,
        client: SessionClient,
    ) -> StoreResult<()> {
        self.write("note_session_use", move |connection| {
            connection.execute(
                "update sessions set last_seen_at = ?2, browser = ?3, network = ?4
                 where digest = ?1 and last_seen_at < ?2",
                params![
                    digest.as_bytes(),
                    at.as_millis(),
                    client.browser,
                    client.network
                ],
            )?;
            Ok(())
        })
        .await
    }

    async fn note_session_proof(&self, digest: Digest, at: Timestamp) -> StoreResult<()> {
        self.write("note_session_proof", move |connection| {
            connection.execute(
                "update sessions set proved_at = ?2 where digest = ?1",
                params![digest.as_bytes(), at.as_millis()],
            )?;
            Ok(())
        })
        .await
    }

    async fn sessions_of(&self, user: UserId) -> StoreResult<Vec<(Digest, Session)>> {
        self.read("sessions_of", move |connection| {
            let sql = format!(
                "select {}, digest from sessions where user_id = ?1
                 order by last_seen_at desc, digest limit ?2",
                SessionRow::COLUMNS
            );
            let mut find = connection.prepare_cached(&sql)?;
            let rows = find.query_map(params![user.as_bytes(), SESSIONS_LISTED_MAX], |row| {
                let digest: Vec<u8> = row.get("digest")?;
                Ok((read_row::<SessionRow>(row)?, digest))
            })?;
            rows.map(|row| {
                let (session, digest) = row?;
                Ok((stored_digest("sessions", &digest)?, session.read()))
            })
            .collect()
        })
        .await
    }

    async fn end_sessions_of(
        &self,
        user: UserId,
        digests: Vec<Digest>,
        origin: AuditContext,
    ) -> StoreResult<u64> {
        self.write("end_sessions_of", move |connection| {
            let found = find_user(connection, user)?;
            let mut end = connection
                .prepare_cached("delete from sessions where user_id = ?1 and digest = ?2")?;
            let mut ended = 0;
            for digest in &digests {
                ended += end.execute(params![user.as_bytes(), digest.as_bytes()])?;
            }
            if ended > 0 {
                let action = Action::UserSessionsEnded;
                let row = audit_row(found.organization, &origin, action, None, user, &[]);
                run(SqliteTables(connection).insert_audit(&row))?;
            }
            Ok(ended as u64)
        })
        .await
    }

    async fn end_other_sessions(
        &self,
        user: UserId,
        kept: Digest,
        origin: AuditContext,
    ) -> StoreResult<u64> {
        self.write("end_other_sessions", move |connection| {
            let tables = SqliteTables(connection);
            run(admin::end_other_sessions(&tables, user, kept, &origin))
        })
        .await
    }

    async fn end_session(&self, digest: Digest, origin: AuditContext) -> StoreResult<()> {
        self.write("end_session", move |connection| {
            let sql = "delete from sessions where digest = ?1 returning user_id";
            let ended = connection
                .query_row(sql, [digest.as_bytes()], |row| row.get(0))
                .optional()?;
            let Some(user) = ended else {
                return Ok(());
            };
            let user = find_user(connection, UserId::from_bytes(user))?;
            let action = Action::UserSignedOut;
            let row = audit_row(user.organization, &origin, action, None, user.id, &[]);
            run(SqliteTables(connection).insert_audit(&row))
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
            run(admin::change_password(
                &SqliteTables(connection),
                &new,
                &password_hash,
                &origin,
            ))
        })
        .await
    }
}
