//! Refunds and their reversals, tied to the payment.
//!
//! The refunds of a payment never exceed it in total. They count only if the payment counts, and
//! use the payment's exchange rate. A payment and its full refund therefore add up to zero, even if
//! exchange rates changed in between.
//!
//! If a website reported the payment, refunds count against the website's event, and only the part
//! by which they exceed the refunds that the website reported. In total, the larger of both sums
//! counts, in whatever order they arrive.

use super::payment::{SharedPayments, WebPayment, WebReport};
use super::{Notification, NotificationMeaning};
use crate::ledger::{Revenue, UncountedReason};
use crate::vocabulary::id::EventId;
use crate::vocabulary::money::Amount;
use std::collections::BTreeMap;

/// Settles refunds and reversals in chronological order. `payments` and `refunds` are positions in
/// `chain`. Returns the revenue of each refund by its position, and the website's event for its
/// payment.
pub(super) fn settle(
    chain: &[&Notification],
    payments: &[usize],
    refunds: &[usize],
    shared: &SharedPayments<'_>,
) -> BTreeMap<usize, (Option<Revenue>, Option<EventId>)> {
    let mut totals: BTreeMap<RefundedPayment, RefundTotals> = BTreeMap::new();
    let mut settled = BTreeMap::new();
    for position in refunds {
        let one = chain[*position];
        let payment = payment_of(chain, payments, one, shared);
        let report = shared
            .web_report(one)
            .or_else(|| shared.web_report(chain[payment?]));
        let revenue = one.money.clone().map(|money| match (report, payment) {
            (Some(WebReport { payment: None, .. }), _) => removed_payment(one, money),
            (
                Some(WebReport {
                    id,
                    payment: Some(web),
                }),
                _,
            ) => {
                let totals = totals.entry(RefundedPayment::Web(id));
                let totals = totals.or_insert_with(|| RefundTotals::of_website(web));
                refund_revenue(money, web.event.revenue.as_ref(), totals, is_refund(one))
            }
            (None, Some(payment)) => {
                let totals = totals.entry(RefundedPayment::Billing(payment)).or_default();
                refund_revenue(money, chain[payment].money.as_ref(), totals, is_refund(one))
            }
            (None, None) => not_counted(money),
        });
        settled.insert(*position, (revenue, report.map(|report| report.id)));
    }
    settled
}

/// A payment with refunds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum RefundedPayment {
    /// The payment at this position counts.
    Billing(usize),
    /// The website's event counts.
    Web(EventId),
}

/// Refunded part of a payment, in micros of its currency.
#[derive(Debug, Clone, Copy, Default)]
struct RefundTotals {
    /// As far as the notifications report.
    notified: i64,
    /// As the website reported.
    by_website: i64,
}

impl RefundTotals {
    const fn of_website(web: &WebPayment) -> Self {
        Self {
            notified: 0,
            by_website: web.refunded.micros(),
        }
    }

    fn total(self) -> i64 {
        self.notified.max(self.by_website)
    }
}

fn is_refund(one: &Notification) -> bool {
    one.content.meaning == NotificationMeaning::Refund
}

fn not_counted(money: Revenue) -> Revenue {
    Revenue {
        uncounted: Some(UncountedReason::PaymentNotCounted),
        ..money
    }
}

/// Returns the revenue of a refund whose payment's event was removed by retention: the same as
/// before. A new refund does not count.
fn removed_payment(one: &Notification, money: Revenue) -> Revenue {
    let before = one.settled.web_payment.and(one.settled.revenue.clone());
    before.unwrap_or_else(|| not_counted(money))
}

/// Returns the payment with the same transaction, otherwise the latest one before the refund.
fn payment_of(
    chain: &[&Notification],
    payments: &[usize],
    refund: &Notification,
    shared: &SharedPayments<'_>,
) -> Option<usize> {
    let refunded = shared.payment(refund);
    let same =
        |position: &&usize| refunded.is_some() && shared.payment(chain[**position]) == refunded;
    let before = |position: &&usize| chain[**position].happened_at <= refund.happened_at;
    let found = payments.iter().find(same);
    found.or_else(|| payments.iter().rfind(before)).copied()
}

/// Returns the revenue of one refund or reversal, and updates the refunded part of the payment.
fn refund_revenue(
    money: Revenue,
    paid: Option<&Revenue>,
    totals: &mut RefundTotals,
    is_refund: bool,
) -> Revenue {
    let counted = paid.filter(|paid| paid.uncounted.is_none() && paid.amount > Amount::ZERO);
    let Some((paid, usd_paid)) = counted.and_then(|paid| Some((paid, paid.usd?))) else {
        return not_counted(money);
    };
    let whole = paid.amount.micros();
    let requested = if money.currency == paid.currency {
        money.amount.micros().saturating_abs()
    } else {
        let usd = money.usd.map_or(0, |usd| usd.micros().saturating_abs());
        share(whole, usd, usd_paid.micros())
    };
    let before = *totals;
    totals.notified = if is_refund {
        before.notified.saturating_add(requested).min(whole)
    } else {
        before.notified.saturating_sub(requested).max(0)
    };
    let part = |given| share(usd_paid.micros(), given, whole);
    let usd = part(before.total()) - part(totals.total());
    let is_covered = part(before.notified) != part(totals.notified);
    Revenue {
        usd: Some(Amount::from_micros(usd)),
        rate_day: paid.rate_day,
        rate: paid.rate.clone(),
        rate_source: paid.rate_source.clone(),
        // The website reported the refund, or the refund exceeds the payment, or no refund is left
        // to reverse: it is stored with zero value.
        uncounted: (usd == 0).then_some(if is_covered {
            UncountedReason::DuplicateOfVerified
        } else {
            UncountedReason::Zero
        }),
        ..money
    }
}

/// Returns `total × part ÷ whole`, rounded down. To avoid rounding errors, the caller passes
/// running totals and subtracts the results, so that the refunds in dollars add up to the payment.
fn share(total: i64, part: i64, whole: i64) -> i64 {
    if whole == 0 {
        return 0;
    }
    let exact = i128::from(total) * i128::from(part) / i128::from(whole);
    i64::try_from(exact).unwrap_or(i64::MAX)
}
