//! What is played: posts that belong together, repeat and contradict each other, and who sends which.

use super::web_model::{Kind, Post};
use crate::website::START;
use proptest::prelude::*;
use proptest::sample::Index;

/// Clients at a time.
const CLIENTS: usize = 12;
/// Event ids that the posts of a case have between them.
const IDS: usize = 24;
/// Clicks that there are, one a network.
pub(super) const CLICKS: usize = 4;
/// One of them has no rate.
const CURRENCIES: [&str; 4] = ["USD", "EUR", "JPY", "CLF"];

/// How much a refund gives back.
#[derive(Debug, Clone)]
enum Part {
    /// What the payment was, so many times divided by two.
    Halved(u32),
    /// A millionth more than that.
    TooMuch,
    Micros(i64),
}

/// What a renewal or refund names.
#[derive(Debug, Clone)]
enum Parent {
    /// One of the payments.
    Payment(Index),
    /// Whatever has this id, if anything does.
    Id(usize),
}

/// A post before its parent is known.
#[derive(Debug, Clone)]
pub(super) struct Draft {
    id: usize,
    kind: Kind,
    micros: i64,
    currency: usize,
    parent: Parent,
    part: Part,
    keeps_currency: bool,
    click: Option<usize>,
    device: usize,
    minutes: i64,
}

/// What there is to be posted, and who posts what in which order.
#[derive(Debug, Clone)]
pub(super) struct Case {
    pub(super) drafts: Vec<Draft>,
    pub(super) scripts: Vec<Vec<Index>>,
}

fn draft() -> impl Strategy<Value = Draft> {
    let kind = prop_oneof![
        5 => Just(Kind::Purchase), 3 => Just(Kind::Renewal), 7 => Just(Kind::Refund),
        1 => Just(Kind::SignUp), 1 => Just(Kind::Checkout), 1 => Just(Kind::Trial),
    ];
    let amount = prop_oneof![
        6 => 1_i64..300_000_000, 1 => Just(1_i64), 1 => Just(2_000_000_000_i64), 1 => Just(2_000_000_001_i64),
        1 => Just(999_999_999_999_i64),
    ];
    let part = prop_oneof![
        4 => (0_u32..4).prop_map(Part::Halved), 1 => Just(Part::TooMuch),
        3 => (1_i64..50_000_000).prop_map(Part::Micros),
    ];
    let click = prop_oneof![30 => (0..CLICKS).prop_map(Some), 1 => Just(None)];
    let currency =
        prop_oneof![4 => Just(0_usize), 3 => Just(1_usize), 2 => Just(2_usize), 1 => Just(3_usize)];
    let parent = prop_oneof![
        4 => any::<Index>().prop_map(Parent::Payment), 1 => (0..IDS).prop_map(Parent::Id),
    ];
    let money = (amount, currency, part, prop::bool::weighted(0.95));
    (0..IDS, kind, money, parent, click, 0_usize..5, 0_i64..9).prop_map(
        |(id, kind, (micros, currency, part, keeps_currency), parent, click, device, minutes)| {
            Draft {
                id,
                kind,
                micros,
                currency,
                parent,
                part,
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

fn name_of(id: usize) -> String {
    format!("event-{id}")
}

/// The posts. A refund looks at the first payment that may become its parent, so that amounts often fit exactly.
pub(super) fn posts(drafts: &[Draft]) -> Vec<Post> {
    let payments: Vec<&Draft> = drafts
        .iter()
        .filter(|draft| draft.kind.is_payment())
        .collect();
    let post = |draft: &Draft| {
        let parent = match &draft.parent {
            Parent::Payment(index) if !payments.is_empty() => index.get(&payments).id,
            Parent::Payment(_) => draft.id,
            Parent::Id(id) => *id,
        };
        let payment = payments.iter().find(|other| other.id == parent);
        let (micros, currency) = match (draft.kind, payment) {
            (Kind::Refund, Some(payment)) => {
                let part = match draft.part {
                    Part::Halved(times) => (payment.micros >> times).max(1),
                    Part::TooMuch => payment.micros + 1,
                    Part::Micros(micros) => micros,
                };
                (
                    -part,
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
            id: name_of(draft.id),
            kind: draft.kind,
            micros,
            currency: CURRENCIES[currency],
            parent: draft.kind.has_parent().then(|| name_of(parent)),
            click: draft.click,
            device: draft.device,
            // Not more than ten minutes before the click.
            at: START - draft.minutes * 60_000,
        }
    };
    drafts.iter().map(post).collect()
}
