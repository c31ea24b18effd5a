//! Attempts whose outcome is unknown.

use super::scene::{BEGIN, SECRET, Scene, accepted, answer, with_headers};
use rstest::rstest;
use std::collections::BTreeMap;
use std::time::Duration;
use tributary_domain::integration::Network;
use tributary_domain::runtime::Clock as _;
use tributary_networks::SendOutcome;
use tributary_store::LeaseId;
use tributary_store::contract::fixtures::at;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unknown_attempt_is_repeated_with_the_same_id() {
    let mut first = true;
    let scene = Scene::new(Network::D, move |_| {
        if std::mem::take(&mut first) {
            SendOutcome::Interrupted
        } else {
            accepted()
        }
    })
    .await;
    scene.events(1).await;
    scene.work().await;
    assert_eq!(
        scene.status_counts().await,
        BTreeMap::from([("pending", 1)])
    );
    scene.advance(Duration::from_mins(1)).await;
    assert_eq!(
        scene.status_counts().await,
        BTreeMap::from([("delivered", 1)])
    );
    let asked = scene.network.requests.lock().unwrap();
    assert_eq!(asked[0]["events"][0]["id"], asked[1]["events"][0]["id"]);
    assert_eq!(asked[0], asked[1], "and the same words");
}

/// After 48 hours a repeat might count twice, except where ids are known for ever.
#[rstest]
#[case::d(Network::D, SendOutcome::Interrupted, "unconfirmed")]
#[case::gateway(Network::D, answer(504, ""), "unconfirmed")]
#[case::refused_connections(Network::D, SendOutcome::NotSent, "expired")]
#[case::plain_failure(Network::D, answer(500, ""), "expired")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_never_clears_up_ends(
    #[case] network: Network,
    #[case] outcome: SendOutcome,
    #[case] expected: &'static str,
) {
    let scene = Scene::new(network, move |_| outcome.clone()).await;
    scene.events(1).await;
    scene.work().await;
    // Once an hour, for as long as it is wanted.
    for _ in 0..47 {
        scene.advance(Duration::from_hours(1)).await;
    }
    assert_eq!(
        scene.status_counts().await,
        BTreeMap::from([("pending", 1)]),
        "within the window it is tried"
    );
    for _ in 0..6 * 24 {
        scene.advance(Duration::from_hours(1)).await;
    }
    assert_eq!(scene.status_counts().await, BTreeMap::from([(expected, 1)]));
    let delivery = scene.deliveries().await.remove(0).delivery;
    assert_eq!(
        delivery.attempts.len(),
        20,
        "the first and the latest are kept"
    );
    assert!(delivery.attempts_made > 40);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_holder_that_never_came_back_left_an_unknown_attempt() {
    let scene = Scene::new(Network::D, |_| accepted()).await;
    scene.events(1).await;
    let lease = LeaseId([77; 16]);
    let now = scene.clock.now();
    let leased =
        scene
            .store
            .lease_queue(scene.queue, lease, now, now.plus(Duration::from_secs(20)));
    assert!(leased.await.unwrap().is_some());
    let taken = scene
        .fixture
        .take_due_via(&*scene.store, Network::D, lease, BEGIN)
        .await;
    assert_eq!(taken.unwrap().len(), 1);
    scene.advance(Duration::from_secs(19)).await;
    assert!(scene.batches().is_empty(), "it is somebody else's");
    scene.advance(Duration::from_secs(2)).await;
    let delivery = scene.deliveries().await.remove(0).delivery;
    let attempts: Vec<_> = delivery
        .attempts
        .iter()
        .map(|one| (one.verdict.as_str(), one.answer.clone()))
        .collect();
    assert_eq!(attempts[0], ("unknown", Some("interrupted".to_owned())));
    assert_eq!((attempts[1].0, delivery.attempts_made), ("delivered", 2));
}

/// What a network asks for is honoured within bounds: the next request comes then, and no sooner.
#[rstest]
#[case::seconds("120", 119, 121)]
#[case::absurd("99999999", 3_599, 3_601)]
#[case::a_date("Thu, 01 Jan 1970 00:00:00 GMT", 0, 6)]
#[case::negative("-5", 0, 6)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn retry_after(#[case] header: &'static str, #[case] not_yet: u64, #[case] by_then: u64) {
    let mut first = true;
    let scene = Scene::new(Network::D, move |_| {
        if std::mem::take(&mut first) {
            with_headers(429, "", &[("retry-after", header)])
        } else {
            accepted()
        }
    })
    .await;
    scene.events(1).await;
    scene.work().await;
    if not_yet > 0 {
        scene.advance(Duration::from_secs(not_yet)).await;
        assert_eq!(scene.batches().len(), 1, "not before it was asked for");
    }
    scene.advance(Duration::from_secs(by_then - not_yet)).await;
    assert_eq!(
        scene.status_counts().await,
        BTreeMap::from([("delivered", 1)])
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_that_grows_too_old_between_two_attempts_expires() {
    let scene = Scene::new(Network::D, |_| answer(503, "")).await;
    scene.events(1).await;
    scene.work().await;
    scene.set_script(|_| accepted());
    scene.advance(Duration::from_hours(7 * 24)).await;
    assert_eq!(
        scene.status_counts().await,
        BTreeMap::from([("expired", 1)])
    );
    assert_eq!(scene.batches().len(), 1, "it was not sent again");
    // An operator may ask; the network would refuse it, so it is not sent.
    let id = scene.deliveries().await[0].delivery.id;
    let origin = tributary_store::contract::fixtures::origin(BEGIN);
    scene
        .store
        .retry_delivery(&scene.fixture.tenant.writer, scene.queue.app, id, origin)
        .await
        .unwrap();
    scene.advance(Duration::from_mins(1)).await;
    assert_eq!(
        scene.status_counts().await,
        BTreeMap::from([("expired", 1)])
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_secret_is_kept_though_the_network_repeats_it() {
    let body = format!(r#"{{"error": {{"message": "bad key {SECRET}", "code": "x"}}}}"#);
    let scene = Scene::new(Network::D, move |_| answer(403, &body)).await;
    scene.events(1).await;
    scene.work().await;
    let delivery = scene.deliveries().await.remove(0).delivery;
    let words = delivery.attempts[0].answer.clone().unwrap();
    assert!(
        words.contains("bad key ***") && !words.contains(SECRET),
        "{words}"
    );
    let health = scene
        .store
        .integration_health(&scene.fixture.reader(), scene.queue.app, at(BEGIN))
        .await
        .unwrap();
    let pause = health[3].1.state.pause.clone().unwrap();
    assert!(!format!("{pause:?}").contains(SECRET));
    let told = scene
        .store
        .lease_alerts(at(BEGIN + 1), at(BEGIN + 2), 5)
        .await
        .unwrap();
    assert_eq!(told.len(), 1);
    assert!(!told[0].alert.message.contains(SECRET));
}
