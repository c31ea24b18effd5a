//! Ranking the values of a day, and learning which values are known.

use crate::tables::{RollupPart, Tables};
use std::collections::BTreeSet;
use tributary_domain::report::cardinality_cap::{CapDecisions, KnownValue, ValueKind};
use tributary_domain::report::cohort::CohortTable;
use tributary_domain::report::{ChangedValues, DayValues, Increments, Rollup, RollupRows};
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::RollupDay;

/// The values of a day, after increments are added.
pub(crate) struct RankedDay {
    /// Decisions about all values of the day.
    pub(crate) decisions: CapDecisions,
    /// Decisions about values that move.
    pub(crate) changed: CapDecisions,
    /// Rows that move.
    pub(crate) moved: RollupRows,
}

/// Decides which values of a day are kept. `increments` may contain other days, too.
pub(crate) async fn rank<T: Tables>(
    tables: &T,
    day: RollupDay,
    increments: &Increments,
) -> Result<RankedDay, T::Failure> {
    let mut rows = RollupRows::default();
    for table in [Rollup::Credits, Rollup::Names] {
        read_rows(tables, day, table, RollupPart::Days, &mut rows).await?;
    }
    let mut values = DayValues::new(day.app, day.environment, day.day);
    values.add_stored(&rows);
    values.add_increments(increments);
    let before = values.stored_decisions();
    let mut known = tables.known_values(&values.knowable()).await?;
    known.extend(increments.known.clone());
    let decisions = values.decide(&known);
    let changed = values.changed(&before, &decisions);
    let moved = read_changed_rows(tables, day, &changed).await?;
    Ok(RankedDay {
        moved: moved.moved(&before, &decisions),
        changed: decisions.differing_from(&before),
        decisions,
    })
}

/// Reads the rows of changed values by quarter hour.
async fn read_changed_rows<T: Tables>(
    tables: &T,
    day: RollupDay,
    changed: &ChangedValues,
) -> Result<RollupRows, T::Failure> {
    let mut rows = RollupRows::default();
    if !changed.campaigns.is_empty() {
        let part = RollupPart::Quarters(&changed.campaigns);
        for table in [Rollup::Credits, Rollup::Pivots] {
            read_rows(tables, day, table, part, &mut rows).await?;
        }
        read_cohort_rows(tables, day, CohortTable::Credits, part, &mut rows).await?;
    }
    if !changed.names.is_empty() {
        let part = RollupPart::Quarters(&changed.names);
        read_rows(tables, day, Rollup::Names, part, &mut rows).await?;
    }
    Ok(rows)
}

/// Reads a day's rows of a roll-up.
pub(crate) async fn read_rows<T: Tables>(
    tables: &T,
    day: RollupDay,
    table: Rollup,
    part: RollupPart<'_>,
    rows: &mut RollupRows,
) -> Result<(), T::Failure> {
    let scope = (day.app, day.environment);
    let found = tables.rollup_rows(table, scope, span(day), part).await?;
    for row in found {
        row.read_into(scope, table, rows)?;
    }
    Ok(())
}

/// Reads a day's rows of a cohort table.
pub(crate) async fn read_cohort_rows<T: Tables>(
    tables: &T,
    day: RollupDay,
    table: CohortTable,
    part: RollupPart<'_>,
    rows: &mut RollupRows,
) -> Result<(), T::Failure> {
    let scope = (day.app, day.environment);
    let found = tables.cohort_rows(table, scope, span(day), part).await?;
    for row in found {
        row.read_into(scope, rows)?;
    }
    Ok(())
}

fn span(day: RollupDay) -> (Timestamp, Timestamp) {
    (day.day.begins_at(), day.day.following().begins_at())
}

/// Makes values known. Their past figures move when the increment is merged.
pub(crate) async fn learn<T: Tables>(
    tables: &T,
    app: AppId,
    kind: ValueKind,
    values: impl IntoIterator<Item = String>,
) -> Result<(), T::Failure> {
    let values = values.into_iter().filter(|value| !value.is_empty());
    let mut new: BTreeSet<KnownValue> = values
        .map(|value| KnownValue { app, kind, value })
        .collect();
    let known = tables.known_values(&new).await?;
    new.retain(|value| !known.contains(value));
    let increments = Increments {
        known: new,
        ..Increments::default()
    };
    tables.store_increments(&increments).await
}
