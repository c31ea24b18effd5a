//! What a figure is worth nothing without: the machine it was read on.

use crate::pace::median;
use anyhow::Context as _;
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

/// Syncs that are timed.
const SYNCS: usize = 200;
/// Bytes that each of them brings to the disk: two pages of SQLite, one of PostgreSQL.
const SYNCED_BYTES: usize = 8 * 1024;

/// How many cores there are.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// How long the disk of this folder takes to make 8 kB durable, in the middle.
pub(crate) fn sync_time(folder: &Path) -> anyhow::Result<Duration> {
    let path = folder.join("sync-time");
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&path)?;
    let mut times = Vec::with_capacity(SYNCS);
    for number in 0..SYNCS {
        let bytes = [u8::try_from(number % 256)?; SYNCED_BYTES];
        let begun = Instant::now();
        file.write_all_at(&bytes, 0)?;
        file.sync_data()?;
        times.push(begun.elapsed());
    }
    std::fs::remove_file(path)?;
    median(times).context("no sync was timed")
}
