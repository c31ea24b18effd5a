//! Constraints that make it unnecessary to read a table while it is locked.
//!
//! PostgreSQL reads the default partition when another one is attached, unless a constraint excludes
//! rows of its range. While such a constraint exists, it rejects rows, so it is removed at once, by
//! the next run, or by the next node that starts.

use super::catalog::{first_id, in_range, quoted_time};
use super::{CHANGE_SETTINGS, CLICKS, DELIVERIES, PartitionedTable, begin, conversion, try_lock};
use deadpool_postgres::{Object, Transaction};
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;
use tributary_domain::partitioning::{ConversionEnd, PartitionRange};
use tributary_domain::vocabulary::time::Timestamp;

/// How long a change waits for a lock that blocks neither reads nor writes. Longer than the server's
/// `deadlock_timeout`, after which autovacuum is cancelled.
pub(super) const WAIT_FOR_HARMLESS_LOCK: &str = "set local lock_timeout = '3s'";

/// Returns a statement that removes the constraint on the default partition.
pub(super) fn readmission(table: PartitionedTable) -> String {
    let name = table.name;
    format!("alter table {name}_other drop constraint if exists {name}_other_range;")
}

/// Rejects rows of a range in the default partition, so that attaching a partition does not read it.
/// Returns false if it contains such rows, and `None` if partitions cannot be changed now.
pub(crate) async fn exclude(
    connection: &mut Object,
    table: PartitionedTable,
    range: PartitionRange,
) -> Result<Option<bool>, tokio_postgres::Error> {
    let (name, in_range) = (table.name, in_range(table, range));
    let Some(tx) = begin(connection).await? else {
        return Ok(None);
    };
    let sql = format!("select pg_relation_size('{name}_other') = 0");
    if tx.query_typed_one(&sql, &[]).await?.try_get(0)? {
        return Ok(Some(true));
    }
    tx.batch_execute(&format!(
        "{}
         alter table {name}_other add constraint {name}_other_range check (not ({in_range})) not valid",
        readmission(table)
    ))
    .await?;
    tx.commit().await?;
    let Some(tx) = begin(connection).await? else {
        return Ok(None);
    };
    let (partition, constraint) = (format!("{name}_other"), format!("{name}_other_range"));
    if validate(&tx, &partition, &constraint).await? {
        tx.commit().await?;
        return Ok(Some(true));
    }
    tx.rollback().await?;
    readmit(connection, table).await?;
    Ok(Some(false))
}

/// Returns whether attaching a partition with this range does not read the default partition. Another
/// node may have removed the constraint since [`exclude`].
pub(super) async fn is_excluded(
    tx: &Transaction<'_>,
    table: PartitionedTable,
    range: PartitionRange,
) -> Result<bool, tokio_postgres::Error> {
    let name = table.name;
    let sql = format!(
        "select pg_relation_size('{name}_other') = 0
                or exists (select from pg_constraint
                           where conrelid = '{name}_other'::regclass
                             and conname = '{name}_other_range' and convalidated
                             and strpos(pg_get_constraintdef(oid), $1) > 0)"
    );
    let until = first_id(range.until).to_string();
    let params = [(&until as _, Type::TEXT)];
    tx.query_typed_one(&sql, &params).await?.try_get(0)
}

/// Removes the constraint on the default partition, if it exists.
pub(super) async fn readmit(
    connection: &mut Object,
    table: PartitionedTable,
) -> Result<(), tokio_postgres::Error> {
    let name = table.name;
    let sql = format!(
        "select exists (select from pg_constraint
                        where conrelid = to_regclass('{name}_other')
                          and conname = '{name}_other_range')"
    );
    let exists: bool = connection.query_typed_one(&sql, &[]).await?.try_get(0)?;
    if exists && let Some(tx) = begin(connection).await? {
        tx.batch_execute(&readmission(table)).await?;
        tx.commit().await?;
    }
    Ok(())
}

/// Checks all rows of a table. Returns false if one violates the constraint. Blocks neither reads nor
/// writes.
pub(super) async fn validate(
    tx: &Transaction<'_>,
    table: &str,
    constraint: &str,
) -> Result<bool, tokio_postgres::Error> {
    let sql = format!(
        "{WAIT_FOR_HARMLESS_LOCK};
         alter table {table} validate constraint {constraint}"
    );
    match tx.batch_execute(&sql).await {
        Ok(()) => Ok(true),
        Err(error) if error.code() == Some(&SqlState::CHECK_VIOLATION) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Calls [`remove_expired`] and logs an error, such as a table in use. The next run tries again.
pub(crate) async fn remove_expired_if_possible(client: &mut Client) {
    if let Err(error) = remove_expired(client).await {
        tracing::warn!(%error, "cannot remove an expired constraint of a partition");
    }
}

/// Removes constraints that would soon reject rows, because the node that added them has ended. Uses
/// the server's clock. Also necessary on a distributed database and during a move.
async fn remove_expired(client: &mut Client) -> Result<(), tokio_postgres::Error> {
    for table in [CLICKS, DELIVERIES] {
        let name = table.name;
        let converted = conversion::constraint_name(table);
        let in_default = (format!("{name}_other"), format!("{name}_other_range"));
        for (table, constraint) in [(name.to_owned(), converted), in_default] {
            remove_if_expired(client, &table, &constraint).await?;
        }
    }
    Ok(())
}

async fn remove_if_expired(
    client: &mut Client,
    table: &str,
    constraint: &str,
) -> Result<(), tokio_postgres::Error> {
    let sql = "select pg_get_constraintdef(oid),
                      (extract(epoch from clock_timestamp()) * 1000)::bigint
               from pg_constraint where conrelid = to_regclass($1) and conname = $2";
    let params = [(&table as _, Type::TEXT), (&constraint as _, Type::TEXT)];
    let Some(row) = client.query_typed_opt(sql, &params).await? else {
        return Ok(());
    };
    let (definition, now): (&str, i64) = (row.try_get(0)?, row.try_get(1)?);
    let now = Timestamp::from_millis(now);
    if quoted_time(definition).is_some_and(|from| ConversionEnd(from).may_continue(now)) {
        return Ok(());
    }
    let tx = client.transaction().await?;
    tx.batch_execute(CHANGE_SETTINGS).await?;
    if try_lock(&tx).await? {
        let sql = format!("alter table {table} drop constraint if exists {constraint}");
        tx.batch_execute(&sql).await?;
    }
    tx.commit().await
}
