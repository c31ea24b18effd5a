//! The statements that begin a transaction.
//!
//! All settings use `set local`, because `PgBouncer` shares sessions between clients.

use crate::tx::TransactionMode;
use std::time::Duration;

/// How long a statement waits for a lock.
const LOCK_WAIT_MAX: Duration = Duration::from_secs(5);

/// Forces index lookups. Before the first `analyze`, the planner assumes that a table is small and
/// would scan it. With this setting, scans that cannot be avoided get such a high cost estimate
/// that the server would JIT-compile the statement, which takes longer than the scan. So JIT is
/// off.
const INDEX_PLANS: [&str; 4] = [
    "set local enable_seqscan = off",
    "set local enable_hashjoin = off",
    "set local enable_mergejoin = off",
    "set local jit = off",
];

/// Forces generic query plans. Writes come in batches, and planning the statements again for each
/// batch would cost as much as the lookups themselves.
const GENERIC_PLAN: &str = "set local plan_cache_mode = force_generic_plan";

/// Citus cannot plan a distributed statement without its values.
const CUSTOM_PLAN: &str = "set local plan_cache_mode = auto";

/// Lets transactions that write to several shards run at the same time. Otherwise Citus locks whole
/// tables against each other. All transactions lock rows in the same order.
const CONCURRENT_WRITES: &str = "set local citus.enable_deadlock_prevention = off";

/// Sends the settings after this one to the workers, too. Without it, a worker would use the
/// settings of its role: it might commit without a sync, or wait for a lock without a limit.
const SETTINGS_FOR_WORKERS: &str = "set local citus.propagate_set_commands = 'local'";

/// Returns the statements that begin a transaction, to be sent together in one round trip.
///
/// On a distributed database each setting for the workers is a separate statement. Citus sends the
/// whole text that contains a setting to the workers, once for each setting in the text.
pub(crate) fn begin_statements(
    mode: TransactionMode,
    is_distributed: bool,
    statement_timeout: Duration,
) -> Vec<String> {
    let kind = match mode {
        TransactionMode::Read => "isolation level repeatable read, read only",
        TransactionMode::Write | TransactionMode::PipelinedWrite => {
            "isolation level read committed, read write"
        }
    };
    let begin = format!("begin {kind}");
    let statement = statement_timeout.as_millis().max(1);
    let lock = LOCK_WAIT_MAX.as_millis();
    let settings = [
        // The role may have turned `synchronous_commit` off, which would lose acknowledged commits
        // in a power cut.
        "set local synchronous_commit = on".to_owned(),
        format!("set local statement_timeout = {statement}"),
        format!("set local lock_timeout = {lock}"),
        format!("set local idle_in_transaction_session_timeout = {statement}"),
    ];
    let settings = settings.into_iter().chain(INDEX_PLANS.map(str::to_owned));
    if is_distributed {
        let first = [&begin, CONCURRENT_WRITES, CUSTOM_PLAN, SETTINGS_FOR_WORKERS];
        return std::iter::once(first.join("; ")).chain(settings).collect();
    }
    let plan = (mode != TransactionMode::Read).then(|| GENERIC_PLAN.to_owned());
    let all: Vec<String> = std::iter::once(begin).chain(settings).chain(plan).collect();
    vec![all.join("; ")]
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(7);

    #[test]
    fn a_plain_database_gets_one_text() {
        let [read] = &begin_statements(TransactionMode::Read, false, TIMEOUT)[..] else {
            panic!("several statements");
        };
        assert!(read.starts_with("begin isolation level repeatable read, read only; set local "));
        assert!(read.contains("statement_timeout = 7000"));
        assert!(!read.contains("plan_cache_mode") && !read.contains("citus"));
        let [write] = &begin_statements(TransactionMode::Write, false, TIMEOUT)[..] else {
            panic!("several statements");
        };
        assert!(write.contains("read write") && write.ends_with(GENERIC_PLAN));
        assert!(write.contains("set local synchronous_commit = on;"));
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
            assert!(settings.iter().all(|sql| !sql.contains(';')));
        }
    }
}
