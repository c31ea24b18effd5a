//! What the notifications of one subscription come to, all of them together.

use super::{
    Claim, Meaning, Notification, PRODUCT_CHANGE, PURCHASE, REFUND, REFUND_REVERSED, RENEWAL,
    START_TRIAL, SUBSCRIBE, Standing, refund,
};
use crate::app::BillingProvider;
use crate::device::DeviceKey;
use crate::vocabulary::time::Timestamp;
use std::collections::BTreeSet;

/// A subscriber returned after the subscription had ended.
const RESUBSCRIBE: &str = "resubscribe";
/// What a transfer is called.
const TRANSFER: &str = "transfer";

/// An earlier payment of the same person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PaidBefore {
    /// For which product.
    pub(super) product: Option<String>,
}

/// A notification with what the rest of the set says about it.
pub(super) struct Placed<'a> {
    pub(super) one: &'a Notification,
    /// Whether it stands for its transaction.
    pub(super) stands: bool,
    pub(super) device: Option<DeviceKey>,
    pub(super) paid_before: Option<PaidBefore>,
}

/// Returns what each notification of a subscription comes to. They are in the order of their time.
pub(super) fn settle(chain: &[Placed<'_>]) -> Vec<Standing> {
    let sorted: Vec<&Notification> = chain.iter().map(|placed| placed.one).collect();
    let places = |wanted: fn(&Meaning) -> bool| -> Vec<usize> {
        let all = chain.iter().enumerate();
        all.filter(|(_, placed)| placed.stands && wanted(&placed.one.said.meaning))
            .map(|(place, _)| place)
            .collect()
    };
    let payments = places(|meaning| matches!(meaning, Meaning::Payment(_)));
    let moves = places(|meaning| matches!(meaning, Meaning::Refund | Meaning::RefundReversed));
    let mut refunds = refund::settle(&sorted, &payments, &moves);

    let mut had_trial = false;
    let standing = |(place, placed): (usize, &Placed<'_>)| {
        let one = placed.one;
        had_trial |= one.said.meaning == Meaning::TrialStart;
        let (name, cause) = if placed.stands {
            name_of(one, placed.paid_before.as_ref(), had_trial)
        } else {
            (None, None)
        };
        let revenue = refunds.remove(&place).unwrap_or_else(|| one.money.clone());
        Standing {
            revenue: revenue.filter(|_| name.is_some()),
            name: name.map(str::to_owned),
            cause: cause.map(str::to_owned),
            device: placed.device.clone(),
            user: None,
        }
    };
    chain.iter().enumerate().map(standing).collect()
}

/// The order of what happened. Ties are broken by the provider's ids, so the order is deterministic.
pub(super) fn by_time(one: &Notification) -> (Timestamp, &str, BillingProvider) {
    (one.happened_at, &one.said.given_id, one.provider)
}

/// Returns which notifications of a subscription stand for their transaction. A payment is one payment, under however
/// many ids it is reported: the earliest notification by its own time stands. They are in the order of their time.
pub(super) fn standing_transactions<'a>(sorted: &[&'a Notification]) -> Vec<bool> {
    let mut seen = BTreeSet::new();
    let stands = |one: &&'a Notification| transaction(one).is_none_or(|key| seen.insert(key));
    sorted.iter().map(stands).collect()
}

fn transaction(one: &Notification) -> Option<(bool, &str)> {
    let is_refund = match one.said.meaning {
        Meaning::Payment(_) => false,
        Meaning::Refund => true,
        _ => return None,
    };
    Some((is_refund, one.said.transaction.as_deref()?))
}

fn name_of<'a>(
    one: &'a Notification,
    before: Option<&PaidBefore>,
    had_trial: bool,
) -> (Option<&'a str>, Option<&'static str>) {
    let first = before.is_none();
    let payment = match &one.said.meaning {
        Meaning::Receipt => return (None, None),
        Meaning::TrialStart => return (Some(START_TRIAL), None),
        Meaning::Free(name) | Meaning::Lifecycle(name) => return (Some(name), None),
        Meaning::Refund => return (Some(REFUND), None),
        Meaning::RefundReversed => return (Some(REFUND_REVERSED), None),
        Meaning::Transfer { .. } => return (Some(TRANSFER), None),
        Meaning::Payment(claim) => *claim,
    };
    match payment {
        Claim::OneOff => (Some(PURCHASE), None),
        Claim::Conversion if first => (Some(SUBSCRIBE), None),
        Claim::Start | Claim::AfterTrial if first && had_trial => (Some(SUBSCRIBE), None),
        Claim::Start if first => (Some(PURCHASE), None),
        Claim::Start => (Some(RENEWAL), Some(cause(one, before))),
        Claim::Return => (Some(RENEWAL), Some(RESUBSCRIBE)),
        Claim::Conversion | Claim::Continuation | Claim::AfterTrial => (Some(RENEWAL), None),
    }
}

/// Why a subscription begins that is not the person's first: for another product, or once more for the same.
fn cause(one: &Notification, before: Option<&PaidBefore>) -> &'static str {
    if before.is_some_and(|before| before.product != one.said.product) {
        PRODUCT_CHANGE
    } else {
        RESUBSCRIBE
    }
}
