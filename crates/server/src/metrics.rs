//! The metrics of this crate, declared once.
#![expect(
    clippy::disallowed_macros,
    reason = "this is the one place where they are declared"
)]

/// A worker did something, or failed to. What found nothing to do is not counted.
pub(crate) fn worker(name: &'static str, outcome: &'static str) {
    metrics::counter!("tributary_worker_runs_total", "worker" => name, "outcome" => outcome)
        .increment(1);
}

/// An `AdServices` token was redeemed, or was not.
pub(crate) fn ad_services(outcome: &'static str) {
    metrics::counter!("tributary_ad_services_attempts_total", "outcome" => outcome).increment(1);
}

/// How old the latest exchange rates are.
pub(crate) fn rates_days_behind(days: i64) {
    let days = i32::try_from(days).unwrap_or(i32::MAX);
    metrics::gauge!("tributary_rates_days_behind").set(days);
}

/// Sets the age of the second source's latest figures.
pub(crate) fn rates_second_days_behind(days: i64) {
    let days = i32::try_from(days).unwrap_or(i32::MAX);
    metrics::gauge!("tributary_rates_second_days_behind").set(days);
}

/// Counts figures of the second source that moved too far to be believed.
pub(crate) fn rates_refused(count: usize) {
    metrics::counter!("tributary_rates_refused_total").increment(count as u64);
}

/// Something lost what the settings say it loses by now.
pub(crate) fn forgotten(what: &'static str, count: u64) {
    metrics::counter!("tributary_retention_total", "what" => what).increment(count);
}

/// What each metric means, for `/metrics`.
pub fn describe() {
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
         notifications, audit_entries."
    );
}
