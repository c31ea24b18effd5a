//! Alerts sent to the operator.

use crate::integration::Network;
use crate::vocabulary::id::{AlertId, AppId};
use crate::vocabulary::time::Timestamp;
use std::time::Duration;

/// Number of an integration's failed deliveries within an hour that raises an alert.
pub const BULK_FAILURES: u64 = 100;

/// Delays between attempts to send an alert or a message of a notice. The first attempt is immediate;
/// after the last attempt, about a day later, it is dropped.
pub const RETRY_WAITS: [Duration; 7] = [
    Duration::from_secs(5),
    Duration::from_mins(5),
    Duration::from_mins(30),
    Duration::from_hours(2),
    Duration::from_hours(5),
    Duration::from_hours(10),
    Duration::from_hours(10),
];

/// Kind of alert.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AlertKind {
    /// An integration is paused until an operator fixes it.
    IntegrationPaused,
    /// Many of an integration's deliveries failed within an hour.
    DeliveriesFailing,
    /// The exchange rates are stale.
    RatesStale,
    /// An hour has far more traffic than the weeks before it.
    TrafficAnomaly,
}

crate::keywords! {
    AlertKind {
        IntegrationPaused => "integration.paused",
        DeliveriesFailing => "deliveries.failing",
        RatesStale => "rates.stale",
        TrafficAnomaly => "traffic.anomaly",
    }
}

/// An alert for an operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alert {
    /// Id. Receivers use it to detect repeats.
    pub id: AlertId,
    /// The app that the alert is about.
    pub app: AppId,
    /// Kind of alert.
    pub kind: AlertKind,
    /// The network that the alert is about, if any.
    pub network: Option<Network>,
    /// Time of the alert.
    pub at: Timestamp,
    /// One sentence without secrets or personal data.
    pub message: String,
}

/// Returns whether this hour's number of failures just reached [`BULK_FAILURES`]. This happens once
/// per hour, so at most one alert is raised per hour.
pub const fn crosses_failure_threshold(before: u64, now: u64) -> bool {
    before < BULK_FAILURES && now >= BULK_FAILURES
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::few(0, 99, false)]
    #[case::just_now(99, 100, true)]
    #[case::in_one_step(0, 500, true)]
    #[case::already_alerted(100, 101, false)]
    fn many_failures_raise_one_alert(
        #[case] before: u64,
        #[case] now: u64,
        #[case] is_raised: bool,
    ) {
        assert_eq!(crosses_failure_threshold(before, now), is_raised);
    }
}
