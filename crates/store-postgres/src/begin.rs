//! The statements that begin a transaction.
//!
//! All settings last for the transaction only, because `PgBouncer` shares sessions between clients.

use crate::tx::TransactionMode;
use std::time::Duration;

/// How long a statement waits for a lock.
const LOCK_WAIT_MAX: Duration = Duration::from_secs(5);

/// Forces index lookups. Before the first `analyze`, the planner assumes that a table is small and
/// would scan it. With this setting, scans that cannot be avoided get such a high cost estimate
/// that the server would JIT-compile the statement, which takes longer than the scan. So JIT is
/// off.
const INDEX_PLANS: [(&str, &str); 4] = [
    ("enable_seqscan", "off"),
    ("enable_hashjoin", "off"),
    ("enable_mergejoin", "off"),
    ("jit", "off"),
];

/// Forces generic query plans. Writes come in batches, and planning the statements again for each
/// batch would cost as much as the lookups themselves.
const GENERIC_PLAN: (&str, &str) = ("plan_cache_mode", "force_generic_plan");

/// Fails if the server does not accept writes: it is a standby, or `default_transaction_read_only`
/// fences it. `begin read write` would override that setting, and so would `set`; within a query, the
/// server rejects the change. A transaction that only reads in the end must fail, too, because its
/// answer may depend on rows that the new primary does not have.
const REJECT_READ_ONLY: (&str, &str) = ("transaction_read_only", "off");

/// Citus cannot plan a distributed statement without its values.
const CUSTOM_PLAN: &str = "set local plan_cache_mode = auto";

/// Lets transactions that write to several shards run at the same time. Otherwise Citus locks whole
/// tables against each other. All transactions lock rows in the same order.
const CONCURRENT_WRITES: &str = "set local citus.enable_deadlock_prevention = off";

/// Sends the settings after this one to the workers, too. Without it, a worker would use the
/// settings of its role: it might commit without a sync, or wait for a lock without a limit.
const SETTINGS_FOR_WORKERS: &str = "set local citus.propagate_set_commands = 'local'";

/// Returns the mode for one read of all apps. A distributed database needs a transaction, whose time
/// limit also holds on its workers.
pub(crate) fn read_of_all_apps(is_distributed: bool) -> TransactionMode {
    if is_distributed {
        TransactionMode::Read
    } else {
        TransactionMode::ReadOnce
    }
}

/// Returns the statements that begin a transaction, to be sent together in one round trip. A single
/// read needs none.
///
/// A single server gets all settings in one `select`. On a distributed database each setting for the
/// workers is a separate `set`: Citus sends the whole text that contains a `set` to the workers, once
/// for each `set` in the text, and it sends no `set_config`.
pub(crate) fn begin_statements(
    mode: TransactionMode,
    is_distributed: bool,
    statement_timeout: Duration,
) -> Vec<String> {
    let kind = match mode {
        TransactionMode::ReadOnce => return Vec::new(),
        TransactionMode::Read => "isolation level repeatable read, read only",
        TransactionMode::Write | TransactionMode::PipelinedWrite => {
            "isolation level read committed"
        }
    };
    let begin = format!("begin {kind}");
    let statement = statement_timeout.as_millis().max(1).to_string();
    let lock = LOCK_WAIT_MAX.as_millis().to_string();
    let limits = [
        // The role may have turned `synchronous_commit` off, which would lose acknowledged commits
        // in a power cut.
        ("synchronous_commit", "on"),
        ("statement_timeout", statement.as_str()),
        ("lock_timeout", lock.as_str()),
        ("idle_in_transaction_session_timeout", statement.as_str()),
    ];
    let settings = limits.into_iter().chain(INDEX_PLANS);
    let call = |(name, value): (&str, &str)| format!("set_config('{name}', '{value}', true)");
    let check = mode.writes().then_some(REJECT_READ_ONLY);
    if is_distributed {
        let first = [&begin, CONCURRENT_WRITES, CUSTOM_PLAN, SETTINGS_FOR_WORKERS];
        let settings = settings.map(|(name, value)| format!("set local {name} = {value}"));
        let check = check.map(|check| format!("select {}", call(check)));
        let statements = std::iter::once(first.join("; ")).chain(settings);
        return statements.chain(check).collect();
    }
    let plan = mode.writes().then_some(GENERIC_PLAN);
    let calls: Vec<String> = check
        .into_iter()
        .chain(settings)
        .chain(plan)
        .map(call)
        .collect();
    vec![format!("{begin}; select {}", calls.join(", "))]
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(7);

    #[test]
    fn a_single_read_is_no_transaction() {
        for is_distributed in [false, true] {
            let begin = begin_statements(TransactionMode::ReadOnce, is_distributed, TIMEOUT);
            assert_eq!(begin, Vec::<String>::new());
        }
    }

    #[test]
    fn a_plain_database_gets_one_text() {
        let [read] = &begin_statements(TransactionMode::Read, false, TIMEOUT)[..] else {
            panic!("several statements");
        };
        assert!(read.starts_with("begin isolation level repeatable read, read only; select set_"));
        assert!(read.contains("set_config('statement_timeout', '7000', true)"));
        assert!(!read.contains("plan_cache_mode") && !read.contains("citus"));
        let [write] = &begin_statements(TransactionMode::Write, false, TIMEOUT)[..] else {
            panic!("several statements");
        };
        let plan = "set_config('plan_cache_mode', 'force_generic_plan', true)";
        let check = "read committed; select set_config('transaction_read_only', 'off', true)";
        assert!(write.contains(check) && write.ends_with(plan));
        assert!(!read.contains("transaction_read_only"));
        assert!(write.contains("set_config('synchronous_commit', 'on', true)"));
    }

    #[test]
    fn workers_of_a_distributed_database_get_each_setting_once() {
        for mode in [TransactionMode::Read, TransactionMode::PipelinedWrite] {
            let statements = begin_statements(mode, true, TIMEOUT);
            let (first, settings) = statements.split_first().unwrap();
            assert!(first.ends_with(SETTINGS_FOR_WORKERS), "{first}");
            assert!(!first.contains("synchronous_commit"), "{first}");
            assert!(!statements.concat().contains("force_generic_plan"));
            assert!(settings.contains(&"set local synchronous_commit = on".to_owned()));
            assert!(settings.contains(&"set local enable_seqscan = off".to_owned()));
            let check = "select set_config('transaction_read_only', 'off', true)".to_owned();
            assert_eq!(settings.contains(&check), mode.writes());
            assert!(settings.iter().all(|sql| !sql.contains(';')));
        }
    }
}
