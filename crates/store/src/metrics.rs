//! Metrics that both adapters record.
#![expect(clippy::disallowed_macros, reason = "metrics are declared here")]

use crate::{StoreError, StoreResult};
use std::time::Duration;
use tributary_domain::standby::PrimaryReason;

/// Records the outcome and duration of a transaction, in a separate series per transaction name.
pub fn record_transaction<T>(name: &'static str, outcome: &StoreResult<T>, duration: Duration) {
    let outcome = outcome_label(outcome);
    if outcome == UNAVAILABLE {
        metrics::counter!("tributary_store_unavailable_total").increment(1);
    }
    metrics::counter!("tributary_store_transactions_total", "name" => name, "outcome" => outcome)
        .increment(1);
    metrics::histogram!("tributary_store_transaction_duration_seconds", "name" => name)
        .record(duration.as_secs_f64());
}

const UNAVAILABLE: &str = "unavailable";

/// Returns the metric label of an outcome. A corrupt value is counted as unavailable.
fn outcome_label<T>(outcome: &StoreResult<T>) -> &'static str {
    match outcome {
        Ok(_) => "ok",
        Err(error) if error.is_report_timeout() => "timeout",
        Err(StoreError::Refused(_)) => "refused",
        Err(StoreError::Unavailable { .. } | StoreError::Corrupt { .. }) => UNAVAILABLE,
    }
}

/// Kinds of slots; see [`crate::report_slots::SlotKind`].
const SLOT_KINDS: [&str; 2] = ["report", "export"];
const SLOT_OUTCOMES: [&str; 3] = ["admitted", "queued", "rejected"];

/// Counts a report or export by what happened to it: admitted at once, admitted after a wait, or
/// rejected.
pub(crate) fn count_slot_request(kind: &'static str, outcome: &'static str) {
    let labels = [("kind", kind), ("outcome", outcome)];
    metrics::counter!("tributary_report_requests_total", &labels).increment(1);
}

/// Sets the number of running and waiting reports or exports.
pub(crate) fn set_slots(kind: &'static str, running: usize, waiting: usize) {
    for (state, count) in [("running", running), ("waiting", waiting)] {
        let labels = [("kind", kind), ("state", state)];
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        metrics::gauge!("tributary_report_slots", &labels).set(f64::from(count));
    }
}

fn describe_slots() {
    for kind in SLOT_KINDS {
        set_slots(kind, 0, 0);
        for outcome in SLOT_OUTCOMES {
            let labels = [("kind", kind), ("outcome", outcome)];
            metrics::counter!("tributary_report_requests_total", &labels).increment(0);
        }
    }
    metrics::describe_counter!(
        "tributary_report_requests_total",
        "Reports and exports, by kind and outcome: admitted, queued (admitted after a wait), \
         rejected with 429."
    );
    metrics::describe_gauge!(
        "tributary_report_slots",
        "Reports and exports on this node, by kind and state: running, waiting."
    );
}

/// Outcome of a report that the standby served.
const STANDBY: &str = "standby";

/// Counts a report by the server that answered it: the standby, or the primary for a reason.
pub fn count_standby_read(primary: Option<PrimaryReason>) {
    let server = primary.map_or(STANDBY, PrimaryReason::as_str);
    metrics::counter!("tributary_standby_reads_total", "outcome" => server).increment(1);
}

/// Sets the lag of the standby, and whether it can serve reports.
pub fn set_standby(lag: Duration, is_usable: bool) {
    metrics::gauge!("tributary_standby_lag_seconds").set(lag.as_secs_f64());
    metrics::gauge!("tributary_standby_usable").set(if is_usable { 1.0 } else { 0.0 });
}

/// Describes the metrics of the standby and initialises its counters. Called only if there is one.
pub fn describe_standby() {
    for outcome in PrimaryReason::ALL
        .map(PrimaryReason::as_str)
        .into_iter()
        .chain([STANDBY])
    {
        metrics::counter!("tributary_standby_reads_total", "outcome" => outcome).increment(0);
    }
    metrics::describe_counter!(
        "tributary_standby_reads_total",
        "Reports, by outcome: standby (it served the report), or why the primary did: lag, \
         own_change, unusable, conflict, refusal."
    );
    metrics::describe_gauge!(
        "tributary_standby_lag_seconds",
        metrics::Unit::Seconds,
        "How far the standby is behind the primary, as measured by this node."
    );
    metrics::describe_gauge!(
        "tributary_standby_usable",
        "1 if the standby answers and follows the primary, 0 otherwise."
    );
}

/// Describes the metrics, and initialises the counter to zero so that an alert on an increase sees
/// the first failure.
pub fn describe() {
    describe_slots();
    metrics::describe_counter!(
        "tributary_store_unavailable_total",
        "Transactions with outcome unavailable. Present from the start, unlike the series by name."
    );
    metrics::counter!("tributary_store_unavailable_total").increment(0);
    metrics::describe_counter!(
        "tributary_store_transactions_total",
        "Transactions, by name and outcome: ok, refused, timeout (a report took too long), \
         unavailable."
    );
    metrics::describe_histogram!(
        "tributary_store_transaction_duration_seconds",
        metrics::Unit::Seconds,
        "Duration of a transaction, including waiting and retries."
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use tributary_domain::refusal::Refusal;

    #[test]
    fn counts_refusals_separately_from_failures() {
        let label = |error: StoreError| outcome_label::<()>(&Err(error));
        assert_eq!(outcome_label(&Ok(())), "ok");
        assert_eq!(label(Refusal::AppNotFound.into()), "refused");
        assert_eq!(label(StoreError::unavailable("x", "down")), "unavailable");
        let timeout = StoreError::unavailable("x", crate::ReportTimeout);
        assert_eq!(label(timeout), "timeout");
        assert_eq!(label(StoreError::corrupt("t", "c", 1)), "unavailable");
    }
}
