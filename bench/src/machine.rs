//! Describes the machine, because results are comparable only on equal hardware.

use crate::pace::median;
use anyhow::Context as _;
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

/// Number of timed syncs.
const SYNCS: usize = 200;
/// Bytes per sync: two SQLite pages or one PostgreSQL page.
const SYNCED_BYTES: usize = 8 * 1024;

/// Returns the number of cores.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Returns the median time to write and sync 8 kB in this folder.
pub(crate) fn sync_time(folder: &Path) -> anyhow::Result<Duration> {
    let path = folder.join("sync-time");
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&path)?;
    let mut times = Vec::with_capacity(SYNCS);
    for number in 0..SYNCS {
        let bytes = [u8::try_from(number % 256)?; SYNCED_BYTES];
        let started = Instant::now();
        file.write_all_at(&bytes, 0)?;
        file.sync_data()?;
        times.push(started.elapsed());
    }
    std::fs::remove_file(path)?;
    median(times).context("no sync was timed")
}
