//! The accounts of an email address, and links for setting a new password.

use crate::rows::read_row;
use crate::tables::{SqliteTables, run};
use crate::{Failure, SqliteStore};
use async_trait::async_trait;
use rusqlite::{OptionalExtension, params};
use tributary_domain::access::password_reset::PasswordReset;
use tributary_domain::access::person::{Email, User};
use tributary_domain::audit::AuditContext;
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::id::{OrganizationId, UserId};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_recording::AccountTable;
use tributary_recording::admin::{
    create_password_reset, redeem_password_reset, remove_accounts, reset_accounts,
};
use tributary_store::records::{Columns, OrganizationRow, PasswordResetRow, UserRow};
use tributary_store::{AccountSummary, Accounts, LastOwner, NewPasswordReset, StoreResult};

impl AccountTable for SqliteTables<'_> {
    async fn accounts_of(&self, email: &Email) -> Result<Vec<User>, Failure> {
        let sql = format!(
            "select {} from users where email = ?1 order by organization_id",
            UserRow::COLUMNS
        );
        let mut find = self.0.prepare_cached(&sql)?;
        let rows = find.query_map([email.as_str()], read_row::<UserRow>)?;
        rows.map(|row| Ok(row?.read()?)).collect()
    }

    async fn lock_accounts(&self, email: &Email) -> Result<Vec<User>, Failure> {
        let mut users = self.accounts_of(email).await?;
        users.sort_by_key(|user| user.id);
        Ok(users)
    }

    async fn write_password(
        &self,
        user: UserId,
        password_hash: &str,
        at: Timestamp,
    ) -> Result<(), Failure> {
        self.0.execute(
            "update users set password_hash = ?2, browsers_forgotten_at = ?3 where user_id = ?1",
            params![user.as_bytes(), password_hash, at.as_millis()],
        )?;
        let sql = "delete from sessions where user_id = ?1";
        self.0.execute(sql, [user.as_bytes()])?;
        Ok(())
    }

    async fn insert_password_reset(&self, new: &NewPasswordReset) -> Result<(), Failure> {
        let row = PasswordResetRow::write(&new.reset);
        self.0.execute(
            "insert into password_resets (digest, email, expires_at) values (?1, ?2, ?3)",
            params![new.digest.as_bytes(), row.email, row.expires_at],
        )?;
        Ok(())
    }

    async fn password_reset(&self, digest: Digest) -> Result<Option<PasswordReset>, Failure> {
        let sql = format!(
            "select {} from password_resets where digest = ?1",
            PasswordResetRow::COLUMNS
        );
        let row = self
            .0
            .query_row(&sql, [digest.as_bytes()], read_row::<PasswordResetRow>)
            .optional()?;
        Ok(row.map(PasswordResetRow::read).transpose()?)
    }

    async fn remove_password_reset(&self, digest: Digest) -> Result<bool, Failure> {
        let sql = "delete from password_resets where digest = ?1";
        Ok(self.0.execute(sql, [digest.as_bytes()])? > 0)
    }

    async fn remove_password_resets(
        &self,
        email: Option<&Email>,
        now: Timestamp,
    ) -> Result<(), Failure> {
        self.0.execute(
            "delete from password_resets where email = ?1 or expires_at <= ?2",
            params![email.map(Email::as_str), now.as_millis()],
        )?;
        Ok(())
    }

    async fn withdraw_setup_links(
        &self,
        email: &Email,
        at: Timestamp,
    ) -> Result<Vec<OrganizationId>, Failure> {
        let mut withdraw = self.0.prepare(
            "update setup_links set used_at = ?2 where email = ?1 and used_at is null
             returning organization_id",
        )?;
        let rows = withdraw.query_map(params![email.as_str(), at.as_millis()], |row| row.get(0))?;
        rows.map(|row| Ok(OrganizationId::from_bytes(row?)))
            .collect()
    }
}

#[async_trait]
impl Accounts for SqliteStore {
    async fn accounts(&self) -> StoreResult<Vec<AccountSummary>> {
        self.read("accounts", |connection| {
            let mut find = connection.prepare(
                "select u.user_id, u.organization_id, u.email, u.role, u.created_at,
                        o.organization_id, o.name, o.created_at, u.last_sign_in_at
                 from users u join organizations o on o.organization_id = u.organization_id
                 order by u.email, u.organization_id",
            )?;
            let rows = find.query_map((), |row| {
                let user = UserRow {
                    user_id: row.get(0)?,
                    organization_id: row.get(1)?,
                    email: row.get(2)?,
                    role: row.get(3)?,
                    created_at: row.get(4)?,
                };
                let organization = OrganizationRow {
                    organization_id: row.get(5)?,
                    name: row.get(6)?,
                    created_at: row.get(7)?,
                };
                Ok((user, organization, row.get::<_, Option<i64>>(8)?))
            })?;
            rows.map(|row| {
                let (user, organization, last_sign_in_at) = row?;
                Ok(AccountSummary {
                    user: user.read()?,
                    organization: organization.read()?,
                    last_sign_in_at: last_sign_in_at.map(Timestamp::from_millis),
                })
            })
            .collect()
        })
        .await
    }

    async fn reset_accounts(
        &self,
        new: NewPasswordReset,
        locked_hash: String,
        origin: AuditContext,
    ) -> StoreResult<Vec<User>> {
        self.write("reset_accounts", move |connection| {
            let tables = SqliteTables(connection);
            run(reset_accounts(&tables, &new, &locked_hash, &origin))
        })
        .await
    }

    async fn create_password_reset(
        &self,
        new: NewPasswordReset,
        origin: AuditContext,
    ) -> StoreResult<()> {
        self.write("create_password_reset", move |connection| {
            run(create_password_reset(
                &SqliteTables(connection),
                &new,
                &origin,
            ))
        })
        .await
    }

    async fn password_reset(&self, digest: Digest) -> StoreResult<Option<PasswordReset>> {
        self.read("password_reset", move |connection| {
            run(SqliteTables(connection).password_reset(digest))
        })
        .await
    }

    async fn redeem_password_reset(
        &self,
        digest: Digest,
        password_hash: String,
        origin: AuditContext,
    ) -> StoreResult<Vec<User>> {
        self.write("redeem_password_reset", move |connection| {
            let tables = SqliteTables(connection);
            run(redeem_password_reset(
                &tables,
                digest,
                &password_hash,
                &origin,
            ))
        })
        .await
    }

    async fn remove_accounts(
        &self,
        email: Email,
        last_owner: LastOwner,
        origin: AuditContext,
    ) -> StoreResult<Vec<User>> {
        self.write_invalidating("remove_accounts", move |connection| {
            let tables = SqliteTables(connection);
            run(remove_accounts(&tables, &email, last_owner, &origin))
        })
        .await
    }

    async fn browsers_forgotten_at(&self, user: UserId) -> StoreResult<Option<Timestamp>> {
        self.read("browsers_forgotten_at", move |connection| {
            let sql = "select browsers_forgotten_at from users where user_id = ?1";
            let found: Option<Option<i64>> = connection
                .prepare_cached(sql)?
                .query_row([user.as_bytes()], |row| row.get(0))
                .optional()?;
            Ok(found.flatten().map(Timestamp::from_millis))
        })
        .await
    }
}
