//! A disk that breaks, fills up and loses what was not synced, for nodes on SQLite.
//!
//! `acceptance/tools/powercut.c` is preloaded into the server. It maintains a second folder with only the
//! bytes that the server has synced: the disk after a power cut.

use crate::instance::{Instance, Settings, settings};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// The compiled library.
pub struct PowerLibrary {
    path: PathBuf,
    _folder: TempDir,
}

impl PowerLibrary {
    /// Compiles the library.
    pub fn compile() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("libpowercut.so");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tools/powercut.c");
        let compiled = Command::new("cc")
            .args([
                "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o",
            ])
            .args([&path, &source])
            .args(["-ldl", "-pthread"])
            .status();
        assert!(compiled.expect("a C compiler (cc)").success());
        Self {
            path,
            _folder: folder,
        }
    }
}

/// What happens to the disk while a server uses it.
#[derive(Debug, Clone, Default)]
pub struct DiskFaults {
    /// `POWERCUT_FAIL`: errors of single calls.
    pub errors: String,
    /// `POWERCUT_LEAK`: percentage of sectors that reach the disk without a sync.
    pub leak: u64,
    /// `POWERCUT_IGNORE`: files whose syncs do nothing. For counter-tests.
    pub ignored: &'static str,
    /// Seed of the leaks.
    pub seed: u64,
    /// `POWERCUT_AT`: the sync at which the process is killed; 0 for none.
    pub kill_at: u64,
}

/// A condition of the whole disk. It lasts until it is cleared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskCondition {
    /// Writes fail with ENOSPC.
    Full,
    /// Writes, truncations and new files fail with EROFS.
    ReadOnly,
    /// Writes and syncs fail with EIO.
    Broken,
    /// Syncs take this many milliseconds longer.
    Slow(u64),
}

impl DiskCondition {
    fn text(self) -> String {
        match self {
            Self::Full => "full".to_owned(),
            Self::ReadOnly => "readonly".to_owned(),
            Self::Broken => "broken".to_owned(),
            Self::Slow(milliseconds) => format!("slow {milliseconds}"),
        }
    }
}

/// The folder with the durable bytes of an instance's database.
pub struct DurableDisk {
    folder: TempDir,
    outside: TempDir,
}

impl DurableDisk {
    /// Starts with an empty folder.
    pub fn empty() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            outside: tempfile::tempdir().unwrap(),
        }
    }

    /// Returns the files whose bytes were synced, with or without a durable name.
    pub fn synced(&self) -> Vec<PathBuf> {
        let folders = [
            self.folder.path().to_owned(),
            self.folder.path().join(".powercut"),
        ];
        let entries = folders
            .iter()
            .flat_map(std::fs::read_dir)
            .flatten()
            .flatten();
        let paths = entries.map(|entry| entry.path());
        paths.filter(|path| path.is_file()).collect()
    }

    /// Copies the database of an instance whose node is not running.
    pub fn of(instance: &Instance) -> Self {
        let disk = Self::empty();
        copy_database(&instance.database.folder(), disk.folder.path());
        disk
    }

    /// Returns the settings of a node that uses this disk.
    pub fn settings(&self, library: &PowerLibrary, live: &Path, faults: &DiskFaults) -> Settings {
        let text = |path: &Path| path.to_str().unwrap().to_owned();
        settings(&[
            ("LD_PRELOAD", &text(&library.path)),
            ("POWERCUT_LIVE", &text(live)),
            ("POWERCUT_DISK", &text(self.folder.path())),
            ("POWERCUT_FAIL", &faults.errors),
            ("POWERCUT_IGNORE", faults.ignored),
            ("POWERCUT_LEAK", &faults.leak.to_string()),
            ("POWERCUT_SEED", &faults.seed.to_string()),
            ("POWERCUT_AT", &faults.kill_at.to_string()),
            ("POWERCUT_WHILE", &text(&self.switch())),
            // The kernel survives the kill, so that real syncs add nothing: only bytes that the library
            // copied after a sync count.
            ("POWERCUT_FAST", "1"),
        ])
    }

    fn switch(&self) -> PathBuf {
        self.outside.path().join("condition")
    }

    /// Sets or clears the condition of the disk.
    pub fn set(&self, condition: Option<DiskCondition>) {
        match condition {
            // Renamed, so that the library never reads half of it.
            Some(condition) => {
                let new = self.outside.path().join("new");
                std::fs::write(&new, condition.text()).unwrap();
                std::fs::rename(new, self.switch()).unwrap();
            }
            None => std::fs::remove_file(self.switch()).unwrap(),
        }
    }

    /// Replaces the instance's database by the durable bytes, after its node was killed. Returns the
    /// damage that `SQLite` finds in them.
    pub fn cut(self, instance: &Instance) -> Option<String> {
        let stash = self.folder.path().join(".powercut");
        if stash.exists() {
            std::fs::remove_dir_all(stash).unwrap();
        }
        let live = instance.database.folder();
        for file in database_files(&live) {
            std::fs::remove_file(file).unwrap();
        }
        copy_database(self.folder.path(), &live);
        damage(&self.folder.path().join("tributary.db"))
    }
}

/// Returns the number of errors that the library has injected into a node.
pub fn injected(log: &str) -> usize {
    log.matches("powercut: injected ").count()
}

/// Runs the integrity check on a database that no process uses.
fn damage(path: &Path) -> Option<String> {
    let check = || -> Result<String, rusqlite::Error> {
        let connection = rusqlite::Connection::open(path)?;
        connection.query_row("pragma integrity_check", (), |row| row.get(0))
    };
    match check() {
        Ok(result) if result == "ok" => None,
        Ok(damage) => Some(damage),
        Err(error) => Some(error.to_string()),
    }
}

fn database_files(folder: &Path) -> Vec<PathBuf> {
    let is_database_file = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with("tributary.db"))
    };
    let entries = std::fs::read_dir(folder).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.filter(is_database_file).collect()
}

/// Copies the database files, except `-shm`, which SQLite rebuilds.
fn copy_database(from: &Path, to: &Path) {
    for file in database_files(from) {
        let name = file.file_name().unwrap();
        if !name.to_str().unwrap().ends_with("-shm") {
            std::fs::copy(&file, to.join(name)).unwrap();
        }
    }
}
