//! Reads the partitions of a table from the server's catalog.

use super::PartitionedTable;
use tokio_postgres::types::Type;
use tokio_postgres::{GenericClient, Row};
use tributary_domain::partitioning::{PartitionRange, PartitionRanges};
use tributary_domain::vocabulary::id::DeliveryId;
use tributary_domain::vocabulary::time::Timestamp;
use uuid::Uuid;

/// Lists the partitions of a table except for the default one.
const PARTITIONS: &str = "
    select c.oid::regclass::text, pg_get_expr(c.relpartbound, c.oid), greatest(c.reltuples, 0)::bigint
    from pg_inherits join pg_class as c on c.oid = inhrelid
    where inhparent = to_regclass($1) and pg_get_expr(c.relpartbound, c.oid) <> 'DEFAULT'";

/// A partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Partition {
    /// Name, as SQL spells it.
    pub(super) name: String,
    pub(crate) range: PartitionRange,
    /// Estimated number of rows.
    pub(super) rows: u64,
}

/// Lists the partitions of a table, oldest first. None if it is not partitioned.
pub(crate) async fn partitions(
    client: &impl GenericClient,
    table: PartitionedTable,
) -> Result<Vec<Partition>, tokio_postgres::Error> {
    let params = [(&table.name as _, Type::TEXT)];
    let rows = client.query_typed(PARTITIONS, &params).await?;
    let found: Result<Vec<_>, _> = rows.iter().map(partition).collect();
    let mut found: Vec<Partition> = found?.into_iter().flatten().collect();
    found.sort_by_key(|partition| partition.range.until);
    Ok(found)
}

fn partition(row: &Row) -> Result<Option<Partition>, tokio_postgres::Error> {
    let (name, bounds): (String, &str) = (row.try_get(0)?, row.try_get(1)?);
    let rows = u64::try_from(row.try_get::<_, i64>(2)?).unwrap_or(0);
    Ok(range(bounds).map(|range| Partition { name, range, rows }))
}

/// Returns the ranges of partitions.
pub(super) fn ranges(partitions: &[Partition]) -> PartitionRanges {
    PartitionRanges(partitions.iter().map(|one| one.range).collect())
}

/// Reads a partition's bounds, as the catalog spells them.
fn range(bounds: &str) -> Option<PartitionRange> {
    let (from, until) = bounds.split_once(") TO (")?;
    Some(PartitionRange {
        from: quoted_time(from),
        until: quoted_time(until)?,
    })
}

/// Reads the time of the first id in quotes.
pub(super) fn quoted_time(text: &str) -> Option<Timestamp> {
    let id: Uuid = text.split('\'').nth(1)?.parse().ok()?;
    Some(DeliveryId::from_bytes(id.into_bytes()).at())
}

/// Returns the lower bound of ids created at a time.
pub(super) fn first_id(at: Timestamp) -> Uuid {
    Uuid::from_bytes(*DeliveryId::first_at(at).as_bytes())
}

/// Returns the bounds of a partition in SQL.
pub(super) fn bounds(range: PartitionRange) -> String {
    let from = range.from.map_or_else(
        || "minvalue".to_owned(),
        |from| format!("'{}'", first_id(from)),
    );
    format!("for values from ({from}) to ('{}')", first_id(range.until))
}

/// Returns the condition for ids in the range.
pub(super) fn in_range(table: PartitionedTable, range: PartitionRange) -> String {
    let id = table.id;
    let from = range.from.map_or_else(String::new, |from| {
        format!("{id} >= '{}' and ", first_id(from))
    });
    format!("{from}{id} < '{}'", first_id(range.until))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WEEK: i64 = 7 * 24 * 60 * 60 * 1000;

    #[test]
    fn bounds_are_read_as_they_are_written() {
        let until = Timestamp::from_millis(300 * WEEK);
        for from in [None, Some(Timestamp::from_millis(299 * WEEK))] {
            let written = PartitionRange { from, until };
            let sql = bounds(written).to_uppercase();
            assert_eq!(range(&sql), Some(written));
        }
        assert_eq!(range("DEFAULT"), None);
    }
}
