//! What is printed: figures with their conditions, and whether the floors are held.

use std::io::Write as _;
use std::time::Duration;

/// Prints a line. A reader who has gone away is no reason to stop measuring.
pub(crate) fn print_line(line: impl std::fmt::Display) {
    let mut output = std::io::stdout().lock();
    let _gone = writeln!(output, "{line}");
    let _gone = output.flush();
}

/// `350` thousandths are `0.350`.
pub(crate) fn ratio(thousandths: u64) -> String {
    format!("{}.{:03}", thousandths / 1_000, thousandths % 1_000)
}

/// Milliseconds with three digits behind the point.
pub(crate) fn millis(time: Duration) -> String {
    let micros = time.as_micros();
    format!("{}.{:03} ms", micros / 1_000, micros % 1_000)
}

/// Megabytes with one digit behind the point.
pub(crate) fn megabytes(bytes: u64) -> String {
    let tenths = bytes * 10 / (1024 * 1024);
    format!("{}.{} MB", tenths / 10, tenths % 10)
}

/// What was demanded, and whether it is so.
#[derive(Debug, Default)]
pub(crate) struct Requirements {
    failed: usize,
}

impl Requirements {
    /// Notes one, and prints it.
    pub(crate) fn check(&mut self, held: bool, demand: impl std::fmt::Display) {
        self.failed += usize::from(!held);
        let word = if held { "held" } else { "NOT HELD" };
        print_line(format_args!("  => {demand}: {word}"));
    }

    /// Whether all are held.
    pub(crate) fn all_met(&self) -> bool {
        self.failed == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_written_with_their_digits() {
        assert_eq!(ratio(350), "0.350");
        assert_eq!(ratio(1_007), "1.007");
        assert_eq!(millis(Duration::from_micros(12_034)), "12.034 ms");
        assert_eq!(megabytes(1_572_864), "1.5 MB");
    }

    #[test]
    fn one_that_is_not_held_is_enough() {
        let mut verdicts = Requirements::default();
        verdicts.check(true, "one");
        assert!(verdicts.all_met());
        verdicts.check(false, "two");
        assert!(!verdicts.all_met());
    }
}
