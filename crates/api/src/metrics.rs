//! The metrics recorded by this crate, declared in one place.
#![expect(
    clippy::disallowed_macros,
    reason = "the only place that declares metrics"
)]

use std::time::Duration;
use tributary_domain::app::BillingProvider;

/// Records a request that got a response. `route` is the route's template instead of the path, to
/// limit the number of time series.
pub(crate) fn record_request(method: &str, route: &str, status: u16, duration: Duration) {
    let labels = [
        ("method", method_label(method)),
        ("route", route.to_owned()),
        ("status", status.to_string()),
    ];
    metrics::counter!("tributary_http_requests_total", &labels).increment(1);
    metrics::histogram!("tributary_http_request_duration_seconds", "route" => route.to_owned())
        .record(duration.as_secs_f64());
}

/// Returns the method as a label. Unknown methods share one label, because clients can invent them.
fn method_label(method: &str) -> String {
    let known = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
    if known.contains(&method) {
        method.to_owned()
    } else {
        "other".to_owned()
    }
}

/// Counts an authentication by outcome.
pub(crate) fn count_authentication(outcome: &'static str) {
    metrics::counter!("tributary_authentications_total", "outcome" => outcome).increment(1);
}

/// Counts a tap by outcome: whether its click was recorded, and whether it was from a bot.
pub(crate) fn count_click(outcome: &'static str) {
    metrics::counter!("tributary_clicks_total", "outcome" => outcome).increment(1);
}

/// Counts a tap whose link came from the cache because the database was unavailable.
pub(crate) fn count_cached_link() {
    metrics::counter!("tributary_links_from_memory_total").increment(1);
}

/// Counts a postback by outcome.
pub(crate) fn count_postback(protocol: &'static str, outcome: &'static str) {
    let labels = [("protocol", protocol), ("outcome", outcome)];
    metrics::counter!("tributary_postbacks_total", &labels).increment(1);
}

/// Counts a billing notification by outcome.
pub(crate) fn count_notification(provider: &'static str, outcome: &'static str) {
    let labels = [("provider", provider), ("outcome", outcome)];
    metrics::counter!("tributary_billing_notifications_total", &labels).increment(1);
}

/// Counts a compressed request body by outcome.
pub(crate) fn count_decompression(outcome: &'static str) {
    metrics::counter!("tributary_decompressions_total", "outcome" => outcome).increment(1);
}

/// Counts a write that was dropped because its sender could not be verified and a quota is used up.
pub(crate) fn count_dropped_write(kind: &'static str) {
    metrics::counter!("tributary_unverified_writes_dropped_total", "kind" => kind).increment(1);
}

const DROPPED_WRITES: [&str; 2] = ["postback", "notification"];
const DECOMPRESSIONS: [&str; 3] = ["ok", "rejected", "busy"];
const AUTHENTICATIONS: [&str; 5] = ["ok", "missing", "invalid", "denied", "limited"];
const CLICKS: [&str; 3] = ["recorded", "bot", "not_recorded"];
const PROTOCOLS: [&str; 2] = ["skadnetwork", "adattributionkit"];
const POSTBACKS: [&str; 8] = [
    "valid",
    "invalid",
    "development",
    "unverifiable",
    "duplicate",
    "unclaimed",
    "dropped",
    "malformed",
];
const NOTIFICATIONS: [&str; 7] = [
    "matched",
    "unmatched",
    "receipt",
    "duplicate",
    "id_reuse",
    "unauthorized",
    "malformed",
];

/// Registers counters at zero, so that alerts see the first increment. The request counter is left
/// out, because it has too many label combinations.
fn register() {
    for outcome in AUTHENTICATIONS {
        metrics::counter!("tributary_authentications_total", "outcome" => outcome).increment(0);
    }
    for kind in DROPPED_WRITES {
        metrics::counter!("tributary_unverified_writes_dropped_total", "kind" => kind).increment(0);
    }
    for outcome in DECOMPRESSIONS {
        metrics::counter!("tributary_decompressions_total", "outcome" => outcome).increment(0);
    }
    for outcome in CLICKS {
        metrics::counter!("tributary_clicks_total", "outcome" => outcome).increment(0);
    }
    metrics::counter!("tributary_links_from_memory_total").increment(0);
    for protocol in PROTOCOLS {
        for outcome in POSTBACKS {
            let labels = [("protocol", protocol), ("outcome", outcome)];
            metrics::counter!("tributary_postbacks_total", &labels).increment(0);
        }
    }
    for provider in BillingProvider::ALL {
        for outcome in NOTIFICATIONS {
            let labels = [("provider", provider.as_str()), ("outcome", outcome)];
            metrics::counter!("tributary_billing_notifications_total", &labels).increment(0);
        }
    }
}

/// Describes the metrics for `/metrics`.
pub fn describe() {
    register();
    metrics::describe_counter!(
        "tributary_http_requests_total",
        "Requests that got a response."
    );
    metrics::describe_histogram!(
        "tributary_http_request_duration_seconds",
        metrics::Unit::Seconds,
        "Time from the request's headers to the response's headers."
    );
    metrics::describe_counter!(
        "tributary_authentications_total",
        "Authentications by outcome: ok, missing, invalid, denied, limited."
    );
    metrics::describe_counter!(
        "tributary_decompressions_total",
        "Compressed request bodies by outcome: ok, rejected (invalid or over a limit), busy (429)."
    );
    metrics::describe_counter!(
        "tributary_unverified_writes_dropped_total",
        "Writes that were dropped because a quota for unverified senders is used up, by kind: \
         postback, notification (its rejection is not counted in the app's figures)."
    );
    metrics::describe_counter!(
        "tributary_clicks_total",
        "Taps on tracking links by outcome: recorded, bot, not_recorded. not_recorded means that \
         the tap was redirected without a click id because the database could not commit."
    );
    metrics::describe_counter!(
        "tributary_links_from_memory_total",
        "Taps whose link came from the cache because the database was unavailable."
    );
    metrics::describe_counter!(
        "tributary_postbacks_total",
        "SKAdNetwork and AdAttributionKit postbacks by outcome: stored as valid, invalid, \
         development or unverifiable; or duplicate, unclaimed (no such app), dropped (over a limit), \
         malformed."
    );
    metrics::describe_counter!(
        "tributary_billing_notifications_total",
        "Billing notifications by outcome: matched or unmatched (an event with or without a \
         device; the join rate follows from these), receipt, duplicate, id_reuse, unauthorized, \
         malformed."
    );
}
