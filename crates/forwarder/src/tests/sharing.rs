//! Tests of queues that several nodes share.

use super::scene::{BEGIN, Scene, accepted};
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::Duration;
use tributary_domain::forwarding::sharing::{PARTS, QueueShare, shared_from};
use tributary_domain::forwarding::{AttemptVerdict, DeliveryStatus};
use tributary_domain::integration::Network;
use tributary_domain::runtime::Clock as _;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::contract::fixtures::at;
use tributary_store::contract::outbox_fixtures::{ends_with, settled};
use tributary_store::{LeaseId, LeasedQueue};

/// More events than a queue of `network_d` must have to be shared.
const EVENTS: usize = 2_200;

/// Returns the ids of all events that the network has received, in order.
fn received(scene: &Scene) -> Vec<String> {
    let requests = scene.network.requests.lock().unwrap();
    let events = requests
        .iter()
        .flat_map(|body| body["events"].as_array().unwrap());
    let id = |event: &Value| event["id"].as_str().unwrap().to_owned();
    events.map(id).collect()
}

/// Leases the queue for another node.
async fn lease(scene: &Scene, number: u8) -> Option<LeasedQueue> {
    let now = scene.clock.now();
    let until = now.plus(Duration::from_secs(25));
    let request = scene.queue.lease_request(LeaseId([number; 16]), now, until);
    let leased = scene.store.lease_queue(scene.queue, request);
    leased.await.unwrap()
}

async fn release(scene: &Scene, number: u8) {
    let (store, now) = (&scene.store, scene.clock.now());
    let released = store.release_queue(scene.queue, LeaseId([number; 16]), now);
    released.await.unwrap();
}

/// Creates a large queue that two other nodes have agreed to share.
async fn shared_scene() -> Scene {
    let scene = Scene::new(Network::D, |_| accepted()).await;
    scene.events(EVENTS).await;
    assert!(lease(&scene, 101).await.is_some());
    assert!(lease(&scene, 102).await.is_none());
    release(&scene, 101).await;
    scene
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_takes_one_part_after_another() {
    let scene = shared_scene().await;
    scene.work().await;
    let ids = received(&scene);
    let distinct: BTreeSet<&String> = ids.iter().collect();
    assert_eq!((ids.len(), distinct.len()), (EVENTS, EVENTS));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_leaves_the_parts_of_others_alone() {
    let scene = shared_scene().await;
    let other = lease(&scene, 103).await.expect("a part");
    assert!(matches!(other.share, QueueShare::Part(_)));
    let theirs = scene
        .fixture
        .take_due_via(&*scene.store, Network::D, LeaseId([103; 16]), BEGIN)
        .await
        .expect("deliveries");
    let theirs: BTreeSet<String> = theirs.into_iter().map(|one| one.dedup_id).collect();
    assert!(theirs.len() > EVENTS / 8, "{}", theirs.len());

    scene.work().await;
    let ids = received(&scene);
    assert!(!ids.is_empty() && ids.iter().all(|id| !theirs.contains(id)));
    let left = EVENTS - ids.len();
    assert!(left < usize::try_from(shared_from(Network::D)).unwrap());
    scene.work().await;
    assert_eq!(
        received(&scene).len(),
        ids.len(),
        "the rest is too small to be shared"
    );

    // The other node disappears, so this one takes over the rest as a whole.
    scene.advance(Duration::from_secs(25)).await;
    let all = received(&scene);
    let distinct: BTreeSet<&String> = all.iter().collect();
    assert_eq!((all.len(), distinct.len()), (EVENTS, EVENTS));
    let (reader, app) = (scene.fixture.reader(), scene.queue.app);
    let health = scene.store.integration_health(&reader, app, at(BEGIN + 30));
    assert_eq!(health.await.unwrap()[3].1.pending, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_goes_on_after_an_empty_part() {
    let scene = shared_scene().await;
    // More events, so that three parts are still a large backlog.
    let more: Vec<String> = (0..EVENTS / 4).map(|number| format!("m{number}")).collect();
    for ids in more.chunks(100) {
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        let sent = scene.fixture.send_events("phone", &ids, "sign_up", BEGIN);
        sent.await;
    }
    let (store, first) = (&scene.store, LeaseId([103; 16]));
    for number in 103..103 + PARTS {
        assert!(lease(&scene, number).await.is_some());
    }
    let theirs = scene
        .fixture
        .take_due_via(&**store, Network::D, first, BEGIN)
        .await
        .expect("deliveries");
    let end = |due| {
        let delivered = ends_with(DeliveryStatus::Delivered);
        settled(due, AttemptVerdict::Delivered, delivered, at(BEGIN))
    };
    let ended = theirs.iter().map(end).collect();
    let settlement = scene.fixture.settlement(ended, BEGIN);
    let stored = store.settle_deliveries(scene.queue, first, settlement);
    assert!(stored.await.unwrap().is_some());
    // The first part is released first, and nothing is left in it.
    for index in 0..PARTS {
        let before = i64::from(PARTS - index);
        let released = Timestamp::from_millis(scene.clock.now().as_millis() - before);
        let lease = LeaseId([103 + index; 16]);
        let released = store.release_queue(scene.queue, lease, released);
        released.await.unwrap();
    }
    scene.work().await;
    assert_eq!(received(&scene).len(), EVENTS + more.len() - theirs.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_holder_stops_when_another_node_asks_for_a_share() {
    let scene = Scene::new(Network::D, |_| accepted()).await;
    scene.events(EVENTS).await;
    let (store, queue) = (scene.store.clone(), scene.queue);
    let (handle, now) = (tokio::runtime::Handle::current(), scene.clock.now());
    let mut is_first = true;
    scene.set_script(move |_| {
        if std::mem::take(&mut is_first) {
            let until = now.plus(Duration::from_secs(25));
            let request = queue.lease_request(LeaseId([102; 16]), now, until);
            let store = store.clone();
            let asked = tokio::task::block_in_place(|| {
                handle.block_on(async move { store.lease_queue(queue, request).await })
            });
            assert!(asked.unwrap().is_none());
        }
        accepted()
    });
    scene.work().await;
    let first_round = Network::D.batch_max() * 4;
    assert_eq!(
        received(&scene).len(),
        first_round,
        "it stops after its round"
    );
    scene.work().await;
    assert_eq!(received(&scene).len(), EVENTS);
}
