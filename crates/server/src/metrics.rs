//! The metrics of this crate, declared once.
#![expect(
    clippy::disallowed_macros,
    reason = "this is the one place where they are declared"
)]

use crate::{process_metrics, workers};
use metrics_exporter_prometheus::PrometheusHandle;
use tributary_domain::integration::Network;
use tributary_domain::vocabulary::time::Timestamp;

/// A worker did something, or failed to. What found nothing to do is not counted.
pub(crate) fn record_worker_run(name: &'static str, outcome: &'static str) {
    metrics::counter!("tributary_worker_runs_total", "worker" => name, "outcome" => outcome)
        .increment(1);
}

/// An `AdServices` token was redeemed, or was not.
pub(crate) fn record_ad_services_attempt(outcome: &'static str) {
    metrics::counter!("tributary_ad_services_attempts_total", "outcome" => outcome).increment(1);
}

/// How old the latest exchange rates are.
pub(crate) fn set_rates_age(days: i64) {
    let days = i32::try_from(days).unwrap_or(i32::MAX);
    metrics::gauge!("tributary_rates_days_behind").set(days);
}

/// Sets the age of the second source's latest figures.
pub(crate) fn set_second_rates_age(days: i64) {
    let days = i32::try_from(days).unwrap_or(i32::MAX);
    metrics::gauge!("tributary_rates_second_days_behind").set(days);
}

/// Counts figures of the second source that moved too far to be believed.
pub(crate) fn count_rejected_rates(count: usize) {
    metrics::counter!("tributary_rates_refused_total").increment(count as u64);
}

/// Something lost what the settings say it loses by now.
pub(crate) fn count_removed_rows(what: &'static str, count: u64) {
    metrics::counter!("tributary_retention_total", "what" => what).increment(count);
}

/// How many integrations of a network are paused now.
pub(crate) fn set_paused_integrations(network: Network, count: u64) {
    let count = u32::try_from(count).unwrap_or(u32::MAX);
    metrics::gauge!("tributary_integrations_paused", "network" => network.as_str()).set(count);
}

/// Says which version runs, on which engine.
pub(crate) fn set_build_info(engine: &'static str) {
    let labels = [("version", env!("CARGO_PKG_VERSION")), ("engine", engine)];
    metrics::gauge!("tributary_build_info", &labels).set(1);
}

/// What `/metrics` shows.
#[derive(Clone)]
pub struct Exporter {
    handle: PrometheusHandle,
    started_at: Timestamp,
}

impl Exporter {
    /// Of what is recorded, in a process that started at this time.
    pub const fn new(recorded: PrometheusHandle, started_at: Timestamp) -> Self {
        Self {
            handle: recorded,
            started_at,
        }
    }

    /// All metrics, in Prometheus's text format.
    pub fn render(&self) -> String {
        metrics::counter!("tributary_log_lines_dropped_total")
            .absolute(crate::logging::dropped_lines());
        self.handle.render() + &process_metrics::render(self.started_at)
    }

    /// Folds histograms; wanted every few seconds.
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
const RETENTION: [&str; 7] = [
    "attributions",
    "click_addresses",
    "clicks",
    "deliveries",
    "postbacks",
    "notifications",
    "audit_entries",
];

/// Declares the metrics for `/metrics`, with counters at zero: an alert on an increase sees the first one only then.
pub fn describe() {
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
    metrics::counter!("tributary_rates_refused_total").increment(0);
    for what in RETENTION {
        metrics::counter!("tributary_retention_total", "what" => what).increment(0);
    }
    metrics::describe_gauge!(
        "tributary_integrations_paused",
        "Integrations that are paused now, by network. Every node of one database reports the same."
    );
    metrics::describe_gauge!(
        "tributary_build_info",
        "Always 1; the labels say which version runs, on which engine."
    );
    metrics::describe_counter!(
        "tributary_log_lines_dropped_total",
        "Log lines that could not be written to standard error and were dropped."
    );
    metrics::describe_counter!(
        "tributary_worker_runs_total",
        "Runs of the workers that had something to do, by outcome: ok, failed."
    );
    metrics::describe_counter!(
        "tributary_ad_services_attempts_total",
        "AdServices tokens redeemed, by outcome: attributed, not_attributed, invalid, expired, not_ready, \
         failed, lost."
    );
    metrics::describe_gauge!(
        "tributary_rates_days_behind",
        "Days from the latest exchange rates to today."
    );
    metrics::describe_gauge!(
        "tributary_rates_second_days_behind",
        "Days from the latest exchange rates of the second source to today."
    );
    metrics::describe_counter!(
        "tributary_rates_refused_total",
        "Figures of the second source of exchange rates that were refused because they moved too far."
    );
    metrics::describe_counter!(
        "tributary_retention_total",
        "What was forgotten because its time is over, by what: click_addresses, clicks, deliveries, postbacks, \
         notifications, audit_entries, attributions."
    );
}
