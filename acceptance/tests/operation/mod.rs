//! Operation of the binary: log, metrics, start and shutdown.

mod drain;
mod log_output;
mod metrics;
mod password_guesses;
mod people;
mod private_providers;
mod request_ids;
mod roles;
mod sealed_values;
mod secret_key_rotation;
mod shared_queue;
mod starting;
mod tls;
mod upgrade;

/// Returns the value of a metric. The name includes the labels as `/metrics` shows them.
fn metric<'a>(metrics: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = metrics.lines();
    lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))
}
