//! Backups to a disk that fails, fills up or loses power. A file with the name of the backup is always
//! complete, and so are its synced bytes.

use super::Episode;
use crate::account::Totals;
use crate::check::check;
use crate::instance::Instance;
use crate::load::{Ledger, Load};
use crate::power::{DiskCondition, DiskFaults, DurableDisk, PowerLibrary};
use std::collections::BTreeSet;
use std::path::Path;
use tributary_testkit::{Engine, ServerProcess, TestDatabase};

/// Syncs of a backup: at each, the power is cut once.
const SYNCS: u64 = 8;
/// Name of the backup.
const FILE: &str = "backup.db";

/// What goes wrong during one backup.
struct BackupFault {
    errors: String,
    kill_at: u64,
    condition: Option<DiskCondition>,
}

impl BackupFault {
    /// Returns whether nothing goes wrong.
    fn is_harmless(&self) -> bool {
        self.errors.is_empty() && self.kill_at == 0 && self.condition.is_none()
    }
}

fn fault(round: u64) -> BackupFault {
    let none = BackupFault {
        errors: String::new(),
        kill_at: 0,
        condition: None,
    };
    let nth = 1 + round * 7;
    let errors = |errors: String| BackupFault { errors, ..none };
    match round % 8 {
        0 => errors(format!("write:*:{nth}:ENOSPC")),
        1 => errors(format!("write:*:{nth}:EIO")),
        2 => errors("sync:*:1:EIO".to_owned()),
        3 => errors("sync:/:1:EIO".to_owned()),
        4 => BackupFault {
            condition: Some(DiskCondition::Full),
            ..none
        },
        5 => BackupFault {
            condition: Some(DiskCondition::ReadOnly),
            ..none
        },
        6 => none,
        _ => BackupFault {
            kill_at: 1 + (round / 8) % SYNCS,
            ..none
        },
    }
}

/// Makes one backup per round, under load.
pub async fn back_up_to_failing_disk(episode: Episode) -> Totals {
    let library = PowerLibrary::compile();
    let mut instance = Instance::start(Engine::Sqlite, 1).await;
    let (mut totals, mut ledger) = (Totals::default(), Ledger::default());
    // One backup takes little time, so that many fit into an episode.
    for round in 0..episode.rounds * 4 {
        let seed = episode.seed.wrapping_add(round);
        let load = Load::start(&instance, &format!("r{round}a"), seed);
        load.progress(episode.requests).await;
        ledger.add(load.stop().await);
        let before: BTreeSet<String> = ledger.acknowledged.keys().cloned().collect();
        let load = Load::start(&instance, &format!("r{round}b"), seed);
        back_up(&instance, &library, &fault(round), &before, &mut totals).await;
        load.progress(episode.requests).await;
        ledger.add(load.stop().await);
        totals.rounds += 1;
    }
    check(&mut instance, ledger, &mut totals).await;
    totals
}

async fn back_up(
    instance: &Instance,
    library: &PowerLibrary,
    fault: &BackupFault,
    before: &BTreeSet<String>,
    totals: &mut Totals,
) {
    let (live, disk) = (tempfile::tempdir().unwrap(), DurableDisk::empty());
    let faults = DiskFaults {
        errors: fault.errors.clone(),
        kill_at: fault.kill_at,
        ..DiskFaults::default()
    };
    let settings = disk.settings(library, live.path(), &faults);
    if fault.condition.is_some() {
        disk.set(fault.condition);
    }
    let file = live.path().join(FILE);
    let arguments = ["backup", file.to_str().unwrap()];
    let result = tokio::task::block_in_place(|| instance.run(&settings, &arguments));
    let what = format!(
        "{:?}, killed at sync {}, {:?}",
        fault.errors, fault.kill_at, fault.condition
    );
    if result.is_err() && fault.is_harmless() {
        totals.wrong_answers += 1;
        totals.violated(format!("{what}: the backup failed: {result:?}"));
    }
    if result.is_ok() && !file.exists() {
        totals.lost += 1;
        totals.violated(format!(
            "{what}: the backup reported success and wrote no file"
        ));
    }
    if !file.exists() {
        return;
    }
    // The library sees what was synced under the temporary name, and not the renaming.
    let synced = disk.synced();
    let largest = synced
        .iter()
        .max_by_key(|path| std::fs::metadata(path).map_or(0, |file| file.len()));
    for path in [Some(&file), largest] {
        let restored = match path {
            Some(path) => restore(path, before).await,
            None => Err("nothing was synced".to_owned()),
        };
        if let Err(problem) = restored {
            totals.corrupt += 1;
            totals.violated(format!("{what}: {path:?}: {problem}"));
        }
    }
}

/// Restores a backup elsewhere and looks for the events that were acknowledged before it.
async fn restore(file: &Path, before: &BTreeSet<String>) -> Result<(), String> {
    let elsewhere = TestDatabase::new(Engine::Sqlite).await;
    ServerProcess::run(&elsewhere, &["restore", file.to_str().unwrap()])?;
    let ids =
        stored_ids(&elsewhere.folder().join("tributary.db")).map_err(|error| error.to_string())?;
    let missing = before
        .iter()
        .filter(|key| !key.starts_with("install ") && !ids.contains(*key));
    match missing.count() {
        0 => Ok(()),
        missing => Err(format!("{missing} of {} events are missing", before.len())),
    }
}

fn stored_ids(path: &Path) -> Result<BTreeSet<String>, rusqlite::Error> {
    let connection = rusqlite::Connection::open(path)?;
    let mut statement =
        connection.prepare("select given_id from events where given_id is not null")?;
    let ids = statement.query_map((), |row| row.get(0))?;
    ids.collect()
}
