//! Converts a database to a distributed one.
//!
//! Each step is a transaction, and each step looks at what is left to do. So an interrupted
//! conversion continues where it stopped, and a complete one does nothing.
//!
//! Citus refuses foreign keys between a distributed table and a local one, so all foreign keys of
//! the tables are dropped first. Their definitions wait in `instance` until they are added again.

use crate::migrate::LOCK;
use crate::partitions::{self, compaction::remove_copy};
use crate::pool::PostgresOpenError;
use std::time::Instant;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Transaction};

/// Prefix of the names under which `instance` keeps statements that add foreign keys.
const FOREIGN_KEY_PREFIX: &str = "foreign_key ";

/// Settings of each step. Citus refuses several changes to related tables in one transaction,
/// unless it makes them one after the other. A step takes as long as copying the table's rows.
const STEP_SETTINGS: &str = "set local synchronous_commit = on;
     set local citus.multi_shard_modify_mode = 'sequential';
     set local statement_timeout = 0;
     set local idle_in_transaction_session_timeout = '1min';
     set local lock_timeout = '10s'";

/// Lists tables that are not distributed yet although their rows belong to an app. `apps` is first,
/// because the shards of the others are placed beside its shards. The coordinator may have shards,
/// too, which look like such tables.
const LOCAL_APP_TABLES: &str = "
    select c.oid from pg_class as c
    join pg_index as i on i.indrelid = c.oid and i.indisprimary
    join pg_attribute as a on a.attrelid = c.oid and a.attnum = i.indkey[0] and a.attname = 'app_id'
    where c.relnamespace = current_schema()::regnamespace and c.relkind in ('r', 'p')
      and not c.relispartition and not relation_is_a_known_shard(c.oid)
      and not exists (select from pg_dist_partition where logicalrelid = c.oid and partmethod = 'h')
    order by c.relname <> 'apps', c.relname";

/// Lists `organizations`, unless it is a reference table already.
const LOCAL_ORGANIZATIONS: &str = "
    select c.oid from pg_class as c
    where c.oid = to_regclass('organizations')
      and not exists (select from pg_dist_partition
                      where logicalrelid = c.oid and partmethod = 'n' and repmodel = 't')";

/// Distributes what is not distributed yet, and passes each step to `report`.
pub(crate) async fn convert(
    client: &mut Client,
    report: &(dyn Fn(&str) + Sync),
) -> Result<(), PostgresOpenError> {
    // Nodes that start meanwhile wait, because they take the same lock to migrate.
    client
        .batch_execute(&format!(
            "set lock_timeout = 0; set statement_timeout = 0;
             select pg_advisory_lock({LOCK});
             reset lock_timeout; reset statement_timeout"
        ))
        .await?;
    let outcome = run_steps(client, report).await;
    let unlock = format!("select pg_advisory_unlock({LOCK})");
    let unlocked = client.batch_execute(&unlock).await;
    outcome?;
    Ok(unlocked?)
}

async fn run_steps(
    client: &mut Client,
    report: &(dyn Fn(&str) + Sync),
) -> Result<(), PostgresOpenError> {
    // An unfinished copy of clicks has triggers, and partitions are not maintained from now on.
    client
        .batch_execute(&remove_copy(partitions::CLICKS))
        .await?;
    let organizations = table_names(client, LOCAL_ORGANIZATIONS).await?;
    let tables = table_names(client, LOCAL_APP_TABLES).await?;
    drop_foreign_keys(client, report).await?;
    for table in organizations {
        let sql = "select create_reference_table($1::text::regclass)";
        place_table(client, &table, sql).await?;
        report(&format!("made {table} a reference table"));
    }
    for table in tables {
        let begun = Instant::now();
        let neighbour = if table == "apps" { "none" } else { "apps" };
        let sql = format!(
            "select create_distributed_table($1::text::regclass, 'app_id',
                                             colocate_with => '{neighbour}')"
        );
        place_table(client, &table, &sql).await?;
        let seconds = begun.elapsed().as_secs_f64();
        report(&format!("distributed {table} by app_id in {seconds:.1} s"));
    }
    add_foreign_keys(client, report).await?;
    remove_local_rows(client, report).await
}

/// Returns the names of tables, as SQL spells them.
async fn table_names(client: &Client, tables: &str) -> Result<Vec<String>, PostgresOpenError> {
    let sql = format!("select oid::regclass::text from ({tables}) as tables");
    let rows = client.query_typed(&sql, &[]).await?;
    rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
}

async fn begin(client: &mut Client) -> Result<Transaction<'_>, PostgresOpenError> {
    let tx = client.transaction().await?;
    tx.batch_execute(STEP_SETTINGS).await?;
    Ok(tx)
}

async fn place_table(client: &mut Client, table: &str, sql: &str) -> Result<(), PostgresOpenError> {
    let tx = begin(client).await?;
    tx.query_typed(sql, &[(&table, Type::TEXT)]).await?;
    Ok(tx.commit().await?)
}

/// Drops the foreign keys from and to tables that are still local. Keys of tables that stay local
/// are not added again: a local table cannot refer to a reference table. Organizations are never
/// deleted.
async fn drop_foreign_keys(
    client: &mut Client,
    report: &(dyn Fn(&str) + Sync),
) -> Result<(), PostgresOpenError> {
    let tx = begin(client).await?;
    let sql = format!(
        "with app_tables as ({LOCAL_APP_TABLES}), placed as (
             select oid from app_tables union select oid from ({LOCAL_ORGANIZATIONS}) as o)
         select conrelid::regclass::text, quote_ident(conname), pg_get_constraintdef(oid),
                conrelid in (select oid from app_tables)
         from pg_constraint
         where contype = 'f' and connamespace = current_schema()::regnamespace and conparentid = 0
           and (conrelid in (select oid from placed) or confrelid in (select oid from placed))
         order by 1, 2"
    );
    for row in tx.query_typed(&sql, &[]).await? {
        let (table, name): (String, String) = (row.try_get(0)?, row.try_get(1)?);
        let definition: String = row.try_get(2)?;
        if row.try_get(3)? {
            let kept_as = format!("{FOREIGN_KEY_PREFIX}{table}.{name}");
            let add = format!("alter table {table} add constraint {name} {definition}");
            let sql = "insert into instance (name, value) values ($1, $2)
                       on conflict (name) do update set value = excluded.value";
            tx.execute_typed(
                sql,
                &[(&kept_as, Type::TEXT), (&add.as_bytes(), Type::BYTEA)],
            )
            .await?;
            report(&format!("dropped {name} until the tables are distributed"));
        } else {
            report(&format!("dropped {name}: {table} stays on the coordinator"));
        }
        let drop = format!("alter table {table} drop constraint {name}");
        tx.batch_execute(&drop).await?;
    }
    Ok(tx.commit().await?)
}

/// Adds the dropped foreign keys again.
async fn add_foreign_keys(
    client: &mut Client,
    report: &(dyn Fn(&str) + Sync),
) -> Result<(), PostgresOpenError> {
    let sql = "select name, convert_from(value, 'UTF8') from instance
               where starts_with(name, $1) order by name";
    let prefix = [(&FOREIGN_KEY_PREFIX as _, Type::TEXT)];
    for row in client.query_typed(sql, &prefix).await? {
        let (name, add): (String, String) = (row.try_get(0)?, row.try_get(1)?);
        let tx = begin(client).await?;
        tx.batch_execute(&add).await?;
        let sql = "delete from instance where name = $1";
        tx.execute_typed(sql, &[(&name, Type::TEXT)]).await?;
        tx.commit().await?;
        let key = name.trim_start_matches(FOREIGN_KEY_PREFIX);
        report(&format!("added {key} again"));
    }
    Ok(())
}

/// Removes the rows that distributing a table leaves on the coordinator, where no statement sees
/// them any more.
async fn remove_local_rows(
    client: &mut Client,
    report: &(dyn Fn(&str) + Sync),
) -> Result<(), PostgresOpenError> {
    let sql = "select c.oid from pg_class as c join pg_dist_partition on logicalrelid = c.oid
               where c.relnamespace = current_schema()::regnamespace and c.relkind = 'r'
                 and pg_relation_size(c.oid) > 0
               order by c.relname";
    for table in table_names(client, sql).await? {
        let sql = "select truncate_local_data_after_distributing_table($1::text::regclass)";
        place_table(client, &table, sql).await?;
        report(&format!("removed the coordinator's copy of {table}"));
    }
    Ok(())
}
