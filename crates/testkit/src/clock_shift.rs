//! Shifts the wall clock of a server process while it runs.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::process::Command;
use tempfile::TempDir;

/// The preloaded library.
const SOURCE: &str = include_str!("../tools/clockshift.c");

/// A shift of the wall clock. Processes that were started with its settings follow it at once.
#[derive(Debug)]
pub struct ClockShift {
    folder: TempDir,
    file: File,
}

impl ClockShift {
    /// Compiles the library and creates a shift of zero.
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("create temporary folder");
        let source = folder.path().join("clockshift.c");
        std::fs::write(&source, SOURCE).expect("write the source");
        let compiled = Command::new("cc")
            .args([
                "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o",
            ])
            .args([&folder.path().join("libclockshift.so"), &source])
            .status();
        assert!(compiled.expect("a C compiler (cc)").success());
        let file = File::create(folder.path().join("shift")).expect("create file");
        let shift = Self { folder, file };
        shift.set_millis(0);
        shift
    }

    /// Returns the settings of a server process that follows the shift.
    pub fn settings(&self) -> [(&'static str, String); 2] {
        let path = |name: &str| -> String {
            let path: PathBuf = self.folder.path().join(name);
            path.to_str().expect("a path in UTF-8").to_owned()
        };
        [
            ("LD_PRELOAD", path("libclockshift.so")),
            ("CLOCKSHIFT_FILE", path("shift")),
        ]
    }

    /// Sets how far the clock is ahead; a negative number sets it back.
    pub fn set_millis(&self, millis: i64) {
        let nanos = millis.checked_mul(1_000_000).expect("less than 292 years");
        self.file
            .write_all_at(&nanos.to_ne_bytes(), 0)
            .expect("write the shift");
    }
}

impl Default for ClockShift {
    fn default() -> Self {
        Self::new()
    }
}
