//! Results that a process writes for the deliveries in its leased queue.

use super::alert::{Alert, crosses_failure_threshold};
use super::delivery::DeliveryStatus;
use super::lifecycle::{NextStep, SettledDelivery};
use super::queue::{Pause, QueueState};
use super::queue_change::QueueChange;
use super::status_check::StatusCheck;
use crate::vocabulary::time::Timestamp;

/// Results for deliveries in one queue, written in one transaction.
#[derive(Debug, Clone)]
pub struct DeliverySettlement {
    /// Time of the settlement.
    pub at: Timestamp,
    /// When the process began with these deliveries. A back-off that ended before has no effect, and
    /// problems have none if the queue was resumed during the round.
    pub begun_at: Timestamp,
    /// Changes to the state of the queue.
    pub changes: Vec<QueueChange>,
    /// Revision of the integration that was used.
    pub revision: i64,
    /// The deliveries.
    pub settled: Vec<SettledDelivery>,
    /// Whether these were test deliveries, which are not counted.
    pub is_test: bool,
    /// Requests whose status must be checked later.
    pub checks: Vec<StatusCheck>,
    /// Alert to raise if these results pause the queue. The reason is added to its message.
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
    /// Current version of the integration. Required if [`MergedQueue::is_pausing`].
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

    /// Applies the changes to the state that is stored now.
    pub fn merge(&self, mut stored: QueueState) -> MergedQueue {
        let was_paused = stored.pause.is_some();
        stored.clear_ended_backoff(self.begun_at);
        let mut unpaused = stored.clone();
        for change in &self.changes {
            if stored.admits(change, (self.begun_at, self.at)) {
                stored.apply(change);
                unpaused.apply_unless_pausing(change);
            }
        }
        MergedQueue {
            is_pausing: !was_paused && stored.pause.is_some(),
            state: stored,
            unpaused,
        }
    }

    /// Decides the queue's new state and the alerts to raise. If the integration was changed in the
    /// meantime, the queue is not paused, because the cause may be fixed. The next request tests that.
    pub fn decide(&self, merged: MergedQueue, facts: SettlementFacts) -> SettlementDecision {
        let MergedQueue {
            mut state,
            mut unpaused,
            mut is_pausing,
        } = merged;
        let mut alerts = Vec::new();
        let (before, now) = facts.failures;
        if crosses_failure_threshold(before, now) {
            alerts.extend(self.failure_alert.clone());
        }
        if is_pausing {
            let revision = facts.version.map(|version| version.revision);
            if revision == Some(self.revision) {
                let pause = state.pause.as_ref();
                alerts.extend(pause.and_then(|pause| self.alert_of_pause(pause)));
            } else {
                unpaused.is_probing = true;
                // They were counted with the earlier settings.
                unpaused.rejections = None;
                state = unpaused;
                is_pausing = false;
            }
        }
        SettlementDecision {
            queue: SettledQueue {
                state,
                is_newly_paused: is_pausing,
            },
            alerts,
        }
    }

    fn alert_of_pause(&self, pause: &Pause) -> Option<Alert> {
        let mut alert = self.pause_alert.clone()?;
        let reason = pause.message.as_deref().unwrap_or("no message");
        alert.message = format!("{} (code {}: {reason}).", alert.message, pause.code);
        alert.message.push_str(KEPT_UNTIL_RESUMED);
        Some(alert)
    }
}

/// End of the message about a pause.
const KEPT_UNTIL_RESUMED: &str = " Deliveries are kept until the integration is fixed and resumed.";

/// State of a queue after changes, before it is known whether the integration has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergedQueue {
    state: QueueState,
    /// The state without the changes that pause the queue.
    unpaused: QueueState,
    /// Whether the changes pause the queue.
    pub is_pausing: bool,
}

/// State of a queue after a settlement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettledQueue {
    /// The state.
    pub state: QueueState,
    /// Whether this settlement paused the queue.
    pub is_newly_paused: bool,
}

/// What a settlement writes besides its deliveries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettlementDecision {
    /// The queue.
    pub queue: SettledQueue,
    /// Alerts to raise.
    pub alerts: Vec<Alert>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forwarding::alert::AlertKind;
    use crate::forwarding::queue::SYSTEMATIC_REJECTIONS;
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
        let stopped = QueueChange::Stopped {
            at: NOW,
            code: "190".to_owned(),
            message: None,
        };
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
            begun_at: NOW,
            changes: pauses.then_some(stopped).into_iter().collect(),
            revision: 7,
            settled: vec![
                ended(DeliveryStatus::Delivered),
                ended(DeliveryStatus::Failed),
            ],
            is_test: false,
            checks: Vec::new(),
            pause_alert: Some(alert(AlertKind::IntegrationPaused)),
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
        let merged = settlement.merge(QueueState::default());
        assert_eq!(merged.is_pausing, pauses);
        let SettlementDecision { queue, alerts } =
            settlement.decide(merged, SettlementFacts { version, failures });
        let state = queue.state;
        assert_eq!(
            (state.pause.is_some(), queue.is_newly_paused),
            (is_paused, is_paused)
        );
        assert_eq!(
            state.batch_size(50) == 1,
            pauses && !is_paused,
            "a resumed queue probes"
        );
        let kinds: Vec<AlertKind> = alerts.into_iter().map(|alert| alert.kind).collect();
        assert_eq!(kinds, expected);
    }

    #[test]
    fn a_pause_of_another_node_stays_and_raises_no_second_alert() {
        let mut stored = QueueState::default();
        stored.pause(NOW, "200", None);
        let facts = SettlementFacts {
            version: Some(version(8, true)),
            failures: (0, 0),
        };
        for pauses in [true, false] {
            let settlement = settlement(pauses);
            let merged = settlement.merge(stored.clone());
            assert!(!merged.is_pausing);
            let decision = settlement.decide(merged, facts);
            assert_eq!(decision.queue.state, stored);
            assert_eq!(decision.alerts, []);
            assert!(!decision.queue.is_newly_paused);
        }
    }

    #[test]
    fn an_outdated_pause_leaves_the_state_of_other_nodes_alone() {
        let end = Timestamp::from_millis(60_000);
        let stored = QueueState {
            not_before: Some(end),
            failures: 3,
            rejections: Some(("100".to_owned(), SYSTEMATIC_REJECTIONS - 1)),
            ..QueueState::default()
        };
        let mut settlement = settlement(true);
        settlement.changes.push(QueueChange::FailedAlone {
            at: NOW,
            code: "100".to_owned(),
            message: None,
        });
        let facts = SettlementFacts {
            version: Some(version(8, true)),
            failures: (0, 0),
        };
        let merged = settlement.merge(stored.clone());
        assert!(merged.is_pausing);
        let decision = settlement.decide(merged, facts);
        let expected = QueueState {
            is_probing: true,
            rejections: None,
            ..stored
        };
        assert_eq!(decision.queue.state, expected);
    }

    #[rstest]
    #[case::before_it_was_resumed(999, 1_000, false)]
    #[case::when_it_was_resumed(1_000, 1_000, true)]
    #[case::resumed_by_a_node_with_a_fast_clock(999, 1_001, true)]
    fn problems_of_rounds_that_began_before_a_resume_have_no_effect(
        #[case] begun_at: i64,
        #[case] resumed_at: i64,
        #[case] has_effect: bool,
    ) {
        let mut stored = QueueState::default();
        stored.pause(NOW, "190", None);
        stored.resume(Timestamp::from_millis(resumed_at));
        let end = Timestamp::from_millis(60_000);
        let mut settlement = settlement(true);
        settlement.begun_at = Timestamp::from_millis(begun_at);
        settlement.changes.extend([
            QueueChange::Failed {
                at: NOW,
                wait: None,
                random: 0,
            },
            QueueChange::FailedAlone {
                at: NOW,
                code: "100".to_owned(),
                message: None,
            },
            QueueChange::WaitRequested { until: end },
        ]);
        let merged = settlement.merge(stored);
        assert_eq!(merged.is_pausing, has_effect);
        let state = merged.state;
        assert_eq!(state.pause.is_some(), has_effect);
        assert_eq!(state.failures, u32::from(has_effect));
        assert_eq!(state.rejections.is_some(), has_effect);
        assert_eq!((state.not_before, state.is_probing), (Some(end), true));
    }

    #[test]
    fn a_back_off_of_another_node_stays() {
        let end = Timestamp::from_millis(60_000);
        let stored = QueueState {
            not_before: Some(end),
            failures: 3,
            ..QueueState::default()
        };
        let mut settlement = settlement(false);
        settlement.changes = vec![QueueChange::Accepted { at: NOW }];
        let merged = settlement.merge(stored.clone()).state;
        assert_eq!((merged.not_before, merged.failures), (Some(end), 0));
        settlement.begun_at = end;
        let merged = settlement.merge(stored).state;
        assert_eq!(merged.not_before, None, "it was over when the round began");
    }

    #[test]
    fn the_alert_says_why_the_queue_is_paused() {
        let mut settlement = settlement(false);
        settlement.changes = vec![QueueChange::Stopped {
            at: NOW,
            code: "190".to_owned(),
            message: Some("expired".to_owned()),
        }];
        let facts = SettlementFacts {
            version: Some(version(7, true)),
            failures: (0, 0),
        };
        settlement.pause_alert = Some(Alert {
            message: "It is paused".to_owned(),
            ..alert(PAUSED)
        });
        let merged = settlement.merge(QueueState::default());
        let alerts = settlement.decide(merged, facts).alerts;
        let expected = "It is paused (code 190: expired). Deliveries are kept until the \
                        integration is fixed and resumed.";
        assert_eq!(alerts[0].message, expected);
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
