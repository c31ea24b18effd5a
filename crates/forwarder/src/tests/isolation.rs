//! Tests that one bad event does not fail its whole batch.

use super::scene::{Scene, accepted, response};
use rstest::rstest;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;
use tributary_domain::integration::Network;
use tributary_domain::vocabulary::revision::Precondition;
use tributary_networks::SendOutcome;
use tributary_store::contract::fixtures::{at, origin};

/// Returns the event ids in a request.
fn ids(body: &Value) -> Vec<String> {
    let events = body["events"].as_array().unwrap().iter();
    events
        .map(|event| event["id"].as_str().unwrap().to_owned())
        .collect()
}

/// Rejects requests with any of these events, optionally naming the event.
fn rejecting(
    bad: Vec<String>,
    names_event: bool,
) -> impl FnMut(&Value) -> SendOutcome + Send + 'static {
    move |body| {
        let found = ids(body).iter().position(|id| bad.contains(id));
        match found {
            None => accepted(),
            Some(index) if names_event => response(
                422,
                &format!(
                    r#"{{"error": {{"message": "no", "param": "events[{index}].user", "code": "invalid_event"}}}}"#
                ),
            ),
            Some(_) => response(
                422,
                r#"{"error": {"message": "no", "code": "invalid_event"}}"#,
            ),
        }
    }
}

#[rstest]
#[case::of_two(2)]
#[case::of_seven(7)]
#[case::of_a_hundred(100)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_the_bad_event_fails(#[case] count: usize, #[values(true, false)] names_event: bool) {
    let scene = Scene::new(Network::D, |_| accepted()).await;
    scene.events(count).await;
    let deliveries = scene.deliveries().await;
    let bad = deliveries[count / 2].delivery.dedup_id.clone();
    scene.set_script(rejecting(vec![bad.clone()], names_event));
    scene.work().await;
    let expected = BTreeMap::from([("delivered", count - 1), ("failed", 1)]);
    assert_eq!(scene.status_counts().await, expected);
    let failed = scene
        .deliveries()
        .await
        .into_iter()
        .find(|one| one.delivery.status.as_str() == "failed");
    let failed = failed.unwrap().delivery;
    assert_eq!(
        (failed.dedup_id, failed.reason.as_deref()),
        (bad, Some("invalid_event"))
    );
    assert_eq!(failed.attempts_made, 1, "splitting a batch is not a retry");
    let message = failed.attempts.last().unwrap().answer.clone().unwrap();
    assert!(message.contains("no"), "the network's message: {message}");
    // Bisection finds one of fifty events in a dozen requests.
    assert!(scene.batches().len() <= 16, "{:?}", scene.batches());
}

/// Rejects every request without naming an event.
fn rejecting_all(_: &Value) -> SendOutcome {
    response(422, r#"{"error": {"code": "schema_changed"}}"#)
}

async fn pause_code(scene: &Scene) -> Option<String> {
    let reader = scene.fixture.reader();
    let health = scene
        .store
        .integration_health(&reader, scene.queue.app, at(5_000));
    let pause = health.await.unwrap()[3].1.state.pause.clone();
    pause.map(|pause| pause.code)
}

#[rstest]
#[case::one(1)]
#[case::two(2)]
#[case::forty(40)]
#[case::several_requests_at_once(200)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_account_error_loses_no_delivery(#[case] count: usize) {
    let scene = Scene::new(Network::D, rejecting_all).await;
    scene.events(count).await;
    scene.work().await;
    let all = BTreeMap::from([("pending", count)]);
    assert_eq!(scene.status_counts().await, all);
    let requests = scene.batches().len();
    assert!(requests <= 12, "too many requests: {requests}");
    for resumes in 0..3 {
        for _ in 0..40 {
            scene.advance(Duration::from_mins(15)).await;
        }
        assert_eq!(scene.status_counts().await, all, "after {resumes} resumes");
        let expected = (count > 1).then_some("systematic_rejection");
        assert_eq!(pause_code(&scene).await.as_deref(), expected);
        let (writer, app) = (&scene.fixture.tenant.writer, scene.queue.app);
        let resumed = scene.store.resume_integration(
            writer,
            app,
            Network::D,
            Precondition::None,
            origin(1_002),
        );
        resumed.await.unwrap();
    }
    scene.set_script(|_| accepted());
    scene.finish().await;
    assert_eq!(
        scene.status_counts().await,
        BTreeMap::from([("delivered", count)])
    );
}

/// Bad events in both halves of a batch look like an account error at first.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_events_in_both_halves_are_found_after_one_is_accepted() {
    let scene = Scene::new(Network::D, |_| accepted()).await;
    scene.events(40).await;
    let deliveries = scene.deliveries().await;
    let bad = [3, 7, 33].map(|index: usize| deliveries[index].delivery.dedup_id.clone());
    scene.set_script(rejecting(bad.to_vec(), false));
    scene.work().await;
    assert_eq!(
        scene.status_counts().await,
        BTreeMap::from([("pending", 40)])
    );
    scene.finish().await;
    let expected = BTreeMap::from([("delivered", 37), ("failed", 3)]);
    assert_eq!(scene.status_counts().await, expected);
    let failed = scene.deliveries().await.into_iter();
    let failed = failed.filter(|one| one.delivery.status.as_str() == "failed");
    for one in failed {
        assert!(bad.contains(&one.delivery.dedup_id));
        assert_eq!(one.delivery.reason.as_deref(), Some("invalid_event"));
    }
}

#[rstest]
#[case::named(true)]
#[case::not_named(false)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_single_bad_event_fails_once_others_are_accepted(#[case] names_event: bool) {
    let scene = Scene::new(Network::D, |_| accepted()).await;
    scene.events(1).await;
    let bad = scene.deliveries().await[0].delivery.dedup_id.clone();
    scene.set_script(rejecting(vec![bad], names_event));
    for _ in 0..30 {
        scene.advance(Duration::from_mins(15)).await;
    }
    let at_first = if names_event { "failed" } else { "pending" };
    assert_eq!(scene.status_counts().await, BTreeMap::from([(at_first, 1)]));
    assert_eq!(pause_code(&scene).await, None, "the queue is not paused");
    scene
        .fixture
        .send_events("phone", &["later"], "sign_up", 1_001)
        .await;
    scene.finish().await;
    let expected = BTreeMap::from([("delivered", 1), ("failed", 1)]);
    assert_eq!(scene.status_counts().await, expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn splits_batches_that_are_too_large() {
    let scene = Scene::new(Network::D, |body| {
        if ids(body).len() > 10 {
            response(413, "")
        } else {
            accepted()
        }
    })
    .await;
    scene.events(50).await;
    scene.work().await;
    assert_eq!(
        scene.status_counts().await,
        BTreeMap::from([("delivered", 50)])
    );
    assert!(scene.batches().iter().filter(|size| **size <= 10).count() >= 5);
}
