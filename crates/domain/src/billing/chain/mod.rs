//! What the notifications of one subscription come to, all of them together.
//!
//! A pure function of the set: in whichever order they arrived, and however often they were asked about before, the
//! outcome is the same. That is what makes late, repeated and reordered notifications harmless.

use super::{
    Claim, Meaning, Notification, PRODUCT_CHANGE, PURCHASE, REFUND, REFUND_REVERSED, RENEWAL,
    START_TRIAL, SUBSCRIBE, Standing, join, refund,
};
use std::collections::BTreeMap;

/// Somebody whose subscription ended came back.
const RESUBSCRIBE: &str = "resubscribe";
/// What a transfer is called.
const TRANSFER: &str = "transfer";

/// What each notification of a subscription comes to, in the order in which they are given.
pub fn settle(chain: &[Notification]) -> Vec<Standing> {
    let mut order: Vec<usize> = (0..chain.len()).collect();
    order.sort_by_key(|place| by_time(&chain[*place]));
    let sorted: Vec<&Notification> = order.iter().map(|place| &chain[*place]).collect();

    let stands = standing_transactions(&sorted);
    let places = |wanted: fn(&Meaning) -> bool| -> Vec<usize> {
        let all = sorted.iter().enumerate();
        all.filter(|(place, one)| stands[*place] && wanted(&one.said.meaning))
            .map(|(place, _)| place)
            .collect()
    };
    let payments = places(|meaning| matches!(meaning, Meaning::Payment(_)));
    let moves = places(|meaning| matches!(meaning, Meaning::Refund | Meaning::RefundReversed));
    let mut refunds = refund::settle(&sorted, &payments, &moves);
    let devices = join::devices(&sorted);

    let mut settled = vec![Standing::default(); chain.len()];
    let mut had_trial = false;
    for (place, device) in devices.into_iter().enumerate() {
        let one = sorted[place];
        had_trial |= one.said.meaning == Meaning::TrialStart;
        let (name, cause) = if stands[place] {
            name_of(one, had_trial)
        } else {
            (None, None)
        };
        let revenue = refunds.remove(&place).unwrap_or_else(|| one.money.clone());
        settled[order[place]] = Standing {
            revenue: revenue.filter(|_| name.is_some()),
            name: name.map(str::to_owned),
            cause: cause.map(str::to_owned),
            device,
        };
    }
    settled
}

/// The order of what happened. Two things of one moment go by their provider's ids, which everybody sees alike.
pub fn by_time(one: &Notification) -> (crate::vocabulary::time::Timestamp, &str) {
    (one.happened_at, &one.said.given_id)
}

/// Of several notifications about one transaction, the one that was here first stands. A payment is one payment,
/// under however many ids it is reported.
fn standing_transactions(sorted: &[&Notification]) -> Vec<bool> {
    let mut first = BTreeMap::new();
    for (place, one) in sorted.iter().enumerate() {
        let Some(key) = transaction(one) else {
            continue;
        };
        let arrived = (one.received_at, one.said.given_id.as_str(), place);
        let before = first.entry(key).or_insert(arrived);
        *before = arrived.min(*before);
    }
    let stands = |(place, one): (usize, &&Notification)| {
        let first = transaction(one).and_then(|key| first.get(&key));
        first.is_none_or(|(_, _, first)| *first == place)
    };
    sorted.iter().enumerate().map(stands).collect()
}

fn transaction(one: &Notification) -> Option<(bool, &str)> {
    let is_refund = match one.said.meaning {
        Meaning::Payment(_) => false,
        Meaning::Refund => true,
        _ => return None,
    };
    Some((is_refund, one.said.transaction.as_deref()?))
}

fn name_of(one: &Notification, had_trial: bool) -> (Option<&str>, Option<&'static str>) {
    let first = one.paid_before.is_none();
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
        Claim::Start if first => (Some(PURCHASE), None),
        Claim::Conversion if first => (Some(SUBSCRIBE), None),
        Claim::AfterTrial if first && had_trial => (Some(SUBSCRIBE), None),
        Claim::Start => (Some(RENEWAL), Some(cause(one))),
        Claim::Return => (Some(RENEWAL), Some(RESUBSCRIBE)),
        Claim::Conversion | Claim::Continuation | Claim::AfterTrial => (Some(RENEWAL), None),
    }
}

/// Why a subscription begins that is not the person's first: for another product, or once more for the same.
fn cause(one: &Notification) -> &'static str {
    let before = one.paid_before.as_ref();
    if before.is_some_and(|before| before.product != one.said.product) {
        PRODUCT_CHANGE
    } else {
        RESUBSCRIBE
    }
}

#[cfg(test)]
mod tests;
