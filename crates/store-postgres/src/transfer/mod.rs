//! Moving all rows of another database into this one, or of this one into another (`source`).
//!
//! A target is empty at first. Its secondary indexes and constraints are dropped, the rows are
//! copied in bulk, and the indexes and constraints are created again before changed rows follow. The
//! tables `move_…` hold what an interrupted move needs to continue. While they exist, no server
//! starts on the database.

mod apply;
mod bulk;
mod definitions;
mod source;
mod tuples;

use crate::distributed::is_distributed;
use crate::migrate;
use crate::pool::{self, Pool, PostgresOpenError, PostgresOptions};
use deadpool_postgres::Object;
use tokio_postgres::types::Type;
use tributary_store::transfer::{CatalogTable, MoveId};

pub use bulk::CopyProgress;
pub(crate) use source::reject_moved;
pub use source::{PostgresMoveRound, PostgresMoveSource};

/// Advisory lock that keeps two processes from moving the same schema: "move" in ASCII.
const MOVE_LOCK: i32 = 0x6d6f_7665;
/// The row of `instance` that names the last finished move.
const MOVED_ROW: &str = "moved_from";

/// Why rows cannot be moved from or to PostgreSQL.
#[derive(Debug, thiserror::Error)]
pub enum PostgresMoveError {
    /// The database cannot be used.
    #[error("cannot use the PostgreSQL database")]
    Database(#[source] PostgresOpenError),
    /// Rows in the database differ from those that were copied.
    #[error(
        "the rows of {0} in PostgreSQL differ from those that were copied; something else wrote to \
         the target"
    )]
    Differs(String),
    /// Another process is moving rows from or to the database.
    #[error("another `tributary move` with this PostgreSQL database is running")]
    Busy,
    /// The database is distributed over several servers.
    #[error("a distributed PostgreSQL database cannot be moved")]
    Distributed,
    /// The schema is not that of this version.
    #[error(
        "the PostgreSQL database does not have the schema of this version; run `tributary migrate` \
         with the version of the servers"
    )]
    OtherSchema,
    /// The schema was migrated after the move began, so some changes were not logged.
    #[error(
        "the PostgreSQL database was migrated after the move began; cancel the move with `tributary \
         move --cancel`, remove the unfinished file (.moving), and begin again"
    )]
    Migrated,
    /// Another move of the database is in progress.
    #[error(
        "another move of the PostgreSQL database is in progress or finished; cancel it with \
         `tributary move --cancel` first"
    )]
    AnotherMove,
}

impl From<PostgresOpenError> for PostgresMoveError {
    fn from(error: PostgresOpenError) -> Self {
        Self::Database(error)
    }
}

impl From<tokio_postgres::Error> for PostgresMoveError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Database(error.into())
    }
}

/// A database that rows are moved into.
pub struct PostgresMoveTarget {
    client: Object,
    /// Keeps the connection open.
    _pool: Pool,
}

impl PostgresMoveTarget {
    /// Connects and migrates the schema.
    pub async fn connect(url: &str, options: PostgresOptions) -> Result<Self, PostgresMoveError> {
        let (mut client, pool) = open(url, options).await?;
        migrate::migrate(&pool, &mut client).await?;
        Ok(Self {
            client,
            _pool: pool,
        })
    }

    /// Lists the tables.
    pub async fn catalog(&self) -> Result<Vec<CatalogTable>, PostgresMoveError> {
        read_catalog(&self.client).await
    }

    /// Returns the unfinished move into this database.
    pub async fn unfinished(&self) -> Result<Option<MoveId>, PostgresMoveError> {
        if !is_target(&self.client).await? {
            return Ok(None);
        }
        let sql = "select uuid_send(move_id) from move_state";
        let id = self.client.query_typed_one(sql, &[]).await?;
        Ok(id.try_get::<_, &[u8]>(0)?.try_into().ok().map(MoveId))
    }

    /// Returns the last finished move into this database.
    pub async fn finished(&self) -> Result<Option<MoveId>, PostgresMoveError> {
        let sql = "select value from instance where name = $1";
        let row = self.client.query_typed(sql, &[(&MOVED_ROW, Type::TEXT)]);
        let row = row.await?.into_iter().next();
        let id = row.map(|row| row.try_get::<_, Vec<u8>>(0)).transpose()?;
        Ok(id.and_then(|id| id.try_into().ok()).map(MoveId))
    }
}

/// Returns whether an unfinished move writes to this database.
pub(crate) async fn is_target(client: &Object) -> Result<bool, PostgresOpenError> {
    let sql = "select to_regclass('move_state') is not null";
    Ok(client.query_typed_one(sql, &[]).await?.try_get(0)?)
}

/// Connects and makes sure that no other process moves this schema.
async fn open(url: &str, options: PostgresOptions) -> Result<(Object, Pool), PostgresMoveError> {
    let pool = Pool::open(url, options)?;
    let client = pool.first_connection().await?;
    pool::check_server(&client).await?;
    if is_distributed(&client).await? {
        return Err(PostgresMoveError::Distributed);
    }
    let sql = format!("select pg_try_advisory_lock({MOVE_LOCK}, hashtext(current_schema()))");
    if !client.query_typed_one(&sql, &[]).await?.try_get(0)? {
        return Err(PostgresMoveError::Busy);
    }
    client
        .batch_execute(
            "set synchronous_commit = on; set statement_timeout = 0; set lock_timeout = '10s';
             set idle_in_transaction_session_timeout = 0",
        )
        .await?;
    Ok((client, pool))
}

/// Lists the tables, except for an unfinished copy of clicks (`partitions::compaction`).
async fn read_catalog(client: &Object) -> Result<Vec<CatalogTable>, PostgresMoveError> {
    let rows = client
        .query_typed(
            "select c.relname::text, a.attname::text, format_type(a.atttypid, null),
                    coalesce(array_position(k.conkey, a.attnum), 0)
             from pg_class as c
             join pg_attribute as a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
             left join pg_constraint as k on k.conrelid = c.oid and k.contype = 'p'
             where c.relnamespace = current_schema()::regnamespace
               and c.relkind in ('r', 'p') and not c.relispartition
               and c.relname not in ('clicks_staying', 'clicks_changed')
             order by c.relname, a.attnum",
            &[],
        )
        .await?;
    let mut tables: Vec<(CatalogTable, Vec<(i32, String)>)> = Vec::new();
    for row in rows {
        let (table, column): (String, String) = (row.try_get(0)?, row.try_get(1)?);
        if tables.last().is_none_or(|(last, _)| last.name != table) {
            let (columns, key) = (Vec::new(), Vec::new());
            let name = table;
            tables.push((CatalogTable { name, columns, key }, Vec::new()));
        }
        if let Some((table, key)) = tables.last_mut() {
            let position: i32 = row.try_get(3)?;
            if position > 0 {
                key.push((position, column.clone()));
            }
            table.columns.push((column, row.try_get(2)?));
        }
    }
    let with_key = |(mut table, mut key): (CatalogTable, Vec<(i32, String)>)| {
        key.sort();
        table.key = key.into_iter().map(|(_, name)| name).collect();
        table
    };
    Ok(tables.into_iter().map(with_key).collect())
}
