//! What the experiments share: the servers, the instance, and the course of a round.

use super::probe::{Probes, probe};
use crate::account::Totals;
use crate::experiments::Episode;
use crate::instance::{Instance, settings};
use crate::load::{Ledger, Load};
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio_postgres::Client;
use tributary_testkit::fault_proxy::FaultProxy;
use tributary_testkit::{Engine, ServerPair};

/// Time limits of the nodes. The defaults would need outages of half a minute.
const IMPATIENT: [(&str, &str); 3] = [
    ("TRIBUTARY_POSTGRES__CONNECT_TIMEOUT_SECONDS", "1"),
    ("TRIBUTARY_POSTGRES__STATEMENT_TIMEOUT_SECONDS", "2"),
    ("TRIBUTARY_HTTP__REQUEST_TIMEOUT_SECONDS", "30"),
];
/// Time limits of commands. The rebuild of the figures is one transaction for a day, and takes long
/// with an unoptimised program on a busy machine.
const PATIENT: [(&str, &str); 2] = [
    ("TRIBUTARY_POSTGRES__STATEMENT_TIMEOUT_SECONDS", "120"),
    ("TRIBUTARY_HTTP__REQUEST_TIMEOUT_SECONDS", "130"),
];
/// Length of an outage that exceeds the time limits of a transaction, three seconds.
pub(super) const OUTAGE: Duration = Duration::from_secs(5);
/// Longest time from the end of a fault until an event is accepted. Some slack for a busy machine.
const RECOVERY_EXPECTED: Duration = Duration::from_secs(10);
/// How long an experiment waits until a fault has taken effect.
pub(super) const EFFECT_MAX: Duration = Duration::from_secs(30);
/// Pause between two looks.
pub(super) const LOOK_PAUSE: Duration = Duration::from_millis(20);

/// An instance whose primary is behind a proxy.
pub(super) struct Scene {
    pub(super) instance: Instance,
    /// Between the instance and the primary.
    pub(super) proxy: FaultProxy,
    pub(super) servers: ServerPair,
    pub(super) totals: Totals,
    pub(super) ledger: Ledger,
    pub(super) random: ChaCha8Rng,
    /// Fault of the present round, for descriptions.
    pub(super) name: String,
    round: u64,
    /// Number of calls of `probe`, for ids.
    probed: AtomicU64,
}

impl Scene {
    pub(super) async fn start(seed: u64) -> Self {
        let servers = start_servers().await;
        let proxy = FaultProxy::start(servers.primary.address(), seed).await;
        let url = format!("postgres://tributary@{}/postgres", proxy.address());
        Self::start_at(servers, proxy, &url, 1, seed).await
    }

    /// Starts nodes that connect to this URL.
    pub(super) async fn start_at(
        servers: ServerPair,
        proxy: FaultProxy,
        url: &str,
        nodes: usize,
        seed: u64,
    ) -> Self {
        // Only the nodes have short time limits.
        let patient = [&[("TRIBUTARY_DATABASE_URL", url)], &PATIENT[..]].concat();
        let started = Instance::start_with(Engine::Postgres, nodes, settings(&patient));
        let mut instance = started.await;
        for node in 0..nodes {
            restart(&mut instance, node, &[]).await;
        }
        Self {
            instance,
            proxy,
            servers,
            totals: Totals::default(),
            ledger: Ledger::default(),
            random: ChaCha8Rng::seed_from_u64(seed),
            name: String::new(),
            round: 0,
            probed: AtomicU64::new(0),
        }
    }

    /// Starts the load of a round, and waits until it is under way.
    pub(super) async fn start_load(&mut self, episode: &Episode) -> Load {
        self.round += 1;
        let load = Load::start(
            &self.instance,
            &format!("r{}", self.round),
            self.random.random(),
        );
        if !load.progress(episode.requests).await {
            self.violated("the load makes no progress before the fault");
        }
        tokio::time::sleep(self.random.random_range(Duration::ZERO..episode.load)).await;
        load
    }

    /// Measures the recovery after a fault, and ends the load and the round.
    pub(super) async fn recover(&mut self, load: Load) {
        let since = Instant::now();
        match self.instance.wait_until_accepting(since).await {
            Some(time) => {
                println!("{}: accepts events after {time:.0?}", self.name);
                self.totals.recovery.push(time);
                if time > RECOVERY_EXPECTED {
                    self.violated(&format!("the recovery takes {time:?}"));
                }
            }
            None => self.violated("no recovery"),
        }
        self.ledger.add(load.stop().await);
        self.totals.rounds += 1;
    }

    /// Describes something that is wrong.
    pub(super) fn violated(&mut self, what: &str) {
        self.totals
            .violated(format!("{}, round {}: {what}", self.name, self.round));
    }

    /// Sends events for this long, then calls `heal` and waits for the last answers.
    pub(super) async fn probe(&self, time: Duration, heal: impl FnOnce(&Self)) -> Probes {
        let number = self.probed.fetch_add(1, Ordering::Relaxed);
        let name = format!("outage-{number}");
        let healed = async {
            tokio::time::sleep(time).await;
            heal(self);
        };
        let (probes, ()) = tokio::join!(probe(&self.instance, &name, time), healed);
        probes
    }

    /// Adds the results of events that were sent during a fault. Each must be answered in time. At
    /// least one must have been turned away, otherwise there was no fault.
    pub(super) fn add_outage(&mut self, probes: Probes) {
        if probes.ledger.unavailable == 0 {
            self.violated("no event was turned away");
        }
        self.add_probes(probes);
    }

    /// Adds the results of events that were sent during a fault. Each must be answered in time.
    pub(super) fn add_probes(&mut self, probes: Probes) {
        println!(
            "{}: {} accepted, {} turned away, the slowest after {:.0?}",
            self.name, probes.ledger.requests, probes.ledger.unavailable, probes.slowest
        );
        for problem in &probes.problems {
            self.violated(problem);
        }
        self.ledger.add(probes.ledger);
    }

    /// Waits until a condition holds. Reports a violation if it does not.
    pub(super) async fn expect(&mut self, what: &str, is_reached: impl Fn(&Self) -> bool) {
        let begun = Instant::now();
        while !is_reached(self) {
            if begun.elapsed() > EFFECT_MAX {
                self.violated(&format!("the fault had no effect: {what}"));
                return;
            }
            tokio::time::sleep(LOOK_PAUSE).await;
        }
    }

    /// Counts the lines of the node's log that contain a text.
    pub(super) fn logged(&self, text: &str) -> usize {
        let log = self.instance.node(0).log();
        log.lines().filter(|line| line.contains(text)).count()
    }
}

/// Restarts a node with short time limits and additional settings.
pub(super) async fn restart(instance: &mut Instance, node: usize, more: &[(&str, &str)]) {
    instance.kill(node);
    let settings = settings(&[&IMPATIENT, more].concat());
    let started = instance.try_restart(node, &settings).await;
    started.unwrap_or_else(|exit| panic!("{exit}"));
}

/// Reads one number.
pub(super) async fn number(client: &Client, sql: &str) -> i64 {
    client.query_one(sql, &[]).await.expect(sql).get(0)
}

/// Starts a primary and a standby.
pub(super) async fn start_servers() -> ServerPair {
    let started = tokio::task::spawn_blocking(ServerPair::start);
    started.await.expect("two servers")
}
