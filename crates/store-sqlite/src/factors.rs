//! Second factors and recovery codes.

use crate::rows::read_row;
use crate::tables::{SqliteTables, run};
use crate::{Failure, SqliteStore};
use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, params};
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

fn find_factors(connection: &Connection, user: UserId) -> Result<Vec<Factor>, Failure> {
    let sql = format!(
        "select {} from factors where user_id = ?1 order by factor_id",
        FactorRow::COLUMNS
    );
    let mut find = connection.prepare_cached(&sql)?;
    let rows = find.query_map([user.as_bytes()], read_row::<FactorRow>)?;
    rows.map(|row| Ok(row?.read()?)).collect()
}

impl FactorTable for SqliteTables<'_> {
    async fn lock_factors(
        &self,
        user: UserId,
    ) -> Result<Option<(OrganizationId, bool, String)>, Failure> {
        let sql = "select o.organization_id, o.is_factor_required, u.password_hash from users u
                   join organizations o on o.organization_id = u.organization_id
                   where u.user_id = ?1";
        let found = self.0.query_row(sql, [user.as_bytes()], |row| {
            let organization = OrganizationId::from_bytes(row.get(0)?);
            Ok((organization, row.get(1)?, row.get(2)?))
        });
        Ok(found.optional()?)
    }

    async fn factors(&self, user: UserId) -> Result<Vec<Factor>, Failure> {
        find_factors(self.0, user)
    }

    async fn insert_factor(&self, factor: &Factor) -> Result<bool, Failure> {
        let row = FactorRow::write(factor);
        let sql = format!(
            "insert into factors ({})
             values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)
             on conflict (credential_id) do nothing",
            FactorRow::COLUMNS
        );
        let inserted = self.0.execute(
            &sql,
            params![
                row.factor_id,
                row.user_id,
                row.kind,
                row.name,
                row.created_at,
                row.last_used_at,
                row.sealed_secret,
                row.last_step,
                row.credential_id,
                row.public_key,
                row.counter,
                row.is_syncable,
                row.is_synced,
                row.last_challenge_at
            ],
        )?;
        Ok(inserted > 0)
    }

    async fn write_factor_use(&self, factor: &Factor) -> Result<(), Failure> {
        let row = FactorRow::write(factor);
        self.0.execute(
            "update factors set last_used_at = ?2, last_step = ?3, counter = ?4, is_synced = ?5,
                 last_challenge_at = ?6 where factor_id = ?1",
            params![
                row.factor_id,
                row.last_used_at,
                row.last_step,
                row.counter,
                row.is_synced,
                row.last_challenge_at
            ],
        )?;
        Ok(())
    }

    async fn delete_factor(&self, factor: FactorId) -> Result<(), Failure> {
        let sql = "delete from factors where factor_id = ?1";
        self.0.execute(sql, [factor.as_bytes()])?;
        Ok(())
    }

    async fn write_recovery_codes(&self, user: UserId, codes: &[Digest]) -> Result<(), Failure> {
        let sql = "delete from recovery_codes where user_id = ?1";
        self.0.execute(sql, [user.as_bytes()])?;
        let sql = "insert into recovery_codes (user_id, digest) values (?1, ?2)";
        let mut insert = self.0.prepare_cached(sql)?;
        for code in codes {
            insert.execute((user.as_bytes(), code.as_bytes()))?;
        }
        Ok(())
    }

    async fn spend_recovery_code(
        &self,
        user: UserId,
        code: Digest,
        at: Timestamp,
    ) -> Result<bool, Failure> {
        let spent = self.0.execute(
            "update recovery_codes set used_at = ?3
             where user_id = ?1 and digest = ?2 and used_at is null",
            params![user.as_bytes(), code.as_bytes(), at.as_millis()],
        )?;
        Ok(spent > 0)
    }

    async fn write_factor_requirement(
        &self,
        organization: OrganizationId,
        is_required: bool,
    ) -> Result<(), Failure> {
        self.0.execute(
            "update organizations set is_factor_required = ?2 where organization_id = ?1",
            params![organization.as_bytes(), is_required],
        )?;
        Ok(())
    }
}

#[async_trait]
impl Factors for SqliteStore {
    async fn account(&self, user: UserId) -> StoreResult<Option<(User, String)>> {
        self.read("account", move |connection| {
            let sql = format!(
                "select {}, password_hash from users where user_id = ?1",
                UserRow::COLUMNS
            );
            let found = connection.query_row(&sql, [user.as_bytes()], |row| {
                Ok((read_row::<UserRow>(row)?, row.get("password_hash")?))
            });
            let Some((user, hash)) = found.optional()? else {
                return Ok(None);
            };
            Ok(Some((user.read()?, hash)))
        })
        .await
    }

    async fn factors_of(&self, user: UserId) -> StoreResult<Vec<Factor>> {
        self.read("factors_of", move |connection| {
            find_factors(connection, user)
        })
        .await
    }

    async fn unused_recovery_codes(&self, user: UserId) -> StoreResult<u64> {
        self.read("unused_recovery_codes", move |connection| {
            let sql = "select count(*) from recovery_codes where user_id = ?1 and used_at is null";
            let count = connection.query_row(sql, [user.as_bytes()], |row| row.get(0))?;
            Ok(count_to_u64(count))
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
        self.write("add_factor", move |connection| {
            run(admin::add_factor(
                &SqliteTables(connection),
                (&factor, session),
                &recovery_codes,
                &origin,
            ))
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
        self.write("use_totp", move |connection| {
            let tables = SqliteTables(connection);
            run(admin::use_totp(&tables, (user, factor), step, at))
        })
        .await
    }

    async fn passkey(&self, credential: &CredentialId) -> StoreResult<Option<(User, Factor)>> {
        let credential = credential.as_bytes().to_vec();
        self.read("passkey", move |connection| {
            let sql = format!(
                "select {} from factors where credential_id = ?1",
                FactorRow::COLUMNS
            );
            let found = connection.query_row(&sql, [credential], read_row::<FactorRow>);
            let Some(row) = found.optional()? else {
                return Ok(None);
            };
            let factor = row.read()?;
            let sql = format!("select {} from users where user_id = ?1", UserRow::COLUMNS);
            let owner = [factor.user.as_bytes()];
            let user = connection.query_row(&sql, owner, read_row::<UserRow>)?;
            Ok(Some((user.read()?, factor)))
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
        self.write("use_passkey", move |connection| {
            let tables = SqliteTables(connection);
            run(admin::use_passkey(&tables, (user, factor), used, at))
        })
        .await
    }

    async fn use_recovery_code(
        &self,
        user: UserId,
        code: Digest,
        origin: AuditContext,
    ) -> StoreResult<bool> {
        self.write("use_recovery_code", move |connection| {
            let tables = SqliteTables(connection);
            run(admin::use_recovery_code(&tables, user, code, &origin))
        })
        .await
    }

    async fn replace_recovery_codes(
        &self,
        user: UserId,
        codes: Vec<Digest>,
        origin: AuditContext,
    ) -> StoreResult<()> {
        self.write("replace_recovery_codes", move |connection| {
            let tables = SqliteTables(connection);
            run(admin::replace_recovery_codes(
                &tables, user, &codes, &origin,
            ))
        })
        .await
    }

    async fn remove_factor(
        &self,
        user: UserId,
        factor: FactorId,
        origin: AuditContext,
    ) -> StoreResult<()> {
        self.write("remove_factor", move |connection| {
            let tables = SqliteTables(connection);
            run(admin::remove_factor(&tables, user, factor, &origin))
        })
        .await
    }

    async fn remove_factors(&self, user: UserId, origin: AuditContext) -> StoreResult<u64> {
        self.write("remove_factors", move |connection| {
            run(admin::remove_factors(
                &SqliteTables(connection),
                user,
                &origin,
            ))
        })
        .await
    }

    async fn members_with_factors(
        &self,
        caller: &Authorized<MembersWrite>,
    ) -> StoreResult<BTreeSet<UserId>> {
        let organization = caller.whole_organization()?;
        self.read("members_with_factors", move |connection| {
            let mut find = connection.prepare_cached(
                "select u.user_id from users u where u.organization_id = ?1
                 and exists (select 1 from factors f where f.user_id = u.user_id)",
            )?;
            let rows = find.query_map([organization.as_bytes()], |row| row.get(0))?;
            rows.map(|id| Ok(UserId::from_bytes(id?))).collect()
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
        self.write("require_second_factor", move |connection| {
            run(admin::require_second_factor(
                &SqliteTables(connection),
                (organization, owner),
                is_required,
                &origin,
            ))
        })
        .await
    }
}
