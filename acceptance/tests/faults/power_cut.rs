//! Power cuts together with errors of the disk, on SQLite: the database stays sound, and every acknowledged event is in
//! it.
//!
//! A few rounds run every time; `TRIBUTARY_POWER_CUT_ROUNDS` sets another number.

use super::power_cut_round::{Machine, Outcome, Plan};
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use std::time::Duration;

/// Rounds of each test, unless the environment says otherwise.
const ROUNDS: u64 = 5;
/// Rounds of the counter-test, each of which must lose something.
const COUNTER_ROUNDS: u64 = 2;

#[expect(
    clippy::disallowed_methods,
    reason = "the long form of the test has more rounds"
)]
fn rounds() -> u64 {
    let rounds = std::env::var("TRIBUTARY_POWER_CUT_ROUNDS").ok();
    rounds.map_or(ROUNDS, |rounds| rounds.parse().expect("a number of rounds"))
}

/// A round with these faults; leaks, length and restarts differ from round to round.
fn plan(round: u64, random: &mut ChaCha8Rng, faults: String) -> Plan {
    Plan {
        faults,
        ignored: "",
        leak: [0, 20, 60][usize::try_from(round % 3).unwrap()],
        seed: random.random_range(1..1_000_000),
        load: Duration::from_millis(random.random_range(150..700)),
        restarted: round % 4 == 3,
    }
}

/// Runs the rounds and adds up what they came to.
async fn run(name: &str, mut faults: impl FnMut(u64, &mut ChaCha8Rng) -> String) {
    let mut machine = Machine::new().await;
    let mut random = ChaCha8Rng::seed_from_u64(17);
    let (mut total, mut corrupt, mut hit) = (Outcome::default(), 0, 0);
    for round in 0..rounds() {
        let faults = faults(round, &mut random);
        let plan = plan(round, &mut random, faults);
        let outcome = machine.round(&plan).await;
        println!(
            "{name}, round {round}: {} acknowledged, {} unavailable, {} injected, {plan:?}",
            outcome.acknowledged, outcome.unavailable, outcome.injected
        );
        total.acknowledged += outcome.acknowledged;
        total.unavailable += outcome.unavailable;
        hit += u64::from(outcome.injected > 0);
        corrupt += usize::from(outcome.damage.is_some());
        assert_eq!(outcome.damage, None, "round {round}, {plan:?}");
        assert!(
            outcome.lost.is_empty(),
            "round {round}, {plan:?}: lost {:?}",
            outcome.lost
        );
    }
    println!(
        "{name}: {} rounds, {hit} with an injected error, {} acknowledged, {} unavailable, {corrupt} corrupt, 0 lost",
        rounds(),
        total.acknowledged,
        total.unavailable
    );
    assert!(total.acknowledged > 0, "the load was accepted");
    assert!(hit * 2 >= rounds(), "errors were injected: {hit}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_sync_of_the_log_and_a_power_cut_lose_nothing() {
    run("failed log syncs", |_, random| {
        let first: u64 = random.random_range(2..30);
        let second = first + random.random_range(1..20);
        format!("sync:-wal:{first}:EIO,sync:-wal:{second}:EIO")
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn full_disks_short_writes_and_failing_files_and_a_power_cut_lose_nothing() {
    run("other errors", |round, random| {
        let nth: u64 = random.random_range(5..120);
        match round % 5 {
            0 => format!("write:-wal:{nth}:short,sync:.db:1:EIO"),
            1 => format!("write:-wal:{nth}:ENOSPC,write:.db:{nth}:EIO"),
            2 => format!("write:-wal:{nth}:EIO,sync:-wal:{nth}:ENOSPC,sync:/:2:EIO"),
            3 => format!("write:-wal:{nth}:short,write:.db:{nth}:ENOSPC"),
            _ => format!("sync:/:1:EIO,write:.db:{nth}:short,write:-wal:{nth}:EIO"),
        }
    })
    .await;
}

/// The harness can fail: a log whose syncs do nothing loses acknowledged events.
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
            restarted: false,
        };
        let outcome = machine.round(&plan).await;
        let is_noticed = outcome.damage.is_some() || !outcome.lost.is_empty();
        assert!(is_noticed, "round {round}: {outcome:?}");
    }
}
