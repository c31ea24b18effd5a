//! SIGKILL under load.

use super::Episode;
use crate::account::Totals;
use crate::check::check;
use crate::instance::Instance;
use crate::load::{Ledger, Load};
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use std::time::Instant;
use tributary_testkit::Engine;

/// Kills the only node of an instance in every round.
pub async fn kill_node(engine: Engine, episode: Episode) -> Totals {
    kill(Instance::start(engine, 1).await, episode).await
}

/// Kills the nodes of a PostgreSQL instance in turn. The others go on.
pub async fn kill_in_turn(nodes: usize, episode: Episode) -> Totals {
    kill(Instance::start(Engine::Postgres, nodes).await, episode).await
}

async fn kill(mut instance: Instance, episode: Episode) -> Totals {
    let (mut totals, mut ledger) = (Totals::default(), Ledger::default());
    let mut random = ChaCha8Rng::seed_from_u64(episode.seed);
    for round in 0..episode.rounds {
        let seed = episode.seed.wrapping_add(round);
        let load = Load::start(&instance, &format!("r{round}"), seed);
        if !load.progress(episode.requests).await {
            totals.violated(format!("round {round}: the load makes no progress"));
        }
        tokio::time::sleep(random.random_range(std::time::Duration::ZERO..episode.load)).await;
        let node = usize::try_from(round).unwrap() % instance.nodes();
        instance.kill(node);
        if instance.nodes() == 1 {
            // The clients have nothing left to talk to.
            ledger.add(load.stop().await);
            recover(&mut instance, node, &mut totals).await;
        } else {
            recover(&mut instance, node, &mut totals).await;
            ledger.add(load.stop().await);
        }
        totals.rounds += 1;
    }
    check(&mut instance, ledger, &mut totals).await;
    totals
}

/// Starts a killed node and measures the time until the instance accepts an event.
async fn recover(instance: &mut Instance, node: usize, totals: &mut Totals) {
    let since = Instant::now();
    instance.restart(node).await;
    match instance.wait_until_accepting(since).await {
        Some(time) => totals.recovery.push(time),
        None => totals.violated("the instance does not recover from a kill"),
    }
}
