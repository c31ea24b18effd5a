//! Output: results with their conditions, and which requirements are met.

use crate::load::LoadResult;
use crate::pace::Latencies;
use std::io::Write as _;
use std::time::Duration;

/// Prints a line. Ignores a closed pipe so that the benchmark continues.
pub(crate) fn print_line(line: impl std::fmt::Display) {
    let mut output = std::io::stdout().lock();
    let _gone = writeln!(output, "{line}");
    let _gone = output.flush();
}

/// Formats thousandths: `350` as `0.350`.
pub(crate) fn ratio(thousandths: u64) -> String {
    format!("{}.{:03}", thousandths / 1_000, thousandths % 1_000)
}

/// Formats milliseconds with three decimals.
pub(crate) fn millis(time: Duration) -> String {
    let micros = time.as_micros();
    format!("{}.{:03} ms", micros / 1_000, micros % 1_000)
}

/// Formats megabytes with one decimal.
pub(crate) fn megabytes(bytes: u64) -> String {
    let tenths = bytes * 10 / (1024 * 1024);
    format!("{}.{} MB", tenths / 10, tenths % 10)
}

/// Formats a result in one line.
pub(crate) fn summary_line(outcome: &LoadResult) -> String {
    let Latencies { p50, p99, max } = outcome.times;
    let rate = outcome.per_second;
    let (p50, p99, max) = (millis(p50), millis(p99), millis(max));
    format!("{rate}/s, p50 {p50}, p99 {p99}, max {max}")
}

/// A benchmark's requirements.
#[derive(Debug, Default)]
pub(crate) struct Requirements {
    failed: usize,
}

impl Requirements {
    /// Records and prints whether a requirement is met.
    pub(crate) fn check(&mut self, is_met: bool, requirement: impl std::fmt::Display) {
        self.failed += usize::from(!is_met);
        let word = if is_met { "met" } else { "NOT MET" };
        print_line(format_args!("  => {requirement}: {word}"));
    }

    /// Returns whether all requirements are met.
    pub(crate) fn all_met(&self) -> bool {
        self.failed == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_numbers_with_fixed_decimals() {
        assert_eq!(ratio(350), "0.350");
        assert_eq!(ratio(1_007), "1.007");
        assert_eq!(millis(Duration::from_micros(12_034)), "12.034 ms");
        assert_eq!(megabytes(1_572_864), "1.5 MB");
    }

    #[test]
    fn one_missed_requirement_fails_the_run() {
        let mut requirements = Requirements::default();
        requirements.check(true, "one");
        assert!(requirements.all_met());
        requirements.check(false, "two");
        assert!(!requirements.all_met());
    }
}
