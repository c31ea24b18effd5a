//! Power cuts combined with disk errors, on SQLite: the database stays intact, contains every
//! acknowledged event and no erased device.
//!
//! `TRIBUTARY_POWER_CUT_ROUNDS` changes the number of rounds.

use super::power_cut_round::{Machine, Outcome, Plan, Target};
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeMap;
use std::time::Duration;

/// Default rounds of each test: one for every kind of fault.
const ROUNDS: u64 = 5;
/// Rounds of the test without syncs. Each must lose events.
const COUNTER_ROUNDS: u64 = 2;
/// Rounds until a new instance is set up, because copying a large database is slow.
const ROUNDS_PER_INSTANCE: u64 = 20;

#[expect(clippy::disallowed_methods, reason = "a long run sets more rounds")]
fn rounds() -> u64 {
    let rounds = std::env::var("TRIBUTARY_POWER_CUT_ROUNDS").ok();
    rounds.map_or(ROUNDS, |rounds| rounds.parse().expect("a number of rounds"))
}

/// Plans a round with these faults. Leaks, duration and restarts vary from round to round.
fn plan(round: u64, random: &mut ChaCha8Rng, faults: String) -> Plan {
    Plan {
        faults,
        ignored: "",
        leak: [0, 20, 60][usize::try_from(round % 3).unwrap()],
        seed: random.random_range(1..1_000_000),
        load: Duration::from_millis(random.random_range(0..700)),
        erases_devices: true,
        restarts: round % 4 == 3,
    }
}

/// Totals of all rounds.
#[derive(Debug, Default)]
struct Total {
    acknowledged: usize,
    unavailable: usize,
    erased: usize,
    /// Rounds in which a process with faults completed a checkpoint.
    checkpointed: usize,
    /// Rounds by injected error and its target.
    injected: BTreeMap<(Target, String), usize>,
}

impl Total {
    fn add(&mut self, outcome: Outcome) {
        self.acknowledged += outcome.acknowledged;
        self.unavailable += outcome.unavailable;
        self.erased += outcome.erased;
        self.checkpointed += usize::from(outcome.checkpoints > 0);
        let mut injected = outcome.injected;
        injected.sort();
        injected.dedup();
        for one in injected {
            *self.injected.entry(one).or_default() += 1;
        }
    }
}

/// Runs the rounds and checks each. Every error in `expected` must have been injected.
async fn run(
    name: &str,
    expected: &[(Target, &str)],
    mut faults: impl FnMut(u64, &mut ChaCha8Rng) -> String,
) {
    let mut machine = Machine::new().await;
    let mut random = ChaCha8Rng::seed_from_u64(17);
    let mut total = Total::default();
    for round in 0..rounds() {
        if round > 0 && round % ROUNDS_PER_INSTANCE == 0 {
            machine = Machine::new().await;
        }
        let faults = faults(round, &mut random);
        let plan = plan(round, &mut random, faults);
        let outcome = machine.round(&plan).await;
        println!("{name}, round {round}: {outcome:?}, {plan:?}");
        assert_eq!(outcome.damage, None, "round {round}, {plan:?}");
        let (lost, reappeared) = (&outcome.lost, &outcome.reappeared);
        assert!(lost.is_empty(), "round {round}, {plan:?}: lost {lost:?}");
        assert!(
            reappeared.is_empty(),
            "round {round}, {plan:?}: reappeared {reappeared:?}"
        );
        total.add(outcome);
    }
    println!("{name}: {} rounds, 0 corrupt, 0 lost, {total:?}", rounds());
    assert!(total.acknowledged > 0 && total.erased > 0, "{total:?}");
    assert!(
        total.checkpointed > 0,
        "the log was never checkpointed: {total:?}"
    );
    for (target, error) in expected {
        let key = (*target, (*error).to_owned());
        assert!(total.injected.contains_key(&key), "{key:?}: {total:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failed_log_syncs_and_a_power_cut_lose_nothing() {
    let expected = [(Target::Log, "EIO")];
    run("failed log syncs", &expected, |_, random| {
        let first: u64 = random.random_range(2..30);
        let second = first + random.random_range(1..20);
        format!("sync:-wal:{first}:EIO,sync:-wal:{second}:EIO")
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn log_and_folder_errors_and_a_power_cut_lose_nothing() {
    let expected = [
        (Target::Log, "EIO"),
        (Target::Log, "ENOSPC"),
        (Target::Log, "short"),
        (Target::Folder, "EIO"),
        (Target::Folder, "ENOSPC"),
    ];
    run("log and folder", &expected, |round, random| {
        let nth: u64 = random.random_range(5..120);
        // Start-up does the first folder syncs; reopening after an error does later ones.
        let (early, late) = (random.random_range(1..3), random.random_range(3..6));
        match round % 5 {
            0 => format!("write:-wal:{nth}:short,sync:/:{late}:EIO"),
            1 => format!("write:-wal:{nth}:ENOSPC,sync:/:{late}:ENOSPC"),
            2 => format!("write:-wal:{nth}:EIO,sync:-wal:{nth}:ENOSPC,truncate:-wal:1:EIO"),
            3 => format!("sync:/:{early}:EIO"),
            _ => format!("sync:/:{early}:ENOSPC"),
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failed_checkpoints_and_a_power_cut_lose_nothing() {
    let expected = [
        (Target::Database, "EIO"),
        (Target::Database, "ENOSPC"),
        (Target::Database, "short"),
    ];
    run("failed checkpoints", &expected, |round, random| {
        let nth: u64 = random.random_range(1..40);
        let log: u64 = random.random_range(5..120);
        match round % 5 {
            0 => "sync:.db:1:EIO".to_owned(),
            1 => format!("write:.db:{nth}:EIO,sync:-wal:{log}:EIO"),
            2 => format!("write:.db:{nth}:short,write:-wal:{log}:short"),
            3 => format!("write:.db:{nth}:ENOSPC,sync:.db:1:ENOSPC"),
            _ => format!("sync:.db:2:EIO,write:-wal:{log}:ENOSPC,sync:-wal:{nth}:EIO"),
        }
    })
    .await;
}

/// Shows that the harness detects losses: without syncs of the log, acknowledged events are lost.
/// No device is erased, because an erasure checkpoints the log.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_that_is_not_synced_loses_events_in_a_power_cut() {
    for round in 0..COUNTER_ROUNDS {
        let mut machine = Machine::new().await;
        let plan = Plan {
            faults: String::new(),
            ignored: "-wal",
            leak: 0,
            seed: 1 + round,
            load: Duration::from_millis(300),
            erases_devices: false,
            restarts: false,
        };
        let outcome = machine.round(&plan).await;
        let is_detected = outcome.damage.is_some() || !outcome.lost.is_empty();
        assert!(is_detected, "round {round}: {outcome:?}");
    }
}
