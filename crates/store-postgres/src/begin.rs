//! The statement that begins a transaction, with its settings.

use crate::tx::TransactionMode;
use std::time::Duration;

/// How long a statement waits for a lock.
const LOCK_WAIT_MAX: Duration = Duration::from_secs(5);

/// Forces index lookups. Before the first `analyze`, the planner assumes that a table is small and
/// would scan it. With this setting, scans that cannot be avoided get such a high cost estimate
/// that the server would JIT-compile the statement, which takes longer than the scan. So JIT is
/// off.
const INDEX_PLANS: &str = ";
                 set local enable_seqscan = off;
                 set local enable_hashjoin = off;
                 set local enable_mergejoin = off;
                 set local jit = off";

/// Forces generic query plans. Writes come in batches, and planning the statements again for each
/// batch would cost as much as the lookups themselves.
const GENERIC_PLAN: &str = ";
                 set local plan_cache_mode = force_generic_plan";

/// Lets the server choose. A distributed database cannot make a generic plan, because it plans a
/// statement for the shards of its values.
const CHOSEN_PLAN: &str = ";
                 set local plan_cache_mode = auto";

/// Returns the statements that begin a transaction, for one round trip. All settings use
/// `set local`, because `PgBouncer` shares sessions between clients.
pub(crate) fn begin_statement(
    mode: TransactionMode,
    is_distributed: bool,
    statement_timeout: Duration,
) -> String {
    let (kind, plans) = match mode {
        TransactionMode::Read => ("isolation level repeatable read, read only", ""),
        TransactionMode::Write | TransactionMode::PipelinedWrite => {
            let plans = if is_distributed {
                CHOSEN_PLAN
            } else {
                GENERIC_PLAN
            };
            ("isolation level read committed, read write", plans)
        }
    };
    let statement = statement_timeout.as_millis().max(1);
    let lock = LOCK_WAIT_MAX.as_millis();
    // The role may have turned `synchronous_commit` off, which would lose acknowledged commits in a
    // power cut.
    format!(
        "begin {kind};
                 set local synchronous_commit = on;
                 set local statement_timeout = {statement};
                 set local lock_timeout = {lock};
                 set local idle_in_transaction_session_timeout = {statement}{INDEX_PLANS}{plans}"
    )
}

#[cfg(test)]
mod tests {
    use super::{TransactionMode, begin_statement};
    use std::time::Duration;

    #[test]
    fn a_distributed_database_never_gets_a_generic_plan() {
        let write = |is_distributed| {
            let timeout = Duration::from_secs(1);
            begin_statement(TransactionMode::Write, is_distributed, timeout)
        };
        assert!(write(false).contains("plan_cache_mode = force_generic_plan"));
        assert!(write(true).contains("plan_cache_mode = auto"));
    }
}
