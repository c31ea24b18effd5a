//! `tributary rollups rebuild`: rebuilds the roll-ups from the events and reports how many rows
//! were wrong.
//!
//! The server may be running. The rebuild processes one day of one app at a time, and writes for
//! that day wait until the day is done.

use super::print_line;
use crate::cli::RollupsCommand;
use crate::config::Config;
use crate::wiring;
use anyhow::Context as _;
use std::io::{self, IsTerminal as _, Write as _};
use tributary_store::{RebuildReport, Store};

/// Width of the progress bar in characters.
const BAR_CHARS: usize = 30;

/// Runs a `rollups` command.
pub async fn run(config: &Config, command: RollupsCommand) -> anyhow::Result<()> {
    let RollupsCommand::Rebuild = command;
    wiring::require_database(config)?;
    let store = wiring::open_existing_store(config).await?;
    let done = rebuild(&*store).await;
    store.close().await;
    let (days, all) = done?;
    print_line(format!(
        "{days} days, {} events: {} rows were correct, {} were corrected.",
        all.events, all.correct_rows, all.corrected_rows
    ));
    Ok(())
}

async fn rebuild(store: &dyn Store) -> anyhow::Result<(usize, RebuildReport)> {
    let days = store.rollup_days().await?;
    let mut sum = RebuildReport::default();
    let progress = Progress::of(days.len());
    for (done, day) in days.iter().enumerate() {
        progress.show(done, &sum);
        let rebuilt = store.rebuild_rollups(*day).await.with_context(|| {
            format!(
                "failed to rebuild {} of {}; earlier days are done",
                day.day, day.app
            )
        })?;
        sum.events += rebuilt.events;
        sum.correct_rows += rebuilt.correct_rows;
        sum.corrected_rows += rebuilt.corrected_rows;
    }
    progress.clear();
    Ok((days.len(), sum))
}

/// Progress bar, shown on a terminal.
struct Progress {
    total: usize,
    is_shown: bool,
}

impl Progress {
    fn of(all: usize) -> Self {
        Self {
            total: all,
            is_shown: io::stderr().is_terminal(),
        }
    }

    fn show(&self, done: usize, sum: &RebuildReport) {
        if self.is_shown {
            let mut stderr = io::stderr().lock();
            let _gone = write!(stderr, "\r{}", progress_bar(done, self.total, sum));
            let _gone = stderr.flush();
        }
    }

    fn clear(&self) {
        if self.is_shown {
            let _gone = write!(io::stderr().lock(), "\r\u{1b}[K");
        }
    }
}

fn progress_bar(done: usize, all: usize, sum: &RebuildReport) -> String {
    let filled = (done * BAR_CHARS).checked_div(all).unwrap_or(BAR_CHARS);
    let (full, rest) = ("#".repeat(filled), " ".repeat(BAR_CHARS - filled));
    format!("[{full}{rest}] day {done} of {all}, {} events", sum.events)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_progress_bar_fills_up() {
        let sum = RebuildReport::default();
        assert!(progress_bar(0, 10, &sum).starts_with(&format!("[{}]", " ".repeat(BAR_CHARS))));
        let half = format!("[{}{}]", "#".repeat(15), " ".repeat(15));
        assert!(progress_bar(5, 10, &sum).starts_with(&half));
        assert!(progress_bar(0, 0, &sum).starts_with(&format!("[{}]", "#".repeat(BAR_CHARS))));
    }
}
