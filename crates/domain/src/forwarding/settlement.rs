//! What is written when a process that holds a queue settles deliveries.

use super::alert::{Alert, crosses_failure_threshold};
use super::delivery::DeliveryStatus;
use super::lifecycle::{NextStep, SettledDelivery};
use super::queue::QueueState;
use super::status_check::StatusCheck;
use crate::vocabulary::time::Timestamp;

/// What came of some deliveries of a queue, written at once.
#[derive(Debug, Clone)]
pub struct DeliverySettlement {
    /// When.
    pub at: Timestamp,
    /// State of the queue now.
    pub state: QueueState,
    /// The revision of the integration that was used.
    pub revision: i64,
    /// The deliveries.
    pub settled: Vec<SettledDelivery>,
    /// Whether they were tests, which count nowhere.
    pub is_test: bool,
    /// Requests to be asked about later.
    pub checks: Vec<StatusCheck>,
    /// Told if the queue stops with this.
    pub pause_alert: Option<Alert>,
    /// Told if this makes the failures of the hour many.
    pub failure_alert: Option<Alert>,
}

/// An integration as it is stored now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IntegrationVersion {
    /// Its revision.
    pub revision: i64,
    /// Whether it is on.
    pub enabled: bool,
}

/// Whether a process that leased a queue with this revision may go on sending: the integration is the same, and on.
pub fn may_continue(leased: i64, now: Option<IntegrationVersion>) -> bool {
    now.is_some_and(|version| version.revision == leased && version.enabled)
}

/// What the store knows when it settles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SettlementFacts {
    /// The integration now. Needed when the settlement stops the queue.
    pub version: Option<IntegrationVersion>,
    /// Deliveries of the queue that failed in this hour, before this settlement and with it.
    pub failures: (u64, u64),
}

impl DeliverySettlement {
    /// Returns how deliveries ended.
    pub fn final_statuses(&self) -> impl Iterator<Item = DeliveryStatus> + '_ {
        self.settled.iter().filter_map(|one| match one.next {
            NextStep::End { status, .. } => Some(status),
            NextStep::Wait { .. } => None,
        })
    }

    /// Returns how the deliveries ended that are counted: tests are not.
    pub fn counted_final_statuses(&self) -> impl Iterator<Item = DeliveryStatus> + '_ {
        self.final_statuses().filter(|_| !self.is_test)
    }

    /// Whether the settlement stops the queue, so that [`SettlementFacts::version`] has to be known.
    pub const fn stops_queue(&self) -> bool {
        self.state.pause.is_some()
    }

    /// Decides the queue's state after the settlement, and which alerts are raised. A pause is dropped where the
    /// integration was changed meanwhile: what stopped the old one says nothing about the new one.
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
    #[case::runs(false, None, (0, 0), false, &[])]
    #[case::stops(true, Some(version(7, true)), (0, 0), true, &[PAUSED])]
    #[case::stops_and_was_switched_off(true, Some(version(7, false)), (0, 0), true, &[PAUSED])]
    #[case::stops_and_was_changed(true, Some(version(8, true)), (0, 0), false, &[])]
    #[case::stops_and_is_gone(true, None, (0, 0), false, &[])]
    #[case::many_failures(false, None, (99, 100), false, &[FAILING])]
    #[case::many_failures_before(false, None, (100, 101), false, &[])]
    #[case::both(true, Some(version(7, true)), (99, 100), true, &[FAILING, PAUSED])]
    fn decisions(
        #[case] pauses: bool,
        #[case] version: Option<IntegrationVersion>,
        #[case] failures: (u64, u64),
        #[case] is_paused: bool,
        #[case] expected: &[AlertKind],
    ) {
        let settlement = settlement(pauses);
        let (state, alerts) = settlement.decide(SettlementFacts { version, failures });
        assert_eq!(state.pause.is_some(), is_paused);
        assert_eq!(state.batch_size(50) == 1, pauses && !is_paused, "carefully");
        let kinds: Vec<AlertKind> = alerts.into_iter().map(|alert| alert.kind).collect();
        assert_eq!(kinds, expected);
    }

    #[test]
    fn tests_are_not_counted() {
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
    #[case::switched_off(Some(version(7, false)), false)]
    #[case::changed(Some(version(8, true)), false)]
    #[case::gone(None, false)]
    fn going_on(#[case] now: Option<IntegrationVersion>, #[case] expected: bool) {
        assert_eq!(may_continue(7, now), expected);
    }
}
