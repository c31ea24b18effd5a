//! The metrics recorded by this crate.
#![expect(
    clippy::disallowed_macros,
    reason = "the metrics of this crate are declared here"
)]

/// Records that the writer started a batch, and how many jobs were waiting, including those in the
/// batch.
pub(crate) fn batch(waiting: usize) {
    metrics::counter!("tributary_store_batches_total").increment(1);
    let waiting = u32::try_from(waiting).unwrap_or(u32::MAX);
    metrics::gauge!("tributary_store_writer_queue").set(waiting);
}

/// Describes the metrics for `/metrics` and initialises the counters.
pub fn describe() {
    metrics::counter!("tributary_store_batches_total").increment(0);
    metrics::describe_counter!(
        "tributary_store_batches_total",
        "Batches of changes taken by the writer."
    );
    metrics::describe_gauge!(
        "tributary_store_writer_queue",
        "Changes waiting when the writer took its last batch."
    );
}
