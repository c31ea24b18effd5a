//! `qualified_trial`: a trial that is still active after its hold.

use super::chain::by_time;
use super::{
    BILLING_ISSUE, CANCELLATION, EXPIRATION, Notification, NotificationMeaning, QUALIFIED_TRIAL,
    SettledNotification, TRIAL_CANCELLED, UNCANCELLATION,
};
use crate::app::{BillingProvider, QualifiedTrial};
use crate::vocabulary::digest::Digest;
use crate::vocabulary::id::EventId;
use crate::vocabulary::time::Timestamp;
use std::time::Duration;

/// State of a held trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrialState {
    /// The trial is not due yet.
    Held,
    /// The trial ended before it was due (by cancellation, refund or expiry), or a charge failed.
    Disqualified,
    /// The trial qualifies.
    Qualified,
}

crate::keywords! {
    TrialState {
        Held => "held",
        Disqualified => "disqualified",
        Qualified => "qualified",
    }
}

/// A held trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trial {
    /// Time at which the trial qualifies, unless it is disqualified before.
    pub due_at: Timestamp,
    /// Current state.
    pub state: TrialState,
}

/// Returns how long a new trial is held before it qualifies; `None` if the app does not use
/// qualified trials.
pub fn trial_hold(settings: &QualifiedTrial) -> Option<Duration> {
    let hours = u64::try_from(settings.delay_hours).unwrap_or(0);
    settings.enabled.then(|| Duration::from_hours(hours))
}

/// Returns the external id of a trial's `qualified_trial` event.
pub fn qualified_id(provider: BillingProvider, chain: &str) -> String {
    let transaction = chain.strip_prefix("sub:").unwrap_or(chain);
    format!("{QUALIFIED_TRIAL}:{}:{transaction}", provider.as_str())
}

/// Returns whether this service created the notification for a qualified trial.
pub(super) fn is_qualified(one: &Notification) -> bool {
    one.content.kind == QUALIFIED_TRIAL
        && one.content.external_id == qualified_id(one.provider, &one.chain())
}

/// Settles a held trial. Returns the trial's state and, if the trial qualifies, the
/// `qualified_trial` notification. `chain` contains the subscription's notifications, already
/// settled.
pub(super) fn settle(
    trial: Trial,
    chain: &[Notification],
    now: Timestamp,
) -> (TrialState, Option<Notification>) {
    let starts = chain.iter();
    let starts = starts.filter(|one| one.content.meaning == NotificationMeaning::TrialStart);
    let Some(start) = starts.min_by_key(|one| by_time(one)) else {
        return (trial.state, None);
    };
    let (state, at) = state_of(trial, chain, now);
    let qualifies = state == TrialState::Qualified;
    let at = at.max(start.received_at).min(trial.due_at);
    (state, qualifies.then(|| qualified_notification(start, at)))
}

/// Builds the notification for a qualified trial: a copy of the trial's start, dated at the time
/// when the trial qualified.
fn qualified_notification(start: &Notification, at: Timestamp) -> Notification {
    let digest = Digest::of(&[b"qualified".as_slice(), start.event.as_bytes()].concat());
    let mut random = [0; 10];
    random.copy_from_slice(&digest.as_bytes()[..10]);
    let mut content = start.content.clone();
    content.external_id = qualified_id(start.provider, &start.chain());
    QUALIFIED_TRIAL.clone_into(&mut content.kind);
    content.meaning = NotificationMeaning::Free(QUALIFIED_TRIAL.to_owned());
    content.happened_at = Some(at);
    Notification {
        event: EventId::new(at, random),
        content,
        happened_at: at,
        received_at: at,
        settled: SettledNotification {
            web_payment: None,
            name: Some(QUALIFIED_TRIAL.to_owned()),
            revenue: start.money.clone(),
            ..start.settled.clone()
        },
        ..start.clone()
    }
}

/// Returns the state of a trial and when that state began. Notifications that arrive when the trial
/// is due, or later, are ignored. Earlier notifications are applied in order of event time, not of
/// arrival.
fn state_of(trial: Trial, chain: &[Notification], now: Timestamp) -> (TrialState, Timestamp) {
    let mut in_time: Vec<&Notification> = chain
        .iter()
        .filter(|one| one.received_at < trial.due_at)
        .collect();
    in_time.sort_by_key(|one| by_time(one));
    let (mut state, mut can_be_restored) = (TrialState::Held, false);
    for one in in_time {
        match (state, effect(&one.content.meaning)) {
            (TrialState::Held, Effect::Qualifies) => {
                return (TrialState::Qualified, one.received_at);
            }
            (TrialState::Held, Effect::Cancels) => {
                (state, can_be_restored) = (TrialState::Disqualified, true);
            }
            (_, Effect::Ends) => (state, can_be_restored) = (TrialState::Disqualified, false),
            (TrialState::Disqualified, Effect::Restores) if can_be_restored => {
                (state, can_be_restored) = (TrialState::Held, false);
            }
            _ => {}
        }
    }
    // Another node's clock may be behind, so a qualified trial stays qualified.
    let is_due = now >= trial.due_at || trial.state == TrialState::Qualified;
    if state == TrialState::Held && is_due {
        state = TrialState::Qualified;
    }
    (state, trial.due_at)
}

enum Effect {
    None,
    Cancels,
    Ends,
    Restores,
    Qualifies,
}

fn effect(meaning: &NotificationMeaning) -> Effect {
    match meaning {
        NotificationMeaning::Payment(_) => Effect::Qualifies,
        NotificationMeaning::Refund => Effect::Ends,
        NotificationMeaning::Lifecycle(name) => match name.as_str() {
            CANCELLATION | TRIAL_CANCELLED => Effect::Cancels,
            EXPIRATION | BILLING_ISSUE => Effect::Ends,
            UNCANCELLATION => Effect::Restores,
            _ => Effect::None,
        },
        _ => Effect::None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::{at, notification};
    use super::*;
    use crate::billing::PaymentClaim;
    use rstest::rstest;

    const DUE: i64 = 100;

    fn lifecycle(name: &str) -> NotificationMeaning {
        NotificationMeaning::Lifecycle(name.to_owned())
    }

    /// Each notification arrives at the time of its event.
    #[rstest]
    #[case::active(&[], 99, TrialState::Held)]
    #[case::due(&[], 100, TrialState::Qualified)]
    #[case::cancelled(&[(50, TRIAL_CANCELLED)], 60, TrialState::Disqualified)]
    #[case::cancelled_then_due(&[(50, TRIAL_CANCELLED)], 100, TrialState::Disqualified)]
    #[case::cancelled_when_due(&[(100, TRIAL_CANCELLED)], 100, TrialState::Qualified)]
    #[case::a_moment_before(&[(99, CANCELLATION)], 100, TrialState::Disqualified)]
    #[case::uncancelled(&[(50, CANCELLATION), (60, UNCANCELLATION)], 100, TrialState::Qualified)]
    #[case::uncancelled_too_late(&[(50, CANCELLATION), (100, UNCANCELLATION)], 100, TrialState::Disqualified)]
    #[case::expired(&[(50, EXPIRATION), (60, UNCANCELLATION)], 100, TrialState::Disqualified)]
    #[case::a_failed_charge(&[(50, BILLING_ISSUE)], 100, TrialState::Disqualified)]
    #[case::refunded(&[(50, "refund")], 100, TrialState::Disqualified)]
    #[case::paid(&[(50, "payment")], 60, TrialState::Qualified)]
    #[case::paid_then_refunded(&[(50, "payment"), (60, "refund")], 70, TrialState::Qualified)]
    #[case::cancelled_then_paid(&[(50, CANCELLATION), (60, "payment")], 100, TrialState::Disqualified)]
    #[case::unrelated(&[(50, "product_change")], 99, TrialState::Held)]
    fn settles_a_trial_by_its_notifications(
        #[case] notifications: &[(i64, &str)],
        #[case] now: i64,
        #[case] expected: TrialState,
    ) {
        let trial = Trial {
            due_at: at(DUE),
            state: TrialState::Held,
        };
        let mut chain = vec![notification(0, NotificationMeaning::TrialStart)];
        for (time, what) in notifications {
            chain.push(notification(
                *time,
                match *what {
                    "payment" => NotificationMeaning::Payment(PaymentClaim::Conversion),
                    "refund" => NotificationMeaning::Refund,
                    name => lifecycle(name),
                },
            ));
        }
        assert_eq!(state_of(trial, &chain, at(now)).0, expected);
        chain.reverse();
        assert_eq!(state_of(trial, &chain, at(now)).0, expected, "in any order");
    }

    #[rstest]
    #[case::before_it_was_due(99, TrialState::Disqualified)]
    #[case::when_it_was_due(100, TrialState::Qualified)]
    fn a_late_cancellation_is_ignored_when_the_trial_is_due(
        #[case] received: i64,
        #[case] expected: TrialState,
    ) {
        let trial = Trial {
            due_at: at(DUE),
            state: TrialState::Qualified,
        };
        let mut cancelled = notification(50, lifecycle(CANCELLATION));
        cancelled.received_at = at(received);
        let paid = notification(60, NotificationMeaning::Payment(PaymentClaim::Conversion));
        let chain = [cancelled, paid.clone()];
        let (state, _) = state_of(trial, &chain, at(received));
        assert_eq!(state, expected);
        assert_eq!(
            state_of(trial, &[paid], at(70)),
            (TrialState::Qualified, at(60))
        );
    }

    #[rstest]
    #[case::off(false, 24, None)]
    #[case::a_day(true, 24, Some(24))]
    #[case::at_once(true, 0, Some(0))]
    #[case::never_negative(true, -1, Some(0))]
    fn reads_the_hold_from_the_settings(
        #[case] enabled: bool,
        #[case] delay_hours: i64,
        #[case] expected: Option<u64>,
    ) {
        let settings = QualifiedTrial {
            enabled,
            delay_hours,
        };
        assert_eq!(trial_hold(&settings), expected.map(Duration::from_hours));
    }

    #[test]
    fn the_event_id_contains_provider_and_transaction() {
        let id = qualified_id(BillingProvider::Revenuecat, "sub:1000");
        assert_eq!(id, "qualified_trial:revenuecat:1000");
    }
}
