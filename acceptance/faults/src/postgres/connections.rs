//! Faults of the connections between the instance and PostgreSQL, and between clients and the
//! instance.

use super::scene::{OUTAGE, Scene};
use crate::load::Load;
use rand::RngExt as _;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;
use tributary_testkit::fault_proxy::{
    Cut, CutKind, CutMoment, CutPoint, FaultProxy, Flow, FlowDirection,
};

/// A commit on the wire: a simple query.
const COMMIT: &[u8] = b"commit\0";
/// The beginning of a request to the instance that writes.
const REQUEST: &[u8] = b"POST /api/";
/// Cuts of a round.
const CUTS: u32 = 20;
/// Bytes after which a connection is cut at random: several transactions.
const RANDOM_BYTES: u64 = 20_000;
/// Time with connections that end at random bytes, for each way to end them.
const RANDOM_TIME: Duration = Duration::from_millis(700);
/// Requests that must be acknowledged while every byte is a packet.
const SLOW_REQUESTS: u64 = 20;

/// Cuts connections exactly between a commit and its answer.
pub(super) async fn lose_commits(scene: &mut Scene) {
    let before = scene.proxy.counts().cuts;
    scene.proxy.arm(Cut {
        one_in: 2,
        ..Cut::answers_to(COMMIT, CUTS)
    });
    let expected = before + u64::from(CUTS);
    scene
        .expect("answers to commits are lost", |scene| {
            scene.proxy.counts().cuts >= expected
        })
        .await;
    scene.proxy.heal();
}

/// Checks that requests whose commit had no answer are stored: the cut came after the commit.
pub(super) async fn find_hidden_commits(scene: &mut Scene) {
    let base = scene.instance.addresses.next();
    let stored = scene
        .instance
        .site
        .export(&base, "events")
        .await
        .unwrap_or_default();
    let stored: BTreeSet<&str> = stored
        .iter()
        .filter_map(|event| event["eventId"].as_str())
        .collect();
    let events = scene
        .ledger
        .unknown
        .iter()
        .flat_map(|request| &request.creates);
    let hidden = events
        .filter(|event| stored.contains(event.key.as_str()))
        .count();
    println!(
        "{}: {hidden} events are stored although no answer came",
        scene.name
    );
    if hidden == 0 {
        scene.violated("the fault had no effect: no commit was stored without an answer");
    }
}

/// Cuts connections at random bytes of either direction, in each way.
pub(super) async fn cut_at_random(scene: &mut Scene) {
    for kind in [CutKind::Reset, CutKind::Close, CutKind::HalfClose] {
        for direction in [FlowDirection::ToTarget, FlowDirection::ToClient] {
            let before = scene.proxy.counts().cuts;
            scene.proxy.arm(Cut {
                direction,
                point: CutPoint::RandomByte(RANDOM_BYTES),
                moment: CutMoment::After,
                kind,
                one_in: 1,
                times: u32::MAX,
            });
            tokio::time::sleep(RANDOM_TIME).await;
            scene
                .expect("connections are cut", |scene| {
                    scene.proxy.counts().cuts > before
                })
                .await;
        }
    }
    scene.proxy.heal();
}

/// Forwards each byte as a packet. The instance must go on.
pub(super) async fn forward_single_bytes(scene: &mut Scene, load: &Load) {
    let flow = Flow {
        piece_bytes: 1,
        ..Flow::default()
    };
    let before = scene.proxy.counts();
    for direction in [FlowDirection::ToTarget, FlowDirection::ToClient] {
        scene.proxy.set_flow(direction, flow);
    }
    if !load.progress(SLOW_REQUESTS).await {
        scene.violated("no progress while every byte is a packet");
    }
    let after = scene.proxy.counts();
    scene.proxy.heal();
    let bytes = after.to_target_bytes + after.to_client_bytes;
    let bytes = bytes - before.to_target_bytes - before.to_client_bytes;
    // A write that had begun before may be larger.
    if after.pieces - before.pieces < bytes / 2 {
        scene.violated("the fault had no effect: bytes are not forwarded one by one");
    }
}

/// Holds one direction of all connections back for longer than a transaction may take, and then lets
/// the bytes through.
pub(super) async fn stall(scene: &mut Scene) {
    let directions = [FlowDirection::ToTarget, FlowDirection::ToClient];
    let direction = directions[scene.random.random_range(0..directions.len())];
    let before = scene.proxy.counts().stalls;
    let flow = Flow {
        is_stalled: true,
        ..Flow::default()
    };
    scene.proxy.set_flow(direction, flow);
    let probes = scene.probe(OUTAGE, |scene| scene.proxy.heal()).await;
    scene.add_outage(probes);
    if scene.proxy.counts().stalls == before {
        scene.violated("the fault had no effect: nothing was held back");
    }
}

/// Cuts connections of clients after the instance has received their request, and before they get the
/// response.
pub(super) async fn lose_responses(scene: &mut Scene) {
    let node = scene.instance.node(0).base_url().to_owned();
    let address: SocketAddr = node
        .trim_start_matches("http://")
        .parse()
        .expect("an address");
    let proxy = FaultProxy::start(address, scene.random.random()).await;
    scene
        .instance
        .addresses
        .set(0, &format!("http://{}", proxy.address()));
    proxy.arm(Cut {
        one_in: 5,
        ..Cut::answers_to(REQUEST, CUTS)
    });
    let lost = |_: &Scene| proxy.counts().cuts >= u64::from(CUTS);
    scene.expect("responses are lost", lost).await;
    scene.instance.addresses.set(0, &node);
}
