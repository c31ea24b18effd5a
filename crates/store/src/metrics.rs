//! Metrics that both adapters record.
#![expect(clippy::disallowed_macros, reason = "metrics are declared here")]

use crate::{StoreError, StoreResult};
use std::time::Duration;

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
const fn outcome_label<T>(outcome: &StoreResult<T>) -> &'static str {
    match outcome {
        Ok(_) => "ok",
        Err(StoreError::Refused(_)) => "refused",
        Err(StoreError::Unavailable { .. } | StoreError::Corrupt { .. }) => UNAVAILABLE,
    }
}

/// Describes the metrics, and initialises the counter to zero so that an alert on an increase sees
/// the first failure.
pub fn describe() {
    metrics::describe_counter!(
        "tributary_store_unavailable_total",
        "Transactions with outcome unavailable. Present from the start, unlike the series by name."
    );
    metrics::counter!("tributary_store_unavailable_total").increment(0);
    metrics::describe_counter!(
        "tributary_store_transactions_total",
        "Transactions, by name and outcome: ok, refused, unavailable."
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
        assert_eq!(label(StoreError::corrupt("t", "c", 1)), "unavailable");
    }
}
