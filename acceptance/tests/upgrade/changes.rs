//! What migrations change in existing rows. Everything else must be the same after an upgrade.

use super::catalog::{Snapshot, TableRows};
use super::rows::ROWS;
use serde_json::Value;
use std::collections::BTreeMap;
use tributary_testkit::{Engine, TextRow};

/// A change that a migration makes on purpose.
struct Change {
    /// Upgrades from earlier schemas make the change.
    migration: i64,
    table: &'static str,
    effect: Effect,
    /// First schema with the rows that the change needs.
    since: i64,
    reason: &'static str,
}

#[derive(Clone, Copy)]
enum Effect {
    /// The table is dropped.
    Drops,
    /// This number of rows is added.
    Adds(usize),
    /// The rows continue as those with grain 15. Sums for hours and days are added.
    AddsGrains,
    /// A field of the JSON in `settings` is set.
    SetsField(&'static str),
}

const fn change(
    (migration, since): (i64, i64),
    table: &'static str,
    effect: Effect,
    reason: &'static str,
) -> Change {
    Change {
        migration,
        table,
        effect,
        since,
        reason,
    }
}

use Effect::{Adds, AddsGrains, Drops, SetsField};

/// The changes on both engines.
const CHANGES: &[Change] = &[
    change(
        (6, 2),
        "user_links",
        Adds(2),
        "identities with a user id become links",
    ),
    change(
        (7, 2),
        "rollup_networks",
        Adds(9),
        "sums of `rollup_credits` for three grains",
    ),
    change(
        (7, 2),
        "rollup_credits",
        AddsGrains,
        "reports of days read one row a day",
    ),
    change(
        (7, 2),
        "rollup_names",
        AddsGrains,
        "reports of days read one row a day",
    ),
    change(
        (7, 2),
        "rollup_places",
        AddsGrains,
        "reports of days read one row a day",
    ),
    change((10, 3), "web_events", Drops, "its columns move to `events`"),
    change(
        (10, 3),
        "receipts",
        Drops,
        "refunded payments move to `refunded_payments`",
    ),
    change(
        (10, 3),
        "refunded_payments",
        Adds(2),
        "payments with a refund in `receipts`",
    ),
    change(
        (13, 2),
        "rollup_campaigns",
        Adds(9),
        "sums of `rollup_credits` without ads",
    ),
    change(
        (16, 6),
        "billing_payments",
        Drops,
        "derived from `notifications` now",
    ),
    change(
        (16, 6),
        "billing_waiting",
        Drops,
        "derived from `notifications` now",
    ),
    change(
        (16, 6),
        "user_transfers",
        Drops,
        "derived from `notifications` now",
    ),
    change(
        (16, 6),
        "billing_keys",
        Adds(9),
        "person, advertising id and device of notifications",
    ),
    change(
        (17, 2),
        "event_keys",
        Adds(1),
        "a verified event may repeat the SDK event",
    ),
    change(
        (18, 6),
        "billing_keys",
        Adds(3),
        "store transactions of notifications",
    ),
    change(
        (18, 6),
        "event_keys",
        Adds(3),
        "an SDK event may repeat a billing event",
    ),
    change(
        (21, 1),
        "apps",
        SetsField("deep_link_schemes"),
        "the schemes of existing links stay valid",
    ),
    change((22, 7), "known_values", Adds(3), "campaigns of costs"),
    change(
        (22, 1),
        "known_values",
        Adds(5),
        "campaigns of links, and two event mappings",
    ),
    change(
        (24, 1),
        "known_values",
        Adds(6),
        "two events in each conversion-value configuration",
    ),
    change(
        (27, 1),
        "app_store_claims",
        Adds(3),
        "the present owners of App Store ids",
    ),
    change(
        (33, 1),
        "pivot_history",
        Adds(3),
        "each app's earlier events are counted later",
    ),
];

/// Changes on SQLite only.
const SQLITE_CHANGES: &[Change] = &[
    change(
        (i64::MAX, 1),
        "instance",
        Adds(1),
        "the first start after the upgrade rewrites the file and records it",
    ),
    change((42, 1), "payer_history", Adds(3), EARLIER_PAYERS),
    change((47, 1), "audit_chains", Adds(3), EARLIER_ENTRIES),
];

/// Changes on PostgreSQL only.
const POSTGRES_CHANGES: &[Change] = &[
    change((41, 1), "payer_history", Adds(3), EARLIER_PAYERS),
    change((46, 1), "audit_chains", Adds(3), EARLIER_ENTRIES),
];

const EARLIER_PAYERS: &str = "the payers of each app's earlier installs are counted later";
const EARLIER_ENTRIES: &str = "each organization's earlier entries get their place later";

fn changes(engine: Engine, table: &str, from: i64) -> Vec<&'static Change> {
    let of_engine = match engine {
        Engine::Sqlite => SQLITE_CHANGES,
        Engine::Postgres => POSTGRES_CHANGES,
    };
    let all = CHANGES.iter().chain(of_engine);
    all.filter(|change| change.table == table && change.migration > from && change.since <= from)
        .collect()
}

/// Compares the rows before and after an upgrade from a schema. Returns the differences that no
/// migration makes on purpose.
pub(super) fn differences(
    engine: Engine,
    from: i64,
    before: &Snapshot,
    after: &Snapshot,
) -> Vec<String> {
    let mut found = Vec::new();
    let empty = TableRows {
        columns: Vec::new(),
        rows: Vec::new(),
    };
    for table in before
        .keys()
        .chain(after.keys().filter(|table| !before.contains_key(*table)))
    {
        let expected = changes(engine, table, from);
        let old = before.get(table).unwrap_or(&empty);
        let Some(new) = after.get(table) else {
            if !expected.iter().any(|change| matches!(change.effect, Drops)) {
                found.push(format!("{table} is missing"));
            }
            continue;
        };
        found.extend(
            table_differences(old, new, &expected)
                .into_iter()
                .map(|problem| {
                    let reasons: Vec<&str> = expected.iter().map(|change| change.reason).collect();
                    format!("{table}: {problem}; expected changes: {reasons:?}")
                }),
        );
    }
    found
}

fn table_differences(old: &TableRows, new: &TableRows, expected: &[&Change]) -> Vec<String> {
    let mut found = Vec::new();
    let mut count = old.rows.len();
    let (mut fields, mut grain) = (Vec::new(), None);
    for change in expected {
        match change.effect {
            Drops => found.push("still exists".to_owned()),
            Adds(rows) => count += rows,
            AddsGrains => {
                count *= usize::from(ROWS);
                grain = Some("15");
            }
            SetsField(field) => fields.push(field),
        }
    }
    if new.rows.len() != count {
        found.push(format!("{} rows instead of {count}", new.rows.len()));
    }
    let missing = old
        .columns
        .iter()
        .filter(|column| !new.columns.contains(column));
    found.extend(missing.map(|column| format!("the column {column} is missing")));
    let shared = |column: &&String| new.columns.contains(*column) && old.columns.contains(*column);
    let columns: Vec<&String> = old.columns.iter().filter(shared).collect();
    let is_kept = |row: &&TextRow| {
        grain.is_none()
            || row[new.columns.iter().position(|name| name == "grain").unwrap()].as_deref() == grain
    };
    let mut left = BTreeMap::<TextRow, usize>::new();
    for row in new.rows.iter().filter(is_kept) {
        *left
            .entry(project(row, &new.columns, &columns, &fields))
            .or_default() += 1;
    }
    for row in &old.rows {
        let row = project(row, &old.columns, &columns, &[]);
        match left.get_mut(&row) {
            Some(same) if *same > 0 => *same -= 1,
            _ => found.push(format!("the row {row:?} is missing or changed")),
        }
    }
    found
}

/// Returns a row's values in these columns, with `settings` in one form and without these fields,
/// which must be set.
fn project(row: &TextRow, names: &[String], columns: &[&String], fields: &[&str]) -> TextRow {
    let value = |column: &&String| {
        let value = row[names.iter().position(|name| name == *column).unwrap()].as_ref()?;
        if *column != "settings" {
            return Some(value.clone());
        }
        // PostgreSQL writes changed settings in another order.
        let mut settings: BTreeMap<String, Value> = serde_json::from_str(value).unwrap();
        for field in fields {
            if settings.remove(*field).is_none() {
                settings.insert(format!("{field} is not set"), Value::Null);
            }
        }
        Some(format!("{settings:?}"))
    };
    columns.iter().map(value).collect()
}
