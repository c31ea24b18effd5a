//! `qualified_trial`: a trial that is still alive after a while.

use super::chain::by_time;
use super::{
    BILLING_ISSUE, CANCELLATION, EXPIRATION, Meaning, Notification, QUALIFIED_TRIAL, Standing,
    TRIAL_CANCELLED, UNCANCELLATION,
};
use crate::app::BillingProvider;
use crate::vocabulary::digest::Digest;
use crate::vocabulary::id::EventId;
use crate::vocabulary::time::Timestamp;

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

impl TrialState {
    /// All of them.
    pub const ALL: &'static [Self] = &[Self::Held, Self::Disqualified, Self::Qualified];

    /// As stored.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Disqualified => "disqualified",
            Self::Qualified => "qualified",
        }
    }

    /// Reads what [`Self::as_str`] wrote.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|one| one.as_str() == text)
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

/// The id of the event that a trial becomes.
pub fn qualified_id(provider: BillingProvider, chain: &str) -> String {
    let transaction = chain.strip_prefix("sub:").unwrap_or(chain);
    format!("{QUALIFIED_TRIAL}:{}:{transaction}", provider.as_str())
}

/// What a trial becomes when it counts: as its start was, at the time when it counts.
pub fn qualified(start: &Notification, trial: Trial, now: Timestamp) -> Notification {
    let at = trial.due_at.min(now);
    let digest = Digest::of(&[b"qualified".as_slice(), start.event.as_bytes()].concat());
    let mut random = [0; 10];
    random.copy_from_slice(&digest.as_bytes()[..10]);
    let mut said = start.said.clone();
    said.given_id = qualified_id(start.provider, &start.chain());
    QUALIFIED_TRIAL.clone_into(&mut said.kind);
    said.meaning = Meaning::Free(QUALIFIED_TRIAL.to_owned());
    said.happened_at = Some(at);
    Notification {
        event: EventId::new(at, random),
        said,
        happened_at: at,
        received_at: now,
        standing: Standing::default(),
        ..start.clone()
    }
}

/// How a trial stands now, given everything that is known of its subscription. What counted, counts; what arrives when
/// it is due, or later, comes too late.
pub fn stands(trial: Trial, chain: &[Notification], now: Timestamp) -> TrialState {
    if trial.state == TrialState::Qualified {
        return TrialState::Qualified;
    }
    let mut in_time: Vec<&Notification> = chain
        .iter()
        .filter(|one| one.received_at < trial.due_at)
        .collect();
    in_time.sort_by_key(|one| by_time(one));
    let (mut state, mut can_come_back) = (TrialState::Held, false);
    for one in in_time {
        match (state, effect(&one.said.meaning)) {
            (TrialState::Held, Effect::Qualifies) => return TrialState::Qualified,
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
    if state == TrialState::Held && now >= trial.due_at {
        return TrialState::Qualified;
    }
    state
}

enum Effect {
    None,
    Cancels,
    Ends,
    Restores,
    Qualifies,
}

fn effect(meaning: &Meaning) -> Effect {
    match meaning {
        Meaning::Payment(_) => Effect::Qualifies,
        Meaning::Refund => Effect::Ends,
        Meaning::Lifecycle(name) => match name.as_str() {
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
    use crate::billing::Claim;
    use rstest::rstest;

    const DUE: i64 = 100;

    fn lifecycle(name: &str) -> Meaning {
        Meaning::Lifecycle(name.to_owned())
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
        let mut chain = vec![notification(0, Meaning::TrialStart)];
        for (time, what) in story {
            chain.push(notification(
                *time,
                match *what {
                    "payment" => Meaning::Payment(Claim::Conversion),
                    "refund" => Meaning::Refund,
                    name => lifecycle(name),
                },
            ));
        }
        assert_eq!(stands(trial, &chain, at(now)), expected);
        chain.reverse();
        assert_eq!(stands(trial, &chain, at(now)), expected, "in any order");
    }

    #[test]
    fn what_counted_counts() {
        let trial = Trial {
            due_at: at(DUE),
            state: TrialState::Qualified,
        };
        let chain = [notification(50, lifecycle(CANCELLATION))];
        assert_eq!(stands(trial, &chain, at(60)), TrialState::Qualified);
    }

    #[test]
    fn the_event_has_an_id_of_its_own() {
        let id = qualified_id(BillingProvider::Revenuecat, "sub:1000");
        assert_eq!(id, "qualified_trial:revenuecat:1000");
    }
}
