//! Databases that Citus distributes over several servers.
//!
//! The tables of an app, whose primary keys begin with `app_id`, are distributed by `app_id`, so
//! all rows of an app are in one shard. `organizations` is a reference table, because `apps` refers
//! to it. All other tables are local tables of the coordinator: names, keys, sessions, the audit
//! log. Updates of reference tables lock all servers, so hot tables must not be reference tables.
//!
//! A node recognises a distributed database at the start. `tributary migrate --distributed`
//! converts a database (`conversion`).

mod conversion;
mod down_workers;
mod shards;
mod workers;

pub(crate) use conversion::convert;
pub(crate) use down_workers::{DownWorkers, ON_DOWN_WORKER, find_on_down_workers, start_watching};
pub(crate) use shards::{KnownShards, lane_of};
pub(crate) use workers::find_worker_warnings;

use crate::pool::PostgresOpenError;
use tokio_postgres::Client;

/// Returns whether the database has the `citus` extension.
pub(crate) async fn has_citus(client: &Client) -> Result<bool, PostgresOpenError> {
    let sql = "select exists (select from pg_extension where extname = 'citus')";
    Ok(client.query_typed_one(sql, &[]).await?.try_get(0)?)
}

/// Returns whether the apps of this database are distributed.
pub(crate) async fn is_distributed(client: &Client) -> Result<bool, PostgresOpenError> {
    if !has_citus(client).await? {
        return Ok(false);
    }
    let sql = "select exists (select from pg_dist_partition
                              where logicalrelid = to_regclass('apps') and partmethod = 'h')";
    Ok(client.query_typed_one(sql, &[]).await?.try_get(0)?)
}

/// Prepares a start on this database: finishes an interrupted conversion, distributes the tables of
/// new migrations, and rejects unsafe workers. Returns whether the database is distributed.
pub(crate) async fn prepare(client: &mut Client) -> Result<bool, PostgresOpenError> {
    if !is_distributed(client).await? {
        return Ok(false);
    }
    convert(client, &|step| tracing::info!("{step}")).await?;
    workers::check_workers(client).await?;
    Ok(true)
}
