//! Checks the statements of the PostgreSQL store, so that a database can be distributed by app.
//!
//! A statement that names its apps goes to their shards. Others are sent to every shard, and fail
//! when one of them is down. Some forms are rejected when a statement may need several shards.

mod hot;
mod rules;
mod source;

use hot::HOT_STATEMENTS;
use rules::{AppFilter, app_filter, rejection, tables};
use source::{SqlText, counted, distributed_tables, sources, texts};
use std::collections::BTreeSet;

/// Files whose statements run for taps, web events, SDK events, `configure` calls, billing
/// notifications, postbacks and deliveries.
const HOT_FILES: [&str; 27] = [
    "app_table.rs",
    "billing/",
    "candidates.rs",
    "clicks.rs",
    "configure/",
    "conversions.rs",
    "devices/bulk.rs",
    "devices/erase_tokens.rs",
    "devices/mod.rs",
    "devices/state.rs",
    "devices/tokens.rs",
    "devices/try_lock.rs",
    "duplicates.rs",
    "event_rows.rs",
    "event_tables.rs",
    "integrations.rs",
    "outbox/",
    "outbox_table.rs",
    "postbacks/accept.rs",
    "postbacks/facts.rs",
    "postbacks/write.rs",
    "queue_leases.rs",
    "queues.rs",
    "rollups/pending_increments.rs",
    "rows.rs",
    "sdk_events.rs",
    "web_events/",
];

/// Statements for rows of all apps: lists of an organization's apps, workers that look for due work,
/// sweeps, and commands that convert or move a database. None of them runs for a request from outside. Before you add one, consider whether its
/// cost may grow with the number of shards.
const ALL_APPS: [&str; 47] = [
    "alerts.rs find_due",
    "app_table.rs app_ids",
    "apps.rs app_names",
    "apps.rs apps",
    "billing/mod.rs forget_notifications",
    "billing/trials.rs find_due",
    "clicks.rs apps_for_host",
    "clicks.rs forget_addresses_of_claims",
    "clicks.rs forget_addresses_of_devices",
    "clicks.rs old_clicks",
    "cost_sources.rs due_cost_source",
    "devices/state.rs inactive_devices",
    "devices/tokens.rs lease_all",
    "distributed/conversion.rs drop_foreign_keys",
    "distributed/conversion.rs table_names",
    "due_work/kinds.rs find_kinds",
    "due_work/search.rs find_queues",
    "due_work/search.rs search",
    "instance.rs find_unmerged",
    "members.rs active_notices",
    "notices.rs lease_due_messages",
    "notices.rs lease_due_notices",
    "outbox/due_queues.rs find_due_queues",
    "outbox/paused.rs count",
    "outbox/sweep.rs expire",
    "outbox/sweep.rs remove",
    "outbox/waits.rs find_mistaken",
    "partitions/compaction.rs catch_up",
    "partitions/compaction.rs copy_rows",
    "partitions/compaction.rs is_complete",
    "partitions/removal.rs may_drop",
    "pivots.rs apps_to_fill",
    "pivots.rs apps_without_payers",
    "postbacks/sweep.rs remove",
    "rollups/pending_increments.rs find_apps",
    "secret_keys.rs apps_without_alert_secret",
    "secret_keys.rs count_outdated",
    "secret_keys.rs outdated_cells",
    "secret_keys.rs replace_cell",
    "traffic.rs busiest_addresses",
    "traffic.rs unchecked_apps",
    "transfer/apply.rs replace",
    "transfer/apply.rs sum",
    "transfer/definitions.rs table_with_rows",
    "transfer/source.rs read_rows",
    "transfer/source.rs read_table",
    "transfer/source.rs sum",
];

/// Statements whose conditions are built elsewhere, in a text that begins with `app_id = $1` or by
/// `Conditions::new("app_id", …)`.
const BUILT_CONDITIONS: [&str; 18] = [
    "alerts.rs find_webhooks",
    "deliveries/find.rs ended",
    "deliveries/find.rs find_ended_ids",
    "deliveries/undelivered.rs skipped_events",
    "deliveries/find.rs pending",
    "devices/held.rs held_installs",
    "devices/tokens.rs holds_token",
    "devices/tokens.rs remove_token",
    "devices/tokens.rs retry_token",
    "event_rows.rs find",
    "events.rs scan_end",
    "links.rs newest_links",
    "postbacks/find.rs find",
    "reports/cohorts.rs find_merged",
    "reports/costs.rs find_costs",
    "reports/stats.rs find_merged",
    "rollups/table.rs cohort_rows",
    "rollups/table.rs rollup_rows",
];

/// Statements that only run when the database is not distributed.
const NOT_DISTRIBUTED: [&str; 2] = [
    "configure/mod.rs lock_apps_shared",
    "devices/try_lock.rs lock_unlocked",
];

/// Returns the string literals of the store.
fn all_texts() -> Vec<SqlText> {
    let found = sources().into_iter();
    found
        .flat_map(|(file, source)| texts(&file, &source))
        .collect()
}

/// Compares sets, and prints only the differences.
fn assert_same(found: &BTreeSet<String>, known: &BTreeSet<String>) {
    let new: Vec<&String> = found.difference(known).collect();
    let gone: Vec<&String> = known.difference(found).collect();
    assert!(
        new.is_empty() && gone.is_empty(),
        "new: {new:#?}\ngone: {gone:#?}"
    );
}

#[test]
fn every_statement_names_its_app() {
    let distributed = distributed_tables();
    let missing: BTreeSet<String> = all_texts()
        .iter()
        .filter(|one| one.is_statement())
        .filter(|one| {
            let tables = tables(&one.text, &distributed).len();
            tables > 0 && app_filter(&one.text, tables) == AppFilter::Missing
        })
        .map(SqlText::place)
        .collect();
    let known = ALL_APPS.iter().chain(&BUILT_CONDITIONS);
    let known = known.chain(["devices/try_lock.rs lock_unlocked"].iter());
    let known: BTreeSet<String> = known.map(|place| (*place).to_owned()).collect();
    assert_same(&missing, &known);
}

/// A condition that other code completes must begin with the app, because the statement around it
/// has no condition.
#[test]
fn built_conditions_name_their_app() {
    let mut found = 0;
    for one in all_texts() {
        let is_condition = !one.is_statement() && one.text.contains("$1 ");
        // These look for alerts and queues of each app.
        let known = [
            "alerts.rs raise_everywhere",
            "outbox/due_queues.rs CAN_BE_LEASED",
        ];
        let is_known = known.contains(&one.place().as_str());
        if !is_condition || is_known || one.file == "begin.rs" || one.text.starts_with("unnest(") {
            continue;
        }
        found += 1;
        assert!(one.text.starts_with("app_id = $1 "), "{one:?}");
    }
    assert!(found > 8, "found only {found} conditions");
    for (file, source) in sources() {
        for call in source.split("Conditions::new(\"").skip(1) {
            let column = call.split('"').next().unwrap_or_default();
            let has_key = ["app_id", "organization_id"]
                .iter()
                .any(|key| column.ends_with(key));
            assert!(has_key, "{file}: {column}");
        }
    }
}

/// Lists every frequent statement and how it finds its shard.
#[test]
fn hot_statements_are_known() {
    let distributed = distributed_tables();
    let mut found = BTreeSet::new();
    for one in all_texts() {
        let is_hot = HOT_FILES.iter().any(|file| one.file.starts_with(file));
        let tables = tables(&one.text, &distributed);
        let (Some(table), true, true) = (tables.first(), is_hot, one.is_statement()) else {
            continue;
        };
        let filter = app_filter(&one.text, tables.len());
        if filter != AppFilter::Missing {
            let verb = one.text.split(' ').next().unwrap_or_default();
            found.insert(format!("{}: {verb} {table} by {filter:?}", one.place()));
        }
    }
    let known: BTreeSet<String> = HOT_STATEMENTS
        .iter()
        .map(|(statement, filter)| format!("{statement} by {filter:?}"))
        .collect();
    assert_same(&found, &known);
}

#[test]
fn no_statement_has_a_form_that_a_distributed_database_rejects() {
    let distributed = distributed_tables();
    let rejected: BTreeSet<String> = all_texts()
        .iter()
        .filter_map(|one| {
            let why = rejection(&one.text, tables(&one.text, &distributed).len())?;
            Some(format!("{} {why}", one.place()))
        })
        .collect();
    let known = NOT_DISTRIBUTED.map(|place| format!("{place} locks rows of several apps"));
    assert_same(&rejected, &known.into());
    for place in NOT_DISTRIBUTED {
        let file = place.split(' ').next().unwrap_or_default();
        let source = sources().into_iter().find(|(name, _)| name == file);
        let (_, source) = source.expect("a source file");
        assert!(source.contains(".is_distributed()"), "{place}");
    }
}

/// Of an `insert`, a distributed database counts the rows that it was sent, and not those that it
/// wrote. So an `insert` that decides something lists the written rows with `returning`.
#[test]
fn no_decision_depends_on_the_row_count_of_an_insert() {
    let mut found = 0;
    for (file, source) in sources() {
        if file == "tx.rs" {
            let signature =
                "fn execute(&self, sql: &str, params: &[&dyn Param]) -> Result<(), Failure>";
            assert!(source.contains(signature), "`execute` returns no count");
            continue;
        }
        for statement in counted(&source) {
            found += 1;
            let is_counted = ["update ", "delete from "]
                .iter()
                .any(|verb| statement.starts_with(verb));
            assert!(is_counted, "{file}: {statement}");
        }
    }
    assert!(found > 10, "found only {found} counted statements");
}
