//! All of this crate's metrics.
#![expect(
    clippy::disallowed_macros,
    reason = "metrics are declared only in this module"
)]

use crate::{process_metrics, workers};
use metrics_exporter_prometheus::PrometheusHandle;
use std::time::Duration;
use tributary_domain::cost_source::REPORTING_NETWORKS;
use tributary_domain::integration::Network;
use tributary_domain::vocabulary::time::Timestamp;

/// Counts a worker run by outcome. Idle runs are not counted.
pub(crate) fn record_worker_run(name: &'static str, outcome: &'static str) {
    metrics::counter!("tributary_worker_runs_total", "worker" => name, "outcome" => outcome)
        .increment(1);
}

/// Counts an attempt to redeem an AdServices token.
pub(crate) fn record_ad_services_attempt(outcome: &'static str) {
    metrics::counter!("tributary_ad_services_attempts_total", "outcome" => outcome).increment(1);
}

/// Counts an import of costs.
pub(crate) fn record_cost_pull(network: Network, outcome: &'static str) {
    let labels = [("network", network.as_str()), ("outcome", outcome)];
    metrics::counter!("tributary_cost_pulls_total", &labels).increment(1);
}

/// Counts notices and messages that could not be read.
pub(crate) fn count_unreadable_notices(count: usize) {
    metrics::counter!("tributary_notices_unreadable_total").increment(count as u64);
}

/// Sets the age of the latest exchange rates, in days.
pub(crate) fn set_rates_age(days: i64) {
    let days = i32::try_from(days).unwrap_or(i32::MAX);
    metrics::gauge!("tributary_rates_days_behind").set(days);
}

/// Sets the age of the second source's latest rates, in days.
pub(crate) fn set_second_rates_age(days: i64) {
    let days = i32::try_from(days).unwrap_or(i32::MAX);
    metrics::gauge!("tributary_rates_second_days_behind").set(days);
}

/// Counts rates from the second source that were rejected because they differ too much from the
/// last known rate.
pub(crate) fn count_rejected_rates(count: usize) {
    metrics::counter!("tributary_rates_refused_total").increment(count as u64);
}

/// Counts rows removed by retention.
pub(crate) fn count_removed_rows(what: &'static str, count: u64) {
    metrics::counter!("tributary_retention_total", "what" => what).increment(count);
}

/// Sets the number of paused integrations for a network.
pub(crate) fn set_paused_integrations(network: Network, count: u64) {
    let count = u32::try_from(count).unwrap_or(u32::MAX);
    metrics::gauge!("tributary_integrations_paused", "network" => network.as_str()).set(count);
}

/// Sets when the TLS certificate that is now in use expires, and when it was read.
pub(crate) fn set_certificate(expires_at: Option<Timestamp>, read_at: Timestamp) {
    let expiry = metrics::gauge!("tributary_tls_certificate_expiry_timestamp_seconds");
    match expires_at {
        Some(at) => expiry.set(unix_time(at)),
        // No alert fires for an unknown time.
        None => expiry.set(f64::NAN),
    }
    metrics::gauge!("tributary_tls_reload_timestamp_seconds", "outcome" => "ok")
        .set(unix_time(read_at));
}

/// Sets when a TLS certificate could not be used.
pub(crate) fn set_failed_certificate(at: Timestamp) {
    metrics::gauge!("tributary_tls_reload_timestamp_seconds", "outcome" => "failed")
        .set(unix_time(at));
}

/// Sets that no certificate has failed yet, so that alerts can compare both outcomes.
pub(crate) fn set_no_failed_certificate() {
    set_failed_certificate(Timestamp::from_millis(0));
}

fn unix_time(at: Timestamp) -> Duration {
    at.since(Timestamp::from_millis(0))
}

/// Sets the labels for the version and the database engine.
pub(crate) fn set_build_info(engine: &'static str) {
    let labels = [("version", env!("CARGO_PKG_VERSION")), ("engine", engine)];
    metrics::gauge!("tributary_build_info", &labels).set(1);
}

/// Renders `/metrics`.
#[derive(Clone)]
pub struct Exporter {
    handle: PrometheusHandle,
    started_at: Timestamp,
}

impl Exporter {
    /// Creates an exporter for a process that started at `started_at`.
    pub const fn new(recorded: PrometheusHandle, started_at: Timestamp) -> Self {
        Self {
            handle: recorded,
            started_at,
        }
    }

    /// Renders all metrics in Prometheus's text format.
    pub fn render(&self) -> String {
        metrics::counter!("tributary_log_lines_dropped_total")
            .absolute(crate::logging::dropped_lines());
        self.handle.render() + &process_metrics::render(self.started_at)
    }

    /// Aggregates histogram samples. Call every few seconds.
    pub fn run_upkeep(&self) {
        self.handle.run_upkeep();
    }
}

const AD_SERVICES: [&str; 7] = [
    "attributed",
    "not_attributed",
    "invalid",
    "expired",
    "not_ready",
    "failed",
    "lost",
];
/// Outcomes of an import of costs.
const COST_PULLS: [&str; 4] = ["done", "failed", "refused", "lost"];
const RETENTION: [&str; 7] = [
    "attributions",
    "click_addresses",
    "clicks",
    "deliveries",
    "postbacks",
    "notifications",
    "audit_entries",
];

/// Counts a connection above its address's limit.
pub(crate) fn count_rejected_connection() {
    metrics::counter!("tributary_connections_rejected_total").increment(1);
}

/// Declares the metrics for `/metrics`. Counters start at zero so that an alert on an increase also
/// sees the first increase.
pub fn describe() {
    describe_certificate();
    for worker in workers::NAMES {
        for outcome in ["ok", "failed"] {
            let labels = [("worker", worker), ("outcome", outcome)];
            metrics::counter!("tributary_worker_runs_total", &labels).increment(0);
        }
    }
    for outcome in AD_SERVICES {
        metrics::counter!("tributary_ad_services_attempts_total", "outcome" => outcome)
            .increment(0);
    }
    for network in REPORTING_NETWORKS {
        for outcome in COST_PULLS {
            let labels = [("network", network.as_str()), ("outcome", outcome)];
            metrics::counter!("tributary_cost_pulls_total", &labels).increment(0);
        }
    }
    metrics::describe_counter!(
        "tributary_cost_pulls_total",
        "Imports of costs by network and outcome: done, failed, refused, lost."
    );
    metrics::counter!("tributary_notices_unreadable_total").increment(0);
    metrics::describe_counter!(
        "tributary_notices_unreadable_total",
        "Notices and messages that could not be read."
    );
    metrics::counter!("tributary_rates_refused_total").increment(0);
    metrics::counter!("tributary_connections_rejected_total").increment(0);
    metrics::describe_counter!(
        "tributary_connections_rejected_total",
        "Connections closed with 429 because their address had too many."
    );
    for what in RETENTION {
        metrics::counter!("tributary_retention_total", "what" => what).increment(0);
    }
    metrics::describe_gauge!(
        "tributary_integrations_paused",
        "Paused integrations by network. All nodes that share a database report the same value."
    );
    metrics::describe_gauge!(
        "tributary_build_info",
        "Always 1; the labels contain the version and the database engine."
    );
    metrics::describe_counter!(
        "tributary_log_lines_dropped_total",
        "Log lines dropped because standard error could not be written or was too slow."
    );
    metrics::describe_counter!(
        "tributary_worker_runs_total",
        "Worker runs that had something to do, by outcome: ok, failed."
    );
    metrics::describe_counter!(
        "tributary_ad_services_attempts_total",
        "Attempts to redeem AdServices tokens, by outcome: attributed, not_attributed, invalid, \
         expired, not_ready, failed, lost."
    );
    metrics::describe_gauge!(
        "tributary_rates_days_behind",
        "Age of the latest exchange rates, in days."
    );
    metrics::describe_gauge!(
        "tributary_rates_second_days_behind",
        "Age of the second source's latest exchange rates, in days."
    );
    metrics::describe_counter!(
        "tributary_rates_refused_total",
        "Exchange rates from the second source that were rejected because they moved too far."
    );
    metrics::describe_counter!(
        "tributary_retention_total",
        "Rows deleted or stripped of personal data by retention, by kind of data (label `what`): click_addresses, clicks, deliveries, \
         postbacks, notifications, audit_entries, attributions."
    );
}

fn describe_certificate() {
    metrics::describe_gauge!(
        "tributary_tls_certificate_expiry_timestamp_seconds",
        metrics::Unit::Seconds,
        "Time at which the TLS certificate in use expires, in seconds since 1970."
    );
    metrics::describe_gauge!(
        "tributary_tls_reload_timestamp_seconds",
        metrics::Unit::Seconds,
        "Time at which the TLS certificate was last read, in seconds since 1970, by outcome: ok, \
         failed (the previous certificate stays in use; 0 if none has failed)."
    );
}
