//! When to merge pending increments into the roll-ups.

use std::time::Duration;

/// Number of an app's increments at which they are merged. A report adds up that many within
/// a millisecond. Merging fewer costs the database more than the increments themselves when a
/// thousand apps count at the same time.
const MERGED_AT_COUNT: u64 = 64;
/// Age at which an app's increments are merged, however few they are.
const MERGED_AT_AGE: Duration = Duration::from_secs(10);

/// An app's pending increments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PendingIncrements {
    /// Number of increments.
    pub count: u64,
    /// Time since the oldest one was noticed.
    pub age: Duration,
}

impl PendingIncrements {
    /// Returns whether to merge them now.
    pub fn are_due(self) -> bool {
        self.count >= MERGED_AT_COUNT || (self.count > 0 && self.age >= MERGED_AT_AGE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::none(0, 3_600, false)]
    #[case::few_and_recent(1, 0, false)]
    #[case::just_too_few(63, 9, false)]
    #[case::many(64, 0, true)]
    #[case::old(1, 10, true)]
    fn increments_are_merged_when_many_or_old(
        #[case] count: u64,
        #[case] seconds: u64,
        #[case] due: bool,
    ) {
        let age = Duration::from_secs(seconds);
        assert_eq!(PendingIncrements { count, age }.are_due(), due);
    }
}
