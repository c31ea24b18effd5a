//! Turns of a cloud project, on several nodes. Waits are only checked for their minimum.

use super::scene::{Scene, accepted};
use crate::pacing::ProjectPacer;
use std::time::{Duration, Instant};
use tributary_domain::forwarding::quota::TURN_INTERVAL;
use tributary_domain::integration::Network;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_share_the_turns_of_a_project() {
    let scene = Scene::new(Network::B, |_| accepted()).await;
    let [one, other] = [ProjectPacer::default(), ProjectPacer::default()];
    let started_at = Instant::now();
    one.wait_turn(scene.parts(), Some("project")).await;
    other.wait_turn(scene.parts(), Some("project")).await;
    assert!(
        started_at.elapsed() >= TURN_INTERVAL * 5,
        "the other node's turns follow the reserved block"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_spaces_out_its_requests_even_without_the_database() {
    let scene = Scene::new(Network::B, |_| accepted()).await;
    for is_closed in [false, true] {
        if is_closed {
            scene.store.close().await;
        }
        let pacer = ProjectPacer::default();
        let started_at = Instant::now();
        for _ in 0..3 {
            pacer.wait_turn(scene.parts(), Some("project")).await;
        }
        assert!(started_at.elapsed() >= TURN_INTERVAL * 2, "{is_closed}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_throttled_project_delays_only_itself() {
    let pacer = ProjectPacer::default();
    assert!(!pacer.is_delayed(Some("project")));
    pacer.delay("project", Duration::from_mins(1));
    assert!(pacer.is_delayed(Some("project")));
    assert!(!pacer.is_delayed(Some("another")) && !pacer.is_delayed(None));
}
