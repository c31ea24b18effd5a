//! Counts over many runs.

use std::fmt;

/// Prefixes of violations, which tell their kind.
pub(crate) const LOST: &str = "lost";
/// See [`LOST`].
pub(crate) const DOUBLED: &str = "doubled";
/// See [`LOST`].
pub(crate) const WRONG_SUM: &str = "wrong sum";

/// Counts of what happened in one or several runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// Runs.
    pub seeds: u64,
    /// Processes that were killed or lost their power.
    pub crashes: u64,
    /// Processes that were stopped and restarted.
    pub stops: u64,
    /// Processes that could not open the database.
    pub failed_starts: u64,
    /// Calls on the disk that failed.
    pub disk_errors: u64,
    /// Requests that were acknowledged.
    pub acknowledged: u64,
    /// Requests without an answer, or with the answer that the result is unknown.
    pub unknown: u64,
    /// Requests that a rule refused.
    pub refused: u64,
    /// Acknowledged things that are missing.
    pub lost: u64,
    /// Things that exist or count more than once.
    pub doubled: u64,
    /// Sums that differ.
    pub wrong_sums: u64,
    /// Other violations.
    pub other_violations: u64,
}

impl Totals {
    /// Adds other counts.
    pub fn add(&mut self, other: &Self) {
        self.seeds += other.seeds;
        self.crashes += other.crashes;
        self.stops += other.stops;
        self.failed_starts += other.failed_starts;
        self.disk_errors += other.disk_errors;
        self.acknowledged += other.acknowledged;
        self.unknown += other.unknown;
        self.refused += other.refused;
        self.lost += other.lost;
        self.doubled += other.doubled;
        self.wrong_sums += other.wrong_sums;
        self.other_violations += other.other_violations;
    }

    /// Returns the number of violations.
    pub fn violations(&self) -> u64 {
        self.lost + self.doubled + self.wrong_sums + self.other_violations
    }

    pub(crate) fn count_violations(&mut self, violations: &[String]) {
        for violation in violations {
            let count = match violation.as_str() {
                text if text.starts_with(LOST) => &mut self.lost,
                text if text.starts_with(DOUBLED) => &mut self.doubled,
                text if text.starts_with(WRONG_SUM) => &mut self.wrong_sums,
                _ => &mut self.other_violations,
            };
            *count += 1;
        }
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = [
            ("seeds", self.seeds),
            ("crashes", self.crashes),
            ("stops", self.stops),
            ("failed starts", self.failed_starts),
            ("disk errors", self.disk_errors),
            ("acknowledged", self.acknowledged),
            ("unknown", self.unknown),
            ("refused", self.refused),
            ("lost", self.lost),
            ("doubled", self.doubled),
            ("wrong sums", self.wrong_sums),
            ("other violations", self.other_violations),
        ];
        for (name, count) in lines {
            writeln!(formatter, "{name}: {count}")?;
        }
        Ok(())
    }
}
