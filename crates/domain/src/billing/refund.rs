//! Refunds and their reversals, tied to the payment.
//!
//! The refunds of a payment never exceed it in total. They count only if the payment counts, and
//! use the payment's exchange rate. A payment and its full refund therefore add up to zero, even if
//! exchange rates changed in between.

use super::payment::SharedPayments;
use super::{Notification, NotificationMeaning};
use crate::ledger::{Revenue, UncountedReason};
use crate::vocabulary::money::Amount;
use std::collections::BTreeMap;

/// Settles refunds and reversals in chronological order. `payments` and `refunds` are positions in
/// `chain`. Returns the revenue of each refund by its position.
pub(super) fn settle(
    chain: &[&Notification],
    payments: &[usize],
    refunds: &[usize],
    shared: &SharedPayments,
) -> BTreeMap<usize, Option<Revenue>> {
    // Refunded part of each payment, in micros of its currency.
    let mut refunded: BTreeMap<usize, i64> = BTreeMap::new();
    let mut settled = BTreeMap::new();
    for position in refunds {
        let one = chain[*position];
        let payment = payment_of(chain, payments, one, shared);
        let revenue = one.money.clone().map(|money| match payment {
            None => Revenue {
                uncounted: Some(UncountedReason::PaymentNotCounted),
                ..money
            },
            Some(payment) => {
                let paid = chain[payment].money.as_ref();
                let refunded = refunded.entry(payment).or_default();
                refund_revenue(
                    money,
                    paid,
                    refunded,
                    one.content.meaning == NotificationMeaning::Refund,
                )
            }
        });
        settled.insert(*position, revenue);
    }
    settled
}

/// Returns the payment with the same transaction, otherwise the latest one before the refund.
fn payment_of(
    chain: &[&Notification],
    payments: &[usize],
    refund: &Notification,
    shared: &SharedPayments,
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
    refunded: &mut i64,
    is_refund: bool,
) -> Revenue {
    let counted = paid.filter(|paid| paid.uncounted.is_none() && paid.amount > Amount::ZERO);
    let Some((paid, usd_paid)) = counted.and_then(|paid| Some((paid, paid.usd?))) else {
        return Revenue {
            uncounted: Some(UncountedReason::PaymentNotCounted),
            ..money
        };
    };
    let whole = paid.amount.micros();
    let requested = if money.currency == paid.currency {
        money.amount.micros().saturating_abs()
    } else {
        let usd = money.usd.map_or(0, |usd| usd.micros().saturating_abs());
        share(whole, usd, usd_paid.micros())
    };
    let before = *refunded;
    *refunded = if is_refund {
        before.saturating_add(requested).min(whole)
    } else {
        before.saturating_sub(requested).max(0)
    };
    let part = |given| share(usd_paid.micros(), given, whole);
    let usd = part(before) - part(*refunded);
    Revenue {
        usd: Some(Amount::from_micros(usd)),
        rate_day: paid.rate_day,
        rate: paid.rate.clone(),
        rate_source: paid.rate_source.clone(),
        // The refund exceeds the payment, or no refund is left to reverse: it is stored with zero
        // value.
        uncounted: (usd == 0).then_some(UncountedReason::Zero),
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
