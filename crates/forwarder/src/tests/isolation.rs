//! One bad event does not take its batch with it.

use super::scene::{Scene, answer, taken};
use rstest::rstest;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;
use tributary_domain::integration::Network;
use tributary_networks::Outcome;
use tributary_store::contract::fixtures::at;

/// The ids of a request's events.
fn ids(body: &Value) -> Vec<String> {
    let events = body["events"].as_array().unwrap().iter();
    events
        .map(|event| event["id"].as_str().unwrap().to_owned())
        .collect()
}

/// Refuses whatever has one of these events in it, and says which, or not.
fn refusing(bad: Vec<String>, names_it: bool) -> impl FnMut(&Value) -> Outcome + Send + 'static {
    move |body| {
        let found = ids(body).iter().position(|id| bad.contains(id));
        match found {
            None => taken(),
            Some(place) if names_it => answer(
                422,
                &format!(
                    r#"{{"error": {{"message": "no", "param": "events[{place}].user", "code": "invalid_event"}}}}"#
                ),
            ),
            Some(_) => answer(
                422,
                r#"{"error": {"message": "no", "code": "invalid_event"}}"#,
            ),
        }
    }
}

#[rstest]
#[case::alone(1)]
#[case::of_two(2)]
#[case::of_seven(7)]
#[case::of_a_hundred(100)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_bad_one_fails_alone(#[case] count: usize, #[values(true, false)] names_it: bool) {
    let scene = Scene::new(Network::D, |_| taken()).await;
    scene.events(count).await;
    let deliveries = scene.deliveries().await;
    let bad = deliveries[count / 2].delivery.dedup_id.clone();
    scene.rewrite(refusing(vec![bad.clone()], names_it));
    scene.work().await;
    let mut expected = BTreeMap::from([("failed", 1)]);
    if count > 1 {
        expected.insert("delivered", count - 1);
    }
    assert_eq!(scene.standing().await, expected);
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
    assert_eq!(failed.attempts_made, 1, "taking a batch apart is no retry");
    let words = failed.attempts.last().unwrap().answer.clone().unwrap();
    assert!(words.contains("no"), "the network's words: {words}");
    // Halving finds one of fifty in a dozen requests.
    assert!(scene.batches().len() <= 16, "{:?}", scene.batches());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_refusals_in_a_row_are_not_the_events() {
    let scene = Scene::new(Network::D, |_| {
        answer(422, r#"{"error": {"code": "schema_changed"}}"#)
    })
    .await;
    scene.events(40).await;
    scene.work().await;
    let standing = scene.standing().await;
    assert_eq!(
        standing,
        BTreeMap::from([("failed", 9), ("pending", 31)]),
        "the rest is kept"
    );
    scene.after(Duration::from_hours(1)).await;
    assert_eq!(
        scene.standing().await,
        standing,
        "nothing is sent while it is paused"
    );
    let reader = scene.one.reader();
    let health = scene
        .store
        .integration_health(&reader, scene.queue.app, at(5_000));
    let pause = health.await.unwrap()[3].1.state.pause.clone().unwrap();
    assert_eq!(pause.code, "systematic_rejection");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_too_large_is_halved() {
    let scene = Scene::new(Network::D, |body| {
        if ids(body).len() > 10 {
            answer(413, "")
        } else {
            taken()
        }
    })
    .await;
    scene.events(50).await;
    scene.work().await;
    assert_eq!(scene.standing().await, BTreeMap::from([("delivered", 50)]));
    assert!(scene.batches().iter().filter(|size| **size <= 10).count() >= 5);
}
