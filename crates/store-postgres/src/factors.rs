//! Second factors and recovery codes.

use crate::rows::{id, read_row, uuid};
use crate::tx::Tx;
use crate::{Failure, PostgresStore};
use async_trait::async_trait;
use std::collections::BTreeSet;
use tributary_domain::access::factor::Factor;
use tributary_domain::access::factor::passkey::{CredentialId, PasskeyUse};
use tributary_domain::access::person::User;
use tributary_domain::access::{Authorized, MembersWrite};
use tributary_domain::audit::AuditContext;
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::id::{FactorId, OrganizationId, UserId};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_recording::{FactorTable, admin};
use tributary_store::records::{Columns, FactorRow, UserRow, count_to_u64};
use tributary_store::{Factors, StoreResult};

async fn find_factors(tx: &Tx, user: UserId) -> Result<Vec<Factor>, Failure> {
    let sql = format!(
        "select {} from factors where user_id = $1 order by factor_id",
        FactorRow::COLUMNS
    );
    let rows = tx.query(&sql, &[&uuid(user.as_bytes())]).await?;
    let factor = |row| Ok(read_row::<FactorRow>(row)?.read()?);
    rows.iter().map(factor).collect()
}

impl FactorTable for Tx {
    async fn lock_factors(
        &self,
        user: UserId,
    ) -> Result<Option<(OrganizationId, bool, String)>, Failure> {
        let sql = "select o.organization_id, o.is_factor_required, u.password_hash from users u
                   join organizations o on o.organization_id = u.organization_id
                   where u.user_id = $1 for no key update of u";
        let found = self.query_opt(sql, &[&uuid(user.as_bytes())]).await?;
        let Some(row) = found else {
            return Ok(None);
        };
        let organization = OrganizationId::from_bytes(id(&row, 0)?);
        Ok(Some((organization, row.try_get(1)?, row.try_get(2)?)))
    }

    async fn factors(&self, user: UserId) -> Result<Vec<Factor>, Failure> {
        find_factors(self, user).await
    }

    async fn insert_factor(&self, factor: &Factor) -> Result<bool, Failure> {
        let row = FactorRow::write(factor);
        let sql = format!(
            "insert into factors ({})
             values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
             on conflict (credential_id) do nothing returning 1",
            FactorRow::COLUMNS
        );
        let inserted = self
            .query_opt(
                &sql,
                &[
                    &uuid(&row.factor_id),
                    &uuid(&row.user_id),
                    &row.kind,
                    &row.name,
                    &row.created_at,
                    &row.last_used_at,
                    &row.sealed_secret.as_deref(),
                    &row.last_step,
                    &row.credential_id.as_deref(),
                    &row.public_key.as_deref(),
                    &row.counter,
                    &row.is_syncable,
                    &row.is_synced,
                    &row.last_challenge_at,
                ],
            )
            .await?;
        Ok(inserted.is_some())
    }

    async fn write_factor_use(&self, factor: &Factor) -> Result<(), Failure> {
        let row = FactorRow::write(factor);
        self.execute(
            "update factors set last_used_at = $2, last_step = $3, counter = $4, is_synced = $5,
                 last_challenge_at = $6 where factor_id = $1",
            &[
                &uuid(&row.factor_id),
                &row.last_used_at,
                &row.last_step,
                &row.counter,
                &row.is_synced,
                &row.last_challenge_at,
            ],
        )
        .await
    }

    async fn delete_factor(&self, factor: FactorId) -> Result<(), Failure> {
        let sql = "delete from factors where factor_id = $1";
        self.execute(sql, &[&uuid(factor.as_bytes())]).await
    }

    async fn write_recovery_codes(&self, user: UserId, codes: &[Digest]) -> Result<(), Failure> {
        let user = uuid(user.as_bytes());
        let sql = "delete from recovery_codes where user_id = $1";
        self.execute(sql, &[&user]).await?;
        let digests: Vec<&[u8]> = codes.iter().map(|one| one.as_bytes().as_slice()).collect();
        let sql = "insert into recovery_codes (user_id, digest) select $1, unnest($2::bytea[])";
        self.execute(sql, &[&user, &digests]).await
    }

    async fn spend_recovery_code(
        &self,
        user: UserId,
        code: Digest,
        at: Timestamp,
    ) -> Result<bool, Failure> {
        let spent = self
            .execute_counting(
                "update recovery_codes set used_at = $3
                 where user_id = $1 and digest = $2 and used_at is null",
                &[
                    &uuid(user.as_bytes()),
                    &code.as_bytes().as_slice(),
                    &at.as_millis(),
                ],
            )
            .await?;
        Ok(spent > 0)
    }

    async fn write_factor_requirement(
        &self,
        organization: OrganizationId,
        is_required: bool,
    ) -> Result<(), Failure> {
        self.execute(
            "update organizations set is_factor_required = $2 where organization_id = $1",
            &[&uuid(organization.as_bytes()), &is_required],
        )
        .await
    }
}

#[async_trait]
impl Factors for PostgresStore {
    async fn account(&self, user: UserId) -> StoreResult<Option<(User, String)>> {
        self.read("account", async move |tx| {
            let sql = format!(
                "select {}, password_hash from users where user_id = $1",
                UserRow::COLUMNS
            );
            let found = tx.query_opt(&sql, &[&uuid(user.as_bytes())]).await?;
            let Some(row) = found else {
                return Ok(None);
            };
            let user = read_row::<UserRow>(&row)?.read()?;
            Ok(Some((user, row.try_get("password_hash")?)))
        })
        .await
    }

    async fn factors_of(&self, user: UserId) -> StoreResult<Vec<Factor>> {
        self.read("factors_of", async move |tx| find_factors(tx, user).await)
            .await
    }

    async fn unused_recovery_codes(&self, user: UserId) -> StoreResult<u64> {
        self.read("unused_recovery_codes", async move |tx| {
            let sql = "select count(*) from recovery_codes where user_id = $1 and used_at is null";
            let row = tx.query_one(sql, &[&uuid(user.as_bytes())]).await?;
            Ok(count_to_u64(row.try_get(0)?))
        })
        .await
    }

    async fn add_factor(
        &self,
        factor: Factor,
        session: Digest,
        recovery_codes: Vec<Digest>,
        origin: AuditContext,
    ) -> StoreResult<bool> {
        self.write("add_factor", async move |tx| {
            admin::add_factor(tx, (&factor, session), &recovery_codes, &origin).await
        })
        .await
    }

    async fn use_totp(
        &self,
        user: UserId,
        factor: FactorId,
        step: i64,
        at: Timestamp,
    ) -> StoreResult<bool> {
        self.write("use_totp", async move |tx| {
            admin::use_totp(tx, (user, factor), step, at).await
        })
        .await
    }

    async fn passkey(&self, credential: &CredentialId) -> StoreResult<Option<(User, Factor)>> {
        let credential = credential.as_bytes().to_vec();
        self.read("passkey", async move |tx| {
            let sql = format!(
                "select {} from factors where credential_id = $1",
                FactorRow::COLUMNS
            );
            let Some(row) = tx.query_opt(&sql, &[&credential.as_slice()]).await? else {
                return Ok(None);
            };
            let factor = read_row::<FactorRow>(&row)?.read()?;
            let sql = format!("select {} from users where user_id = $1", UserRow::COLUMNS);
            let row = tx.query_one(&sql, &[&uuid(factor.user.as_bytes())]).await?;
            Ok(Some((read_row::<UserRow>(&row)?.read()?, factor)))
        })
        .await
    }

    async fn use_passkey(
        &self,
        user: UserId,
        factor: FactorId,
        used: PasskeyUse,
        at: Timestamp,
    ) -> StoreResult<bool> {
        self.write("use_passkey", async move |tx| {
            admin::use_passkey(tx, (user, factor), used, at).await
        })
        .await
    }

    async fn use_recovery_code(
        &self,
        user: UserId,
        code: Digest,
        origin: AuditContext,
    ) -> StoreResult<bool> {
        self.write("use_recovery_code", async move |tx| {
            admin::use_recovery_code(tx, user, code, &origin).await
        })
        .await
    }

    async fn replace_recovery_codes(
        &self,
        user: UserId,
        codes: Vec<Digest>,
        origin: AuditContext,
    ) -> StoreResult<()> {
        self.write("replace_recovery_codes", async move |tx| {
            admin::replace_recovery_codes(tx, user, &codes, &origin).await
        })
        .await
    }

    async fn remove_factor(
        &self,
        user: UserId,
        factor: FactorId,
        origin: AuditContext,
    ) -> StoreResult<()> {
        self.write("remove_factor", async move |tx| {
            admin::remove_factor(tx, user, factor, &origin).await
        })
        .await
    }

    async fn remove_factors(&self, user: UserId, origin: AuditContext) -> StoreResult<u64> {
        self.write("remove_factors", async move |tx| {
            admin::remove_factors(tx, user, &origin).await
        })
        .await
    }

    async fn members_with_factors(
        &self,
        caller: &Authorized<MembersWrite>,
    ) -> StoreResult<BTreeSet<UserId>> {
        let organization = uuid(caller.whole_organization()?.as_bytes());
        self.read("members_with_factors", async move |tx| {
            let sql = "select u.user_id from users u where u.organization_id = $1
                       and exists (select 1 from factors f where f.user_id = u.user_id)";
            let rows = tx.query(sql, &[&organization]).await?;
            let user = |row| Ok(UserId::from_bytes(id(row, 0)?));
            rows.iter().map(user).collect()
        })
        .await
    }

    async fn require_second_factor(
        &self,
        caller: &Authorized<MembersWrite>,
        owner: UserId,
        is_required: bool,
        origin: AuditContext,
    ) -> StoreResult<()> {
        let organization = caller.whole_organization()?;
        self.write("require_second_factor", async move |tx| {
            admin::require_second_factor(tx, (organization, owner), is_required, &origin).await
        })
        .await
    }
}
