//! Replaces old partitions by a table with the rows that stay.
//!
//! The rows that stay are copied while nodes use the partitions. Triggers note the keys of rows that
//! change meanwhile, and these rows are copied again. Then one short transaction puts the copy in the
//! place of the partitions, if nothing else has changed. The rest of the program does not notice.
//!
//! A transaction that still reads a snapshot from before the copy would not see the copied rows. So
//! the partitions stay until every such transaction has ended.

use super::catalog::{Partition, bounds, in_range, partitions};
use super::constraints::{exclude, is_excluded, readmission};
use super::{PartitionedTable, begin, is_disturbed, lock};
use deadpool_postgres::{Object, Transaction};
use std::time::Duration;
use tokio_postgres::types::Type;
use tokio_postgres::{GenericClient, Row};
use tributary_domain::partitioning::PartitionRange;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::PartitionReport;
use uuid::Uuid;

/// Number of attempts to update the copy and to replace the partitions in one run, and the pause
/// in between, for transactions that still read them.
const ROUNDS: u32 = 3;
const ROUND_PAUSE: Duration = Duration::from_secs(1);
/// Number of changed rows that are copied again in one transaction.
const CHANGED_MAX: i64 = 10_000;

/// A copy of the rows that stay.
#[derive(Debug)]
pub(crate) struct StagedCopy {
    /// Identifies the copy. Another node may have replaced it if this one was slow.
    id: u32,
    range: PartitionRange,
    /// Number of rows.
    rows: u64,
    /// The last transaction that wrote to the copy.
    written_by: String,
}

/// Replaces the partitions whose ids are all from before the cut-off.
pub(super) async fn compact_old(
    connection: &mut Object,
    table: PartitionedTable,
    stays: &str,
    cutoff: Timestamp,
    report: &mut PartitionReport,
) -> Result<(), tokio_postgres::Error> {
    let prefix = format!("{}_kept_", table.name);
    let is_compacted = |one: &Partition| one.name.starts_with(&prefix);
    loop {
        let all = partitions(&***connection, table).await?;
        let compacted = all.iter().take_while(|one| is_compacted(one));
        report.compacted_until = compacted.last().map(|one| one.range.until);
        let Some(position) = all
            .iter()
            .position(|one| !is_compacted(one) && one.range.may_drop(false, cutoff))
        else {
            return remove_abandoned(connection, table).await;
        };
        let (before, rest) = all.split_at(position);
        let Some(old) = rest.first() else {
            return Ok(());
        };
        let compacted = before.iter().rev().take_while(|one| is_compacted(one));
        let merged = old.range.merged_with(compacted.map(|one| one.range));
        let sources = all.get(position - merged..=position).unwrap_or_default();
        let condition = format!(
            "({stays} or {} >= {})",
            table.retained_from,
            cutoff.as_millis()
        );
        if !compact(connection, table, sources, &condition, report).await? {
            return Ok(());
        }
    }
}

/// Replaces adjacent partitions. Returns false if they have to stay for this time.
async fn compact(
    connection: &mut Object,
    table: PartitionedTable,
    sources: &[Partition],
    stays: &str,
    report: &mut PartitionReport,
) -> Result<bool, tokio_postgres::Error> {
    let Some(range) = whole_range(sources) else {
        return Ok(false);
    };
    if exclude(connection, table, range).await? != Some(true) {
        return Ok(false);
    }
    let Some(mut copy) = stage(connection, table, sources, stays).await? else {
        return Ok(false);
    };
    if !finish(connection, table, sources, stays, &mut copy).await? {
        return Ok(false);
    }
    let rows: u64 = sources.iter().map(|one| one.rows).sum();
    report.dropped += sources.len() as u64;
    report.removed_rows += rows.saturating_sub(copy.rows);
    Ok(true)
}

/// Returns the range of adjacent partitions.
fn whole_range(sources: &[Partition]) -> Option<PartitionRange> {
    Some(PartitionRange {
        from: sources.first()?.range.from,
        until: sources.last()?.range.until,
    })
}

/// Copies the rows that stay.
pub(crate) async fn stage(
    connection: &mut Object,
    table: PartitionedTable,
    sources: &[Partition],
    stays: &str,
) -> Result<Option<StagedCopy>, tokio_postgres::Error> {
    let Some(range) = whole_range(sources) else {
        return Ok(None);
    };
    let Some(id) = prepare(connection, table, sources, range).await? else {
        return Ok(None);
    };
    copy_rows(connection, table, id, range, stays).await
}

/// Copies the rows that have changed, and puts the copy in the place of the partitions. Returns false
/// if they have to stay for this time, and removes the copy.
pub(crate) async fn finish(
    connection: &mut Object,
    table: PartitionedTable,
    sources: &[Partition],
    stays: &str,
    copy: &mut StagedCopy,
) -> Result<bool, tokio_postgres::Error> {
    for _ in 0..ROUNDS {
        catch_up(connection, table, copy, stays).await?;
        if is_ready(connection, table, copy).await? {
            match swap(connection, table, sources, copy).await {
                Ok(true) => return Ok(true),
                Ok(false) => {}
                Err(error) if is_disturbed(&error) => break,
                Err(error) => return Err(error),
            }
        }
        tokio::time::sleep(ROUND_PAUSE).await;
    }
    if let Some(tx) = begin_with_copy(connection, table, copy.id).await? {
        tx.batch_execute(&remove_copy(table)).await?;
        tx.commit().await?;
    }
    Ok(false)
}

/// Removes the copy of a node that ended before it was finished. It contains personal data.
async fn remove_abandoned(
    connection: &mut Object,
    table: PartitionedTable,
) -> Result<(), tokio_postgres::Error> {
    let sql = format!("select to_regclass('{}_staying') is not null", table.name);
    let exists: bool = connection.query_typed_one(&sql, &[]).await?.try_get(0)?;
    if exists && let Some(tx) = begin(connection).await? {
        tx.batch_execute(&remove_copy(table)).await?;
        tx.commit().await?;
    }
    Ok(())
}

/// Returns statements that remove an unfinished copy.
pub(crate) fn remove_copy(table: PartitionedTable) -> String {
    let name = table.name;
    format!(
        "drop function if exists {name}_note_change() cascade;
         drop table if exists {name}_staying, {name}_changed;"
    )
}

/// Creates an empty table, and triggers that note changes to the partitions. Returns the table's id.
async fn prepare(
    connection: &mut Object,
    table: PartitionedTable,
    sources: &[Partition],
    range: PartitionRange,
) -> Result<Option<u32>, tokio_postgres::Error> {
    let Some(tx) = begin(connection).await? else {
        return Ok(None);
    };
    let (name, id) = (table.name, table.id);
    let mut sql = vec![remove_copy(table)];
    sql.push(format!(
        "create table {name}_staying (like {name} including all);
         alter table {name}_staying add constraint {name}_staying_range check ({});
         create table {name}_changed (app_id uuid not null, id uuid not null);
         create function {name}_note_change() returns trigger language plpgsql
         set search_path from current as $$
         begin
             if tg_op <> 'INSERT' then insert into {name}_changed values (old.app_id, old.{id}); end if;
             if tg_op <> 'DELETE' then insert into {name}_changed values (new.app_id, new.{id}); end if;
             return null;
         end $$;",
        in_range(table, range)
    ));
    for source in sources {
        sql.push(format!(
            "create trigger {name}_note_change after insert or update or delete on {}
             for each row execute function {name}_note_change();",
            source.name
        ));
    }
    tx.batch_execute(&sql.concat()).await?;
    add_foreign_keys(&tx, table).await?;
    let sql = format!("select '{name}_staying'::regclass::oid");
    let id = tx.query_typed_one(&sql, &[]).await?.try_get(0)?;
    tx.commit().await?;
    Ok(Some(id))
}

/// Adds the table's foreign keys to the copy, so that they are not checked while the table is locked.
async fn add_foreign_keys(
    tx: &Transaction<'_>,
    table: PartitionedTable,
) -> Result<(), tokio_postgres::Error> {
    let sql = "select format('alter table %I add constraint %I %s', $1 || '_staying', conname,
                             pg_get_constraintdef(oid))
               from pg_constraint where conrelid = to_regclass($1) and contype = 'f'";
    for row in tx.query_typed(sql, &[(&table.name, Type::TEXT)]).await? {
        tx.batch_execute(row.try_get(0)?).await?;
    }
    Ok(())
}

/// Begins a change of the copy. Returns `None` if another node has replaced it.
async fn begin_with_copy(
    connection: &mut Object,
    table: PartitionedTable,
    id: u32,
) -> Result<Option<Transaction<'_>>, tokio_postgres::Error> {
    let Some(tx) = begin(connection).await? else {
        return Ok(None);
    };
    let sql = format!("select to_regclass('{}_staying')::oid = $1", table.name);
    let row = tx.query_typed_one(&sql, &[(&id, Type::OID)]).await?;
    let is_same: Option<bool> = row.try_get(0)?;
    Ok(if is_same == Some(true) {
        Some(tx)
    } else {
        None
    })
}

/// Commits and returns the transaction's id.
async fn commit(tx: Transaction<'_>) -> Result<String, tokio_postgres::Error> {
    let sql = "select pg_current_xact_id()::xid::text";
    let id = tx.query_typed_one(sql, &[]).await?.try_get(0)?;
    tx.commit().await?;
    Ok(id)
}

/// Copies the rows into the empty table.
async fn copy_rows(
    connection: &mut Object,
    table: PartitionedTable,
    id: u32,
    range: PartitionRange,
    stays: &str,
) -> Result<Option<StagedCopy>, tokio_postgres::Error> {
    let Some(tx) = begin_with_copy(connection, table, id).await? else {
        return Ok(None);
    };
    let (name, in_range) = (table.name, in_range(table, range));
    let sql =
        format!("insert into {name}_staying select * from {name} where {in_range} and {stays}");
    let rows = tx.execute_typed(&sql, &[]).await?;
    tx.batch_execute(&format!("analyze {name}_staying")).await?;
    let written_by = commit(tx).await?;
    Ok(Some(StagedCopy {
        id,
        range,
        rows,
        written_by,
    }))
}

/// Copies the rows again that have changed since.
async fn catch_up(
    connection: &mut Object,
    table: PartitionedTable,
    copy: &mut StagedCopy,
    stays: &str,
) -> Result<(), tokio_postgres::Error> {
    let (name, id) = (table.name, table.id);
    loop {
        let Some(tx) = begin_with_copy(connection, table, copy.id).await? else {
            return Ok(());
        };
        let sql = format!(
            "delete from {name}_changed where ctid in (select ctid from {name}_changed limit $1)
             returning app_id, id"
        );
        let changed = tx.query_typed(&sql, &[(&CHANGED_MAX, Type::INT8)]).await?;
        if changed.is_empty() {
            return Ok(());
        }
        let key = |row: &Row| Ok((row.try_get::<_, Uuid>(0)?, row.try_get::<_, Uuid>(1)?));
        let keys: Result<(Vec<Uuid>, Vec<Uuid>), tokio_postgres::Error> =
            changed.iter().map(key).collect();
        let (apps, ids) = keys?;
        let params = [
            (&apps as _, Type::UUID_ARRAY),
            (&ids as _, Type::UUID_ARRAY),
        ];
        let keys = format!("(app_id, {id}) in (select * from unnest($1, $2))");
        let sql = format!("delete from {name}_staying where {keys}");
        tx.execute_typed(&sql, &params).await?;
        let sql =
            format!("insert into {name}_staying select * from {name} where {keys} and {stays}");
        tx.execute_typed(&sql, &params).await?;
        copy.written_by = commit(tx).await?;
    }
}

/// Returns whether the copy may replace the partitions: no row has changed since, and no transaction
/// of a user reads a snapshot from before the copy. The type of another role's session is hidden from
/// most roles, but not its user.
async fn is_complete(
    client: &impl GenericClient,
    table: PartitionedTable,
    copy: &StagedCopy,
) -> Result<bool, tokio_postgres::Error> {
    let sql = format!(
        "select not exists (select from {}_changed)
                and not exists (select from pg_stat_activity
                                where datname = current_database() and pid <> pg_backend_pid()
                                  and usesysid is not null
                                  and age(backend_xmin) >= age($1::text::xid))",
        table.name
    );
    let params = [(&copy.written_by as _, Type::TEXT)];
    client.query_typed_one(&sql, &params).await?.try_get(0)
}

/// Returns whether the copy is complete, without locking the table. False if another node has
/// replaced it.
async fn is_ready(
    connection: &mut Object,
    table: PartitionedTable,
    copy: &StagedCopy,
) -> Result<bool, tokio_postgres::Error> {
    match begin_with_copy(connection, table, copy.id).await? {
        Some(tx) => is_complete(&*tx, table, copy).await,
        None => Ok(false),
    }
}

/// Puts the copy in the place of the partitions. Returns false if something has changed meanwhile.
async fn swap(
    connection: &mut Object,
    table: PartitionedTable,
    sources: &[Partition],
    copy: &StagedCopy,
) -> Result<bool, tokio_postgres::Error> {
    let Some(tx) = begin_with_copy(connection, table, copy.id).await? else {
        return Ok(false);
    };
    if !lock(&tx, table).await?
        || !is_complete(&*tx, table, copy).await?
        || !is_excluded(&tx, table, copy.range).await?
    {
        return Ok(false);
    }
    let name = table.name;
    let mut sql = Vec::new();
    for source in sources {
        sql.push(format!(
            "alter table {name} detach partition {};",
            source.name
        ));
    }
    sql.push(format!(
        "alter table {name} attach partition {name}_staying {};",
        bounds(copy.range)
    ));
    for source in sources {
        sql.push(format!("drop table {};", source.name));
    }
    sql.push(readmission(table));
    sql.push(format!(
        "drop function {name}_note_change();
         drop table {name}_changed;
         alter table {name}_staying drop constraint {name}_staying_range;
         alter table {name}_staying rename to {name}_kept_{}",
        copy.range.label()
    ));
    tx.batch_execute(&sql.concat()).await?;
    tx.commit().await?;
    Ok(true)
}
