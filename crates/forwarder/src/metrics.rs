//! The metrics of this crate, declared once.
#![expect(
    clippy::disallowed_macros,
    reason = "this is the one place where they are declared"
)]

use std::time::Duration;
use tributary_domain::forwarding::DeliveryStatus;
use tributary_domain::integration::Network;

/// What an answer comes to.
const RULINGS: [&str; 8] = [
    "delivered",
    "delivered_in_part",
    "throttled",
    "retry",
    "rejected",
    "too_large",
    "paused",
    "unknown",
];

/// Deliveries came to their end.
pub(crate) fn count_ended(network: Network, status: DeliveryStatus) {
    let (network, status) = (network.as_str(), status.as_str());
    metrics::counter!("tributary_deliveries_total", "network" => network, "status" => status)
        .increment(1);
}

/// A request was answered, or was not.
pub(crate) fn record_request(network: Network, ruling: &'static str, took: Duration) {
    let network = network.as_str();
    metrics::counter!("tributary_network_requests_total", "network" => network, "ruling" => ruling)
        .increment(1);
    metrics::histogram!("tributary_network_request_seconds", "network" => network)
        .record(took.as_secs_f64());
}

/// A queue was stopped.
pub(crate) fn count_paused(network: Network) {
    metrics::counter!("tributary_integrations_paused_total", "network" => network.as_str())
        .increment(1);
}

/// Declares the metrics for `/metrics`, with counters at zero: an alert on an increase sees the first one only then.
pub fn describe() {
    for network in Network::ALL.map(Network::as_str) {
        for status in DeliveryStatus::ALL {
            let labels = [("network", network), ("status", status.as_str())];
            metrics::counter!("tributary_deliveries_total", &labels).increment(0);
        }
        for ruling in RULINGS {
            let labels = [("network", network), ("ruling", ruling)];
            metrics::counter!("tributary_network_requests_total", &labels).increment(0);
        }
        metrics::counter!("tributary_integrations_paused_total", "network" => network).increment(0);
    }
    metrics::describe_counter!(
        "tributary_deliveries_total",
        "Deliveries that came to their end, by network and status."
    );
    metrics::describe_counter!(
        "tributary_network_requests_total",
        "Requests to the networks, by what their answer came to."
    );
    metrics::describe_histogram!(
        "tributary_network_request_seconds",
        "How long requests to the networks took."
    );
    metrics::describe_counter!(
        "tributary_integrations_paused_total",
        "Integrations that were stopped by a network's answer."
    );
}
