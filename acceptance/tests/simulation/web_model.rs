//! A model of the ledger: a map from event id to the accepted post. It predicts the responses to
//! sequential posts; `web_history.rs` checks the responses to concurrent ones.

use std::collections::{BTreeMap, BTreeSet};

/// Largest amount that counts, in millionths of a dollar.
const COUNTED_MAX: i64 = 2_000_000_000;
/// Dollars per unit of a currency on 2025-12-31, as a fraction.
const RATES: [(&str, i128, i128); 3] = [
    ("USD", 1, 1),
    ("EUR", 1_175, 1_000),
    ("JPY", 117_500, 18_409_000),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Purchase,
    Renewal,
    Refund,
    SignUp,
    Checkout,
    Trial,
}

impl Kind {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Purchase => "purchase",
            Self::Renewal => "renewal",
            Self::Refund => "refund",
            Self::SignUp => "sign_up",
            Self::Checkout => "checkout_started",
            Self::Trial => "start_trial",
        }
    }

    pub(super) const fn has_parent(self) -> bool {
        matches!(self, Self::Renewal | Self::Refund)
    }

    pub(super) const fn is_payment(self) -> bool {
        matches!(self, Self::Purchase | Self::Renewal)
    }

    /// Returns whether it can refer to an event of this kind.
    pub(super) const fn can_refer_to(self, parent: Self) -> bool {
        match self {
            Self::Renewal => matches!(parent, Self::Purchase),
            _ => parent.is_payment(),
        }
    }
}

/// An event as it is posted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Post {
    pub(super) id: String,
    pub(super) kind: Kind,
    /// Negative for a refund, zero for a `sign_up`.
    pub(super) micros: i64,
    pub(super) currency: &'static str,
    pub(super) parent: Option<String>,
    /// Index of the click; `None` is a forged click id.
    pub(super) click: Option<usize>,
    pub(super) device: usize,
    pub(super) at: i64,
}

/// Response to a post.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PostOutcome {
    Accepted,
    Duplicate,
    /// With this error code.
    Refused(String),
}

pub(super) fn refused(code: &str) -> PostOutcome {
    PostOutcome::Refused(code.to_owned())
}

/// A post with its response, and its start and end on a clock that all clients share.
#[derive(Debug, Clone)]
pub(super) struct Reply {
    pub(super) post: Post,
    pub(super) began: u64,
    pub(super) ended: u64,
    pub(super) outcome: PostOutcome,
}

/// Accepted posts by event id.
#[derive(Debug, Clone, Default)]
pub(super) struct Model(pub(super) BTreeMap<String, Post>);

impl Model {
    /// Sums the refunds of a payment.
    pub(super) fn refunded(&self, payment: &str) -> i64 {
        let refunds = self.0.values().filter(|post| post.kind == Kind::Refund);
        let refunds = refunds.filter(|post| post.parent.as_deref() == Some(payment));
        -refunds.map(|post| post.micros).sum::<i64>()
    }

    /// Applies a post after all earlier ones and returns its expected response.
    pub(super) fn post(&mut self, post: &Post) -> PostOutcome {
        match self.0.get(&post.id) {
            Some(before) if before == post => return PostOutcome::Duplicate,
            Some(_) => return refused("event_id_conflict"),
            None => {}
        }
        if post.click.is_none() {
            return refused("click_not_verified");
        }
        if let Some(id) = &post.parent {
            if *id == post.id {
                return refused("original_transaction_invalid");
            }
            let Some(parent) = self.0.get(id) else {
                return refused("original_transaction_unavailable");
            };
            if !post.kind.can_refer_to(parent.kind) {
                return refused("original_transaction_invalid");
            }
            if post.kind == Kind::Refund {
                if post.currency != parent.currency {
                    return refused("currency_mismatch");
                }
                if self.refunded(id) - post.micros > parent.micros {
                    return refused("refund_exceeds_payment");
                }
            }
        }
        self.0.insert(post.id.clone(), post.clone());
        PostOutcome::Accepted
    }

    /// Returns the click that an event is credited to: its own, or that of its payment.
    pub(super) fn credited_click(&self, post: &Post) -> Option<usize> {
        match &post.parent {
            Some(parent) => self.credited_click(&self.0[parent]),
            None => post.click,
        }
    }

    /// Returns why an event does not count.
    pub(super) fn reason(&self, post: &Post) -> Option<&'static str> {
        match (post.kind, dollars(post.micros, post.currency)) {
            (Kind::Refund, _) => {
                let payment = &self.0[post.parent.as_ref().unwrap()];
                self.reason(payment).map(|_| "payment_not_counted")
            }
            (_, None) => Some("unconvertible"),
            (Kind::Checkout | Kind::Trial, _) => Some("predicted"),
            (_, Some(usd)) if usd > COUNTED_MAX => Some("over_limit"),
            _ => None,
        }
    }

    /// Lists the payments that count, each with its dollars and the refunded dollars.
    pub(super) fn counted_payments(&self) -> impl Iterator<Item = (&Post, i64, i64)> {
        let payments = self.0.values().filter(|post| post.kind.is_payment());
        let counted = payments.filter(|post| self.reason(post).is_none());
        counted.map(|post| {
            let usd = dollars(post.micros, post.currency).unwrap();
            let refunded = divide_half_even(
                i128::from(usd) * i128::from(self.refunded(&post.id)),
                post.micros.into(),
            );
            (post, usd, refunded)
        })
    }

    /// Counts the devices that have paid.
    pub(super) fn paying_devices(&self) -> usize {
        let paid = self.counted_payments().filter(|(_, usd, _)| *usd > 0);
        paid.map(|(post, ..)| post.device)
            .collect::<BTreeSet<_>>()
            .len()
    }
}

/// Converts an amount to millionths of a dollar.
pub(super) fn dollars(micros: i64, currency: &str) -> Option<i64> {
    let (_, dollars, units) = RATES.iter().find(|(known, ..)| *known == currency)?;
    Some(divide_half_even(i128::from(micros) * dollars, *units))
}

/// Divides non-negative numbers and rounds half to even.
fn divide_half_even(upper: i128, lower: i128) -> i64 {
    let (quotient, remainder) = (upper / lower, upper % lower);
    let rounds_up = remainder * 2 > lower || (remainder * 2 == lower && quotient % 2 == 1);
    i64::try_from(quotient + i128::from(rounds_up)).unwrap()
}
