//! Tests attempts with an unknown outcome.

use super::scene::{BEGIN, SECRET, Scene, accepted, response, with_headers};
use rstest::rstest;
use std::collections::BTreeMap;
use std::time::Duration;
use tributary_domain::integration::Network;
use tributary_domain::runtime::Clock as _;
use tributary_networks::SendOutcome;
use tributary_store::LeaseId;
use tributary_store::contract::fixtures::at;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unknown_attempt_is_retried_with_the_same_id() {
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
    let requests = scene.network.requests.lock().unwrap();
    assert_eq!(
        requests[0]["events"][0]["id"],
        requests[1]["events"][0]["id"]
    );
    assert_eq!(requests[0], requests[1], "the bodies are equal");
}

/// A delivery whose outcome stays unknown is retried for 48 hours. After that, a retry might count
/// twice, except on networks that deduplicate forever.
#[rstest]
#[case::d(Network::D, SendOutcome::Interrupted, "unconfirmed")]
#[case::gateway(Network::D, response(504, ""), "unconfirmed")]
#[case::refused_connections(Network::D, SendOutcome::NotSent, "expired")]
#[case::plain_failure(Network::D, response(500, ""), "expired")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unresolved_deliveries_end_eventually(
    #[case] network: Network,
    #[case] outcome: SendOutcome,
    #[case] expected: &'static str,
) {
    let scene = Scene::new(network, move |_| outcome.clone()).await;
    scene.events(1).await;
    scene.work().await;
    // Retry hourly within the window.
    for _ in 0..47 {
        scene.advance(Duration::from_hours(1)).await;
    }
    assert_eq!(
        scene.status_counts().await,
        BTreeMap::from([("pending", 1)]),
        "retried within the window"
    );
    for _ in 0..6 * 24 {
        scene.advance(Duration::from_hours(1)).await;
    }
    assert_eq!(scene.status_counts().await, BTreeMap::from([(expected, 1)]));
    let delivery = scene.deliveries().await.remove(0).delivery;
    assert_eq!(
        delivery.attempts.len(),
        20,
        "only the first and latest attempts are kept"
    );
    assert!(delivery.attempts_made > 40);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crashed_holder_leaves_an_unknown_attempt() {
    let scene = Scene::new(Network::D, |_| accepted()).await;
    scene.events(1).await;
    let lease = LeaseId([77; 16]);
    let now = scene.clock.now();
    let until = now.plus(Duration::from_secs(20));
    let request = scene.queue.lease_request(lease, now, until);
    let leased = scene.store.lease_queue(scene.queue, request);
    assert!(leased.await.unwrap().is_some());
    let taken = scene
        .fixture
        .take_due_via(&*scene.store, Network::D, lease, BEGIN)
        .await;
    assert_eq!(taken.unwrap().len(), 1);
    scene.advance(Duration::from_secs(19)).await;
    assert!(scene.batches().is_empty(), "another holder has the lease");
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

/// `Retry-After` is honoured within limits: the next request is sent at that time, not earlier.
#[rstest]
#[case::seconds("120", 119, 121)]
#[case::absurd("99999999", 3_599, 3_601)]
#[case::a_date("Thu, 01 Jan 1970 00:00:00 GMT", 0, 6)]
#[case::negative("-5", 0, 6)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn honours_retry_after_within_limits(
    #[case] header: &'static str,
    #[case] not_yet: u64,
    #[case] by_then: u64,
) {
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
        assert_eq!(scene.batches().len(), 1, "not before the requested time");
    }
    scene.advance(Duration::from_secs(by_then - not_yet)).await;
    assert_eq!(
        scene.status_counts().await,
        BTreeMap::from([("delivered", 1)])
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_that_becomes_too_old_between_attempts_expires() {
    let scene = Scene::new(Network::D, |_| response(503, "")).await;
    scene.events(1).await;
    scene.work().await;
    scene.set_script(|_| accepted());
    scene.advance(Duration::from_hours(7 * 24)).await;
    assert_eq!(
        scene.status_counts().await,
        BTreeMap::from([("expired", 1)])
    );
    assert_eq!(scene.batches().len(), 1, "it was not sent again");
    // An operator may request a retry, but the network would reject the event, so the event is not
    // sent.
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
async fn redacts_secrets_repeated_by_the_network() {
    let body = format!(r#"{{"error": {{"message": "bad key {SECRET}", "code": "x"}}}}"#);
    let scene = Scene::new(Network::D, move |_| response(403, &body)).await;
    scene.events(1).await;
    scene.work().await;
    let delivery = scene.deliveries().await.remove(0).delivery;
    let message = delivery.attempts[0].answer.clone().unwrap();
    assert!(
        message.contains("bad key ***") && !message.contains(SECRET),
        "{message}"
    );
    let health = scene
        .store
        .integration_health(&scene.fixture.reader(), scene.queue.app, at(BEGIN))
        .await
        .unwrap();
    let pause = health[3].1.state.pause.clone().unwrap();
    assert!(!format!("{pause:?}").contains(SECRET));
    let alerts = scene
        .store
        .lease_alerts(at(BEGIN + 1), at(BEGIN + 2), 5)
        .await
        .unwrap();
    assert_eq!(alerts.len(), 1);
    assert!(!alerts[0].alert.message.contains(SECRET));
}
