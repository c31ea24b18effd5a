//! Runs the rounds of a measurement, and repeats those during which the host took away cores.
//!
//! On a virtual machine, the host may take the cores away for up to seconds at a time. A disturbed
//! round shows the load of the host, not the speed of the server.

use crate::machine::CoreTimes;
use crate::report::print_line;

/// Maximum stolen time of an undisturbed round, in thousandths of the time of all cores.
const STOLEN_MAX: u64 = 10;
/// Maximum number of repetitions of a measurement that also accepts disturbed rounds. With the
/// default of three rounds, it takes at most three times as long.
pub(crate) const REPETITIONS_MAX: usize = 6;

/// The rounds of a measurement that count.
#[derive(Debug, Default)]
pub(crate) struct MeasuredRounds<T> {
    pub(crate) results: Vec<T>,
    /// Maximum stolen time of a round, in thousandths of the time of all cores.
    pub(crate) stolen: u64,
}

impl<T> MeasuredRounds<T> {
    /// Returns whether the host left the cores to this machine in all rounds.
    pub(crate) const fn are_undisturbed(&self) -> bool {
        self.stolen <= STOLEN_MAX
    }
}

/// Runs rounds, numbered from 1. Repeats a disturbed round with the same number while repetitions
/// are left; then it counts. If a round compares two servers, it has to run both, so that they are
/// repeated together.
pub(crate) fn run_rounds<T>(
    rounds: usize,
    repetitions_max: usize,
    mut run: impl FnMut(usize) -> anyhow::Result<T>,
) -> anyhow::Result<MeasuredRounds<T>> {
    repeat_disturbed(rounds, repetitions_max, |number| {
        let before = CoreTimes::read()?;
        let result = run(number)?;
        Ok((result, CoreTimes::read()?.stolen_since(before)))
    })
}

/// Like [`run_rounds`]; `run` also returns the stolen time.
fn repeat_disturbed<T>(
    rounds: usize,
    repetitions_max: usize,
    mut run: impl FnMut(usize) -> anyhow::Result<(T, u64)>,
) -> anyhow::Result<MeasuredRounds<T>> {
    let (mut results, mut stolen_max) = (Vec::new(), 0);
    let mut left = repetitions_max;
    while results.len() < rounds {
        let number = results.len() + 1;
        let (result, stolen) = run(number)?;
        if stolen > STOLEN_MAX {
            let taken =
                format!("    round {number}: the host took away {stolen} thousandths of the cores");
            if let Some(fewer) = left.checked_sub(1) {
                print_line(format_args!("{taken}; repeating"));
                left = fewer;
                continue;
            }
            print_line(format_args!("{taken}; no repetitions left"));
        }
        results.push(result);
        stolen_max = stolen_max.max(stolen);
    }
    Ok(MeasuredRounds {
        results,
        stolen: stolen_max,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context as _;

    /// Runs rounds with these stolen times. The result of a round is its number and the number of
    /// the attempt, from 0.
    fn run(
        rounds: usize,
        repetitions_max: usize,
        stolen: &[u64],
    ) -> anyhow::Result<MeasuredRounds<(usize, usize)>> {
        let mut attempts = stolen.iter().copied().enumerate();
        repeat_disturbed(rounds, repetitions_max, |number| {
            let (attempt, stolen) = attempts.next().context("too many attempts")?;
            Ok(((number, attempt), stolen))
        })
    }

    #[test]
    fn repeats_disturbed_rounds() {
        let measured = run(2, 3, &[STOLEN_MAX + 1, 400, STOLEN_MAX, 11, 0]).unwrap();
        assert_eq!(measured.results, [(1, 2), (2, 4)]);
        assert_eq!(measured.stolen, STOLEN_MAX);
        assert!(measured.are_undisturbed());
    }

    #[test]
    fn counts_disturbed_rounds_when_no_repetitions_are_left() {
        let measured = run(3, 2, &[50, 0, 60, 70, 30]).unwrap();
        assert_eq!(measured.results, [(1, 1), (2, 3), (3, 4)]);
        assert_eq!(measured.stolen, 70);
        assert!(!measured.are_undisturbed());
    }

    #[test]
    fn a_failed_round_is_not_repeated() {
        assert!(run(1, 3, &[]).is_err());
    }
}
