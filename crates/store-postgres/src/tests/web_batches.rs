//! Website events on two nodes at the same moment: an id names one payload, refunds never exceed their payment,
//! and nobody is told that the database is at fault.
//!
//! The posts of a race are of different devices, unless it says otherwise: nothing but the ids and the payments
//! keeps them apart.

use super::database::number;
use super::web_site::{Site, accepted, conflict, refused};
use crate::web_events;
use std::collections::BTreeSet;
use std::pin::Pin;
use tributary_domain::event::web::WebEvent;
use tributary_domain::refusal::Refusal;
use tributary_domain::vocabulary::id::AppId;
use tributary_store::contract::fixtures::{at, join_all};
use tributary_store::contract::sdk_fixtures::payment;
use tributary_store::{Clicks, Events, WebEvents};

/// How often each race is run.
const ROUNDS: usize = 8;
/// Posts of one race.
const POSTS: usize = 64;

type Racer<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refunds_of_two_nodes_never_exceed_their_payment() {
    let site = Site::start().await;
    for round in 0..ROUNDS {
        let paid = format!("p{round}");
        let outcomes = site.send([site.purchase(&paid, 100, "payer")]).await;
        assert_eq!(accepted(&outcomes), 1);
        let refunds = (0..POSTS).map(|place| {
            let id = format!("f{round}-{place}");
            site.refund(&id, 10, &paid, &format!("device-{place}"))
        });
        let outcomes = site.send(refunds).await;
        assert_eq!(accepted(&outcomes), 10);
        assert_eq!(refused(&outcomes, &Refusal::RefundExceedsPayment), 54);
    }
    site.assert_consistent().await;
}

/// Senders who go on and on: none of the nodes is overtaken for ever.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refunds_without_end_are_all_answered() {
    let site = &Site::start().await;
    let outcomes = site.send([site.purchase("p", 1_000, "payer")]).await;
    assert_eq!(accepted(&outcomes), 1);
    let sender = |place: usize| async move {
        for number in 0..POSTS {
            let (id, device) = (format!("f{place}-{number}"), format!("device-{place}"));
            let refund = site.refund(&id, 1, "p", &device);
            let answer = site.nodes[place % 2].accept_web_event(refund).await;
            answer.expect("a refund is accepted");
        }
    };
    join_all((0..ROUNDS).map(sender).collect()).await;
    site.assert_consistent().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refunds_of_many_payments_in_any_order_do_not_wait_in_a_circle() {
    let site = Site::start().await;
    for round in 0..ROUNDS {
        let paid = |place: usize| format!("p{round}-{place}");
        let purchases = (0..POSTS).map(|place| site.purchase(&paid(place), 3, "payer"));
        assert_eq!(accepted(&site.send(purchases).await), POSTS);
        // Neighbours are on different nodes: one goes through the payments forwards, the other backwards.
        let refunds = (0..POSTS * 4).map(|place| {
            let (id, device) = (format!("f{round}-{place}"), format!("device-{place}"));
            let payment = (place / 2) % POSTS;
            let payment = [payment, POSTS - 1 - payment][place % 2];
            site.refund(&id, 1, &paid(payment), &device)
        });
        let outcomes = site.send(refunds).await;
        assert_eq!(accepted(&outcomes), POSTS * 3);
        assert_eq!(refused(&outcomes, &Refusal::RefundExceedsPayment), POSTS);
    }
    site.assert_consistent().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn identical_posts_of_two_nodes_are_one_event() {
    let site = Site::start().await;
    for round in 0..ROUNDS {
        let posts = (0..POSTS).map(|place| WebEvent {
            received_at: at(101 + i64::try_from(place).expect("small")),
            ..site.purchase(&format!("p{round}"), 10, "visitor")
        });
        let outcomes = site.send(posts).await;
        assert_eq!(accepted(&outcomes), 1);
        let answers = outcomes.into_iter().flatten();
        let first: BTreeSet<_> = answers.map(|answer| answer.received_at).collect();
        assert_eq!(first.len(), 1, "all are told when the first one arrived");
    }
    site.assert_consistent().await;
    let figures = site.tenant.figures_of("network_a").await;
    assert_eq!(figures.purchases, i64::try_from(ROUNDS).expect("small"));
    assert_eq!(figures.paying_devices, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_conflicting_posts_of_two_nodes_one_is_taken() {
    let site = Site::start().await;
    for round in 0..ROUNDS {
        let posts = (1..=POSTS).map(|place| {
            let device = format!("device-{round}-{place}");
            site.purchase(&format!("p{round}"), place, &device)
        });
        let outcomes = site.send(posts).await;
        assert_eq!(accepted(&outcomes), 1);
        assert_eq!(
            refused(&outcomes, &conflict(&["deviceId", "revenue"])),
            POSTS - 1
        );
        // Many ids, the same ones on both nodes: forwards on one, backwards on the other.
        let posts = (0..POSTS * 4).map(|place| {
            let (id, device) = (place / 2, format!("other-{round}-{place}"));
            let id = [id, POSTS * 2 - 1 - id][place % 2];
            site.purchase(&format!("o{round}-{id}"), place + 1, &device)
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

/// Refunds may come before their purchase, and are sent again until it is there. Meanwhile the same devices
/// send events of their own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn purchases_and_refunds_of_two_nodes_interleave() {
    let site = &Site::start().await;
    for round in 0..ROUNDS {
        let device = |place: usize| format!("device-{}", place % 20);
        let posts = (0..POSTS * 4).map(|place| {
            let paid = format!("p{round}-{}", place / 4);
            match place % 4 {
                // Neither always first nor always on the same node.
                kind if kind == (place / 4) % 4 => site.purchase(&paid, 2, &device(place)),
                _ => site.refund(&format!("f{round}-{place}"), 1, &paid, &device(place)),
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
            // Of each four, the purchase and two refunds; the third one is too much.
            assert_eq!((taken, exceeding), (POSTS * 3, POSTS));
        };
        let sdk = async {
            let sent = (0..POSTS).map(|place| {
                let arrival = site.tenant.arrival(&device(place), 100);
                let paid = payment(&format!("s{round}-{place}"), "1", "USD", 90);
                site.nodes[place % 2].accept_sdk_events(arrival, vec![paid])
            });
            for outcome in join_all(sent.collect()).await {
                outcome.expect("events are taken");
            }
        };
        let racers: Vec<Racer<'_>> = vec![Box::pin(web), Box::pin(sdk)];
        join_all(racers).await;
    }
    site.assert_consistent().await;
    let client = site.schema.client().await;
    let first = "select count(*) from events where first_payment";
    assert_eq!(number(&client, first).await, 20, "one of each device");
    let commits = "select count(distinct xmin::text) from events where source = 'web'";
    let most = i64::try_from(ROUNDS * POSTS / 2).expect("small");
    assert!(number(&client, commits).await <= most);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn posts_of_one_batch_see_each_other_and_are_refused_alone() {
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
        forged(site.purchase("p2", 10, "nobody")),
        site.refund("f3", 1, "p2", "visitor"),
        site.refund("f4", 6, "p1", "other"),
        site.refund("f5", 1, "f1", "visitor"),
        // The id of a post that was refused is free.
        site.purchase("p2", 5, "visitor"),
    ];
    let node = &site.nodes[0];
    let answers = node.run_write(async |tx| web_events::accept(tx, &posts).await);
    let answers = answers.await.expect("a batch is written");
    let told: Vec<_> = answers
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
    assert_eq!(told, expected);
    site.assert_consistent().await;
    let client = site.schema.client().await;
    let strangers = "select count(*) from identities where device_id = 'nobody'";
    assert_eq!(number(&client, strangers).await, 0);

    // What the database itself finds fault with costs the others nothing either.
    let sent = (0..20).map(|place| {
        let posted = site.purchase(&format!("q{place}"), 1, "visitor");
        let unknown = WebEvent {
            app,
            ..posted.clone()
        };
        node.accept_web_event(if place == 7 { unknown } else { posted })
    });
    for (place, outcome) in (0..).zip(join_all(sent.collect()).await) {
        assert_eq!(outcome.is_ok(), place != 7, "{outcome:?}");
    }
    site.assert_consistent().await;
}

/// An event refers to a click, or is refused because it is gone; never both.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_click_that_is_being_removed_is_kept_or_gone() {
    let mut site = Site::start().await;
    for round in 0..ROUNDS * 2 {
        site.click = site.tenant.record_click(5).await;
        let posts = (0..20).map(|place| {
            let id = format!("p{round}-{place}");
            site.purchase(&id, 1, &format!("device-{place}"))
        });
        let removal = site.nodes[round % 2].remove_clicks(at(50), 100);
        let (outcomes, removed) = tokio::join!(site.send(posts), removal);
        removed.expect("clicks are removed");
        let gone = refused(&outcomes, &Refusal::ClickNotVerified);
        assert_eq!(accepted(&outcomes) + gone, outcomes.len());
    }
    site.assert_consistent().await;
}
