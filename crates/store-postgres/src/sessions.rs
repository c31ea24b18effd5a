//! Dashboard sessions.

use crate::rows::{id, read_row, uuid};
use crate::tx::Tx;
use crate::{Failure, PostgresStore};
use async_trait::async_trait;
use tokio_postgres::Row;
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

/// Finds and locks a user, so that a concurrent removal of the user also removes the new session.
async fn find_user(tx: &Tx, user: UserId) -> Result<User, Failure> {
    let row = tx
        .query_opt(
            "select user_id, organization_id, email, role, created_at from users
             where user_id = $1 for update",
            &[&uuid(user.as_bytes())],
        )
        .await?
        .ok_or(Refusal::MemberNotFound)?;
    let row = UserRow {
        user_id: id(&row, 0)?,
        organization_id: id(&row, 1)?,
        email: row.try_get(2)?,
        role: row.try_get(3)?,
        created_at: row.try_get(4)?,
    };
    Ok(row.read()?)
}

impl SessionTable for Tx {
    async fn lock_account(&self, user: UserId) -> Result<Option<(User, String)>, Failure> {
        // The organization is locked first, as for changes to members and to single sign-on.
        self.query_opt(
            "select 1 from organizations where organization_id =
                 (select organization_id from users where user_id = $1) for share",
            &[&uuid(user.as_bytes())],
        )
        .await?;
        let sql = format!(
            "select {}, password_hash from users where user_id = $1 for update",
            UserRow::COLUMNS
        );
        let found = self.query_opt(&sql, &[&uuid(user.as_bytes())]).await?;
        let Some(row) = found else {
            return Ok(None);
        };
        let user = read_row::<UserRow>(&row)?.read()?;
        Ok(Some((user, row.try_get("password_hash")?)))
    }

    async fn remove_expired_sessions(&self, now: Timestamp) -> Result<(), Failure> {
        let sql = "delete from sessions where expires_at <= $1";
        self.execute(sql, &[&now.as_millis()]).await
    }

    async fn insert_session(&self, new: &NewSession) -> Result<(), Failure> {
        let row = SessionRow::write(&new.session);
        self.execute(
            "insert into sessions
                 (digest, user_id, created_at, last_seen_at, proved_at, expires_at, browser,
                  network, method)
             values ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
            &[
                &new.digest.as_bytes().as_slice(),
                &uuid(&row.user_id),
                &row.created_at,
                &row.last_seen_at,
                &row.proved_at,
                &row.expires_at,
                &row.browser,
                &row.network,
                &row.method,
            ],
        )
        .await
    }

    async fn end_other_sessions(&self, user: UserId, kept: Digest) -> Result<u64, Failure> {
        let sql = "delete from sessions where user_id = $1 and digest <> $2";
        let kept = kept.as_bytes().as_slice();
        self.execute_counting(sql, &[&uuid(user.as_bytes()), &kept])
            .await
    }

    async fn note_sign_in(&self, user: UserId, at: Timestamp) -> Result<(), Failure> {
        let sql = "update users set last_sign_in_at = $2 where user_id = $1";
        self.execute(sql, &[&uuid(user.as_bytes()), &at.as_millis()])
            .await
    }

    async fn replace_password(&self, user: UserId, password_hash: &str) -> Result<(), Failure> {
        let user = uuid(user.as_bytes());
        let sql = "update users set password_hash = $2 where user_id = $1";
        self.execute(sql, &[&user, &password_hash]).await?;
        let sql = "delete from sessions where user_id = $1";
        self.execute(sql, &[&user]).await
    }
}

#[async_trait]
impl Sessions for PostgresStore {
    async fn begin_session(&self, new: NewSession, origin: AuditContext) -> StoreResult<()> {
        self.write("begin_session", async move |tx| {
            admin::begin_session(tx, &new, &origin).await
        })
        .await
    }

    async fn session(&self, digest: Digest) -> StoreResult<Option<UserSession>> {
        self.read("session", async move |tx| {
            let found = tx
                .query_opt(
                    "select s.user_id, s.created_at, s.last_seen_at, s.proved_at, s.expires_at,
                            s.browser, s.network, s.method, u.user_id, u.organization_id, u.email, u.role, u.created_at,
                            o.organization_id, o.name, o.created_at, o.is_factor_required,
                            exists (select 1 from factors f where f.user_id = u.user_id)
                     from sessions s join users u on u.user_id = s.user_id
                     join organizations o on o.organization_id = u.organization_id
                     where s.digest = $1",
                    &[&digest.as_bytes().as_slice()],
                )
                .await?;
            let Some(row) = found else {
                return Ok(None);
            };
            let session = SessionRow {
                user_id: id(&row, 0)?,
                created_at: row.try_get(1)?,
                last_seen_at: row.try_get(2)?,
                proved_at: row.try_get(3)?,
                expires_at: row.try_get(4)?,
                browser: row.try_get(5)?,
                network: row.try_get(6)?,
                method: row.try_get(7)?,
            };
            let user = UserRow {
                user_id: id(&row, 8)?,
                organization_id: id(&row, 9)?,
                email: row.try_get(10)?,
                role: row.try_get(11)?,
                created_at: row.try_get(12)?,
            };
            let organization = OrganizationRow {
                organization_id: id(&row, 13)?,
                name: row.try_get(14)?,
                created_at: row.try_get(15)?,
            };
            Ok(Some(UserSession {
                session: session.read(),
                user: user.read()?,
                organization: organization.read()?,
                factors: FactorState {
                    is_required: row.try_get(16)?,
                    is_set_up: row.try_get(17)?,
                },
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
        self.write("note_session_use", async move |tx| {
            tx.execute(
                "update sessions set last_seen_at = $2, browser = $3, network = $4
                 where digest = $1 and last_seen_at < $2",
                &[
                    &digest.as_bytes().as_slice(),
                    &at.as_millis(),
                    &client.browser,
                    &client.network,
                ],
            )
            .await?;
            Ok(())
        })
        .await
    }

    async fn note_session_proof(&self, digest: Digest, at: Timestamp) -> StoreResult<()> {
        self.write("note_session_proof", async move |tx| {
            tx.execute(
                "update sessions set proved_at = $2 where digest = $1",
                &[&digest.as_bytes().as_slice(), &at.as_millis()],
            )
            .await
        })
        .await
    }

    async fn sessions_of(&self, user: UserId) -> StoreResult<Vec<(Digest, Session)>> {
        self.read("sessions_of", async move |tx| {
            let sql = format!(
                "select {}, digest from sessions where user_id = $1
                 order by last_seen_at desc, digest limit $2",
                SessionRow::COLUMNS
            );
            let limit = i64::from(SESSIONS_LISTED_MAX);
            let rows = tx.query(&sql, &[&uuid(user.as_bytes()), &limit]).await?;
            let read = |row: &Row| {
                let digest = stored_digest("sessions", row.try_get("digest")?)?;
                Ok((digest, read_row::<SessionRow>(row)?.read()))
            };
            rows.iter().map(read).collect()
        })
        .await
    }

    async fn end_sessions_of(
        &self,
        user: UserId,
        digests: Vec<Digest>,
        origin: AuditContext,
    ) -> StoreResult<u64> {
        self.write("end_sessions_of", async move |tx| {
            let found = find_user(tx, user).await?;
            let digests: Vec<&[u8]> = digests
                .iter()
                .map(|one| one.as_bytes().as_slice())
                .collect();
            let sql = "delete from sessions where user_id = $1 and digest = any($2)";
            let user_id = uuid(user.as_bytes());
            let ended = tx.execute_counting(sql, &[&user_id, &digests]).await?;
            if ended > 0 {
                let action = Action::UserSessionsEnded;
                let row = audit_row(found.organization, &origin, action, None, user, &[]);
                tx.insert_audit(&row).await?;
            }
            Ok(ended)
        })
        .await
    }

    async fn end_other_sessions(
        &self,
        user: UserId,
        kept: Digest,
        origin: AuditContext,
    ) -> StoreResult<u64> {
        self.write("end_other_sessions", async move |tx| {
            admin::end_other_sessions(tx, user, kept, &origin).await
        })
        .await
    }

    async fn end_session(&self, digest: Digest, origin: AuditContext) -> StoreResult<()> {
        self.write("end_session", async move |tx| {
            let digest = digest.as_bytes().as_slice();
            let sql = "select user_id from sessions where digest = $1";
            let Some(row) = tx.query_opt(sql, &[&digest]).await? else {
                return Ok(());
            };
            // The user is locked first, as for a removal.
            let user = find_user(tx, UserId::from_bytes(id(&row, 0)?)).await?;
            let sql = "delete from sessions where digest = $1";
            if tx.execute_counting(sql, &[&digest]).await? == 0 {
                return Ok(());
            }
            let action = Action::UserSignedOut;
            let row = audit_row(user.organization, &origin, action, None, user.id, &[]);
            tx.insert_audit(&row).await
        })
        .await
    }

    async fn change_password(
        &self,
        new: NewSession,
        password_hash: String,
        origin: AuditContext,
    ) -> StoreResult<()> {
        self.write("change_password", async move |tx| {
            admin::change_password(tx, &new, &password_hash, &origin).await
        })
        .await
    }
}
