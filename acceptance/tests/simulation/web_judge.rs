//! Judges what many clients at a time were answered.

use super::web_model::{Kind, Model, Outcome, Post, Reply};
use std::collections::BTreeMap;

/// Many clients at a time: whether the answers can be explained by any order of the posts that agrees with the clock,
/// and what is stored then. Everything asked here holds in every such order, so a history is only blamed for what
/// no order explains.
pub(super) fn judge(replies: &[Reply]) -> Result<Model, String> {
    let mut winners: BTreeMap<&str, &Reply> = BTreeMap::new();
    for reply in replies
        .iter()
        .filter(|reply| reply.outcome == Outcome::Accepted)
    {
        if let Some(other) = winners.insert(&reply.post.id, reply) {
            return Err(format!("accepted twice: {other:?} and {reply:?}"));
        }
    }
    for reply in replies {
        if let Some(complaint) = complaint(reply, &winners) {
            return Err(format!("{complaint}: {reply:?}"));
        }
    }
    let stored = winners
        .values()
        .map(|reply| (reply.post.id.clone(), reply.post.clone()));
    let model = Model(stored.collect());
    for post in model.0.values().filter(|post| post.kind.is_payment()) {
        if model.refunded(&post.id) > post.micros {
            return Err(format!("more was given back than was paid: {post:?}"));
        }
    }
    Ok(model)
}

/// What no order of the posts explains about an answer.
fn complaint(reply: &Reply, winners: &BTreeMap<&str, &Reply>) -> Option<&'static str> {
    let post = &reply.post;
    // Who may have come first, and who has.
    let possible = |id: &str| winners.get(id).filter(|winner| winner.began < reply.ended);
    let certain = |id: &str| {
        winners
            .get(id)
            .is_some_and(|winner| winner.ended < reply.began)
    };
    let same = possible(&post.id).map(|winner| winner.post == *post);
    let code = match &reply.outcome {
        Outcome::Duplicate if same == Some(true) => return None,
        Outcome::Duplicate => return Some("a duplicate of nothing"),
        Outcome::Refused(code) if code == "event_id_conflict" && same == Some(false) => {
            return None;
        }
        Outcome::Refused(code) if code == "event_id_conflict" => {
            return Some("a conflict with nothing");
        }
        Outcome::Refused(code) => Some(code.as_str()),
        Outcome::Accepted => None,
    };
    if certain(&post.id) {
        return Some("its id was taken before");
    }
    if post.click.is_none() || code == Some("click_not_verified") {
        let right = post.click.is_none() && code == Some("click_not_verified");
        return (!right).then_some("the click was judged wrongly");
    }
    let Some(parent_id) = &post.parent else {
        return code.map(|_| "refused for nothing");
    };
    if *parent_id == post.id {
        let right = code == Some("original_transaction_invalid");
        return (!right).then_some("it names itself");
    }
    if code == Some("original_transaction_unavailable") {
        return certain(parent_id).then_some("its parent was there before");
    }
    let Some(parent) = possible(parent_id).map(|winner| &winner.post) else {
        return Some("its parent cannot have been there");
    };
    let expected_code = match post.kind {
        _ if !post.kind.fits(parent.kind) => Some("original_transaction_invalid"),
        Kind::Refund if post.currency != parent.currency => Some("currency_mismatch"),
        _ => None,
    };
    if code == Some("refund_exceeds_payment")
        && post.kind == Kind::Refund
        && expected_code.is_none()
    {
        // The sum only grows: it must be too large with all that may have come before.
        let rivals = winners.values().filter(|other| {
            let other_post = &other.post;
            other_post.kind == Kind::Refund
                && other_post.parent == post.parent
                && other.began < reply.ended
        });
        let before: i64 = -rivals.map(|other| other.post.micros).sum::<i64>();
        return (before - post.micros <= parent.micros).then_some("the refund would have fitted");
    }
    (code != expected_code).then_some("judged wrongly by its parent")
}

/// A judge that lets everything pass would be no judge.
mod tests {
    use super::super::web_model::refused;
    use super::*;

    fn post(id: &str, kind: Kind, micros: i64, parent: Option<&str>) -> Post {
        let parent = parent.map(str::to_owned);
        Post {
            id: id.to_owned(),
            kind,
            micros,
            currency: "USD",
            parent,
            click: Some(0),
            device: 0,
            at: 0,
        }
    }

    fn replied(post: Post, began: u64, ended: u64, outcome: Outcome) -> Reply {
        Reply {
            post,
            began,
            ended,
            outcome,
        }
    }

    fn complains(replies: &[Reply], about: &str) {
        let found = judge(replies).unwrap_err();
        assert!(found.contains(about), "{found}");
    }

    #[test]
    fn wrong_histories_are_found() {
        let accepted =
            |post: &Post, began, ended| replied(post.clone(), began, ended, Outcome::Accepted);
        let refused_as = |post: &Post, began, ended, code: &str| {
            replied(post.clone(), began, ended, refused(code))
        };
        let paid = post("p", Kind::Purchase, 100, None);
        let other = post("p", Kind::Purchase, 101, None);
        let half = post("r1", Kind::Refund, -60, Some("p"));
        let rest = post("r2", Kind::Refund, -41, Some("p"));
        let fits = post("r2", Kind::Refund, -40, Some("p"));
        complains(
            &[accepted(&paid, 0, 1), accepted(&paid, 2, 3)],
            "accepted twice",
        );
        complains(
            &[
                accepted(&paid, 0, 1),
                accepted(&half, 2, 3),
                accepted(&rest, 4, 5),
            ],
            "more was given back",
        );
        let exceeds = "refund_exceeds_payment";
        let early = [
            accepted(&paid, 0, 1),
            refused_as(&fits, 2, 3, exceeds),
            accepted(&half, 4, 5),
        ];
        complains(&early, "would have fitted");
        let never = [
            accepted(&paid, 0, 1),
            accepted(&half, 2, 3),
            refused_as(&fits, 4, 5, exceeds),
        ];
        complains(&never, "would have fitted");
        let missing = "original_transaction_unavailable";
        complains(
            &[accepted(&paid, 0, 1), refused_as(&half, 2, 3, missing)],
            "was there before",
        );
        complains(
            &[accepted(&half, 0, 1), accepted(&paid, 2, 3)],
            "cannot have been there",
        );
        complains(
            &[replied(paid.clone(), 0, 1, Outcome::Duplicate)],
            "a duplicate of nothing",
        );
        complains(
            &[refused_as(&paid, 0, 1, "event_id_conflict")],
            "a conflict with nothing",
        );
        let repeated = [
            accepted(&paid, 0, 1),
            refused_as(&paid, 2, 3, "event_id_conflict"),
        ];
        complains(&repeated, "a conflict with nothing");
        complains(
            &[
                accepted(&paid, 0, 1),
                replied(other.clone(), 2, 3, Outcome::Duplicate),
            ],
            "a duplicate of nothing",
        );
        complains(
            &[refused_as(&paid, 0, 1, "origin_mismatch")],
            "refused for nothing",
        );
        let renewal = post("n", Kind::Renewal, 5, Some("r1"));
        let wrong = [
            accepted(&paid, 0, 1),
            accepted(&half, 2, 3),
            accepted(&renewal, 4, 5),
        ];
        complains(&wrong, "judged wrongly by its parent");
    }

    #[test]
    fn what_some_order_explains_is_let_pass() {
        let paid = post("p", Kind::Purchase, 100, None);
        let half = post("r1", Kind::Refund, -60, Some("p"));
        let rest = post("r2", Kind::Refund, -41, Some("p"));
        let replies = [
            replied(paid.clone(), 0, 9, Outcome::Accepted),
            replied(paid, 1, 3, Outcome::Duplicate),
            replied(
                half.clone(),
                2,
                4,
                refused("original_transaction_unavailable"),
            ),
            replied(half, 5, 11, Outcome::Accepted),
            replied(rest, 6, 12, refused("refund_exceeds_payment")),
        ];
        assert_eq!(judge(&replies).unwrap().refunded("p"), 60);
    }
}
