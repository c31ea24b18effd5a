//! Money back, and back again: bound to the payment that it is of.
//!
//! What goes back is never more than was paid, counts exactly when the payment did, and is worth what the payment
//! was worth, so that a full refund nets to zero whatever the rates did in between.

use super::{Notification, NotificationMeaning};
use crate::ledger::{Revenue, UncountedReason};
use crate::vocabulary::money::Amount;
use std::collections::BTreeMap;

/// Settles refunds and what was taken back of them, in the order of their time. `payments` are the places of the
/// payments that stand; the outcome has the money of each refund by its place.
pub(super) fn settle(
    chain: &[&Notification],
    payments: &[usize],
    moves: &[usize],
) -> BTreeMap<usize, Option<Revenue>> {
    // What was given back of each payment, in millionths of what was paid.
    let mut back: BTreeMap<usize, i64> = BTreeMap::new();
    let mut settled = BTreeMap::new();
    for place in moves {
        let one = chain[*place];
        let payment = payment_of(chain, payments, one);
        let revenue = one.money.clone().map(|money| match payment {
            None => Revenue {
                uncounted: Some(UncountedReason::PaymentNotCounted),
                ..money
            },
            Some(payment) => {
                let paid = chain[payment].money.as_ref();
                let back = back.entry(payment).or_default();
                refund_revenue(
                    money,
                    paid,
                    back,
                    one.content.meaning == NotificationMeaning::Refund,
                )
            }
        });
        settled.insert(*place, revenue);
    }
    settled
}

/// The payment of the same transaction; failing that the latest one before it.
fn payment_of(chain: &[&Notification], payments: &[usize], refund: &Notification) -> Option<usize> {
    let transaction = refund.content.transaction.as_ref();
    let same = |place: &&usize| {
        transaction.is_some() && chain[**place].content.transaction.as_ref() == transaction
    };
    let before = |place: &&usize| chain[**place].happened_at <= refund.happened_at;
    let found = payments.iter().find(same);
    found.or_else(|| payments.iter().rfind(before)).copied()
}

/// The money of one move, out or in again, and what it leaves given back.
fn refund_revenue(
    money: Revenue,
    paid: Option<&Revenue>,
    back: &mut i64,
    is_refund: bool,
) -> Revenue {
    let counted = paid.filter(|paid| paid.uncounted.is_none() && paid.amount > Amount::ZERO);
    let Some((paid, worth)) = counted.and_then(|paid| Some((paid, paid.usd?))) else {
        return Revenue {
            uncounted: Some(UncountedReason::PaymentNotCounted),
            ..money
        };
    };
    let whole = paid.amount.micros();
    let wanted = if money.currency == paid.currency {
        money.amount.micros().saturating_abs()
    } else {
        let usd = money.usd.map_or(0, |usd| usd.micros().saturating_abs());
        share(whole, usd, worth.micros())
    };
    let before = *back;
    *back = if is_refund {
        before.saturating_add(wanted).min(whole)
    } else {
        before.saturating_sub(wanted).max(0)
    };
    let part = |given| share(worth.micros(), given, whole);
    let usd = part(before) - part(*back);
    Revenue {
        usd: Some(Amount::from_micros(usd)),
        rate_day: paid.rate_day,
        rate: paid.rate.clone(),
        rate_source: paid.rate_source.clone(),
        // More than was paid, or nothing to be taken back: kept, and worth nothing.
        uncounted: (usd == 0).then_some(UncountedReason::Zero),
        ..money
    }
}

/// `total × part ÷ whole`, rounded down. The parts of a whole add up, because each is a difference of two sums.
fn share(total: i64, part: i64, whole: i64) -> i64 {
    if whole == 0 {
        return 0;
    }
    let exact = i128::from(total) * i128::from(part) / i128::from(whole);
    i64::try_from(exact).unwrap_or(i64::MAX)
}
