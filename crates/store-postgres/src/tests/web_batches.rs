//! Web events on two nodes at once: an id has one payload, refunds never exceed their payment, and
//! there are no database errors.
//!
//! Unless stated otherwise, the events posted in a race come from different devices, so only the
//! ids and payments conflict.

use super::database::number;
use super::web_site::{Site, accepted, conflict, refused};
use crate::web_events;
use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::atomic::AtomicBool;
use tributary_domain::event::web::WebEvent;
use tributary_domain::refusal::Refusal;
use tributary_domain::vocabulary::id::AppId;
use tributary_store::contract::fixtures::{at, join_all};
use tributary_store::contract::sdk_fixtures::payment;
use tributary_store::{Clicks, Events, WebEvents};

/// Repetitions of each race.
const ROUNDS: usize = 8;
/// Posts per race.
const POSTS: usize = 64;

type Racer<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refunds_on_two_nodes_never_exceed_their_payment() {
    let site = Site::start().await;
    for round in 0..ROUNDS {
        let paid = format!("p{round}");
        let outcomes = site.send([site.purchase(&paid, 100, "payer")]).await;
        assert_eq!(accepted(&outcomes), 1);
        let refunds = (0..POSTS).map(|index| {
            let id = format!("f{round}-{index}");
            site.refund(&id, 10, &paid, &format!("device-{index}"))
        });
        let outcomes = site.send(refunds).await;
        assert_eq!(accepted(&outcomes), 10);
        assert_eq!(refused(&outcomes, &Refusal::RefundExceedsPayment), 54);
    }
    site.assert_consistent().await;
}

/// Several senders refund the same payment without pause. Every refund is accepted: no node loses
/// every conflict.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn continuous_refunds_are_all_answered() {
    let site = &Site::start().await;
    let outcomes = site.send([site.purchase("p", 1_000, "payer")]).await;
    assert_eq!(accepted(&outcomes), 1);
    let sender = |index: usize| async move {
        for number in 0..POSTS {
            let (id, device) = (format!("f{index}-{number}"), format!("device-{index}"));
            let refund = site.refund(&id, 1, "p", &device);
            let answer = site.nodes[index % 2].accept_web_event(refund).await;
            answer.expect("refund is accepted");
        }
    };
    join_all((0..ROUNDS).map(sender).collect()).await;
    site.assert_consistent().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refunds_of_many_payments_do_not_deadlock() {
    let site = Site::start().await;
    for round in 0..ROUNDS {
        let paid = |index: usize| format!("p{round}-{index}");
        let purchases = (0..POSTS).map(|index| site.purchase(&paid(index), 3, "payer"));
        assert_eq!(accepted(&site.send(purchases).await), POSTS);
        // Neighbouring posts go to different nodes. One node refunds the payments in ascending
        // order, the other in descending order.
        let refunds = (0..POSTS * 4).map(|index| {
            let (id, device) = (format!("f{round}-{index}"), format!("device-{index}"));
            let payment = (index / 2) % POSTS;
            let payment = [payment, POSTS - 1 - payment][index % 2];
            site.refund(&id, 1, &paid(payment), &device)
        });
        let outcomes = site.send(refunds).await;
        assert_eq!(accepted(&outcomes), POSTS * 3);
        assert_eq!(refused(&outcomes, &Refusal::RefundExceedsPayment), POSTS);
    }
    site.assert_consistent().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn identical_posts_on_two_nodes_make_one_event() {
    let site = Site::start().await;
    for round in 0..ROUNDS {
        let posts = (0..POSTS).map(|index| WebEvent {
            received_at: at(101 + i64::try_from(index).expect("small")),
            ..site.purchase(&format!("p{round}"), 10, "visitor")
        });
        let outcomes = site.send(posts).await;
        assert_eq!(accepted(&outcomes), 1);
        let answers = outcomes.into_iter().flatten();
        let first: BTreeSet<_> = answers.map(|answer| answer.received_at).collect();
        assert_eq!(first.len(), 1, "all responses have the first arrival time");
    }
    site.assert_consistent().await;
    let figures = site.tenant.figures_of("network_a").await;
    assert_eq!(figures.purchases, i64::try_from(ROUNDS).expect("small"));
    assert_eq!(figures.paying_devices, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_many_conflicting_posts_is_accepted() {
    let site = Site::start().await;
    for round in 0..ROUNDS {
        let posts = (1..=POSTS).map(|index| {
            let device = format!("device-{round}-{index}");
            site.purchase(&format!("p{round}"), index, &device)
        });
        let outcomes = site.send(posts).await;
        assert_eq!(accepted(&outcomes), 1);
        assert_eq!(
            refused(&outcomes, &conflict(&["deviceId", "revenue"])),
            POSTS - 1
        );
        // Both nodes get the same ids: one in ascending order, the other in descending order.
        let posts = (0..POSTS * 4).map(|index| {
            let (id, device) = (index / 2, format!("other-{round}-{index}"));
            let id = [id, POSTS * 2 - 1 - id][index % 2];
            site.purchase(&format!("o{round}-{id}"), index + 1, &device)
        });
        let outcomes = site.send(posts).await;
        assert_eq!(accepted(&outcomes), POSTS * 2);
        assert_eq!(
            refused(&outcomes, &conflict(&["deviceId", "revenue"])),
            POSTS * 2
        );
    }
    site.assert_consistent().await;
}

/// Refunds may arrive before their purchase and are sent again until the purchase exists. Meanwhile
/// the same devices send SDK events.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn interleaves_purchases_and_refunds_on_two_nodes() {
    let site = &Site::start().await;
    for round in 0..ROUNDS {
        let device = |index: usize| format!("device-{}", index % 20);
        let posts = (0..POSTS * 4).map(|index| {
            let paid = format!("p{round}-{}", index / 4);
            match index % 4 {
                // The purchase is neither always first nor always on the same node.
                kind if kind == (index / 4) % 4 => site.purchase(&paid, 2, &device(index)),
                _ => site.refund(&format!("f{round}-{index}"), 1, &paid, &device(index)),
            }
        });
        let web = async {
            let (mut waiting, mut taken, mut exceeding) = (posts.collect::<Vec<_>>(), 0, 0);
            while !waiting.is_empty() {
                let outcomes = site.send(waiting.clone()).await;
                taken += accepted(&outcomes);
                exceeding += refused(&outcomes, &Refusal::RefundExceedsPayment);
                let outcomes = outcomes.into_iter().zip(waiting);
                let early = Err(Refusal::OriginalTransactionUnavailable);
                waiting = outcomes
                    .filter(|(outcome, _)| *outcome == early)
                    .map(|(_, posted)| posted)
                    .collect();
            }
            // Of every four posts, the purchase and two refunds are accepted; the third refund
            // exceeds the payment.
            assert_eq!((taken, exceeding), (POSTS * 3, POSTS));
        };
        let sdk = async {
            let sent = (0..POSTS).map(|index| {
                let arrival = site.tenant.arrival(&device(index), 100);
                let paid = payment(&format!("s{round}-{index}"), "1", "USD", 90);
                site.nodes[index % 2].accept_sdk_events(arrival, vec![paid])
            });
            for outcome in join_all(sent.collect()).await {
                outcome.expect("events are accepted");
            }
        };
        let racers: Vec<Racer<'_>> = vec![Box::pin(web), Box::pin(sdk)];
        join_all(racers).await;
    }
    site.assert_consistent().await;
    let client = site.schema.client().await;
    let first = "select count(*) from events where first_payment";
    assert_eq!(number(&client, first).await, 20, "one per device");
    let commits = "select count(distinct xmin::text) from events where source = 'web'";
    let most = i64::try_from(ROUNDS * POSTS / 2).expect("small");
    assert!(number(&client, commits).await <= most);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn posts_of_a_batch_see_each_other_and_fail_alone() {
    let site = Site::start().await;
    let app = AppId::from_bytes([7; 16]);
    let forged = |posted: WebEvent| WebEvent {
        click: None,
        ..posted
    };
    let posts = [
        site.purchase("p1", 10, "visitor"),
        site.refund("f1", 4, "p1", "visitor"),
        site.refund("f2", 7, "p1", "other"),
        site.purchase("p1", 10, "visitor"),
        site.purchase("p1", 11, "visitor"),
        forged(site.purchase("p2", 10, "unverified")),
        site.refund("f3", 1, "p2", "visitor"),
        site.refund("f4", 6, "p1", "other"),
        site.refund("f5", 1, "f1", "visitor"),
        // The id of a rejected post stays free.
        site.purchase("p2", 5, "visitor"),
    ];
    let node = &site.nodes[0];
    let answers =
        node.run_write(async |tx| web_events::accept(tx, &posts, &AtomicBool::new(false)).await);
    let answers = answers.await.expect("batch is written");
    let results: Vec<_> = answers
        .into_iter()
        .map(|answer| answer.map(|accepted| accepted.is_duplicate))
        .collect();
    let expected = [
        Ok(false),
        Ok(false),
        Err(Refusal::RefundExceedsPayment),
        Ok(true),
        Err(conflict(&["revenue"])),
        Err(Refusal::ClickNotVerified),
        Err(Refusal::OriginalTransactionUnavailable),
        Ok(false),
        Err(Refusal::OriginalTransactionInvalid),
        Ok(false),
    ];
    assert_eq!(results, expected);
    site.assert_consistent().await;
    let client = site.schema.client().await;
    let unverified = "select count(*) from identities where device_id = 'unverified'";
    assert_eq!(number(&client, unverified).await, 0);

    // A value that the database rejects fails only its own post.
    let sent = (0..20).map(|index| {
        let posted = site.purchase(&format!("q{index}"), 1, "visitor");
        let unknown = WebEvent {
            app,
            ..posted.clone()
        };
        node.accept_web_event(if index == 7 { unknown } else { posted })
    });
    for (index, outcome) in (0..).zip(join_all(sent.collect()).await) {
        assert_eq!(outcome.is_ok(), index != 7, "{outcome:?}");
    }
    site.assert_consistent().await;
}

/// An event either refers to its click or is rejected because the click is gone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_click_is_either_referenced_or_removed() {
    let mut site = Site::start().await;
    for round in 0..ROUNDS * 2 {
        site.click = site.tenant.record_click(5).await;
        let posts = (0..20).map(|index| {
            let id = format!("p{round}-{index}");
            site.purchase(&id, 1, &format!("device-{index}"))
        });
        let removal = site.nodes[round % 2].remove_clicks(at(50), 100);
        let (outcomes, removed) = tokio::join!(site.send(posts), removal);
        removed.expect("removal succeeds");
        let gone = refused(&outcomes, &Refusal::ClickNotVerified);
        assert_eq!(accepted(&outcomes) + gone, outcomes.len());
    }
    site.assert_consistent().await;
}
