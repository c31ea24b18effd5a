//! What the notifications of one subscription come to, all of them together.

use super::{
    Notification, NotificationMeaning, PRODUCT_CHANGE, PURCHASE, PaymentClaim, REFUND,
    REFUND_REVERSED, RENEWAL, START_TRIAL, SUBSCRIBE, SettledNotification, refund,
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
pub(super) struct EarlierPayment {
    /// For which product.
    pub(super) product: Option<String>,
}

/// A notification with what the rest of the set says about it.
pub(super) struct ChainEntry<'a> {
    pub(super) one: &'a Notification,
    /// Whether it stands for its transaction.
    pub(super) is_first_report: bool,
    pub(super) device: Option<DeviceKey>,
    pub(super) earlier_payment: Option<EarlierPayment>,
}

/// Returns what each notification of a subscription comes to. They are in the order of their time.
pub(super) fn settle(chain: &[ChainEntry<'_>]) -> Vec<SettledNotification> {
    let sorted: Vec<&Notification> = chain.iter().map(|placed| placed.one).collect();
    let places = |wanted: fn(&NotificationMeaning) -> bool| -> Vec<usize> {
        let all = chain.iter().enumerate();
        all.filter(|(_, placed)| placed.is_first_report && wanted(&placed.one.content.meaning))
            .map(|(place, _)| place)
            .collect()
    };
    let payments = places(|meaning| matches!(meaning, NotificationMeaning::Payment(_)));
    let moves = places(|meaning| {
        matches!(
            meaning,
            NotificationMeaning::Refund | NotificationMeaning::RefundReversed
        )
    });
    let mut refunds = refund::settle(&sorted, &payments, &moves);

    let mut had_trial = false;
    let standing = |(place, placed): (usize, &ChainEntry<'_>)| {
        let one = placed.one;
        had_trial |= one.content.meaning == NotificationMeaning::TrialStart;
        let (name, cause) = if placed.is_first_report {
            name_of(one, placed.earlier_payment.as_ref(), had_trial)
        } else {
            (None, None)
        };
        let revenue = refunds.remove(&place).unwrap_or_else(|| one.money.clone());
        SettledNotification {
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
    (one.happened_at, &one.content.external_id, one.provider)
}

/// Returns which notifications of a subscription stand for their transaction. A payment is one payment, under however
/// many ids it is reported: the earliest notification by its own time stands. They are in the order of their time.
pub(super) fn first_reports<'a>(sorted: &[&'a Notification]) -> Vec<bool> {
    let mut seen = BTreeSet::new();
    let stands = |one: &&'a Notification| transaction(one).is_none_or(|key| seen.insert(key));
    sorted.iter().map(stands).collect()
}

fn transaction(one: &Notification) -> Option<(bool, &str)> {
    let is_refund = match one.content.meaning {
        NotificationMeaning::Payment(_) => false,
        NotificationMeaning::Refund => true,
        _ => return None,
    };
    Some((is_refund, one.content.transaction.as_deref()?))
}

fn name_of<'a>(
    one: &'a Notification,
    before: Option<&EarlierPayment>,
    had_trial: bool,
) -> (Option<&'a str>, Option<&'static str>) {
    let first = before.is_none();
    let payment = match &one.content.meaning {
        NotificationMeaning::Receipt => return (None, None),
        NotificationMeaning::TrialStart => return (Some(START_TRIAL), None),
        NotificationMeaning::Free(name) | NotificationMeaning::Lifecycle(name) => {
            return (Some(name), None);
        }
        NotificationMeaning::Refund => return (Some(REFUND), None),
        NotificationMeaning::RefundReversed => return (Some(REFUND_REVERSED), None),
        NotificationMeaning::Transfer { .. } => return (Some(TRANSFER), None),
        NotificationMeaning::Payment(claim) => *claim,
    };
    match payment {
        PaymentClaim::OneOff => (Some(PURCHASE), None),
        PaymentClaim::Conversion if first => (Some(SUBSCRIBE), None),
        PaymentClaim::Start | PaymentClaim::AfterTrial if first && had_trial => {
            (Some(SUBSCRIBE), None)
        }
        PaymentClaim::Start if first => (Some(PURCHASE), None),
        PaymentClaim::Start => (Some(RENEWAL), Some(cause(one, before))),
        PaymentClaim::Return => (Some(RENEWAL), Some(RESUBSCRIBE)),
        PaymentClaim::Conversion | PaymentClaim::Continuation | PaymentClaim::AfterTrial => {
            (Some(RENEWAL), None)
        }
    }
}

/// Why a subscription begins that is not the person's first: for another product, or once more for the same.
fn cause(one: &Notification, before: Option<&EarlierPayment>) -> &'static str {
    if before.is_some_and(|before| before.product != one.content.product) {
        PRODUCT_CHANGE
    } else {
        RESUBSCRIBE
    }
}
