//! Secondary indexes and constraints: dropped before the bulk copy, and created again after it.
//!
//! An index that is built at once takes a fraction of the time that it takes row by row. While rows
//! are copied at different times, foreign keys and unique constraints may not hold yet. While
//! changes follow, foreign keys are checked at the end of each transaction.

use super::{MOVED_ROW, PostgresMoveError, PostgresMoveTarget};
use tokio_postgres::types::Type;
use tributary_store::transfer::{MoveId, TransferTable};

/// Saves the definitions: unique constraints and indexes first, then foreign keys. The definition of
/// a partitioned index excludes the partitions.
const SAVE: &str = "
    insert into move_definitions (create_sql, drop_sql)
    select create_sql, drop_sql from (
        select contype = 'f' as is_last,
               format('alter table %s add constraint %I %s%s', conrelid::regclass, conname,
                      pg_get_constraintdef(oid),
                      case contype when 'f' then ' deferrable initially deferred' else '' end) as create_sql,
               format('alter table %s drop constraint %I', conrelid::regclass, conname) as drop_sql
        from pg_constraint
        where connamespace = current_schema()::regnamespace and contype in ('f', 'u') and conparentid = 0
        union all
        select false, replace(pg_get_indexdef(indexrelid), ' ON ONLY ', ' ON '), format('drop index %s', indexrelid::regclass)
        from pg_index join pg_class as c on c.oid = indrelid
        where c.relnamespace = current_schema()::regnamespace and not indisprimary and not c.relispartition
          and not exists (select 1 from pg_constraint where conindid = indexrelid and contype = 'u')
    ) as found
    order by is_last, create_sql";

/// Finds the foreign keys that are checked at the end of a transaction. The schema has none itself.
const DEFERRED: &str = "
    select format('alter table %s alter constraint %I not deferrable', conrelid::regclass, conname)
    from pg_constraint
    where connamespace = current_schema()::regnamespace and contype = 'f' and condeferrable and conparentid = 0";

/// Sets each sequence of generated numbers past the copied numbers.
const SEQUENCES: &str = "
    select format('select setval(%L, (select coalesce(max(%I), 0) + 1 from %s), false)',
                  pg_get_serial_sequence(attrelid::regclass::text, attname), attname, attrelid::regclass)
    from pg_attribute join pg_class as c on c.oid = attrelid
    where c.relnamespace = current_schema()::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
      and attidentity <> ''";

impl PostgresMoveTarget {
    /// Begins a move: saves and drops the definitions, and lists the tables to copy.
    pub async fn begin(
        &mut self,
        id: MoveId,
        tables: &[TransferTable],
    ) -> Result<(), PostgresMoveError> {
        let tx = self.client.transaction().await?;
        tx.batch_execute(
            "create table move_state (move_id uuid not null);
             create table move_tables (
                 name text primary key, rows bigint not null, last_key bytea, is_copied boolean not null);
             create table move_definitions (
                 position bigint generated always as identity primary key,
                 create_sql text not null, drop_sql text not null)",
        )
        .await?;
        let id = uuid::Uuid::from_bytes(id.0);
        let sql = "insert into move_state (move_id) values ($1)";
        tx.execute_typed(sql, &[(&id, Type::UUID)]).await?;
        for table in tables {
            let sql = "insert into move_tables (name, rows, is_copied) values ($1, 0, false)";
            tx.execute_typed(sql, &[(&table.name, Type::TEXT)]).await?;
        }
        tx.execute_typed(SAVE, &[]).await?;
        // Foreign keys last in the list, first to be dropped.
        let sql = "select drop_sql from move_definitions order by position desc";
        for row in tx.query_typed(sql, &[]).await? {
            tx.batch_execute(row.try_get(0)?).await?;
        }
        tx.commit().await?;
        Ok(())
    }

    /// Returns the first table that has rows.
    pub async fn table_with_rows(
        &self,
        tables: &[TransferTable],
    ) -> Result<Option<String>, PostgresMoveError> {
        for table in tables {
            let sql = format!("select exists (select 1 from {})", table.name);
            if self.client.query_typed_one(&sql, &[]).await?.try_get(0)? {
                return Ok(Some(table.name.clone()));
            }
        }
        Ok(None)
    }

    /// Creates the next index or constraint again. Returns false if none is left.
    pub async fn restore_definition(&mut self) -> Result<bool, PostgresMoveError> {
        let sql = "select position, create_sql from move_definitions order by position limit 1";
        let Some(row) = self.client.query_typed(sql, &[]).await?.into_iter().next() else {
            return Ok(false);
        };
        let tx = self.client.transaction().await?;
        tx.batch_execute(row.try_get(1)?).await?;
        let position: i64 = row.try_get(0)?;
        let sql = "delete from move_definitions where position = $1";
        tx.execute_typed(sql, &[(&position, Type::INT8)]).await?;
        tx.commit().await?;
        Ok(true)
    }

    /// Collects the planner's statistics of all tables.
    pub async fn analyze(&self, tables: &[TransferTable]) -> Result<(), PostgresMoveError> {
        let names: Vec<&str> = tables.iter().map(|table| table.name.as_str()).collect();
        let sql = format!("analyze {}", names.join(", "));
        self.client.batch_execute(&sql).await?;
        Ok(())
    }

    /// Ends the move. From now on, servers start on the database.
    pub async fn finish(&mut self, id: MoveId) -> Result<(), PostgresMoveError> {
        let tx = self.client.transaction().await?;
        for find in [SEQUENCES, DEFERRED] {
            for row in tx.query_typed(find, &[]).await? {
                tx.batch_execute(row.try_get(0)?).await?;
            }
        }
        let value = id.0.as_slice();
        tx.execute_typed(
            "insert into instance (name, value) values ($1, $2)
             on conflict (name) do update set value = excluded.value",
            &[(&MOVED_ROW, Type::TEXT), (&value, Type::BYTEA)],
        )
        .await?;
        tx.batch_execute("drop table move_state, move_tables, move_definitions")
            .await?;
        tx.commit().await?;
        Ok(())
    }
}
