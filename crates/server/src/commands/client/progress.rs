//! Progress of long work, on standard error.

use std::io::{self, IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

/// Shorter work shows no progress.
const QUIET: Duration = Duration::from_secs(1);
/// Delay between two updates on a terminal, where a line replaces the last one.
const UPDATE_DELAY: Duration = Duration::from_millis(200);
/// Delay between two lines in a file.
const LINE_DELAY: Duration = Duration::from_secs(10);

/// Shows progress, rarely enough to cost nothing.
pub(super) struct ClientProgress {
    begun: Instant,
    shown: Option<Instant>,
    is_enabled: bool,
    is_terminal: bool,
}

impl ClientProgress {
    pub(super) fn start(is_enabled: bool) -> Self {
        Self {
            begun: Instant::now(),
            shown: None,
            is_enabled,
            is_terminal: io::stderr().is_terminal(),
        }
    }

    /// Shows how far the work is, if that is due.
    pub(super) fn show(&mut self, text: &str) {
        let delay = if self.is_terminal {
            UPDATE_DELAY
        } else {
            LINE_DELAY
        };
        let is_due = match self.shown {
            None => self.begun.elapsed() >= if self.is_terminal { QUIET } else { LINE_DELAY },
            Some(shown) => shown.elapsed() >= delay,
        };
        if !self.is_enabled || !is_due {
            return;
        }
        self.shown = Some(Instant::now());
        let seconds = self.begun.elapsed().as_secs();
        let mut stderr = io::stderr().lock();
        let _gone = if self.is_terminal {
            write!(stderr, "\r\u{1b}[K{text}, {seconds} s")
        } else {
            writeln!(stderr, "tributary: {text}, {seconds} s")
        };
        let _gone = stderr.flush();
    }

    /// Removes the line from the terminal, before something else is printed there.
    pub(super) fn clear(&self) {
        if self.is_terminal && self.shown.is_some() {
            let mut stderr = io::stderr().lock();
            let _gone = write!(stderr, "\r\u{1b}[K");
            let _gone = stderr.flush();
        }
    }
}
