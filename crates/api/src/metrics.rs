//! The metrics recorded by this crate, declared in one place.
#![expect(
    clippy::disallowed_macros,
    reason = "the only place that declares metrics"
)]

use axum::http::Method;
use metrics::{Counter, Histogram};
use std::fmt;
use std::sync::{OnceLock, PoisonError, RwLock};
use std::time::Duration;
use tributary_domain::app::BillingProvider;

/// Handles of one route's metrics. Incrementing a counter is much cheaper than finding it by its
/// labels.
pub(crate) struct RouteMetrics {
    route: String,
    durations: Histogram,
    /// Counters by method and status. A route has few, because it sends few statuses.
    requests: RwLock<Vec<RequestCounter>>,
}

struct RequestCounter {
    method: &'static str,
    status: u16,
    counter: Counter,
}

impl RouteMetrics {
    /// Creates the handles. `route` is the route's template instead of the path, to limit the
    /// number of time series.
    pub(crate) fn new(route: &str) -> Self {
        let durations = metrics::histogram!(
            "tributary_http_request_duration_seconds",
            "route" => route.to_owned()
        );
        Self {
            route: route.to_owned(),
            durations,
            requests: RwLock::default(),
        }
    }

    /// Records a request that got a response.
    pub(crate) fn record(&self, method: &Method, status: u16, duration: Duration) {
        let method = method_label(method);
        let requests = self.requests.read().unwrap_or_else(PoisonError::into_inner);
        let is_counted = count_in(&requests, method, status);
        drop(requests);
        if !is_counted {
            self.count_first(method, status);
        }
        self.durations.record(duration);
    }

    /// Adds a counter, unless another request has just added it, and counts the request.
    fn count_first(&self, method: &'static str, status: u16) {
        let mut requests = self
            .requests
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        if count_in(&requests, method, status) {
            return;
        }
        let labels = [
            ("method", method.to_owned()),
            ("route", self.route.clone()),
            ("status", status.to_string()),
        ];
        let counter = metrics::counter!("tributary_http_requests_total", &labels);
        counter.increment(1);
        requests.push(RequestCounter {
            method,
            status,
            counter,
        });
    }
}

/// Counts a request if its counter exists.
fn count_in(requests: &[RequestCounter], method: &str, status: u16) -> bool {
    let known = requests
        .iter()
        .find(|known| known.status == status && known.method == method);
    if let Some(known) = known {
        known.counter.increment(1);
    }
    known.is_some()
}

impl fmt::Debug for RouteMetrics {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.route)
    }
}

/// Returns the method as a label. Unknown methods share one label, because clients can invent them.
fn method_label(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}

/// Counters of one metric by outcome, for metrics that nearly every request increments.
struct OutcomeCounters<const N: usize> {
    name: &'static str,
    outcomes: [&'static str; N],
    handles: OnceLock<[Counter; N]>,
}

impl<const N: usize> OutcomeCounters<N> {
    const fn new(name: &'static str, outcomes: [&'static str; N]) -> Self {
        Self {
            name,
            outcomes,
            handles: OnceLock::new(),
        }
    }

    /// Adds to the counter of an outcome. Every outcome must be in the list.
    fn add(&self, outcome: &'static str, count: u64) {
        let handles = self.handles.get_or_init(|| {
            self.outcomes
                .map(|outcome| metrics::counter!(self.name, "outcome" => outcome))
        });
        let known = self.outcomes.iter().zip(handles);
        let found = known.into_iter().find(|(known, _)| **known == outcome);
        debug_assert!(found.is_some(), "{}: {outcome} is not listed", self.name);
        if let Some((_, counter)) = found {
            counter.increment(count);
        }
    }

    /// Registers every counter at zero.
    fn register(&self) {
        for outcome in self.outcomes {
            self.add(outcome, 0);
        }
    }
}

static AUTHENTICATIONS: OutcomeCounters<6> = OutcomeCounters::new(
    "tributary_authentications_total",
    [
        "ok",
        "missing",
        "invalid",
        "denied",
        "limited",
        "wrong_address",
    ],
);
static CLICKS: OutcomeCounters<3> = OutcomeCounters::new(
    "tributary_clicks_total",
    ["recorded", "bot", "not_recorded"],
);

/// Counts an authentication by outcome.
pub(crate) fn count_authentication(outcome: &'static str) {
    AUTHENTICATIONS.add(outcome, 1);
}

/// Counts a tap by outcome: whether its click was recorded, and whether it was from a bot.
pub(crate) fn count_click(outcome: &'static str) {
    CLICKS.add(outcome, 1);
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
    AUTHENTICATIONS.register();
    for kind in DROPPED_WRITES {
        metrics::counter!("tributary_unverified_writes_dropped_total", "kind" => kind).increment(0);
    }
    for outcome in DECOMPRESSIONS {
        metrics::counter!("tributary_decompressions_total", "outcome" => outcome).increment(0);
    }
    CLICKS.register();
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
        "Authentications by outcome: ok, missing, invalid, denied, limited, wrong_address."
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
