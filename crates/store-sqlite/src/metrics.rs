//! The metrics of this crate, declared once.
#![expect(
    clippy::disallowed_macros,
    reason = "this is the one place where they are declared"
)]

/// A batch was taken while so many jobs were waiting, those of the batch among them.
pub(crate) fn batch(waiting: usize) {
    metrics::counter!("tributary_store_batches_total").increment(1);
    let waiting = u32::try_from(waiting).unwrap_or(u32::MAX);
    metrics::gauge!("tributary_store_writer_queue").set(waiting);
}

/// Declares the metrics for `/metrics`, with counters at zero.
pub fn describe() {
    metrics::counter!("tributary_store_batches_total").increment(0);
    metrics::describe_counter!(
        "tributary_store_batches_total",
        "Batches of changes that the writer took."
    );
    metrics::describe_gauge!(
        "tributary_store_writer_queue",
        "Changes that were waiting when the writer took its last batch."
    );
}
