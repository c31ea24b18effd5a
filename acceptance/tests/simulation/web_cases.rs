//! Generates cases: related, repeated and conflicting posts, and the clients that send them.

use super::web_model::{Kind, Post};
use crate::website::START;
use proptest::prelude::*;
use proptest::sample::Index;

/// Number of concurrent clients.
const CLIENTS: usize = 12;
/// Number of event ids that the posts of a case share.
const IDS: usize = 24;
/// Number of clicks, one per network.
pub(super) const CLICKS: usize = 4;
/// Currencies of the posts; `CLF` has no exchange rate.
const CURRENCIES: [&str; 4] = ["USD", "EUR", "JPY", "CLF"];

/// Amount of a refund.
#[derive(Debug, Clone)]
enum RefundAmount {
    /// The payment's amount, halved this many times.
    Halved(u32),
    /// A millionth more than the payment.
    TooMuch,
    Micros(i64),
}

/// Event that a renewal or refund refers to.
#[derive(Debug, Clone)]
enum ParentChoice {
    /// One of the payments.
    Payment(Index),
    /// Any event with this id, if there is one.
    Id(usize),
}

/// A post before its parent and amount are chosen.
#[derive(Debug, Clone)]
pub(super) struct PostDraft {
    id: usize,
    kind: Kind,
    micros: i64,
    currency: usize,
    parent: ParentChoice,
    refund: RefundAmount,
    keeps_currency: bool,
    click: Option<usize>,
    device: usize,
    minutes: i64,
}

/// Posts of a case, and which of them each client sends in which order.
#[derive(Debug, Clone)]
pub(super) struct Case {
    pub(super) drafts: Vec<PostDraft>,
    pub(super) scripts: Vec<Vec<Index>>,
}

fn draft() -> impl Strategy<Value = PostDraft> {
    let kind = prop_oneof![
        5 => Just(Kind::Purchase), 3 => Just(Kind::Renewal), 7 => Just(Kind::Refund),
        1 => Just(Kind::SignUp), 1 => Just(Kind::Checkout), 1 => Just(Kind::Trial),
    ];
    let amount = prop_oneof![
        6 => 1_i64..300_000_000, 1 => Just(1_i64), 1 => Just(2_000_000_000_i64), 1 => Just(2_000_000_001_i64),
        1 => Just(999_999_999_999_i64),
    ];
    let refund = prop_oneof![
        4 => (0_u32..4).prop_map(RefundAmount::Halved), 1 => Just(RefundAmount::TooMuch),
        3 => (1_i64..50_000_000).prop_map(RefundAmount::Micros),
    ];
    let click = prop_oneof![30 => (0..CLICKS).prop_map(Some), 1 => Just(None)];
    let currency =
        prop_oneof![4 => Just(0_usize), 3 => Just(1_usize), 2 => Just(2_usize), 1 => Just(3_usize)];
    let parent = prop_oneof![
        4 => any::<Index>().prop_map(ParentChoice::Payment), 1 => (0..IDS).prop_map(ParentChoice::Id),
    ];
    let money = (amount, currency, refund, prop::bool::weighted(0.95));
    (0..IDS, kind, money, parent, click, 0_usize..5, 0_i64..9).prop_map(
        |(id, kind, (micros, currency, refund, keeps_currency), parent, click, device, minutes)| {
            PostDraft {
                id,
                kind,
                micros,
                currency,
                parent,
                refund,
                keeps_currency,
                click,
                device,
                minutes,
            }
        },
    )
}

pub(super) fn case() -> impl Strategy<Value = Case> {
    let scripts = prop::collection::vec(prop::collection::vec(any::<Index>(), 1..12), CLIENTS);
    (prop::collection::vec(draft(), 12..40), scripts)
        .prop_map(|(drafts, scripts)| Case { drafts, scripts })
}

fn event_id(id: usize) -> String {
    format!("event-{id}")
}

/// Builds the posts. A refund takes its amount from the first payment that may be its parent, so
/// that amounts often match exactly.
pub(super) fn posts(drafts: &[PostDraft]) -> Vec<Post> {
    let payments: Vec<&PostDraft> = drafts
        .iter()
        .filter(|draft| draft.kind.is_payment())
        .collect();
    let post = |draft: &PostDraft| {
        let parent = match &draft.parent {
            ParentChoice::Payment(index) if !payments.is_empty() => index.get(&payments).id,
            ParentChoice::Payment(_) => draft.id,
            ParentChoice::Id(id) => *id,
        };
        let payment = payments.iter().find(|other| other.id == parent);
        let (micros, currency) = match (draft.kind, payment) {
            (Kind::Refund, Some(payment)) => {
                let refund = match draft.refund {
                    RefundAmount::Halved(times) => (payment.micros >> times).max(1),
                    RefundAmount::TooMuch => payment.micros + 1,
                    RefundAmount::Micros(micros) => micros,
                };
                (
                    -refund,
                    if draft.keeps_currency {
                        payment.currency
                    } else {
                        draft.currency
                    },
                )
            }
            (Kind::Refund, None) => (-draft.micros, draft.currency),
            (Kind::SignUp, _) => (0, 0),
            _ => (draft.micros, draft.currency),
        };
        Post {
            id: event_id(draft.id),
            kind: draft.kind,
            micros,
            currency: CURRENCIES[currency],
            parent: draft.kind.has_parent().then(|| event_id(parent)),
            click: draft.click,
            device: draft.device,
            // At most ten minutes before the click.
            at: START - draft.minutes * 60_000,
        }
    };
    drafts.iter().map(post).collect()
}
