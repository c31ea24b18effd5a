//! Networks that misbehave under load: every answer is slow, endless, garbage or a redirect for a
//! while. Accepting events is not affected, and afterwards every network has everything once.

use super::Episode;
use crate::account::Totals;
use crate::check::check;
use crate::instance::{Instance, settings};
use crate::load::{Ledger, Load};
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use std::time::{Duration, Instant};
use tributary_testkit::{Engine, HostileProxy, Misbehavior};

/// Requests that meet the misbehaviour of a round. The queues back off after each.
const AFFECTED: std::ops::RangeInclusive<u64> = 1..=6;
/// Longest wait until a request meets the misbehaviour.
const EFFECT_MAX: Duration = Duration::from_secs(30);
/// Memory that the server may grow by. A response offers up to 1 GiB.
const GROWTH_KIB_MAX: u64 = 256 * 1_024;
const EFFECT_PAUSE: Duration = Duration::from_millis(50);

/// The misbehaviours. A status of 503 is a failure for every network.
fn misbehaviors() -> [Misbehavior; 12] {
    [
        Misbehavior::Silence,
        Misbehavior::TricklingHead,
        Misbehavior::TricklingBody,
        Misbehavior::EndlessHead,
        Misbehavior::EndlessBody(503),
        Misbehavior::HugeBody(503),
        Misbehavior::GzipBomb(503),
        Misbehavior::Garbage,
        Misbehavior::BrokenChunks,
        Misbehavior::Redirect(307, "http://127.0.0.1:9/steal".to_owned()),
        Misbehavior::RedirectLoop(308),
        Misbehavior::Reset,
    ]
}

/// Lets the networks misbehave in one way per round.
pub async fn hostile_networks(engine: Engine, episode: Episode) -> Totals {
    let proxy = HostileProxy::start(None).await;
    let (base, token) = (proxy.base_url(), format!("{}/token", proxy.base_url()));
    let urls = settings(&[
        ("TRIBUTARY_NETWORKS__NETWORK_A__BASE_URL", &base),
        ("TRIBUTARY_NETWORKS__NETWORK_B__BASE_URL", &base),
        ("TRIBUTARY_NETWORKS__NETWORK_B__TOKEN_URL", &token),
        ("TRIBUTARY_NETWORKS__NETWORK_C__BASE_URL", &base),
        ("TRIBUTARY_NETWORKS__NETWORK_D__BASE_URL", &base),
    ]);
    let mut instance = Instance::start_with(engine, 1, urls).await;
    proxy.set_upstream(instance.simulator.address());
    let (mut totals, mut ledger) = (Totals::default(), Ledger::default());
    let mut random = ChaCha8Rng::seed_from_u64(episode.seed);
    let all = misbehaviors();
    for round in 0..episode.rounds {
        let behavior = all.choose(&mut random).expect("not empty").clone();
        let (times, processes) = (random.random_range(AFFECTED), random.random_bool(0.5));
        let load = Load::start(
            &instance,
            &format!("r{round}"),
            episode.seed.wrapping_add(round),
        );
        let (name, before) = (format!("{round}"), instance.node(0).resident_kib());
        proxy.misbehave_times(&name, &[" HTTP/1.1"], behavior.clone(), processes, times);
        if !load.progress(episode.requests).await {
            totals.violated(format!("the load makes no progress during {behavior:?}"));
        }
        let begun = Instant::now();
        while proxy.requests(&name) == 0 && begun.elapsed() < EFFECT_MAX {
            tokio::time::sleep(EFFECT_PAUSE).await;
        }
        if proxy.requests(&name) == 0 {
            totals.violated(format!("no request met {behavior:?}"));
        }
        tokio::time::sleep(episode.load).await;
        proxy.heal();
        match instance.wait_until_accepting(Instant::now()).await {
            Some(time) => totals.recovery.push(time),
            None => totals.violated(format!("the instance does not recover from {behavior:?}")),
        }
        ledger.add(load.stop().await);
        let after = instance.node(0).resident_kib();
        if after > before + GROWTH_KIB_MAX {
            totals.violated(format!(
                "{behavior:?}: memory grew from {before} to {after} KiB"
            ));
        }
        totals.rounds += 1;
    }
    check(&mut instance, ledger, &mut totals).await;
    totals
}
