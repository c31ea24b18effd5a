//! The metrics that every adapter records, declared once.
#![expect(
    clippy::disallowed_macros,
    reason = "this is the one place where they are declared"
)]

use crate::{StoreError, StoreResult};
use std::time::Duration;

/// A transaction ended. Names are those of the port's methods, so there are as many series as methods.
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

/// What cannot be read is as good as away.
const fn outcome_label<T>(outcome: &StoreResult<T>) -> &'static str {
    match outcome {
        Ok(_) => "ok",
        Err(StoreError::Refused(_)) => "refused",
        Err(StoreError::Unavailable { .. } | StoreError::Corrupt { .. }) => UNAVAILABLE,
    }
}

/// Declares the metrics for `/metrics`, with counters at zero: an alert on an increase sees the first one only then.
pub fn describe() {
    metrics::describe_counter!(
        "tributary_store_unavailable_total",
        "Transactions of any name whose outcome was unavailable. Exists before the first one, unlike the series by name."
    );
    metrics::counter!("tributary_store_unavailable_total").increment(0);
    metrics::describe_counter!(
        "tributary_store_transactions_total",
        "Transactions, by name and outcome: ok, refused, unavailable."
    );
    metrics::describe_histogram!(
        "tributary_store_transaction_duration_seconds",
        metrics::Unit::Seconds,
        "From the request for a transaction to its answer, waiting and retries included."
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use tributary_domain::refusal::Refusal;

    #[test]
    fn a_refusal_is_no_fault_of_the_database() {
        let label = |error: StoreError| outcome_label::<()>(&Err(error));
        assert_eq!(outcome_label(&Ok(())), "ok");
        assert_eq!(label(Refusal::AppNotFound.into()), "refused");
        assert_eq!(label(StoreError::unavailable("x", "away")), "unavailable");
        assert_eq!(label(StoreError::corrupt("t", "c", 1)), "unavailable");
    }
}
