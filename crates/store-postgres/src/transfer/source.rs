//! Moving all rows of this database away, while nodes may be using it.
//!
//! As on SQLite, triggers log the keys of changed rows, and the cut-over adds a fence. A round reads
//! the log and the rows it names in one snapshot, and deletes what it read from the log when the rows
//! are stored elsewhere.

use super::tuples::{for_each_tuple, sum_of};
use super::{PostgresMoveError, open, read_catalog};
use crate::migrate;
use crate::pool::{Pool, PostgresOpenError, PostgresOptions};
use deadpool_postgres::{Object, Transaction};
use tokio_postgres::GenericClient;
use tokio_postgres::types::Type;
use tributary_store::transfer::{CatalogTable, MoveId, MovePhase, RowSum, TransferTable};

/// What nodes report for each change after the cut-over.
const FENCE_MESSAGE: &str =
    "this database was moved; restart the servers with the new database_url";

/// A database that is being moved away.
pub struct PostgresMoveSource {
    client: Object,
    /// Keeps the connection open.
    _pool: Pool,
}

impl PostgresMoveSource {
    /// Connects to an existing database with the schema of this version.
    pub async fn connect(url: &str, options: PostgresOptions) -> Result<Self, PostgresMoveError> {
        let (client, pool) = open(url, options).await?;
        let newest = migrate::MIGRATIONS.last().map_or(0, |step| step.number);
        if migration(&**client).await? != Some(newest) {
            return Err(PostgresMoveError::OtherSchema);
        }
        Ok(Self {
            client,
            _pool: pool,
        })
    }

    /// Lists the tables.
    pub async fn catalog(&self) -> Result<Vec<CatalogTable>, PostgresMoveError> {
        read_catalog(&self.client).await
    }

    /// Returns the move in progress.
    pub async fn state(&self) -> Result<Option<(MoveId, MovePhase)>, PostgresMoveError> {
        Ok(read_state(&self.client).await?)
    }

    /// Starts to log changes. Waits for transactions that have changed a table.
    pub async fn start_log(
        &mut self,
        id: MoveId,
        tables: &[TransferTable],
    ) -> Result<(), PostgresMoveError> {
        let newest = migration(&**self.client).await?.unwrap_or(0);
        let tx = self.client.transaction().await?;
        tx.batch_execute(
            "create table move_source (move_id uuid not null, migration bigint not null, phase text not null)",
        )
        .await?;
        tx.execute_typed(
            "insert into move_source (move_id, migration, phase) values ($1, $2, $3)",
            &[
                (&uuid::Uuid::from_bytes(id.0), Type::UUID),
                (&newest, Type::INT8),
                (&MovePhase::Following.as_str(), Type::TEXT),
            ],
        )
        .await?;
        for table in tables {
            tx.batch_execute(&log_sql(table)).await?;
        }
        tx.commit().await?;
        Ok(())
    }

    /// Fails if the schema is not the one that the log was made for.
    pub async fn check_log(&self, tables: &[TransferTable]) -> Result<(), PostgresMoveError> {
        check_log(&**self.client, tables).await
    }

    /// Calls `each` with every row of a table, in the order of its key.
    pub async fn read_table<E: From<PostgresMoveError>>(
        &mut self,
        table: &TransferTable,
        each: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let tx = self.client.transaction().await;
        let tx = tx.map_err(PostgresMoveError::from)?;
        let query = format!(
            "select {} from {} order by {}",
            table.column_list(),
            table.name,
            table.key_list()
        );
        for_each_tuple(&tx, &query, each).await
    }

    /// Begins a round: a snapshot of the log and the rows.
    pub async fn begin_round(&mut self) -> Result<PostgresMoveRound<'_>, PostgresMoveError> {
        let tx = self.client.transaction().await?;
        tx.batch_execute("set transaction isolation level repeatable read")
            .await?;
        Ok(PostgresMoveRound { tx })
    }

    /// Rejects all further changes. Changes that were committed before are in the log.
    pub async fn fence(&mut self, tables: &[TransferTable]) -> Result<(), PostgresMoveError> {
        let tx = self.client.transaction().await?;
        // Wait for a node that is migrating (at most `lock_timeout`), and let none begin until the
        // commit. All schemas of the database share the lock, so the node may be migrating another
        // schema. Only the check of the log shows whether this one was migrated.
        let lock = format!("select pg_advisory_xact_lock({})", migrate::LOCK);
        tx.batch_execute(&lock).await?;
        check_log(&*tx, tables).await?;
        tx.batch_execute(&format!(
            "create or replace function move_fence() returns trigger language plpgsql as $$
             begin
                 raise exception '{FENCE_MESSAGE}' using errcode = 'read_only_sql_transaction';
             end $$"
        ))
        .await?;
        for table in tables {
            tx.batch_execute(&format!(
                "create or replace trigger move_fence before insert or update or delete or truncate
                 on {} for each statement execute function move_fence()",
                table.name
            ))
            .await?;
        }
        set_phase(&tx, MovePhase::Fenced).await?;
        tx.commit().await?;
        Ok(())
    }

    /// Removes the log after the cut-over. The fence stays.
    pub async fn finish(&mut self) -> Result<(), PostgresMoveError> {
        let tables = self.catalog().await?;
        let tx = self.client.transaction().await?;
        set_phase(&tx, MovePhase::Moved).await?;
        drop_log(&tx, tables.iter().map(|table| table.name.as_str())).await?;
        tx.commit().await?;
        Ok(())
    }

    /// Removes the log and the fence, so that servers may write again.
    pub async fn cancel(&mut self) -> Result<(), PostgresMoveError> {
        let tables = self.catalog().await?;
        let tx = self.client.transaction().await?;
        drop_log(&tx, tables.iter().map(|table| table.name.as_str())).await?;
        tx.batch_execute(
            "drop function if exists move_fence() cascade; drop table if exists move_source",
        )
        .await?;
        tx.commit().await?;
        Ok(())
    }
}

/// A snapshot of the log and the rows.
pub struct PostgresMoveRound<'a> {
    tx: Transaction<'a>,
}

impl PostgresMoveRound<'_> {
    /// Returns whether rows of a table have changed.
    pub async fn has_changes(&self, table: &TransferTable) -> Result<bool, PostgresMoveError> {
        let sql = format!("select exists (select 1 from move_log_{})", table.name);
        Ok(self.tx.query_typed_one(&sql, &[]).await?.try_get(0)?)
    }

    /// Calls `each` with the key of every changed row.
    pub async fn read_keys<E: From<PostgresMoveError>>(
        &self,
        table: &TransferTable,
        each: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let query = format!(
            "select distinct {} from move_log_{}",
            table.key_list(),
            table.name
        );
        for_each_tuple(&self.tx, &query, each).await
    }

    /// Calls `each` with every changed row that exists.
    pub async fn read_rows<E: From<PostgresMoveError>>(
        &self,
        table: &TransferTable,
        each: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let (name, key) = (&table.name, table.key_list());
        let columns = table
            .columns
            .iter()
            .map(|column| format!("stored.{}", column.name));
        let query = format!(
            "select {} from {name} as stored join (select distinct {key} from move_log_{name}) as changed using ({key})",
            columns.collect::<Vec<_>>().join(", ")
        );
        for_each_tuple(&self.tx, &query, each).await
    }

    /// Sums the rows of a table.
    pub async fn sum(&self, table: &TransferTable) -> Result<RowSum, PostgresMoveError> {
        let query = format!("select {} from {}", table.column_list(), table.name);
        sum_of(&self.tx, &query).await
    }

    /// Deletes the log entries of this snapshot. Later entries stay.
    pub async fn forget(self, tables: &[TransferTable]) -> Result<(), PostgresMoveError> {
        for table in tables {
            let sql = format!("delete from move_log_{}", table.name);
            self.tx.execute_typed(&sql, &[]).await?;
        }
        self.tx.commit().await?;
        Ok(())
    }
}

fn log_sql(table: &TransferTable) -> String {
    let (name, key) = (&table.name, table.key_list());
    let list = |row: &str| {
        let columns = table.key.iter().map(|(name, _)| format!("{row}.{name}"));
        columns.collect::<Vec<_>>().join(", ")
    };
    format!(
        "create table move_log_{name} as select {key} from {name} with no data;
         create function move_log_{name}() returns trigger language plpgsql set search_path from current as $$
         begin
             if tg_op <> 'INSERT' then insert into move_log_{name} ({key}) values ({old}); end if;
             if tg_op <> 'DELETE' then insert into move_log_{name} ({key}) values ({new}); end if;
             return null;
         end $$;
         create trigger move_log after insert or update or delete on {name}
         for each row execute function move_log_{name}();",
        old = list("old"),
        new = list("new")
    )
}

async fn drop_log(
    tx: &Transaction<'_>,
    tables: impl Iterator<Item = &str>,
) -> Result<(), PostgresMoveError> {
    for name in tables {
        tx.batch_execute(&format!(
            "drop function if exists move_log_{name}() cascade; drop table if exists move_log_{name}"
        ))
        .await?;
    }
    Ok(())
}

async fn set_phase(tx: &Transaction<'_>, phase: MovePhase) -> Result<(), PostgresMoveError> {
    let sql = "update move_source set phase = $1";
    tx.execute_typed(sql, &[(&phase.as_str(), Type::TEXT)])
        .await?;
    Ok(())
}

/// Returns the newest migration, or `None` if there are no tables.
async fn migration(client: &impl GenericClient) -> Result<Option<i64>, PostgresMoveError> {
    let sql = "select to_regclass('schema_migrations') is not null";
    if !client.query_typed_one(sql, &[]).await?.try_get(0)? {
        return Ok(None);
    }
    let sql = "select max(number) from schema_migrations";
    Ok(client.query_typed_one(sql, &[]).await?.try_get(0)?)
}

async fn read_state(client: &Object) -> Result<Option<(MoveId, MovePhase)>, PostgresOpenError> {
    let sql = "select to_regclass('move_source') is not null";
    if !client.query_typed_one(sql, &[]).await?.try_get(0)? {
        return Ok(None);
    }
    let sql = "select uuid_send(move_id), phase from move_source";
    let row = client.query_typed_one(sql, &[]).await?;
    let id = row.try_get::<_, &[u8]>(0)?.try_into().unwrap_or_default();
    Ok(Some((MoveId(id), MovePhase::parse(row.try_get(1)?))))
}

/// Fails if the schema is not the one that the log was made for.
async fn check_log(
    client: &impl GenericClient,
    tables: &[TransferTable],
) -> Result<(), PostgresMoveError> {
    let row = client
        .query_typed_one(
            "select (select migration from move_source),
                    (select count(*) from pg_trigger join pg_class as c on c.oid = tgrelid
                     where c.relnamespace = current_schema()::regnamespace and tgname = 'move_log'
                       and tgparentid = 0)",
            &[],
        )
        .await?;
    let logged = usize::try_from(row.try_get::<_, i64>(1)?).ok();
    if Some(row.try_get(0)?) == migration(client).await? && logged == Some(tables.len()) {
        Ok(())
    } else {
        Err(PostgresMoveError::Migrated)
    }
}

/// Fails if the data was moved away, so that no server starts on it by mistake.
pub(crate) async fn reject_moved(client: &Object) -> Result<(), PostgresOpenError> {
    match read_state(client).await? {
        Some((_, MovePhase::Fenced | MovePhase::Moved)) => Err(PostgresOpenError::Moved),
        _ => Ok(()),
    }
}
