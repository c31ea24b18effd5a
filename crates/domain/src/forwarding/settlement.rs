//! Results that a process writes for the deliveries in its leased queue.

use super::alert::{Alert, crosses_failure_threshold};
use super::delivery::DeliveryStatus;
use super::lifecycle::{NextStep, SettledDelivery};
use super::queue::QueueState;
use super::status_check::StatusCheck;
use crate::vocabulary::time::Timestamp;

/// Results for deliveries in one queue, written in one transaction.
#[derive(Debug, Clone)]
pub struct DeliverySettlement {
    /// Time of the settlement.
    pub at: Timestamp,
    /// New state of the queue.
    pub state: QueueState,
    /// Revision of the integration that was used.
    pub revision: i64,
    /// The deliveries.
    pub settled: Vec<SettledDelivery>,
    /// Whether these were test deliveries, which are not counted.
    pub is_test: bool,
    /// Requests whose status must be checked later.
    pub checks: Vec<StatusCheck>,
    /// Alert to raise if the queue is paused.
    pub pause_alert: Option<Alert>,
    /// Alert to raise if this hour's failures reach the threshold.
    pub failure_alert: Option<Alert>,
}

/// Stored version of an integration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IntegrationVersion {
    /// Revision number.
    pub revision: i64,
    /// Whether the integration is enabled.
    pub enabled: bool,
}

/// Returns whether a process may continue with a queue leased at this revision: the integration is
/// unchanged and enabled.
pub fn may_continue(leased: i64, now: Option<IntegrationVersion>) -> bool {
    now.is_some_and(|version| version.revision == leased && version.enabled)
}

/// Facts that the store reads before it settles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SettlementFacts {
    /// Current version of the integration. Required if the settlement pauses the queue.
    pub version: Option<IntegrationVersion>,
    /// Number of the queue's failed deliveries in this hour, before and after this settlement.
    pub failures: (u64, u64),
}

impl DeliverySettlement {
    /// Returns the final statuses of the deliveries that are finished.
    pub fn final_statuses(&self) -> impl Iterator<Item = DeliveryStatus> + '_ {
        self.settled.iter().filter_map(|one| match one.next {
            NextStep::End { status, .. } => Some(status),
            NextStep::Wait { .. } => None,
        })
    }

    /// Returns the final statuses that are counted; none for test deliveries.
    pub fn counted_final_statuses(&self) -> impl Iterator<Item = DeliveryStatus> + '_ {
        self.final_statuses().filter(|_| !self.is_test)
    }

    /// Returns whether the settlement pauses the queue and therefore requires
    /// [`SettlementFacts::version`].
    pub const fn stops_queue(&self) -> bool {
        self.state.pause.is_some()
    }

    /// Decides the queue's new state and the alerts to raise. If the integration was changed in the
    /// meantime, the queue is not paused, because the cause may be fixed.
    pub fn decide(&self, facts: SettlementFacts) -> (QueueState, Vec<&Alert>) {
        let mut state = self.state.clone();
        let mut alerts = Vec::new();
        let (before, now) = facts.failures;
        if crosses_failure_threshold(before, now) {
            alerts.extend(&self.failure_alert);
        }
        if state.pause.is_some() {
            let revision = facts.version.map(|version| version.revision);
            if revision == Some(self.revision) {
                alerts.extend(&self.pause_alert);
            } else {
                state.resume();
            }
        }
        (state, alerts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forwarding::alert::AlertKind;
    use crate::vocabulary::id::{AlertId, AppId, DeliveryId};
    use rstest::rstest;

    const NOW: Timestamp = Timestamp::from_millis(1_000);

    fn alert(kind: AlertKind) -> Alert {
        Alert {
            id: AlertId::from_bytes([1; 16]),
            app: AppId::from_bytes([2; 16]),
            kind,
            network: None,
            at: NOW,
            message: String::new(),
        }
    }

    fn settlement(pauses: bool) -> DeliverySettlement {
        let mut state = QueueState::default();
        if pauses {
            state.pause(NOW, "190", None);
        }
        let ended = |status| SettledDelivery {
            id: DeliveryId::from_bytes([3; 16]),
            attempts_made: 1,
            attempts: Vec::new(),
            next: NextStep::End {
                status,
                reason: None,
            },
        };
        DeliverySettlement {
            at: NOW,
            state,
            revision: 7,
            settled: vec![
                ended(DeliveryStatus::Delivered),
                ended(DeliveryStatus::Failed),
            ],
            is_test: false,
            checks: Vec::new(),
            pause_alert: pauses.then(|| alert(AlertKind::IntegrationPaused)),
            failure_alert: Some(alert(AlertKind::DeliveriesFailing)),
        }
    }

    const fn version(revision: i64, enabled: bool) -> IntegrationVersion {
        IntegrationVersion { revision, enabled }
    }

    const PAUSED: AlertKind = AlertKind::IntegrationPaused;
    const FAILING: AlertKind = AlertKind::DeliveriesFailing;

    #[rstest]
    #[case::running(false, None, (0, 0), false, &[])]
    #[case::paused(true, Some(version(7, true)), (0, 0), true, &[PAUSED])]
    #[case::paused_and_disabled(true, Some(version(7, false)), (0, 0), true, &[PAUSED])]
    #[case::paused_and_changed(true, Some(version(8, true)), (0, 0), false, &[])]
    #[case::paused_and_deleted(true, None, (0, 0), false, &[])]
    #[case::many_failures(false, None, (99, 100), false, &[FAILING])]
    #[case::many_failures_before(false, None, (100, 101), false, &[])]
    #[case::both(true, Some(version(7, true)), (99, 100), true, &[FAILING, PAUSED])]
    fn pauses_and_alerts(
        #[case] pauses: bool,
        #[case] version: Option<IntegrationVersion>,
        #[case] failures: (u64, u64),
        #[case] is_paused: bool,
        #[case] expected: &[AlertKind],
    ) {
        let settlement = settlement(pauses);
        let (state, alerts) = settlement.decide(SettlementFacts { version, failures });
        assert_eq!(state.pause.is_some(), is_paused);
        assert_eq!(
            state.batch_size(50) == 1,
            pauses && !is_paused,
            "a resumed queue probes"
        );
        let kinds: Vec<AlertKind> = alerts.into_iter().map(|alert| alert.kind).collect();
        assert_eq!(kinds, expected);
    }

    #[test]
    fn test_deliveries_are_not_counted() {
        let mut settlement = settlement(false);
        assert_eq!(settlement.counted_final_statuses().count(), 2);
        settlement.is_test = true;
        assert_eq!(
            (
                settlement.counted_final_statuses().count(),
                settlement.final_statuses().count()
            ),
            (0, 2)
        );
    }

    #[rstest]
    #[case::the_same(Some(version(7, true)), true)]
    #[case::disabled(Some(version(7, false)), false)]
    #[case::changed(Some(version(8, true)), false)]
    #[case::deleted(None, false)]
    fn a_lease_continues_only_for_the_same_integration(
        #[case] now: Option<IntegrationVersion>,
        #[case] expected: bool,
    ) {
        assert_eq!(may_continue(7, now), expected);
    }
}
