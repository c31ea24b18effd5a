//! The metrics of this crate, declared once.
#![expect(
    clippy::disallowed_macros,
    reason = "this is the one place where they are declared"
)]

use std::time::Duration;
use tributary_domain::app::BillingProvider;

/// A request was answered. The route is a template, so that there are as many series as routes.
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

/// Methods come from outside and can be invented; those that we do not have count as one.
fn method_label(method: &str) -> String {
    let known = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
    if known.contains(&method) {
        method.to_owned()
    } else {
        "other".to_owned()
    }
}

/// A key was presented, with how that ended.
pub(crate) fn count_authentication(outcome: &'static str) {
    metrics::counter!("tributary_authentications_total", "outcome" => outcome).increment(1);
}

/// A tap on a tracking link was answered, with what became of its click.
pub(crate) fn count_click(outcome: &'static str) {
    metrics::counter!("tributary_clicks_total", "outcome" => outcome).increment(1);
}

/// A tap was answered from memory because the database could not be asked for its link.
pub(crate) fn count_cached_link() {
    metrics::counter!("tributary_links_from_memory_total").increment(1);
}

/// A postback came, with what became of it.
pub(crate) fn count_postback(protocol: &'static str, outcome: &'static str) {
    let labels = [("protocol", protocol), ("outcome", outcome)];
    metrics::counter!("tributary_postbacks_total", &labels).increment(1);
}

/// A billing provider's notification came, with what became of it.
pub(crate) fn count_notification(provider: &'static str, outcome: &'static str) {
    let labels = [("provider", provider), ("outcome", outcome)];
    metrics::counter!("tributary_billing_notifications_total", &labels).increment(1);
}

const AUTHENTICATIONS: [&str; 5] = ["ok", "missing", "invalid", "denied", "limited"];
const CLICKS: [&str; 3] = ["recorded", "bot", "not_recorded"];
const PROTOCOLS: [&str; 2] = ["skadnetwork", "adattributionkit"];
const POSTBACKS: [&str; 7] = [
    "valid",
    "invalid",
    "development",
    "unverifiable",
    "duplicate",
    "unclaimed",
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

/// Declares counters at zero: an alert on an increase sees the first one only then. Requests are left out, since their
/// labels (routes and statuses) are too many.
fn register() {
    for outcome in AUTHENTICATIONS {
        metrics::counter!("tributary_authentications_total", "outcome" => outcome).increment(0);
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

/// Declares the metrics for `/metrics`.
pub fn describe() {
    register();
    metrics::describe_counter!("tributary_http_requests_total", "Requests answered.");
    metrics::describe_histogram!(
        "tributary_http_request_duration_seconds",
        metrics::Unit::Seconds,
        "From the request's head to the answer's."
    );
    metrics::describe_counter!(
        "tributary_authentications_total",
        "API keys presented, by outcome: ok, missing, invalid, denied, limited."
    );
    metrics::describe_counter!(
        "tributary_clicks_total",
        "Taps on tracking links, by what became of the click: recorded, bot, not_recorded. The last \
         were sent on without a click id because the database could not commit."
    );
    metrics::describe_counter!(
        "tributary_links_from_memory_total",
        "Taps whose link came from memory because the database could not be read."
    );
    metrics::describe_counter!(
        "tributary_postbacks_total",
        "Postbacks of SKAdNetwork and AdAttributionKit, by what became of them: stored as valid, invalid, \
         development or unverifiable, duplicate, unclaimed (of no app), malformed."
    );
    metrics::describe_counter!(
        "tributary_billing_notifications_total",
        "Notifications of billing providers, by what became of them: matched and unmatched (events with and without a \
         device: the join rate), receipt, duplicate, id_reuse, unauthorized, malformed."
    );
}
