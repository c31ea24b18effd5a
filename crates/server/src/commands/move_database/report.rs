//! Progress and rate of a copy.

use crate::commands::print_line;
use std::io::{self, IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

/// Time between two updates on a terminal.
const UPDATE_INTERVAL: Duration = Duration::from_millis(500);

/// Counts copied rows. Shows them on a terminal while a table is being copied, and prints a line
/// when the table is done.
pub(super) struct CopyReport {
    begun: Instant,
    rows: u64,
    table_begun: Instant,
    table_rows: u64,
    shown: Option<Instant>,
    is_terminal: bool,
}

impl CopyReport {
    pub(super) fn new() -> Self {
        Self {
            begun: Instant::now(),
            rows: 0,
            table_begun: Instant::now(),
            table_rows: 0,
            shown: None,
            is_terminal: io::stderr().is_terminal(),
        }
    }

    pub(super) fn begin_table(&mut self) {
        (self.table_begun, self.table_rows) = (Instant::now(), 0);
    }

    pub(super) fn add(&mut self, table: &str, rows: u64) {
        self.rows += rows;
        self.table_rows += rows;
        let is_due = self.shown.is_none_or(|at| at.elapsed() > UPDATE_INTERVAL);
        if self.is_terminal && is_due {
            self.shown = Some(Instant::now());
            let line = line(self.table_rows, self.table_begun.elapsed());
            let mut stderr = io::stderr().lock();
            let _gone = write!(stderr, "\r\u{1b}[K{table}: {line}");
            let _gone = stderr.flush();
        }
    }

    pub(super) fn end_table(&self, table: &str) {
        if self.table_rows > 0 {
            self.clear();
            let line = line(self.table_rows, self.table_begun.elapsed());
            print_line(format!("{table}: {line}"));
        }
    }

    pub(super) fn end(&self) {
        if self.rows > 0 {
            self.clear();
            print_line(format!("Copied {}.", line(self.rows, self.begun.elapsed())));
        }
    }

    fn clear(&self) {
        if self.is_terminal {
            let _gone = write!(io::stderr().lock(), "\r\u{1b}[K");
        }
    }
}

/// Describes a number of rows and its rate.
fn line(rows: u64, within: Duration) -> String {
    let millis = u64::try_from(within.as_millis()).unwrap_or(u64::MAX).max(1);
    let rate = rows.saturating_mul(1_000) / millis;
    format!("{rows} rows in {}, {rate} rows a second", seconds(within))
}

/// Formats a duration as seconds with one digit.
pub(super) fn seconds(duration: Duration) -> String {
    let tenths = duration.as_millis() / 100;
    format!("{}.{} s", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_rows_and_rate() {
        let expected = "3000 rows in 1.5 s, 2000 rows a second";
        assert_eq!(line(3_000, Duration::from_millis(1_500)), expected);
        assert_eq!(line(0, Duration::ZERO), "0 rows in 0.0 s, 0 rows a second");
    }
}
