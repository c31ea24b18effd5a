//! Experiments that must fail, because the accounting or the database is weakened. They show that the
//! others can fail.

use super::failover::{self, wait_for};
use super::scene::Scene;
use super::{PostgresFault, account};
use crate::account::Totals;
use crate::experiments::Episode;
use std::time::Duration;
use tributary_testkit::fault_proxy::{Cut, CutMoment};

/// Commits that do not reach the server.
const CUTS: u32 = 10;
/// Time for events that the standby does not get.
const BEHIND: Duration = Duration::from_secs(1);

/// Cuts connections just before their commit, with a client that takes an unanswered request for an
/// acknowledged one. Events must be missing.
pub async fn trust_unanswered_requests(episode: Episode) -> Totals {
    let mut scene = Scene::start(episode.seed).await;
    scene.name = format!("{:?}, before the commit", PostgresFault::LostCommits);
    let load = scene.start_load(&episode).await;
    scene.proxy.arm(Cut {
        moment: CutMoment::Before,
        ..Cut::answers_to(b"commit\0", CUTS)
    });
    let cut = |scene: &Scene| scene.proxy.counts().cuts >= u64::from(CUTS);
    scene.expect("commits are lost", cut).await;
    scene.proxy.heal();
    scene.recover(load).await;
    for request in std::mem::take(&mut scene.ledger.unknown) {
        scene.ledger.acknowledge(&request.creates);
    }
    account(scene).await
}

/// Fails over to a standby that is behind and that the primary does not wait for. Acknowledged events
/// must be missing.
pub async fn fail_over_without_standby(episode: Episode) -> Totals {
    let mut scene = failover::start(episode.seed).await;
    "failover without a synchronous standby".clone_into(&mut scene.name);
    wait_for(&scene.servers.primary, failover::FOLLOWING).await;
    let load = scene.start_load(&episode).await;
    // Ends the replication. A frozen standby would still find what the kernel has received for it.
    scene.servers.standby.set("primary_conninfo", "").await;
    let probes = scene.probe(BEHIND, |_| {}).await;
    scene.add_probes(probes);
    tokio::task::block_in_place(|| scene.servers.primary.stop());
    scene.proxy.retarget(scene.servers.standby.address());
    scene.servers.fail_over().await;
    scene.recover(load).await;
    failover::account(scene).await
}
