//! Power cuts on SQLite, half of them after a disk error.

use super::Episode;
use crate::account::Totals;
use crate::check::check;
use crate::instance::{Instance, Settings};
use crate::load::{Ledger, Load};
use crate::power::{DiskFaults, DurableDisk, PowerLibrary, injected};
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use std::time::{Duration, Instant};
use tributary_testkit::Engine;

/// Longest wait for the injected errors of a round. A checkpoint may not happen in a short load.
const INJECTED_MAX: Duration = Duration::from_secs(3);

/// Cuts the power in every round.
pub async fn cut_power(episode: Episode) -> Totals {
    cut(episode, "").await
}

/// Does the same while the log's syncs do nothing: acknowledged events must be lost. Shows that the
/// experiment can fail.
pub async fn cut_power_without_syncs(episode: Episode) -> Totals {
    cut(episode, "-wal").await
}

async fn cut(episode: Episode, ignored: &'static str) -> Totals {
    let library = PowerLibrary::compile();
    let mut instance = Instance::start(Engine::Sqlite, 1).await;
    let (mut totals, mut ledger) = (Totals::default(), Ledger::default());
    let mut random = ChaCha8Rng::seed_from_u64(episode.seed);
    for round in 0..episode.rounds {
        instance.kill(0);
        let disk = DurableDisk::of(&instance);
        let faults = DiskFaults {
            errors: errors(round, &mut random),
            leak: [0, 20, 60][random.random_range(0..3)],
            ignored,
            seed: random.random_range(1..1_000_000),
            kill_at: 0,
        };
        let live = instance.database.folder();
        let settings = disk.settings(&library, &live, &faults);
        // A node that meets an error while it starts may exit; a supervisor would start it again.
        if instance.try_restart(0, &settings).await.is_err() {
            let without_errors = DiskFaults {
                errors: String::new(),
                ..faults.clone()
            };
            let settings = disk.settings(&library, &live, &without_errors);
            let started = instance.try_restart(0, &settings).await;
            started.unwrap_or_else(|exit| panic!("{exit}"));
        }
        let load = Load::start(
            &instance,
            &format!("r{round}"),
            episode.seed.wrapping_add(round),
        );
        if !load.progress(episode.requests).await {
            totals.violated(format!(
                "round {round}, {faults:?}: the load makes no progress"
            ));
        }
        wait_for_errors(&instance, &faults).await;
        tokio::time::sleep(random.random_range(Duration::ZERO..episode.load)).await;
        instance.kill(0);
        ledger.add(load.stop().await);
        if let Some(damage) = disk.cut(&instance) {
            totals.corrupt += 1;
            totals.violated(format!("round {round}, {faults:?}: {damage}"));
        }
        let since = Instant::now();
        if let Err(exit) = instance.try_restart(0, &Settings::new()).await {
            totals.violated(format!("round {round}, {faults:?}: {exit}"));
            return totals;
        }
        match instance.wait_until_accepting(since).await {
            Some(time) => totals.recovery.push(time),
            None => totals.violated("the instance does not recover from a power cut"),
        }
        totals.rounds += 1;
    }
    check(&mut instance, ledger, &mut totals).await;
    totals
}

/// Returns the errors of a round; every other round has none.
fn errors(round: u64, random: &mut ChaCha8Rng) -> String {
    let nth: u64 = random.random_range(3..200);
    let folder: u64 = random.random_range(1..5);
    match round % 10 {
        1 => format!("sync:-wal:{nth}:EIO,sync:-wal:{}:EIO", nth + 9),
        3 => format!("write:-wal:{nth}:short,sync:/:{folder}:EIO"),
        5 => format!("write:-wal:{nth}:ENOSPC,truncate:-wal:1:EIO"),
        7 => format!("sync:.db:{folder}:EIO,write:.db:{nth}:EIO"),
        9 => format!("sync:/:{folder}:ENOSPC,sync:-wal:{nth}:ENOSPC"),
        _ => String::new(),
    }
}

/// Waits until the errors were injected, for a short time.
async fn wait_for_errors(instance: &Instance, faults: &DiskFaults) {
    let expected = faults.errors.split(',').filter(|error| !error.is_empty());
    let expected = expected.count();
    let begun = Instant::now();
    while expected > 0 && begun.elapsed() < INJECTED_MAX {
        if injected(&instance.node(0).log()) >= expected {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
