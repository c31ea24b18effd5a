//! Effects of all of a subscription's notifications.

use super::payment::SharedPayments;
use super::{
    Notification, NotificationMeaning, PRODUCT_CHANGE, PURCHASE, PaymentClaim, REFUND,
    REFUND_REVERSED, RENEWAL, START_TRIAL, SUBSCRIBE, SettledNotification, refund,
};
use crate::app::BillingProvider;
use crate::device::DeviceKey;
use crate::ledger::{Revenue, UncountedReason};
use crate::vocabulary::id::EventId;
use crate::vocabulary::time::Timestamp;
use std::collections::{BTreeMap, BTreeSet};

/// A subscriber returned after the subscription had ended.
const RESUBSCRIBE: &str = "resubscribe";
/// Event name of a transfer.
const TRANSFER: &str = "transfer";

/// An earlier payment by the same user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EarlierPayment {
    /// Product of the payment.
    pub(super) product: Option<String>,
}

/// A notification with its context: what the other notifications imply for it.
pub(super) struct ChainEntry<'a> {
    pub(super) one: &'a Notification,
    /// Whether the notification is the first report of its transaction.
    pub(super) is_first_report: bool,
    pub(super) device: Option<DeviceKey>,
    pub(super) earlier_payment: Option<EarlierPayment>,
}

/// Settles a subscription's notifications, which are sorted by time.
pub(super) fn settle(
    chain: &[ChainEntry<'_>],
    shared: &SharedPayments<'_>,
) -> Vec<SettledNotification> {
    let sorted: Vec<&Notification> = chain.iter().map(|entry| entry.one).collect();
    let positions = |matches_meaning: fn(&NotificationMeaning) -> bool| -> Vec<usize> {
        let all = chain.iter().enumerate();
        all.filter(|(_, entry)| {
            entry.is_first_report && matches_meaning(&entry.one.content.meaning)
        })
        .map(|(position, _)| position)
        .collect()
    };
    let payments = positions(|meaning| matches!(meaning, NotificationMeaning::Payment(_)));
    let refund_positions = positions(|meaning| {
        matches!(
            meaning,
            NotificationMeaning::Refund | NotificationMeaning::RefundReversed
        )
    });
    let mut refunds = refund::settle(&sorted, &payments, &refund_positions, shared);

    let mut had_trial = false;
    let settled = |(position, entry): (usize, &ChainEntry<'_>)| {
        let one = entry.one;
        had_trial |= one.content.meaning == NotificationMeaning::TrialStart;
        let (name, cause) = if entry.is_first_report {
            name_of(one, entry.earlier_payment.as_ref(), had_trial)
        } else {
            (None, None)
        };
        let (revenue, web_payment) = refunds
            .remove(&position)
            .unwrap_or_else(|| money_of(one, shared));
        SettledNotification {
            revenue: revenue.filter(|_| name.is_some()),
            web_payment: web_payment.filter(|_| name.is_some()),
            name: name.map(str::to_owned),
            cause: cause.map(str::to_owned),
            device: entry.device.clone(),
            user: None,
        }
    };
    chain.iter().enumerate().map(settled).collect()
}

/// Returns the revenue of a notification that is not a refund, and the website's event for the same
/// payment. If there is one, the website's event counts instead.
fn money_of(one: &Notification, shared: &SharedPayments<'_>) -> (Option<Revenue>, Option<EventId>) {
    let is_payment = matches!(one.content.meaning, NotificationMeaning::Payment(_));
    let report = shared.web_report(one).filter(|_| is_payment);
    let mut revenue = one.money.clone();
    if let Some(revenue) = revenue.as_mut().filter(|_| report.is_some()) {
        revenue.uncounted = Some(UncountedReason::DuplicateOfVerified);
    }
    (revenue, report.map(|report| report.id))
}

/// Returns the sort key by time. Ties are broken by provider id, so the order is deterministic.
pub(super) fn by_time(one: &Notification) -> (Timestamp, &str, BillingProvider) {
    (one.happened_at, &one.content.external_id, one.provider)
}

/// What a notification reports, for finding repeated reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum PaymentReport<'a> {
    Payment(&'a str),
    /// The only refund of a payment, for a provider that gives refunds no id.
    RefundOf(&'a str),
    /// A refund with its own id.
    Refund(&'a str),
    Reversal(&'a str),
}

impl<'a> PaymentReport<'a> {
    fn of(one: &'a Notification, shared: &'a SharedPayments<'_>) -> Option<Self> {
        let refund = one.content.refund.as_deref();
        match one.content.meaning {
            NotificationMeaning::Payment(_) => shared.payment(one).map(Self::Payment),
            NotificationMeaning::Refund => refund
                .map(Self::Refund)
                .or_else(|| shared.payment(one).map(Self::RefundOf)),
            NotificationMeaning::RefundReversed => refund.map(Self::Reversal),
            _ => None,
        }
    }
}

/// Returns which notifications are the first report of their transaction. A payment that is
/// reported under several ids counts once, in its earliest report; a report as a subscription's
/// payment comes before one as a one-off purchase, because it says more. If a provider reports each
/// refund of a payment with an id, another provider's refund of it without an id is a repeat.
/// `sorted` is sorted by time.
pub(super) fn first_reports(sorted: &[&Notification], shared: &SharedPayments<'_>) -> Vec<bool> {
    let mut first: BTreeMap<PaymentReport<'_>, (bool, usize)> = BTreeMap::new();
    let mut refunded = BTreeSet::new();
    let reports: Vec<_> = sorted
        .iter()
        .map(|one| PaymentReport::of(one, shared))
        .collect();
    for (position, report) in reports.iter().enumerate() {
        let Some(report) = report else { continue };
        let one = sorted[position];
        let rank = (!one.is_period(), position);
        let found = first.entry(*report).or_insert(rank);
        *found = rank.min(*found);
        if matches!(report, PaymentReport::Refund(_)) {
            refunded.extend(shared.payment(one));
        }
    }
    let is_first = |(position, report): (usize, &Option<PaymentReport<'_>>)| match report {
        None => true,
        Some(PaymentReport::RefundOf(payment)) if refunded.contains(payment) => false,
        Some(report) => first
            .get(report)
            .is_some_and(|(_, first)| *first == position),
    };
    reports.iter().enumerate().map(is_first).collect()
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

/// Returns the cause of a subscription start that is not the user's first: the user chose another
/// product, or returned to the same product.
fn cause(one: &Notification, before: Option<&EarlierPayment>) -> &'static str {
    if before.is_some_and(|before| before.product != one.content.product) {
        PRODUCT_CHANGE
    } else {
        RESUBSCRIBE
    }
}
