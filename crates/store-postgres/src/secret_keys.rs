//! The secret key and its rotation, and the encrypted values of all tables.

use crate::rows::{id, uuid};
use crate::tx::Tx;
use crate::{Failure, PostgresStore};
use async_trait::async_trait;
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
use tributary_store::{
    ReencryptRequest, ReencryptedRows, RotationEnd, SecretKeys, StoreError, StoreResult,
};
use uuid::Uuid;

/// Returns the condition for rows with values that do not begin like those of a key (`$1`).
const fn outdated(form: SealedForm) -> &'static str {
    match form {
        SealedForm::Bytes => {
            "octet_length(s.{column}) > 0 and substring(s.{column} from 1 for 9) <> $1"
        }
        SealedForm::Credentials => {
            "replace(s.{column}, convert_from($1, 'UTF8'), '') like '%\"sealed\":\"%'"
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
        .replace(
            "{part_type}",
            if column.part_is_id { "uuid" } else { "text" },
        )
        .replace(
            "{value_type}",
            match column.form {
                SealedForm::Bytes => "bytea",
                SealedForm::Credentials => "text",
            },
        )
}

/// Returns the second part of a key as text, which the statements cast.
fn part_text(part: &CellPart) -> String {
    match part {
        CellPart::Text(text) => text.clone(),
        CellPart::Id(bytes) => uuid(bytes).to_string(),
    }
}

impl SecretKeyTable for Tx {
    async fn lock_key_check(&self, lock: CheckLock) -> Result<Option<Vec<u8>>, Failure> {
        let sql = match lock {
            CheckLock::Storing => {
                "select value from instance where name = 'secret_check' for share"
            }
            CheckLock::Replacing => {
                "select value from instance where name = 'secret_check' for update"
            }
        };
        let row = self.query_opt(sql, &[]).await?;
        Ok(row.map(|row| row.try_get(0)).transpose()?)
    }

    async fn key_record(&self, record: KeyRecord) -> Result<Option<Vec<u8>>, Failure> {
        let sql = "select value from instance where name = $1";
        let row = self.query_opt(sql, &[&record.name()]).await?;
        Ok(row.map(|row| row.try_get(0)).transpose()?)
    }

    async fn write_key_record(
        &self,
        record: KeyRecord,
        value: Option<&[u8]>,
    ) -> Result<(), Failure> {
        let Some(value) = value else {
            let sql = "delete from instance where name = $1";
            return self.execute(sql, &[&record.name()]).await;
        };
        self.execute(
            "insert into instance (name, value) values ($1, $2)
             on conflict (name) do update set value = excluded.value",
            &[&record.name(), &value],
        )
        .await
    }

    async fn outdated_cells(
        &self,
        column: &'static SealedColumn,
        key: SecretKeyId,
        after: &CellKey,
        limit: u32,
    ) -> Result<Vec<SealedCell>, Failure> {
        // The names are read as text, because a column may be an id or a text.
        let sql = fill(
            "select o.organization_id, s.{owner}, s.{part}::text, s.{column}
             from {table} s join {owners} o on o.{owner} = s.{owner}
             where {outdated} and (s.{owner}, s.{part}) > ($2, $3::text::{part_type})
             order by s.{owner}, s.{part} limit $4",
            column,
        );
        let (start, limit) = (column.start(key), i64::from(limit));
        let (owner, part) = (uuid(&after.owner), part_text(&after.part));
        let rows = self
            .query(&sql, &[&start.as_slice(), &owner, &part, &limit])
            .await?;
        let read = |row: &tokio_postgres::Row| {
            let part: String = row.try_get(2)?;
            let part = if column.part_is_id {
                let part = Uuid::parse_str(&part);
                let corrupt = |_| StoreError::corrupt(column.table, column.part, "a row");
                CellPart::Id(part.map_err(corrupt)?.into_bytes())
            } else {
                CellPart::Text(part)
            };
            let value = match column.form {
                SealedForm::Bytes => row.try_get(3)?,
                SealedForm::Credentials => row.try_get::<_, String>(3)?.into_bytes(),
            };
            Ok(SealedCell {
                organization: id(row, 0)?,
                key: CellKey {
                    owner: id(row, 1)?,
                    part,
                },
                value,
            })
        };
        rows.iter().map(read).collect()
    }

    async fn count_outdated(
        &self,
        column: &'static SealedColumn,
        key: SecretKeyId,
    ) -> Result<u64, Failure> {
        let sql = fill("select count(*) from {table} s where {outdated}", column);
        let row = self
            .query_one(&sql, &[&column.start(key).as_slice()])
            .await?;
        Ok(count_to_u64(row.try_get(0)?))
    }

    async fn replace_cell(
        &self,
        column: &'static SealedColumn,
        cell: &SealedCell,
        value: &[u8],
    ) -> Result<bool, Failure> {
        let sql = fill(
            "update {table} set {column} = $4
             where {owner} = $1 and {part} = $2::text::{part_type} and {column} = $3",
            column,
        );
        let (owner, part) = (uuid(&cell.key.owner), part_text(&cell.key.part));
        let changed = match column.form {
            SealedForm::Bytes => {
                let old = cell.value.as_slice();
                self.execute_counting(&sql, &[&owner, &part, &old, &value])
                    .await?
            }
            SealedForm::Credentials => {
                let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
                let (old, new) = (text(&cell.value), text(value));
                self.execute_counting(&sql, &[&owner, &part, &old, &new])
                    .await?
            }
        };
        Ok(changed > 0)
    }

    async fn all_organizations(&self) -> Result<Vec<OrganizationId>, Failure> {
        let sql = "select organization_id from organizations order by organization_id";
        let rows = self.query(sql, &[]).await?;
        let read = |row| Ok(OrganizationId::from_bytes(id(row, 0)?));
        rows.iter().map(read).collect()
    }

    async fn insert_alert_secret(&self, app: AppId, sealed: &SealedSecret) -> Result<(), Failure> {
        self.execute(
            "insert into alert_secrets (app_id, sealed) values ($1, $2) on conflict do nothing",
            &[&uuid(app.as_bytes()), &sealed.as_bytes()],
        )
        .await
    }

    async fn stored_alert_secrets(
        &self,
        app: AppId,
    ) -> Result<Option<StoredAlertSecrets>, Failure> {
        let sql = "select sealed, previous, previous_until from alert_secrets where app_id = $1";
        let row = self.query_opt(sql, &[&uuid(app.as_bytes())]).await?;
        let read = |row: tokio_postgres::Row| {
            let previous: Option<Vec<u8>> = row.try_get(1)?;
            let until: Option<i64> = row.try_get(2)?;
            Ok(StoredAlertSecrets {
                current: SealedSecret::from_bytes(row.try_get(0)?),
                previous: previous
                    .map(SealedSecret::from_bytes)
                    .zip(until.map(Timestamp::from_millis)),
            })
        };
        row.map(read).transpose()
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
        self.execute(
            "insert into alert_secrets (app_id, sealed, previous, previous_until)
             values ($1, $2, $3, $4)
             on conflict (app_id) do update set sealed = excluded.sealed,
                 previous = excluded.previous, previous_until = excluded.previous_until",
            &[
                &uuid(app.as_bytes()),
                &secrets.current.as_bytes(),
                &previous,
                &until,
            ],
        )
        .await
    }
}

#[async_trait]
impl SecretKeys for PostgresStore {
    async fn adopt_key(&self, check: StoredCheck) -> StoreResult<()> {
        self.write("adopt_key", async move |tx| {
            tx.execute(
                "insert into instance (name, value) values ('secret_check', $1)
                 on conflict (name) do nothing",
                &[&check.to_bytes().as_slice()],
            )
            .await
        })
        .await
    }

    async fn stored_keys(&self) -> StoreResult<StoredKeys> {
        self.read("stored_keys", async move |tx| admin::stored_keys(tx).await)
            .await
    }

    async fn begin_key_rotation(
        &self,
        start: RotationStart,
        origin: AuditContext,
    ) -> StoreResult<bool> {
        self.write("begin_key_rotation", async move |tx| {
            admin::begin_key_rotation(tx, &start, &origin).await
        })
        .await
    }

    async fn reencrypt(&self, request: ReencryptRequest) -> StoreResult<ReencryptedRows> {
        self.write("reencrypt", async move |tx| {
            admin::reencrypt(tx, &request).await
        })
        .await
    }

    async fn count_outdated_rows(&self, key: SecretKeyId) -> StoreResult<u64> {
        self.read("count_outdated_rows", async move |tx| {
            admin::count_outdated_rows(tx, key).await
        })
        .await
    }

    async fn finish_key_rotation(
        &self,
        unreadable: u64,
        origin: AuditContext,
    ) -> StoreResult<RotationEnd> {
        self.write("finish_key_rotation", async move |tx| {
            admin::finish_key_rotation(tx, unreadable, &origin).await
        })
        .await
    }

    async fn note_key_holder(&self, holder: KeyHolder) -> StoreResult<()> {
        self.write("note_key_holder", async move |tx| {
            tx.execute(
                "insert into key_holders (node_id, name, keys, seen_at) values ($1, $2, $3, $4)
                 on conflict (node_id) do update set
                     name = excluded.name, keys = excluded.keys, seen_at = excluded.seen_at",
                &[
                    &uuid(&holder.id),
                    &holder.name,
                    &key_ids_bytes(&holder.keys).as_slice(),
                    &holder.seen_at.as_millis(),
                ],
            )
            .await?;
            let sql = "delete from key_holders where seen_at < $1";
            let forgotten = holder.seen_at.minus(tributary_store::KEY_HOLDER_KEPT);
            tx.execute(sql, &[&forgotten.as_millis()]).await
        })
        .await
    }

    async fn forget_key_holder(&self, node: [u8; 16]) -> StoreResult<()> {
        self.write("forget_key_holder", async move |tx| {
            let sql = "delete from key_holders where node_id = $1";
            tx.execute(sql, &[&uuid(&node)]).await
        })
        .await
    }

    async fn key_holders(&self) -> StoreResult<Vec<KeyHolder>> {
        self.read("key_holders", async move |tx| {
            let sql = "select node_id, name, keys, seen_at from key_holders order by node_id";
            let rows = tx.query(sql, &[]).await?;
            let read = |row: &tokio_postgres::Row| {
                Ok(KeyHolder {
                    id: id(row, 0)?,
                    name: row.try_get(1)?,
                    keys: key_ids(row.try_get(2)?),
                    seen_at: Timestamp::from_millis(row.try_get(3)?),
                })
            };
            rows.iter().map(read).collect()
        })
        .await
    }

    async fn alert_secrets(
        &self,
        app: AppId,
    ) -> StoreResult<(OrganizationId, Option<StoredAlertSecrets>)> {
        self.read("alert_secrets", async move |tx| {
            let sql = "select organization_id from apps where app_id = $1";
            let row = tx.query_opt(sql, &[&uuid(app.as_bytes())]).await?;
            let row = row.ok_or(Refusal::AppNotFound)?;
            let organization = OrganizationId::from_bytes(id(&row, 0)?);
            Ok((organization, tx.stored_alert_secrets(app).await?))
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
        self.write("rotate_alert_secret", async move |tx| {
            admin::rotate_alert_secret(tx, (organization, app), &rotation, &origin).await
        })
        .await
    }

    async fn keep_alert_secret(
        &self,
        app: AppId,
        sealed: SealedSecret,
    ) -> StoreResult<SealedSecret> {
        self.write("keep_alert_secret", async move |tx| {
            admin::keep_alert_secret(tx, app, &sealed).await
        })
        .await
    }

    async fn apps_without_alert_secret(
        &self,
        after: AppId,
        limit: u32,
    ) -> StoreResult<Vec<(OrganizationId, AppId)>> {
        self.read("apps_without_alert_secret", async move |tx| {
            let rows = tx
                .query(
                    "select a.organization_id, a.app_id
                     from apps a left join alert_secrets s on s.app_id = a.app_id
                     where s.app_id is null and a.app_id > $1 order by a.app_id limit $2",
                    &[&uuid(after.as_bytes()), &i64::from(limit)],
                )
                .await?;
            let read = |row| {
                let organization = OrganizationId::from_bytes(id(row, 0)?);
                Ok((organization, AppId::from_bytes(id(row, 1)?)))
            };
            rows.iter().map(read).collect()
        })
        .await
    }
}
