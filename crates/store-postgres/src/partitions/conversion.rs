//! Converts a table to a partitioned one while nodes use it.
//!
//! A constraint that all rows satisfy is added, which holds for later rows at once, and validated
//! for earlier rows, which blocks no statement. Then, in one short transaction, the table gets
//! another name, a partitioned table takes its place, and the table becomes its first partition. The
//! constraint makes it unnecessary to read the rows again.
//!
//! Each step is chosen by what is in the catalog, so an interrupted conversion continues where it
//! stopped. The statements of nodes, also of older ones, are the same before and after.

use super::catalog::{bounds, first_id, quoted_time};
use super::constraints::validate;
use super::{PartitionedTable, begin, lock};
use deadpool_postgres::{Object, Transaction};
use tokio_postgres::types::Type;
use tributary_domain::partitioning::{ConversionEnd, PartitionRange};
use tributary_domain::vocabulary::time::Timestamp;

/// State of a table that may have to be converted.
struct TableState {
    is_partitioned: bool,
    /// Estimated number of rows.
    rows: u64,
    /// The end of the ids according to the constraint, and whether the constraint is validated.
    constraint: Option<(ConversionEnd, bool)>,
}

/// Converts the table if it has at least this many rows. Returns whether it did.
pub(super) async fn convert(
    connection: &mut Object,
    table: PartitionedTable,
    now: Timestamp,
    rows_min: u64,
) -> Result<bool, tokio_postgres::Error> {
    loop {
        let Some(tx) = begin(connection).await? else {
            return Ok(false);
        };
        let state = read_state(&tx, table).await?;
        if state.is_partitioned {
            return Ok(false);
        }
        let mut is_done = false;
        match state.constraint {
            None if state.rows < rows_min => return Ok(false),
            None => add_constraint(&tx, table, ConversionEnd::choose(now)).await?,
            Some((end, _)) if !end.may_continue(now) => drop_constraint(&tx, table).await?,
            Some((_, false)) => {
                if !validate(&tx, table.name, &constraint_name(table)).await? {
                    tx.rollback().await?;
                    return give_up(connection, table).await;
                }
            }
            Some((end, true)) => {
                if !replace(&tx, table, end).await? {
                    return Ok(false);
                }
                is_done = true;
            }
        }
        tx.commit().await?;
        if is_done {
            return Ok(true);
        }
    }
}

/// Returns the name of the constraint of a table that is being converted.
pub(super) fn constraint_name(table: PartitionedTable) -> String {
    format!("{}_conversion", table.name)
}

async fn read_state(
    tx: &Transaction<'_>,
    table: PartitionedTable,
) -> Result<TableState, tokio_postgres::Error> {
    let row = tx
        .query_typed_one(
            "select c.relkind = 'p', greatest(c.reltuples, 0)::bigint,
                    pg_get_constraintdef(k.oid), coalesce(k.convalidated, false)
             from pg_class as c
             left join pg_constraint as k on k.conrelid = c.oid and k.conname = $2
             where c.oid = to_regclass($1)",
            &[
                (&table.name, Type::TEXT),
                (&constraint_name(table), Type::TEXT),
            ],
        )
        .await?;
    let definition: Option<&str> = row.try_get(2)?;
    let is_validated = row.try_get(3)?;
    Ok(TableState {
        is_partitioned: row.try_get(0)?,
        rows: u64::try_from(row.try_get::<_, i64>(1)?).unwrap_or(0),
        constraint: definition
            .and_then(quoted_time)
            .map(|end| (ConversionEnd(end), is_validated)),
    })
}

/// Adds a constraint that rejects ids from `end` on, which lies weeks ahead.
async fn add_constraint(
    tx: &Transaction<'_>,
    table: PartitionedTable,
    end: ConversionEnd,
) -> Result<(), tokio_postgres::Error> {
    let (name, id, constraint) = (table.name, table.id, constraint_name(table));
    tracing::info!(table = name, "partitioning a large table");
    let end = first_id(end.0);
    tx.batch_execute(&format!(
        "alter table {name} add constraint {constraint} check ({id} < '{end}') not valid"
    ))
    .await
}

async fn drop_constraint(
    tx: &Transaction<'_>,
    table: PartitionedTable,
) -> Result<(), tokio_postgres::Error> {
    let (name, constraint) = (table.name, constraint_name(table));
    tx.batch_execute(&format!("alter table {name} drop constraint {constraint}"))
        .await
}

/// Removes the constraint, so that it does not reject rows later. The conversion begins again at the
/// next run.
async fn give_up(
    connection: &mut Object,
    table: PartitionedTable,
) -> Result<bool, tokio_postgres::Error> {
    tracing::warn!(
        table = table.name,
        "cannot partition the table: some ids lie weeks ahead"
    );
    if let Some(tx) = begin(connection).await? {
        drop_constraint(&tx, table).await?;
        tx.commit().await?;
    }
    Ok(false)
}

/// Puts a partitioned table in the place of the table. Returns false if a move began meanwhile.
async fn replace(
    tx: &Transaction<'_>,
    table: PartitionedTable,
    end: ConversionEnd,
) -> Result<bool, tokio_postgres::Error> {
    if !lock(tx, table).await? {
        return Ok(false);
    }
    let range = PartitionRange {
        from: None,
        until: end.0,
    };
    let definitions = definitions(tx, table).await?;
    let (name, id, label) = (table.name, table.id, range.label());
    let mut sql: Vec<String> = definitions.iter().map(|one| one.rename(&label)).collect();
    sql.push(format!(
        "alter table {name} rename to {name}_{label};
         create table {name} (like {name}_{label} including defaults including storage)
             partition by range ({id});"
    ));
    sql.extend(definitions.into_iter().map(|one| one.create + ";"));
    sql.push(format!(
        "alter table {name} attach partition {name}_{label} {};
         alter table {name}_{label} drop constraint {};
         create table {name}_other partition of {name} default",
        bounds(range),
        constraint_name(table),
    ));
    tx.batch_execute(&sql.concat()).await?;
    Ok(true)
}

/// An index or constraint of the table.
struct Definition {
    /// Creates it on the partitioned table.
    create: String,
    /// The index that takes another name. Constraints of another table may have the same name.
    index: Option<String>,
}

impl Definition {
    fn rename(&self, label: &str) -> String {
        self.index.as_ref().map_or_else(String::new, |index| {
            format!("alter index {index} rename to {index}_{label};")
        })
    }
}

/// Lists the indexes and foreign keys of the table. The partition's are recognised as equal and stay.
async fn definitions(
    tx: &Transaction<'_>,
    table: PartitionedTable,
) -> Result<Vec<Definition>, tokio_postgres::Error> {
    let rows = tx
        .query_typed(
            "select case when k.oid is null then pg_get_indexdef(indexrelid)
                         else format('alter table %s add constraint %I %s', indrelid::regclass, k.conname,
                                     pg_get_constraintdef(k.oid)) end,
                    indexrelid::regclass::text
             from pg_index
             left join pg_constraint as k on k.conindid = indexrelid and k.conrelid = indrelid
                                         and k.contype in ('p', 'u')
             where indrelid = to_regclass($1)
             union all
             select format('alter table %s add constraint %I %s', conrelid::regclass, conname,
                           pg_get_constraintdef(oid)), null
             from pg_constraint where conrelid = to_regclass($1) and contype = 'f'
             order by 1",
            &[(&table.name, Type::TEXT)],
        )
        .await?;
    let definition = |row: &tokio_postgres::Row| {
        Ok(Definition {
            create: row.try_get(0)?,
            index: row.try_get(1)?,
        })
    };
    rows.iter().map(definition).collect()
}
