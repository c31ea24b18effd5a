//! `qualified_trial`: a trial that is still alive after a while.

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

/// How a trial on hold stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrialState {
    /// To be looked at when it is due.
    Held,
    /// Cancelled, refunded, expired or not paid for in time.
    Disqualified,
    /// It counts.
    Qualified,
}

crate::keywords! {
    TrialState {
        Held => "held",
        Disqualified => "disqualified",
        Qualified => "qualified",
    }
}

/// A trial on hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trial {
    /// When it counts, if nothing happens until then.
    pub due_at: Timestamp,
    /// How it stands.
    pub state: TrialState,
}

/// Returns how long a new trial is held before it counts; `None` if the app does not use qualified trials.
pub fn trial_hold(settings: &QualifiedTrial) -> Option<Duration> {
    let hours = u64::try_from(settings.delay_hours).unwrap_or(0);
    settings.enabled.then(|| Duration::from_hours(hours))
}

/// The id of the event that a trial becomes.
pub fn qualified_id(provider: BillingProvider, chain: &str) -> String {
    let transaction = chain.strip_prefix("sub:").unwrap_or(chain);
    format!("{QUALIFIED_TRIAL}:{}:{transaction}", provider.as_str())
}

/// Whether a notification is one that this service made of a trial that counts.
pub(super) fn is_qualified(one: &Notification) -> bool {
    one.content.kind == QUALIFIED_TRIAL
        && one.content.external_id == qualified_id(one.provider, &one.chain())
}

/// Settles a trial on hold: its state, and what it becomes if it counts. The notifications are settled.
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

/// What a trial becomes when it counts: as its start was, at the time when it counts.
fn qualified_notification(start: &Notification, at: Timestamp) -> Notification {
    let digest = Digest::of(&[b"qualified".as_slice(), start.event.as_bytes()].concat());
    let mut random = [0; 10];
    random.copy_from_slice(&digest.as_bytes()[..10]);
    let mut said = start.content.clone();
    said.external_id = qualified_id(start.provider, &start.chain());
    QUALIFIED_TRIAL.clone_into(&mut said.kind);
    said.meaning = NotificationMeaning::Free(QUALIFIED_TRIAL.to_owned());
    said.happened_at = Some(at);
    Notification {
        event: EventId::new(at, random),
        content: said,
        happened_at: at,
        received_at: at,
        settled: SettledNotification {
            name: Some(QUALIFIED_TRIAL.to_owned()),
            revenue: start.money.clone(),
            ..start.settled.clone()
        },
        ..start.clone()
    }
}

/// How a trial stands, given everything that is known of its subscription, and since when. What arrives when the trial is
/// due, or later, comes too late. Before that the order of what happened counts, not the order of arrival.
fn state_of(trial: Trial, chain: &[Notification], now: Timestamp) -> (TrialState, Timestamp) {
    let mut in_time: Vec<&Notification> = chain
        .iter()
        .filter(|one| one.received_at < trial.due_at)
        .collect();
    in_time.sort_by_key(|one| by_time(one));
    let (mut state, mut can_come_back) = (TrialState::Held, false);
    for one in in_time {
        match (state, effect(&one.content.meaning)) {
            (TrialState::Held, Effect::Qualifies) => {
                return (TrialState::Qualified, one.received_at);
            }
            (TrialState::Held, Effect::Cancels) => {
                (state, can_come_back) = (TrialState::Disqualified, true);
            }
            (_, Effect::Ends) => (state, can_come_back) = (TrialState::Disqualified, false),
            (TrialState::Disqualified, Effect::Restores) if can_come_back => {
                (state, can_come_back) = (TrialState::Held, false);
            }
            _ => {}
        }
    }
    // Another node's clock may be behind: a trial that was due stays so.
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

    /// What happened, and when: it arrived at the same time.
    #[rstest]
    #[case::alive(&[], 99, TrialState::Held)]
    #[case::due(&[], 100, TrialState::Qualified)]
    #[case::cancelled(&[(50, TRIAL_CANCELLED)], 60, TrialState::Disqualified)]
    #[case::cancelled_then_due(&[(50, TRIAL_CANCELLED)], 100, TrialState::Disqualified)]
    #[case::cancelled_when_due(&[(100, TRIAL_CANCELLED)], 100, TrialState::Qualified)]
    #[case::a_moment_before(&[(99, CANCELLATION)], 100, TrialState::Disqualified)]
    #[case::changed_their_mind(&[(50, CANCELLATION), (60, UNCANCELLATION)], 100, TrialState::Qualified)]
    #[case::changed_it_too_late(&[(50, CANCELLATION), (100, UNCANCELLATION)], 100, TrialState::Disqualified)]
    #[case::expired(&[(50, EXPIRATION), (60, UNCANCELLATION)], 100, TrialState::Disqualified)]
    #[case::a_failed_charge(&[(50, BILLING_ISSUE)], 100, TrialState::Disqualified)]
    #[case::refunded(&[(50, "refund")], 100, TrialState::Disqualified)]
    #[case::paid(&[(50, "payment")], 60, TrialState::Qualified)]
    #[case::paid_then_refunded(&[(50, "payment"), (60, "refund")], 70, TrialState::Qualified)]
    #[case::cancelled_then_paid(&[(50, CANCELLATION), (60, "payment")], 100, TrialState::Disqualified)]
    #[case::nothing_to_do_with_it(&[(50, "product_change")], 99, TrialState::Held)]
    fn stories(#[case] story: &[(i64, &str)], #[case] now: i64, #[case] expected: TrialState) {
        let trial = Trial {
            due_at: at(DUE),
            state: TrialState::Held,
        };
        let mut chain = vec![notification(0, NotificationMeaning::TrialStart)];
        for (time, what) in story {
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
    fn a_cancellation_that_arrives_late(#[case] received: i64, #[case] expected: TrialState) {
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
    fn holds(#[case] enabled: bool, #[case] delay_hours: i64, #[case] expected: Option<u64>) {
        let settings = QualifiedTrial {
            enabled,
            delay_hours,
        };
        assert_eq!(trial_hold(&settings), expected.map(Duration::from_hours));
    }

    #[test]
    fn the_event_has_an_id_of_its_own() {
        let id = qualified_id(BillingProvider::Revenuecat, "sub:1000");
        assert_eq!(id, "qualified_trial:revenuecat:1000");
    }
}
