//! Power cuts together with errors of the disk, on SQLite: the database stays sound, every acknowledged event is in it,
//! and no erased device is.
//!
//! A few rounds run every time; `TRIBUTARY_POWER_CUT_ROUNDS` sets another number.

use super::power_cut_round::{Machine, Outcome, Plan, Target};
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeMap;
use std::time::Duration;

/// Rounds of each test, unless the environment says otherwise. Every kind of fault has its turn.
const ROUNDS: u64 = 5;
/// Rounds of the counter-test, each of which must lose something.
const COUNTER_ROUNDS: u64 = 2;
/// Rounds after which a new instance is set up, so that a long run does not spend its time on copying a large one.
const ROUNDS_OF_A_MACHINE: u64 = 20;

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
        load: Duration::from_millis(random.random_range(0..700)),
        erasing: true,
        restarted: round % 4 == 3,
    }
}

/// What the rounds of a run came to.
#[derive(Debug, Default)]
struct Total {
    acknowledged: usize,
    unavailable: usize,
    erased: usize,
    /// Rounds with a checkpoint in a process with faults.
    checkpointed: usize,
    /// Rounds in which a target was hit by an error.
    hit: BTreeMap<(Target, String), usize>,
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
            *self.hit.entry(one).or_default() += 1;
        }
    }
}

/// Runs the rounds and adds up what they came to. Every error in `expected` must have hit its target.
async fn run(
    name: &str,
    expected: &[(Target, &str)],
    mut faults: impl FnMut(u64, &mut ChaCha8Rng) -> String,
) {
    let mut machine = Machine::new().await;
    let mut random = ChaCha8Rng::seed_from_u64(17);
    let mut total = Total::default();
    for round in 0..rounds() {
        if round > 0 && round % ROUNDS_OF_A_MACHINE == 0 {
            machine = Machine::new().await;
        }
        let faults = faults(round, &mut random);
        let plan = plan(round, &mut random, faults);
        let outcome = machine.round(&plan).await;
        println!("{name}, round {round}: {outcome:?}, {plan:?}");
        assert_eq!(outcome.damage, None, "round {round}, {plan:?}");
        let (lost, back) = (&outcome.lost, &outcome.back);
        assert!(lost.is_empty(), "round {round}, {plan:?}: lost {lost:?}");
        assert!(back.is_empty(), "round {round}, {plan:?}: back {back:?}");
        total.add(outcome);
    }
    println!("{name}: {} rounds, 0 corrupt, 0 lost, {total:?}", rounds());
    assert!(total.acknowledged > 0 && total.erased > 0, "{total:?}");
    assert!(
        total.checkpointed > 0,
        "the log was checkpointed: {total:?}"
    );
    for (target, how) in expected {
        let key = (*target, (*how).to_owned());
        assert!(total.hit.contains_key(&key), "{key:?}: {total:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_sync_of_the_log_and_a_power_cut_lose_nothing() {
    let expected = [(Target::Log, "EIO")];
    run("failed log syncs", &expected, |_, random| {
        let first: u64 = random.random_range(2..30);
        let second = first + random.random_range(1..20);
        format!("sync:-wal:{first}:EIO,sync:-wal:{second}:EIO")
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn errors_of_the_log_and_the_folder_and_a_power_cut_lose_nothing() {
    let expected = [
        (Target::Log, "EIO"),
        (Target::Log, "ENOSPC"),
        (Target::Log, "short"),
        (Target::Folder, "EIO"),
        (Target::Folder, "ENOSPC"),
    ];
    run("log and folder", &expected, |round, random| {
        let nth: u64 = random.random_range(5..120);
        // The first ones are synced by the start, later ones when a connection is opened after an error.
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
async fn a_checkpoint_that_fails_and_a_power_cut_lose_nothing() {
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

/// The harness can fail: a log whose syncs do nothing loses acknowledged events, unless a checkpoint has moved them into
/// the database file. So no device is erased here.
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
            erasing: false,
            restarted: false,
        };
        let outcome = machine.round(&plan).await;
        let is_noticed = outcome.damage.is_some() || !outcome.lost.is_empty();
        assert!(is_noticed, "round {round}: {outcome:?}");
    }
}
