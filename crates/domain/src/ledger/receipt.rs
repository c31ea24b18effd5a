//! Payments that renewals and refunds refer to.
//!
//! The refunds of a payment never exceed it in total, even if they are sent concurrently. A refund
//! counts if and only if its payment did, and uses the payment's rate, so that a full refund nets
//! to zero.

use super::{Revenue, UncountedReason};
use crate::event::{Credit, Event};
use crate::refusal::Refusal;
use crate::vocabulary::currency::Currency;
use crate::vocabulary::money::Amount;

/// Kind of payment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PaymentKind {
    /// The initial payment.
    Purchase,
    /// A later payment for the same subscription.
    Renewal,
}

crate::keywords! {
    PaymentKind {
        Purchase => "purchase",
        Renewal => "renewal",
    }
}

/// A payment and its refunded amount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    /// Kind of payment.
    pub kind: PaymentKind,
    /// Recorded revenue.
    pub revenue: Revenue,
    /// The payment's credit. Its renewals and refunds get the same credit.
    pub credit: Credit,
    /// Amount refunded so far; not negative.
    pub refunded: Amount,
}

impl Receipt {
    /// Returns the receipt for a web event; `None` if the event is not a payment.
    pub fn of(event: Event, refunded: Amount) -> Option<Self> {
        Some(Self {
            kind: PaymentKind::parse(&event.name)?,
            revenue: event.revenue?,
            credit: event.credit?,
            refunded,
        })
    }
}

/// Parent of a renewal or refund.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ParentEvent {
    /// A payment.
    Payment(Box<Receipt>),
    /// An event that is not a payment.
    NotAPayment,
}

/// Returns the payment that a renewal refers to. Rejects any event that is not the initial payment.
pub fn renewed_payment(parent: Option<ParentEvent>) -> Result<Receipt, Refusal> {
    match parent {
        None => Err(Refusal::OriginalTransactionUnavailable),
        Some(ParentEvent::Payment(receipt)) if receipt.kind == PaymentKind::Purchase => {
            Ok(*receipt)
        }
        Some(_) => Err(Refusal::OriginalTransactionInvalid),
    }
}

/// Applies a refund to its payment. Returns the refund's revenue and the updated payment.
pub fn refund(
    parent: Option<ParentEvent>,
    amount: Amount,
    currency: Option<Currency>,
) -> Result<(Revenue, Receipt), Refusal> {
    let mut receipt = match parent {
        None => return Err(Refusal::OriginalTransactionUnavailable),
        Some(ParentEvent::Payment(receipt)) => *receipt,
        Some(ParentEvent::NotAPayment) => return Err(Refusal::OriginalTransactionInvalid),
    };
    if currency != receipt.revenue.currency {
        return Err(Refusal::CurrencyMismatch);
    }
    let before = receipt.refunded.micros();
    let after = before.saturating_sub(amount.micros());
    let paid = receipt.revenue.amount.micros();
    if after > paid {
        return Err(Refusal::RefundExceedsPayment);
    }
    let refunded_usd = receipt.revenue.usd.map(|usd| {
        let part = |refunded| share(usd.micros(), refunded, paid);
        Amount::from_micros(part(before) - part(after))
    });
    let revenue = Revenue {
        amount,
        currency,
        usd: refunded_usd,
        uncounted: receipt
            .revenue
            .uncounted
            .map(|_| UncountedReason::PaymentNotCounted),
        ..receipt.revenue.clone()
    };
    receipt.refunded = Amount::from_micros(after);
    Ok((revenue, receipt))
}

/// Returns `total × part ÷ whole`, rounded half to even. To avoid rounding errors, the caller
/// passes running totals and subtracts the results, so that the refunds in dollars add up to the
/// payment.
fn share(total: i64, part: i64, whole: i64) -> i64 {
    if whole == 0 {
        return 0;
    }
    let product = i128::from(total) * i128::from(part);
    let whole = i128::from(whole);
    let (quotient, rest) = (product.div_euclid(whole), product.rem_euclid(whole));
    let up = match (rest * 2).cmp(&whole) {
        std::cmp::Ordering::Less => false,
        std::cmp::Ordering::Greater => true,
        std::cmp::Ordering::Equal => quotient.rem_euclid(2) == 1,
    };
    // Since `part` is at most `whole`, the result fits an i64.
    i64::try_from(quotient + i128::from(up)).unwrap_or(total)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribution::{CreditedNetwork, MatchType};
    use crate::integration::Network;
    use crate::link::Campaign;
    use proptest::prelude::*;
    use rstest::rstest;

    fn paid(amount: &str, usd: &str, kind: PaymentKind) -> Receipt {
        Receipt {
            kind,
            revenue: Revenue {
                amount: Amount::parse(amount).unwrap(),
                currency: Currency::from_stored("EUR"),
                usd: Some(Amount::parse(usd).unwrap()),
                rate_day: None,
                rate: None,
                rate_source: None,
                uncounted: None,
            },
            credit: Credit {
                network: CreditedNetwork::Ad(Network::A),
                match_type: MatchType::ClickId,
                link: None,
                click: None,
                campaign: Campaign::default(),
                hold: None,
            },
            refunded: Amount::ZERO,
        }
    }

    fn payment(kind: PaymentKind) -> ParentEvent {
        ParentEvent::Payment(Box::new(paid("100", "108.72", kind)))
    }

    fn purchase() -> ParentEvent {
        payment(PaymentKind::Purchase)
    }

    fn renewal() -> ParentEvent {
        payment(PaymentKind::Renewal)
    }

    #[rstest]
    #[case::of_the_initial_purchase(Some(purchase()), None)]
    #[case::without_parent(None, Some(Refusal::OriginalTransactionUnavailable))]
    #[case::of_a_renewal(Some(renewal()), Some(Refusal::OriginalTransactionInvalid))]
    #[case::not_a_payment(
        Some(ParentEvent::NotAPayment),
        Some(Refusal::OriginalTransactionInvalid)
    )]
    fn renewals(#[case] parent: Option<ParentEvent>, #[case] expected: Option<Refusal>) {
        assert_eq!(renewed_payment(parent).err(), expected);
    }

    #[rstest]
    #[case::a_part(Some(purchase()), "-40", "EUR", None)]
    #[case::the_whole(Some(purchase()), "-100", "EUR", None)]
    #[case::of_a_renewal(Some(renewal()), "-100", "EUR", None)]
    #[case::a_millionth_more(
        Some(purchase()),
        "-100.000001",
        "EUR",
        Some(Refusal::RefundExceedsPayment)
    )]
    #[case::another_currency(Some(purchase()), "-1", "USD", Some(Refusal::CurrencyMismatch))]
    #[case::without_parent(None, "-1", "EUR", Some(Refusal::OriginalTransactionUnavailable))]
    #[case::not_a_payment(
        Some(ParentEvent::NotAPayment),
        "-1",
        "EUR",
        Some(Refusal::OriginalTransactionInvalid)
    )]
    fn refunds(
        #[case] parent: Option<ParentEvent>,
        #[case] amount: &str,
        #[case] currency: &str,
        #[case] expected: Option<Refusal>,
    ) {
        let amount = Amount::parse(amount).unwrap();
        let outcome = refund(parent, amount, Currency::from_stored(currency));
        assert_eq!(outcome.err(), expected);
    }

    #[test]
    fn a_refund_of_an_uncounted_payment_does_not_count() {
        let mut receipt = paid("3000", "3261.6", PaymentKind::Purchase);
        receipt.revenue.uncounted = Some(UncountedReason::OverLimit);
        let parent = Some(ParentEvent::Payment(Box::new(receipt)));
        let (revenue, _) = refund(
            parent,
            Amount::parse("-3000").unwrap(),
            Currency::from_stored("EUR"),
        )
        .unwrap();
        assert_eq!(revenue.uncounted, Some(UncountedReason::PaymentNotCounted));
        assert_eq!(revenue.counted_usd(), Amount::ZERO);
    }

    proptest! {
        #[test]
        fn full_refunds_net_to_zero_and_never_exceed_the_payment(
            paid_micros in 1..1_000_000_000_000_i64,
            usd_micros in 0..1_000_000_000_000_i64,
            parts in proptest::collection::vec(1..400_000_000_000_i64, 1..20),
        ) {
            let mut receipt = paid("1", "1", PaymentKind::Purchase);
            receipt.revenue.amount = Amount::from_micros(paid_micros);
            receipt.revenue.usd = Some(Amount::from_micros(usd_micros));
            let (mut sum, mut refunded_usd) = (0, 0);
            let take = |receipt: &Receipt, part: i64| {
                let parent = Some(ParentEvent::Payment(Box::new(receipt.clone())));
                refund(parent, Amount::from_micros(-part), Currency::from_stored("EUR"))
            };
            for part in parts {
                match take(&receipt, part) {
                    Ok((revenue, after)) => {
                        sum += part;
                        refunded_usd += revenue.usd.unwrap().micros();
                        receipt = after;
                    }
                    Err(refusal) => {
                        prop_assert_eq!(refusal, Refusal::RefundExceedsPayment);
                        prop_assert!(sum + part > paid_micros);
                    }
                }
                prop_assert!(sum <= paid_micros);
                prop_assert!(refunded_usd <= 0 && -refunded_usd <= usd_micros);
            }
            if sum < paid_micros {
                let (revenue, _) = take(&receipt, paid_micros - sum).unwrap();
                refunded_usd += revenue.usd.unwrap().micros();
            }
            prop_assert_eq!(refunded_usd, -usd_micros);
        }
    }
}
