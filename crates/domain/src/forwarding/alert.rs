//! What an operator is told without asking.

use crate::integration::Network;
use crate::vocabulary::id::{AlertId, AppId};
use crate::vocabulary::time::Timestamp;

/// So many deliveries of one integration that fail within an hour are told.
pub const BULK_FAILURES: u64 = 100;

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AlertKind {
    /// An integration stopped until somebody mends it.
    IntegrationPaused,
    /// Many deliveries of an integration failed within an hour.
    DeliveriesFailing,
    /// There are no new exchange rates.
    RatesStale,
}

crate::keywords! {
    AlertKind {
        IntegrationPaused => "integration.paused",
        DeliveriesFailing => "deliveries.failing",
        RatesStale => "rates.stale",
    }
}

/// Something that an operator is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alert {
    /// Its id; the receiver knows a repeat by it.
    pub id: AlertId,
    /// Whose app.
    pub app: AppId,
    /// What happened.
    pub kind: AlertKind,
    /// At which network.
    pub network: Option<Network>,
    /// When.
    pub at: Timestamp,
    /// In a sentence, without secrets and personal data.
    pub message: String,
}

/// Whether the failures of an hour just became many. It is said once an hour, when the number is passed.
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
    #[case::in_one_leap(0, 500, true)]
    #[case::told_before(100, 101, false)]
    fn many_failures_are_told_once(#[case] before: u64, #[case] now: u64, #[case] told: bool) {
        assert_eq!(crosses_failure_threshold(before, now), told);
    }
}
