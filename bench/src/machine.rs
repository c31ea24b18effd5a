//! Describes the machine, because results are comparable only on equal hardware.

use crate::pace::{median, thousandths};
use anyhow::{Context as _, ensure};
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Number of timed syncs.
const SYNCS: usize = 200;
/// Bytes per sync: two SQLite pages or one PostgreSQL page.
const SYNCED_BYTES: usize = 8 * 1024;

/// Returns the number of cores.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Time of all cores since the machine started, in ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CoreTimes {
    total: u64,
    /// Time that the host gave to other machines while this one had work.
    stolen: u64,
}

impl CoreTimes {
    /// Reads the times from `/proc/stat`.
    pub(crate) fn read() -> anyhow::Result<Self> {
        Self::parse(&std::fs::read_to_string("/proc/stat")?)
    }

    /// Parses the line `cpu user nice system idle iowait irq softirq steal …`.
    fn parse(text: &str) -> anyhow::Result<Self> {
        let line = text.lines().next().unwrap_or_default();
        let ticks = line.split_ascii_whitespace().skip(1).take(8);
        let ticks: Vec<u64> = ticks.map(str::parse).collect::<Result<_, _>>()?;
        ensure!(ticks.len() == 8, "/proc/stat does not list stolen time");
        Ok(Self {
            total: ticks.iter().sum(),
            stolen: ticks[7],
        })
    }

    /// Returns the stolen time since `before`, in thousandths of the time of all cores.
    pub(crate) fn stolen_since(self, before: Self) -> u64 {
        let total = self.total.saturating_sub(before.total);
        thousandths(self.stolen.saturating_sub(before.stolen), total)
    }
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

/// Returns the CPU time that a process has used so far, user and system.
pub(crate) fn processor_time(process: u32) -> anyhow::Result<Duration> {
    processor_time_in(&PathBuf::from(format!("/proc/{process}/stat")))
}

/// Returns the CPU time that all running processes of PostgreSQL have used so far, user and system.
/// Returns zero if PostgreSQL runs on another machine.
pub(crate) fn postgres_processor_time() -> anyhow::Result<Duration> {
    let mut total = Duration::ZERO;
    for entry in std::fs::read_dir("/proc")? {
        let folder = entry?.path();
        // A process may end at any time.
        let name = std::fs::read_to_string(folder.join("comm")).unwrap_or_default();
        if name.trim_end() == "postgres" {
            total += processor_time_in(&folder.join("stat")).unwrap_or_default();
        }
    }
    Ok(total)
}

fn processor_time_in(stat: &Path) -> anyhow::Result<Duration> {
    let stat = std::fs::read_to_string(stat)?;
    // The process name may contain any character and ends at the last `)`. Field 3 and the
    // later fields follow.
    let (_, fields) = stat
        .rsplit_once(')')
        .context("no process name in /proc stat")?;
    let ticks: Vec<u64> = fields
        .split_whitespace()
        .skip(11)
        .take(2)
        .map(str::parse)
        .collect::<Result<_, _>>()?;
    let tick = Duration::from_secs(1) / u32::try_from(rustix::param::clock_ticks_per_second())?;
    Ok(tick * u32::try_from(ticks.iter().sum::<u64>())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_stolen_time() {
        let before = CoreTimes::parse("cpu  10 0 5 80 0 0 0 5 0 0\ncpu0 1\n").unwrap();
        let after = CoreTimes::parse("cpu  40 0 15 230 0 0 0 15 0 0\n").unwrap();
        assert_eq!(after.stolen_since(before), 50);
        assert_eq!(before.stolen_since(before), 0);
        assert!(CoreTimes::parse("cpu 1 2 3\n").is_err());
        assert!(CoreTimes::parse("").is_err());
    }
}
