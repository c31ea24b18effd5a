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

/// Longest wait for the first injected error of a round. A checkpoint takes some load.
const FIRST_ERROR_MAX: Duration = Duration::from_secs(20);
/// Longest wait for the other ones. They may need a second checkpoint.
const OTHER_ERRORS_MAX: Duration = Duration::from_secs(3);

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
        // A round whose errors were not injected is made up for by the next one.
        let has_errors =
            ignored.is_empty() && totals.power_cuts_after_error * 2 <= totals.power_cuts;
        let faults = DiskFaults {
            errors: if has_errors {
                errors(round, &mut random)
            } else {
                String::new()
            },
            leak: [0, 20, 60][random.random_range(0..3)],
            ignored,
            seed: random.random_range(1..1_000_000),
            kill_at: 0,
        };
        let live = instance.database.folder();
        let settings = disk.settings(&library, &live, &faults);
        let mut errors_at_start = 0;
        // A node that meets an error while it starts may exit; a supervisor would start it again.
        if let Err(exit) = instance.try_restart(0, &settings).await {
            errors_at_start = injected(&exit.log);
            if errors_at_start == 0 {
                totals.violated(format!("round {round}, {faults:?}: {exit}"));
            }
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
        let errors = match errors_at_start {
            0 => wait_for_errors(&instance, &faults).await,
            errors => errors,
        };
        tokio::time::sleep(random.random_range(Duration::ZERO..episode.load)).await;
        instance.kill(0);
        totals.power_cuts += 1;
        totals.power_cuts_after_error += u64::from(errors > 0);
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
    if ignored.is_empty() && totals.power_cuts_after_error * 2 < totals.power_cuts {
        let (errors, cuts) = (totals.power_cuts_after_error, totals.power_cuts);
        totals.violated(format!(
            "only {errors} of {cuts} power cuts followed an error"
        ));
    }
    check(&mut instance, ledger, &mut totals).await;
    totals
}

/// Returns the errors of a round.
fn errors(round: u64, random: &mut ChaCha8Rng) -> String {
    let nth: u64 = random.random_range(3..200);
    let folder: u64 = random.random_range(1..5);
    match round / 2 % 5 {
        0 => format!("sync:-wal:{nth}:EIO,sync:-wal:{}:EIO", nth + 9),
        1 => format!("write:-wal:{nth}:short,sync:/:{folder}:EIO"),
        2 => format!("write:-wal:{nth}:ENOSPC,truncate:-wal:1:EIO"),
        3 => format!("sync:.db:{folder}:EIO,write:.db:{nth}:EIO"),
        _ => format!("sync:/:{folder}:ENOSPC,sync:-wal:{nth}:ENOSPC"),
    }
}

/// Waits until the errors of a round were injected, for a limited time. Returns their number.
async fn wait_for_errors(instance: &Instance, faults: &DiskFaults) -> usize {
    let expected = faults.errors.split(',').filter(|error| !error.is_empty());
    let expected = expected.count();
    let begun = Instant::now();
    loop {
        let found = injected(&instance.node(0).log());
        let most = if found == 0 {
            FIRST_ERROR_MAX
        } else {
            OTHER_ERRORS_MAX
        };
        if found >= expected || begun.elapsed() > most {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
