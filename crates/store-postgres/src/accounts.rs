//! The accounts of an email address, and links for setting a new password.

use crate::rows::{id, read_row, uuid};
use crate::tx::Tx;
use crate::{Failure, PostgresStore};
use async_trait::async_trait;
use tokio_postgres::Row;
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

async fn find_users(tx: &Tx, email: &Email, order: &str) -> Result<Vec<User>, Failure> {
    let columns = UserRow::COLUMNS;
    let sql = format!("select {columns} from users where email = $1 order by {order}");
    let rows = tx.query(&sql, &[&email.as_str()]).await?;
    let user = |row| Ok(read_row::<UserRow>(row)?.read()?);
    rows.iter().map(user).collect()
}

impl AccountTable for Tx {
    async fn accounts_of(&self, email: &Email) -> Result<Vec<User>, Failure> {
        find_users(self, email, "organization_id").await
    }

    async fn lock_accounts(&self, email: &Email) -> Result<Vec<User>, Failure> {
        find_users(self, email, "user_id for update").await
    }

    async fn write_password(
        &self,
        user: UserId,
        password_hash: &str,
        at: Timestamp,
    ) -> Result<(), Failure> {
        let user = uuid(user.as_bytes());
        self.execute(
            "update users set password_hash = $2, browsers_forgotten_at = $3 where user_id = $1",
            &[&user, &password_hash, &at.as_millis()],
        )
        .await?;
        let sql = "delete from sessions where user_id = $1";
        self.execute(sql, &[&user]).await
    }

    async fn insert_password_reset(&self, new: &NewPasswordReset) -> Result<(), Failure> {
        let row = PasswordResetRow::write(&new.reset);
        self.execute(
            "insert into password_resets (digest, email, expires_at) values ($1, $2, $3)",
            &[
                &new.digest.as_bytes().as_slice(),
                &row.email,
                &row.expires_at,
            ],
        )
        .await
    }

    async fn password_reset(&self, digest: Digest) -> Result<Option<PasswordReset>, Failure> {
        let sql = format!(
            "select {} from password_resets where digest = $1",
            PasswordResetRow::COLUMNS
        );
        let row = self
            .query_opt(&sql, &[&digest.as_bytes().as_slice()])
            .await?;
        let row = row.as_ref().map(read_row::<PasswordResetRow>).transpose()?;
        Ok(row.map(PasswordResetRow::read).transpose()?)
    }

    async fn remove_password_reset(&self, digest: Digest) -> Result<bool, Failure> {
        let sql = "delete from password_resets where digest = $1";
        let removed = self
            .execute_counting(sql, &[&digest.as_bytes().as_slice()])
            .await?;
        Ok(removed > 0)
    }

    async fn remove_password_resets(
        &self,
        email: Option<&Email>,
        now: Timestamp,
    ) -> Result<(), Failure> {
        self.execute(
            "delete from password_resets where email = $1 or expires_at <= $2",
            &[&email.map(Email::as_str), &now.as_millis()],
        )
        .await
    }

    async fn withdraw_setup_links(
        &self,
        email: &Email,
        at: Timestamp,
    ) -> Result<Vec<OrganizationId>, Failure> {
        let rows = self
            .query(
                "update setup_links set used_at = $2 where email = $1 and used_at is null
                 returning organization_id",
                &[&email.as_str(), &at.as_millis()],
            )
            .await?;
        let organization = |row: &Row| Ok(OrganizationId::from_bytes(id(row, 0)?));
        rows.iter().map(organization).collect()
    }
}

fn summary(row: &Row) -> Result<AccountSummary, Failure> {
    let user = UserRow {
        user_id: id(row, 0)?,
        organization_id: id(row, 1)?,
        email: row.try_get(2)?,
        role: row.try_get(3)?,
        created_at: row.try_get(4)?,
    };
    let organization = OrganizationRow {
        organization_id: id(row, 5)?,
        name: row.try_get(6)?,
        created_at: row.try_get(7)?,
    };
    let last_sign_in_at: Option<i64> = row.try_get(8)?;
    Ok(AccountSummary {
        user: user.read()?,
        organization: organization.read()?,
        last_sign_in_at: last_sign_in_at.map(Timestamp::from_millis),
    })
}

#[async_trait]
impl Accounts for PostgresStore {
    async fn accounts(&self) -> StoreResult<Vec<AccountSummary>> {
        self.read("accounts", async move |tx| {
            let rows = tx
                .query(
                    "select u.user_id, u.organization_id, u.email, u.role, u.created_at,
                            o.organization_id, o.name, o.created_at, u.last_sign_in_at
                     from users u join organizations o on o.organization_id = u.organization_id
                     order by u.email, u.organization_id",
                    &[],
                )
                .await?;
            rows.iter().map(summary).collect()
        })
        .await
    }

    async fn reset_accounts(
        &self,
        new: NewPasswordReset,
        locked_hash: String,
        origin: AuditContext,
    ) -> StoreResult<Vec<User>> {
        self.write("reset_accounts", async move |tx| {
            reset_accounts(tx, &new, &locked_hash, &origin).await
        })
        .await
    }

    async fn create_password_reset(
        &self,
        new: NewPasswordReset,
        origin: AuditContext,
    ) -> StoreResult<()> {
        self.write("create_password_reset", async move |tx| {
            create_password_reset(tx, &new, &origin).await
        })
        .await
    }

    async fn password_reset(&self, digest: Digest) -> StoreResult<Option<PasswordReset>> {
        self.read("password_reset", async move |tx| {
            tx.password_reset(digest).await
        })
        .await
    }

    async fn redeem_password_reset(
        &self,
        digest: Digest,
        password_hash: String,
        origin: AuditContext,
    ) -> StoreResult<Vec<User>> {
        self.write("redeem_password_reset", async move |tx| {
            redeem_password_reset(tx, digest, &password_hash, &origin).await
        })
        .await
    }

    async fn remove_accounts(
        &self,
        email: Email,
        last_owner: LastOwner,
        origin: AuditContext,
    ) -> StoreResult<Vec<User>> {
        self.write_invalidating("remove_accounts", async move |tx| {
            remove_accounts(tx, &email, last_owner, &origin).await
        })
        .await
    }

    async fn browsers_forgotten_at(&self, user: UserId) -> StoreResult<Option<Timestamp>> {
        self.read("browsers_forgotten_at", async move |tx| {
            let sql = "select browsers_forgotten_at from users where user_id = $1";
            let row = tx.query_opt(sql, &[&uuid(user.as_bytes())]).await?;
            let at: Option<i64> = row.map(|row| row.try_get(0)).transpose()?.flatten();
            Ok(at.map(Timestamp::from_millis))
        })
        .await
    }
}
