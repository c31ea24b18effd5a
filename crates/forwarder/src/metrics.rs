//! All of this crate's metrics.
#![expect(
    clippy::disallowed_macros,
    reason = "metrics are declared only in this module"
)]

use std::time::Duration;
use tributary_domain::forwarding::DeliveryStatus;
use tributary_domain::forwarding::sharing::QueueShare;
use tributary_domain::integration::Network;

/// Classes of responses, as metric labels.
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

/// What a lease covers, as metric labels.
const SHARES: [&str; 2] = ["whole", "part"];

/// Counts a finished delivery.
pub(crate) fn count_ended(network: Network, status: DeliveryStatus) {
    let (network, status) = (network.as_str(), status.as_str());
    metrics::counter!("tributary_deliveries_total", "network" => network, "status" => status)
        .increment(1);
}

/// Records a request with the class of its response and its duration.
pub(crate) fn record_request(network: Network, ruling: &'static str, took: Duration) {
    let network = network.as_str();
    metrics::counter!("tributary_network_requests_total", "network" => network, "ruling" => ruling)
        .increment(1);
    metrics::histogram!("tributary_network_request_seconds", "network" => network)
        .record(took.as_secs_f64());
}

/// Counts a paused queue.
pub(crate) fn count_paused(network: Network) {
    metrics::counter!("tributary_integrations_paused_total", "network" => network.as_str())
        .increment(1);
}

/// Counts a lease.
pub(crate) fn count_leased(network: Network, share: QueueShare) {
    let (network, share) = (network.as_str(), share_label(share));
    metrics::counter!("tributary_queue_leases_total", "network" => network, "share" => share)
        .increment(1);
}

const fn share_label(share: QueueShare) -> &'static str {
    match share {
        QueueShare::Whole => SHARES[0],
        QueueShare::Part(_) => SHARES[1],
    }
}

/// Declares the metrics for `/metrics`. Counters start at zero so that an alert on an increase also
/// sees the first increase.
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
        for share in SHARES {
            let labels = [("network", network), ("share", share)];
            metrics::counter!("tributary_queue_leases_total", &labels).increment(0);
        }
    }
    metrics::describe_counter!(
        "tributary_deliveries_total",
        "Finished deliveries, by network and status."
    );
    metrics::describe_counter!(
        "tributary_network_requests_total",
        "Requests to the networks, by ruling on the response."
    );
    metrics::describe_histogram!(
        "tributary_network_request_seconds",
        "Duration of requests to the networks."
    );
    metrics::describe_counter!(
        "tributary_integrations_paused_total",
        "Integrations paused because of a network's response."
    );
    metrics::describe_counter!(
        "tributary_queue_leases_total",
        "Leases of queues, as a whole or in part."
    );
}
