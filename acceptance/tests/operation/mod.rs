//! Operating the binary: its log, its start and its end, its metrics.

mod log_output;
mod metrics;
mod request_ids;
mod starting;

/// The value of a metric, named with its labels as `/metrics` shows it.
fn metric<'a>(metrics: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = metrics.lines();
    lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))
}
