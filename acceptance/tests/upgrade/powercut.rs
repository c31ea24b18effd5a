//! The migrating process under `acceptance/tools/powercut.c`, which kills it at a sync or a write,
//! injects disk errors, and keeps what would be on the disk after a power cut.

use super::OldDatabase;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use tempfile::TempDir;
use tributary_testkit::{Engine, ServerProcess, TestDatabase};

/// SIGKILL.
const KILLED: i32 = 9;

/// The compiled library.
pub(super) struct Library {
    folder: TempDir,
}

/// Result of a run: the state after the end of the process, and the state after a power cut.
pub(super) struct Run {
    status: ExitStatus,
    /// Standard output and error.
    pub(super) printed: String,
    /// As the process left it.
    pub(super) live: TestDatabase,
    /// With only what was synced.
    pub(super) disk: TestDatabase,
}

impl Run {
    /// Returns whether the library killed the process.
    pub(super) fn was_killed(&self) -> bool {
        self.status.signal() == Some(KILLED)
    }

    pub(super) fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// Returns whether an error was injected.
    pub(super) fn has_fault(&self) -> bool {
        self.printed.contains("powercut: injected")
    }
}

impl Library {
    pub(super) fn compile() -> Self {
        let folder = TestDatabase::temp_folder();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tools/powercut.c");
        let compiled = Command::new("cc")
            .args(["-O2", "-shared", "-fPIC", "-o"])
            .args([&folder.path().join("libpowercut.so"), &source])
            .args(["-ldl", "-pthread"])
            .status();
        assert!(compiled.expect("a C compiler (cc)").success());
        Self { folder }
    }

    /// Migrates a copy of the database with these settings of the library.
    pub(super) async fn migrate(&self, old: &OldDatabase, settings: &[(&str, &str)]) -> Run {
        let live = TestDatabase::new(Engine::Sqlite).await;
        let disk = TestDatabase::new(Engine::Sqlite).await;
        for copy in [&live, &disk] {
            std::fs::copy(file_of(&old.database), file_of(copy)).unwrap();
        }
        let output = ServerProcess::command(&live, &["migrate"])
            .env("LD_PRELOAD", self.folder.path().join("libpowercut.so"))
            .env("POWERCUT_LIVE", live.folder())
            .env("POWERCUT_DISK", disk.folder())
            // The kernel survives the kill, so real syncs are not needed.
            .env("POWERCUT_FAST", "1")
            .envs(settings.iter().copied())
            .output()
            .unwrap();
        std::fs::remove_dir_all(disk.folder().join(".powercut")).unwrap();
        let text = [output.stdout, output.stderr].concat();
        Run {
            status: output.status,
            printed: String::from_utf8_lossy(&text).into_owned(),
            live,
            disk,
        }
    }
}

fn file_of(database: &TestDatabase) -> PathBuf {
    database.folder().join("tributary.db")
}
