//! Checks the responses that concurrent clients got.

use super::web_model::{Kind, Model, Post, PostOutcome, Reply};
use std::collections::BTreeMap;

/// Checks that the responses are possible in an order of the posts that agrees with the clock, and
/// returns the model of the stored posts. Each check holds in every such order, so an error means
/// that no order explains the history.
pub(super) fn check_history(replies: &[Reply]) -> Result<Model, String> {
    let mut winners: BTreeMap<&str, &Reply> = BTreeMap::new();
    for reply in replies
        .iter()
        .filter(|reply| reply.outcome == PostOutcome::Accepted)
    {
        if let Some(other) = winners.insert(&reply.post.id, reply) {
            return Err(format!("accepted twice: {other:?} and {reply:?}"));
        }
    }
    for reply in replies {
        if let Some(violation) = find_violation(reply, &winners) {
            return Err(format!("{violation}: {reply:?}"));
        }
    }
    let stored = winners
        .values()
        .map(|reply| (reply.post.id.clone(), reply.post.clone()));
    let model = Model(stored.collect());
    for post in model.0.values().filter(|post| post.kind.is_payment()) {
        if model.refunded(&post.id) > post.micros {
            return Err(format!("refunds exceed the payment: {post:?}"));
        }
    }
    Ok(model)
}

/// Returns how a response contradicts every order of the posts, if it does.
fn find_violation(reply: &Reply, winners: &BTreeMap<&str, &Reply>) -> Option<&'static str> {
    let post = &reply.post;
    // Accepted posts that may have come before this one, and those that certainly did.
    let possible = |id: &str| winners.get(id).filter(|winner| winner.began < reply.ended);
    let certain = |id: &str| {
        winners
            .get(id)
            .is_some_and(|winner| winner.ended < reply.began)
    };
    let same = possible(&post.id).map(|winner| winner.post == *post);
    let code = match &reply.outcome {
        PostOutcome::Duplicate if same == Some(true) => return None,
        PostOutcome::Duplicate => return Some("duplicate without an original"),
        PostOutcome::Refused(code) if code == "event_id_conflict" && same == Some(false) => {
            return None;
        }
        PostOutcome::Refused(code) if code == "event_id_conflict" => {
            return Some("conflict without another payload");
        }
        PostOutcome::Refused(code) => Some(code.as_str()),
        PostOutcome::Accepted => None,
    };
    if certain(&post.id) {
        return Some("the id was already used");
    }
    if post.click.is_none() || code == Some("click_not_verified") {
        let is_expected = post.click.is_none() && code == Some("click_not_verified");
        return (!is_expected).then_some("wrong result for the click");
    }
    let Some(parent_id) = &post.parent else {
        return code.map(|_| "rejected without a reason");
    };
    if *parent_id == post.id {
        let is_expected = code == Some("original_transaction_invalid");
        return (!is_expected).then_some("wrong result for a post that refers to itself");
    }
    if code == Some("original_transaction_unavailable") {
        return certain(parent_id).then_some("the parent was already stored");
    }
    let Some(parent) = possible(parent_id).map(|winner| &winner.post) else {
        return Some("the parent cannot have been stored yet");
    };
    let expected_code = match post.kind {
        _ if !post.kind.can_refer_to(parent.kind) => Some("original_transaction_invalid"),
        Kind::Refund if post.currency != parent.currency => Some("currency_mismatch"),
        _ => None,
    };
    if code == Some("refund_exceeds_payment")
        && post.kind == Kind::Refund
        && expected_code.is_none()
    {
        // The sum only grows, so it must be too large with all refunds that may have come before.
        let earlier = winners.values().filter(|other| {
            let other_post = &other.post;
            other_post.kind == Kind::Refund
                && other_post.parent == post.parent
                && other.began < reply.ended
        });
        let before: i64 = -earlier.map(|other| other.post.micros).sum::<i64>();
        return (before - post.micros <= parent.micros)
            .then_some("the refund was within the limit");
    }
    (code != expected_code).then_some("wrong result for the parent")
}

/// Tests of the checker itself: it must reject impossible histories.
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

    fn reply(post: Post, began: u64, ended: u64, outcome: PostOutcome) -> Reply {
        Reply {
            post,
            began,
            ended,
            outcome,
        }
    }

    fn assert_violation(replies: &[Reply], expected: &str) {
        let violation = check_history(replies).unwrap_err();
        assert!(violation.contains(expected), "{violation}");
    }

    #[test]
    fn rejects_impossible_histories() {
        let accepted =
            |post: &Post, began, ended| reply(post.clone(), began, ended, PostOutcome::Accepted);
        let refused_as = |post: &Post, began, ended, code: &str| {
            reply(post.clone(), began, ended, refused(code))
        };
        let paid = post("p", Kind::Purchase, 100, None);
        let other = post("p", Kind::Purchase, 101, None);
        let half = post("r1", Kind::Refund, -60, Some("p"));
        let too_much = post("r2", Kind::Refund, -41, Some("p"));
        let exact_rest = post("r2", Kind::Refund, -40, Some("p"));
        assert_violation(
            &[accepted(&paid, 0, 1), accepted(&paid, 2, 3)],
            "accepted twice",
        );
        assert_violation(
            &[
                accepted(&paid, 0, 1),
                accepted(&half, 2, 3),
                accepted(&too_much, 4, 5),
            ],
            "refunds exceed the payment",
        );
        let exceeds = "refund_exceeds_payment";
        let early = [
            accepted(&paid, 0, 1),
            refused_as(&exact_rest, 2, 3, exceeds),
            accepted(&half, 4, 5),
        ];
        assert_violation(&early, "within the limit");
        let never = [
            accepted(&paid, 0, 1),
            accepted(&half, 2, 3),
            refused_as(&exact_rest, 4, 5, exceeds),
        ];
        assert_violation(&never, "within the limit");
        let missing = "original_transaction_unavailable";
        assert_violation(
            &[accepted(&paid, 0, 1), refused_as(&half, 2, 3, missing)],
            "already stored",
        );
        assert_violation(
            &[accepted(&half, 0, 1), accepted(&paid, 2, 3)],
            "cannot have been stored",
        );
        assert_violation(
            &[reply(paid.clone(), 0, 1, PostOutcome::Duplicate)],
            "duplicate without an original",
        );
        assert_violation(
            &[refused_as(&paid, 0, 1, "event_id_conflict")],
            "conflict without another payload",
        );
        let repeated = [
            accepted(&paid, 0, 1),
            refused_as(&paid, 2, 3, "event_id_conflict"),
        ];
        assert_violation(&repeated, "conflict without another payload");
        assert_violation(
            &[
                accepted(&paid, 0, 1),
                reply(other.clone(), 2, 3, PostOutcome::Duplicate),
            ],
            "duplicate without an original",
        );
        assert_violation(
            &[refused_as(&paid, 0, 1, "origin_mismatch")],
            "rejected without a reason",
        );
        let renewal = post("n", Kind::Renewal, 5, Some("r1"));
        let refund_as_parent = [
            accepted(&paid, 0, 1),
            accepted(&half, 2, 3),
            accepted(&renewal, 4, 5),
        ];
        assert_violation(&refund_as_parent, "wrong result for the parent");
    }

    #[test]
    fn accepts_histories_that_some_order_explains() {
        let paid = post("p", Kind::Purchase, 100, None);
        let half = post("r1", Kind::Refund, -60, Some("p"));
        let too_much = post("r2", Kind::Refund, -41, Some("p"));
        let replies = [
            reply(paid.clone(), 0, 9, PostOutcome::Accepted),
            reply(paid, 1, 3, PostOutcome::Duplicate),
            reply(
                half.clone(),
                2,
                4,
                refused("original_transaction_unavailable"),
            ),
            reply(half, 5, 11, PostOutcome::Accepted),
            reply(too_much, 6, 12, refused("refund_exceeds_payment")),
        ];
        assert_eq!(check_history(&replies).unwrap().refunded("p"), 60);
    }
}
