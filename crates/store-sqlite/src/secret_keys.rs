//! The secret key and its rotation, and the encrypted values of all tables.

use crate::tables::{SqliteTables, run};
use crate::{Failure, SqliteStore};
use async_trait::async_trait;
use rusqlite::types::{ToSql, ToSqlOutput, ValueRef};
use rusqlite::{OptionalExtension as _, Row, params};
use tributary_domain::access::{AppsWrite, Authorized};
use tributary_domain::audit::AuditContext;
use tributary_domain::keyring::SecretKeyId;
use tributary_domain::keyring::alert::{AlertSecretRotation, StoredAlertSecrets};
use tributary_domain::keyring::rotation::{KeyHolder, RotationStart, StoredCheck, StoredKeys};
use tributary_domain::keyring::seal::SealedSecret;
use tributary_domain::refusal::Refusal;
use tributary_domain::vocabulary::id::{AppId, OrganizationId};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_recording::{CheckLock, KeyRecord, SecretKeyTable, admin};
use tributary_store::records::{
    CellKey, CellPart, SealedCell, SealedColumn, SealedForm, count_to_u64, key_ids, key_ids_bytes,
};
use tributary_store::{ReencryptRequest, ReencryptedRows, RotationEnd, SecretKeys, StoreResult};

/// Returns the condition for rows with values that do not begin like those of a key (`?1`).
const fn outdated(form: SealedForm) -> &'static str {
    match form {
        SealedForm::Bytes => "length(s.{column}) > 0 and substr(s.{column}, 1, 9) <> ?1",
        SealedForm::Credentials => {
            "replace(s.{column}, cast(?1 as text), '') like '%\"sealed\":\"%'"
        }
    }
}

/// Fills the names of a column into a statement.
fn fill(sql: &str, column: &SealedColumn) -> String {
    sql.replace("{outdated}", outdated(column.form))
        .replace("{table}", column.table)
        .replace("{column}", column.column)
        .replace("{owners}", column.owners)
        .replace("{owner}", column.owner)
        .replace("{part}", column.part)
}

/// The second part of a key, to bind.
struct BoundPart<'a>(&'a CellPart);

impl ToSql for BoundPart<'_> {
    fn to_sql(&self) -> Result<ToSqlOutput<'_>, rusqlite::Error> {
        Ok(ToSqlOutput::Borrowed(match self.0 {
            CellPart::Text(text) => ValueRef::Text(text.as_bytes()),
            CellPart::Id(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

/// A value to bind: bytes or text.
struct BoundValue<'a>(SealedForm, &'a [u8]);

impl ToSql for BoundValue<'_> {
    fn to_sql(&self) -> Result<ToSqlOutput<'_>, rusqlite::Error> {
        Ok(ToSqlOutput::Borrowed(match self.0 {
            SealedForm::Bytes => ValueRef::Blob(self.1),
            SealedForm::Credentials => ValueRef::Text(self.1),
        }))
    }
}

fn read_cell(row: &Row<'_>, column: &SealedColumn) -> Result<SealedCell, rusqlite::Error> {
    let part = if column.part_is_id {
        CellPart::Id(row.get(2)?)
    } else {
        CellPart::Text(row.get(2)?)
    };
    let value = match column.form {
        SealedForm::Bytes => row.get(3)?,
        SealedForm::Credentials => row.get::<_, String>(3)?.into_bytes(),
    };
    Ok(SealedCell {
        organization: row.get(0)?,
        key: CellKey {
            owner: row.get(1)?,
            part,
        },
        value,
    })
}

impl SecretKeyTable for SqliteTables<'_> {
    async fn lock_key_check(&self, _lock: CheckLock) -> Result<Option<Vec<u8>>, Failure> {
        self.key_record(KeyRecord::Check).await
    }

    async fn key_record(&self, record: KeyRecord) -> Result<Option<Vec<u8>>, Failure> {
        let sql = "select value from instance where name = ?1";
        let mut find = self.0.prepare_cached(sql)?;
        Ok(find
            .query_row([record.name()], |row| row.get(0))
            .optional()?)
    }

    async fn write_key_record(
        &self,
        record: KeyRecord,
        value: Option<&[u8]>,
    ) -> Result<(), Failure> {
        let Some(value) = value else {
            let sql = "delete from instance where name = ?1";
            self.0.execute(sql, [record.name()])?;
            return Ok(());
        };
        self.0.execute(
            "insert into instance (name, value) values (?1, ?2)
             on conflict (name) do update set value = excluded.value",
            params![record.name(), value],
        )?;
        Ok(())
    }

    async fn outdated_cells(
        &self,
        column: &'static SealedColumn,
        key: SecretKeyId,
        after: &CellKey,
        limit: u32,
    ) -> Result<Vec<SealedCell>, Failure> {
        let sql = fill(
            "select o.organization_id, s.{owner}, s.{part}, s.{column}
             from {table} s join {owners} o on o.{owner} = s.{owner}
             where {outdated} and (s.{owner}, s.{part}) > (?2, ?3)
             order by s.{owner}, s.{part} limit ?4",
            column,
        );
        let mut find = self.0.prepare_cached(&sql)?;
        let (start, part) = (column.start(key), BoundPart(&after.part));
        let rows = find.query_map(params![start, after.owner, part, limit], |row| {
            read_cell(row, column)
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    async fn count_outdated(
        &self,
        column: &'static SealedColumn,
        key: SecretKeyId,
    ) -> Result<u64, Failure> {
        let sql = fill("select count(*) from {table} s where {outdated}", column);
        let count = self
            .0
            .query_row(&sql, [column.start(key)], |row| row.get(0))?;
        Ok(count_to_u64(count))
    }

    async fn replace_cell(
        &self,
        column: &'static SealedColumn,
        cell: &SealedCell,
        value: &[u8],
    ) -> Result<bool, Failure> {
        let sql = fill(
            "update {table} set {column} = ?4
             where {owner} = ?1 and {part} = ?2 and {column} = ?3",
            column,
        );
        let bound = |value| BoundValue(column.form, value);
        let part = BoundPart(&cell.key.part);
        let changed = self.0.prepare_cached(&sql)?.execute(params![
            cell.key.owner,
            part,
            bound(cell.value.as_slice()),
            bound(value)
        ])?;
        Ok(changed > 0)
    }

    async fn all_organizations(&self) -> Result<Vec<OrganizationId>, Failure> {
        let sql = "select organization_id from organizations order by organization_id";
        let mut find = self.0.prepare(sql)?;
        let rows = find.query_map((), |row| row.get(0).map(OrganizationId::from_bytes))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    async fn insert_alert_secret(&self, app: AppId, sealed: &SealedSecret) -> Result<(), Failure> {
        self.0.execute(
            "insert into alert_secrets (app_id, sealed) values (?1, ?2) on conflict do nothing",
            params![app.as_bytes(), sealed.as_bytes()],
        )?;
        Ok(())
    }

    async fn stored_alert_secrets(
        &self,
        app: AppId,
    ) -> Result<Option<StoredAlertSecrets>, Failure> {
        let sql = "select sealed, previous, previous_until from alert_secrets where app_id = ?1";
        let mut find = self.0.prepare_cached(sql)?;
        let found = find.query_row([app.as_bytes()], |row| {
            let previous: Option<Vec<u8>> = row.get(1)?;
            let until: Option<i64> = row.get(2)?;
            Ok(StoredAlertSecrets {
                current: SealedSecret::from_bytes(row.get(0)?),
                previous: previous
                    .map(SealedSecret::from_bytes)
                    .zip(until.map(Timestamp::from_millis)),
            })
        });
        Ok(found.optional()?)
    }

    async fn write_alert_secrets(
        &self,
        app: AppId,
        secrets: &StoredAlertSecrets,
    ) -> Result<(), Failure> {
        let previous = secrets
            .previous
            .as_ref()
            .map(|(sealed, _)| sealed.as_bytes());
        let until = secrets
            .previous
            .as_ref()
            .map(|(_, until)| until.as_millis());
        self.0
            .prepare_cached(
                "insert into alert_secrets (app_id, sealed, previous, previous_until)
                 values (?1, ?2, ?3, ?4)
                 on conflict (app_id) do update set sealed = excluded.sealed,
                     previous = excluded.previous, previous_until = excluded.previous_until",
            )?
            .execute(params![
                app.as_bytes(),
                secrets.current.as_bytes(),
                previous,
                until,
            ])?;
        Ok(())
    }
}

#[async_trait]
impl SecretKeys for SqliteStore {
    async fn adopt_key(&self, check: StoredCheck) -> StoreResult<()> {
        self.write("adopt_key", move |connection| {
            connection.execute(
                "insert into instance (name, value) values ('secret_check', ?1)
                 on conflict (name) do nothing",
                [check.to_bytes()],
            )?;
            Ok(())
        })
        .await
    }

    async fn stored_keys(&self) -> StoreResult<StoredKeys> {
        self.read("stored_keys", |connection| {
            run(admin::stored_keys(&SqliteTables(connection)))
        })
        .await
    }

    async fn begin_key_rotation(
        &self,
        start: RotationStart,
        origin: AuditContext,
    ) -> StoreResult<bool> {
        self.write("begin_key_rotation", move |connection| {
            let tables = SqliteTables(connection);
            run(admin::begin_key_rotation(&tables, &start, &origin))
        })
        .await
    }

    async fn reencrypt(&self, request: ReencryptRequest) -> StoreResult<ReencryptedRows> {
        self.write("reencrypt", move |connection| {
            run(admin::reencrypt(&SqliteTables(connection), &request))
        })
        .await
    }

    async fn count_outdated_rows(&self, key: SecretKeyId) -> StoreResult<u64> {
        self.read("count_outdated_rows", move |connection| {
            run(admin::count_outdated_rows(&SqliteTables(connection), key))
        })
        .await
    }

    async fn finish_key_rotation(
        &self,
        unreadable: u64,
        origin: AuditContext,
    ) -> StoreResult<RotationEnd> {
        self.write("finish_key_rotation", move |connection| {
            let tables = SqliteTables(connection);
            run(admin::finish_key_rotation(&tables, unreadable, &origin))
        })
        .await
    }

    async fn note_key_holder(&self, holder: KeyHolder) -> StoreResult<()> {
        self.write_keeping_cache("note_key_holder", move |connection| {
            connection.execute(
                "insert into key_holders (node_id, name, keys, seen_at) values (?1, ?2, ?3, ?4)
                 on conflict (node_id) do update set
                     name = excluded.name, keys = excluded.keys, seen_at = excluded.seen_at",
                params![
                    holder.id,
                    holder.name,
                    key_ids_bytes(&holder.keys),
                    holder.seen_at.as_millis()
                ],
            )?;
            let forgotten = holder.seen_at.minus(tributary_store::KEY_HOLDER_KEPT);
            let sql = "delete from key_holders where seen_at < ?1";
            connection.execute(sql, [forgotten.as_millis()])?;
            Ok(())
        })
        .await
    }

    async fn forget_key_holder(&self, node: [u8; 16]) -> StoreResult<()> {
        self.write_keeping_cache("forget_key_holder", move |connection| {
            connection.execute("delete from key_holders where node_id = ?1", [node])?;
            Ok(())
        })
        .await
    }

    async fn key_holders(&self) -> StoreResult<Vec<KeyHolder>> {
        self.read("key_holders", |connection| {
            let sql = "select node_id, name, keys, seen_at from key_holders order by node_id";
            let mut find = connection.prepare(sql)?;
            let rows = find.query_map((), |row| {
                Ok(KeyHolder {
                    id: row.get(0)?,
                    name: row.get(1)?,
                    keys: key_ids(&row.get::<_, Vec<u8>>(2)?),
                    seen_at: Timestamp::from_millis(row.get(3)?),
                })
            })?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
        .await
    }

    async fn alert_secrets(
        &self,
        app: AppId,
    ) -> StoreResult<(OrganizationId, Option<StoredAlertSecrets>)> {
        self.read("alert_secrets", move |connection| {
            let sql = "select organization_id from apps where app_id = ?1";
            let mut find = connection.prepare_cached(sql)?;
            let found = find.query_row([app.as_bytes()], |row| row.get(0));
            let organization = found.optional()?.ok_or(Refusal::AppNotFound)?;
            let stored = run(SqliteTables(connection).stored_alert_secrets(app))?;
            Ok((OrganizationId::from_bytes(organization), stored))
        })
        .await
    }

    async fn rotate_alert_secret(
        &self,
        caller: &Authorized<AppsWrite>,
        app: AppId,
        rotation: AlertSecretRotation,
        origin: AuditContext,
    ) -> StoreResult<StoredAlertSecrets> {
        let organization = caller.organization_of(app)?;
        self.write_keeping_cache("rotate_alert_secret", move |connection| {
            let tables = SqliteTables(connection);
            let of = (organization, app);
            run(admin::rotate_alert_secret(&tables, of, &rotation, &origin))
        })
        .await
    }

    async fn keep_alert_secret(
        &self,
        app: AppId,
        sealed: SealedSecret,
    ) -> StoreResult<SealedSecret> {
        self.write_keeping_cache("keep_alert_secret", move |connection| {
            let tables = SqliteTables(connection);
            run(admin::keep_alert_secret(&tables, app, &sealed))
        })
        .await
    }

    async fn apps_without_alert_secret(
        &self,
        after: AppId,
        limit: u32,
    ) -> StoreResult<Vec<(OrganizationId, AppId)>> {
        self.read("apps_without_alert_secret", move |connection| {
            let mut find = connection.prepare(
                "select a.organization_id, a.app_id
                 from apps a left join alert_secrets s on s.app_id = a.app_id
                 where s.app_id is null and a.app_id > ?1 order by a.app_id limit ?2",
            )?;
            let rows = find.query_map(params![after.as_bytes(), limit], |row| {
                let organization = OrganizationId::from_bytes(row.get(0)?);
                Ok((organization, AppId::from_bytes(row.get(1)?)))
            })?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
        .await
    }
}
