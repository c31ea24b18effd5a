//! Tests tokens, delayed outcomes, batches and pauses.

use super::scene::{Scene, accepted, response};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tributary_domain::access::Authorized;
use tributary_domain::device::{ContactHashes, DeviceKey, IdentityClaim};
use tributary_domain::erasure::pseudonym;
use tributary_domain::integration::Network;
use tributary_domain::vocabulary::revision::Precondition;
use tributary_networks::SendOutcome;
use tributary_store::contract::fixtures::{at, origin};

/// Adds an email hash, so that `network_b` accepts events without a click.
async fn identify_person(scene: &Scene) {
    let identity = IdentityClaim {
        user: None,
        contact_hashes: ContactHashes {
            email: Some("ab".repeat(32)),
            ..ContactHashes::default()
        },
        ..IdentityClaim::default()
    };
    let device = DeviceKey::parse("phone").unwrap();
    let environment = tributary_domain::access::Environment::Live;
    let identified = scene
        .store
        .identify(scene.queue.app, environment, device, identity, at(6));
    identified.await.unwrap();
}

/// Accepts every event and returns this status when queried.
fn network_b(status: &'static str) -> impl FnMut(&Value) -> SendOutcome + Send + 'static {
    let mut number = 0;
    move |body| {
        if body.is_string() {
            return response(200, status);
        }
        number += 1;
        response(200, &format!(r#"{{"requestId": "r{number}"}}"#))
    }
}

const SUCCESS: &str = r#"{"requestStatusPerDestination": [{"requestStatus": "SUCCESS"}]}"#;
const PROCESSING: &str = r#"{"requestStatusPerDestination": [{"requestStatus": "PROCESSING"}]}"#;
const TOO_RECENT: &str = r#"{"requestStatusPerDestination": [{"requestStatus": "FAILED", "errorInfo": {"errorCounts":
    [{"recordCount": "1", "reason": "PROCESSING_ERROR_REASON_TOO_RECENT_CLICK"}]}}]}"#;
const INVALID: &str = r#"{"requestStatusPerDestination": [{"requestStatus": "FAILED", "errorInfo": {"errorCounts":
    [{"recordCount": "1", "reason": "PROCESSING_ERROR_REASON_INVALID_GCLID"}]}}]}"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_is_cached_and_replaced_when_rejected() {
    let mut refused = false;
    let mut take = network_b(SUCCESS);
    let scene = Scene::new(Network::B, move |body| {
        if std::mem::replace(&mut refused, true) {
            take(body)
        } else {
            response(401, "{}")
        }
    })
    .await;
    identify_person(&scene).await;
    scene.events(3).await;
    scene.work().await;
    assert_eq!(
        scene.status_counts().await,
        BTreeMap::from([("delivered", 3)])
    );
    assert_eq!(
        scene.network.token_requests.load(Ordering::SeqCst),
        2,
        "the first token and its replacement"
    );
    scene
        .fixture
        .send_events("phone", &["later"], "sign_up", 1_001)
        .await;
    scene.advance(Duration::from_secs(2)).await;
    assert_eq!(
        scene.network.token_requests.load(Ordering::SeqCst),
        2,
        "the token is reused"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_credentials_pause_the_queue_and_keep_deliveries() {
    let scene = Scene::new(Network::B, network_b(SUCCESS)).await;
    identify_person(&scene).await;
    let revoked = response(
        400,
        r#"{"error": "invalid_grant", "error_description": "Token has been expired or revoked."}"#,
    );
    scene.network.tokens.lock().unwrap().push_back(revoked);
    scene.events(2).await;
    scene.work().await;
    assert_eq!(
        scene.status_counts().await,
        BTreeMap::from([("pending", 2)])
    );
    let health = scene
        .store
        .integration_health(&scene.fixture.reader(), scene.queue.app, at(1_001))
        .await
        .unwrap();
    assert_eq!(
        health[1].1.state.pause.as_ref().unwrap().code,
        "invalid_grant"
    );
    let (writer, app) = (&scene.fixture.tenant.writer, scene.queue.app);
    scene
        .store
        .resume_integration(writer, app, Network::B, Precondition::None, origin(1_002))
        .await
        .unwrap();
    scene.advance(Duration::from_secs(2)).await;
    assert_eq!(
        scene.status_counts().await,
        BTreeMap::from([("delivered", 2)])
    );
    assert_eq!(scene.batches(), [1, 1], "one event per request at first");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_later_status_of_network_b_decides() {
    for (status, expected, reason) in [
        (SUCCESS, "delivered", None),
        (PROCESSING, "delivered", Some("outcome_unconfirmed")),
        (INVALID, "failed", Some("INVALID_GCLID ×1")),
    ] {
        let scene = Scene::new(Network::B, network_b(status)).await;
        identify_person(&scene).await;
        scene.events(1).await;
        scene.work().await;
        assert_eq!(scene.network.requests.lock().unwrap().len(), 1);
        for _ in 0..26 * 12 {
            scene.advance(Duration::from_mins(5)).await;
        }
        let delivery = scene.deliveries().await.remove(0).delivery;
        assert_eq!(
            (delivery.status.as_str(), delivery.reason.as_deref()),
            (expected, reason)
        );
        let questions = scene.network.requests.lock().unwrap().len() - 1;
        assert_eq!(questions, if status == PROCESSING { 5 } else { 1 });
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_with_clicks_too_recent_for_network_b_are_retried_with_the_same_id() {
    let scene = Scene::new(Network::B, network_b(TOO_RECENT)).await;
    identify_person(&scene).await;
    scene.events(1).await;
    scene.work().await;
    scene.advance(Duration::from_mins(5)).await;
    assert_eq!(
        scene.status_counts().await,
        BTreeMap::from([("pending", 1)])
    );
    scene.set_script(network_b(SUCCESS));
    scene.advance(Duration::from_hours(5)).await;
    assert_eq!(
        scene.status_counts().await,
        BTreeMap::from([("pending", 1)]),
        "not before six hours"
    );
    scene.advance(Duration::from_hours(2)).await;
    assert_eq!(
        scene.status_counts().await,
        BTreeMap::from([("delivered", 1)])
    );
    let requests = scene.network.requests.lock().unwrap();
    let events: Vec<&Value> = requests.iter().filter(|body| body.is_object()).collect();
    assert_eq!(events[0]["events"], events[1]["events"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sends_batches_and_a_single_event_after_a_failure() {
    let mut first = true;
    let scene = Scene::new(Network::D, move |_| {
        if std::mem::take(&mut first) {
            response(503, "")
        } else {
            accepted()
        }
    })
    .await;
    scene.events(120).await;
    scene.work().await;
    assert_eq!(scene.batches(), [50], "a failure stops the whole queue");
    scene.finish().await;
    assert_eq!(
        scene.status_counts().await,
        BTreeMap::from([("delivered", 120)])
    );
    assert_eq!(scene.batches(), [50, 1, 50, 50, 19]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_retry_does_not_send_events_after_consent_was_withdrawn() {
    let refused = r#"{"error": {"message": "no", "param": "events[0]", "code": "invalid_event"}}"#;
    let scene = Scene::new(Network::D, move |_| response(422, refused)).await;
    scene.events(1).await;
    scene.work().await;
    assert_eq!(scene.status_counts().await, BTreeMap::from([("failed", 1)]));
    let tenant = &scene.fixture.tenant;
    let mut withdrawal = tenant.configure("phone", 1_001);
    withdrawal.consent.ad_user_data = Some(false);
    scene.store.configure(withdrawal).await.unwrap();
    let id = scene.deliveries().await[0].delivery.id;
    let again = scene
        .store
        .retry_delivery(&tenant.writer, scene.queue.app, id, origin(1_002));
    again.await.unwrap();
    scene.set_script(|_| accepted());
    scene.advance(Duration::from_mins(1)).await;
    let cancelled = scene.deliveries().await.remove(0).delivery;
    assert_eq!(
        (cancelled.status.as_str(), cancelled.reason.as_deref()),
        ("cancelled", Some("consent_withdrawn"))
    );
    assert_eq!(scene.batches(), [1], "it was never sent again");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_retry_does_not_send_events_of_an_erased_device() {
    let refused = r#"{"error": {"message": "no", "param": "events[0]", "code": "invalid_event"}}"#;
    let scene = Scene::new(Network::D, move |_| response(422, refused)).await;
    scene.events(1).await;
    scene.work().await;
    assert_eq!(scene.status_counts().await, BTreeMap::from([("failed", 1)]));
    let (app, tenant) = (scene.queue.app, &scene.fixture.tenant);
    let eraser = Authorized::operator(tenant.writer.organization());
    let (device, name) = (DeviceKey::parse("phone").unwrap(), pseudonym([1; 16]));
    let erased = scene
        .store
        .erase_device(&eraser, app, device, name, origin(1_001));
    erased.await.unwrap();
    let id = scene.deliveries().await[0].delivery.id;
    let again = scene
        .store
        .retry_delivery(&tenant.writer, app, id, origin(1_002));
    again.await.unwrap();
    scene.set_script(|_| accepted());
    scene.advance(Duration::from_mins(1)).await;
    let cancelled = scene.deliveries().await.remove(0).delivery;
    assert_eq!(
        (cancelled.status.as_str(), cancelled.reason.as_deref()),
        ("cancelled", Some("erased"))
    );
    assert_eq!(scene.batches(), [1], "it was never sent again");
}
