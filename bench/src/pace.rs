//! Request pacing and latency statistics.

use std::time::Duration;

const NANOS_PER_SECOND: u128 = 1_000_000_000;

/// Request pacing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LoadPace {
    /// Closed loop: send the next request as soon as the last response arrives. Finds the maximum
    /// throughput; latencies are not meaningful.
    FlatOut,
    /// Open loop: this many requests per second, whether or not the server keeps up. Latency counts
    /// from the due time, so it includes the wait of requests that queue behind a stall.
    PerSecond(u64),
}

impl LoadPace {
    /// Returns when request `number`, counted from 0, is due.
    pub(crate) fn due(self, number: u64) -> Duration {
        match self {
            Self::FlatOut => Duration::ZERO,
            Self::PerSecond(rate) => {
                let nanos = u128::from(number) * NANOS_PER_SECOND / u128::from(rate.max(1));
                Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
            }
        }
    }
}

/// Returns the rate per second.
pub(crate) fn per_second(count: u64, elapsed: Duration) -> u64 {
    let rate = u128::from(count) * NANOS_PER_SECOND / elapsed.as_nanos().max(1);
    u64::try_from(rate).unwrap_or(u64::MAX)
}

/// Returns `part` in thousandths of `whole`.
pub(crate) fn thousandths(part: u64, whole: u64) -> u64 {
    part.saturating_mul(1_000) / whole.max(1)
}

/// Returns the median: the lower of the two middle values if their number is even.
pub(crate) fn median<T: Ord + Copy>(mut values: Vec<T>) -> Option<T> {
    values.sort_unstable();
    let last = values.len().checked_sub(1)?;
    values.get(last / 2).copied()
}

/// Latency statistics for a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Latencies {
    pub(crate) p50: Duration,
    pub(crate) p99: Duration,
    pub(crate) max: Duration,
}

impl Latencies {
    /// Computes the statistics.
    pub(crate) fn of(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        Self {
            p50: percentile(&times, 50),
            p99: percentile(&times, 99),
            max: times.last().copied().unwrap_or_default(),
        }
    }
}

/// Nearest-rank percentile.
fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(all: impl IntoIterator<Item = u64>) -> Vec<Duration> {
        all.into_iter().map(Duration::from_millis).collect()
    }

    #[test]
    fn percentiles_are_measured_values() {
        let times = Latencies::of(millis((1..=200).rev()));
        assert_eq!(times.p50, Duration::from_millis(100));
        assert_eq!(times.p99, Duration::from_millis(198));
        assert_eq!(times.max, Duration::from_millis(200));
        let one = Latencies::of(millis([7]));
        assert_eq!((one.p50, one.p99), (one.max, one.max));
        assert_eq!(Latencies::of(Vec::new()), Latencies::default());
    }

    #[test]
    fn due_times_do_not_drift() {
        let pace = LoadPace::PerSecond(3);
        assert_eq!(pace.due(0), Duration::ZERO);
        assert_eq!(pace.due(3), Duration::from_secs(1));
        assert_eq!(
            pace.due(3_000_001),
            Duration::from_nanos(1_000_000_333_333_333)
        );
        assert_eq!(LoadPace::FlatOut.due(5), Duration::ZERO);
    }

    #[test]
    fn computes_rates_ratios_and_medians() {
        assert_eq!(per_second(30, Duration::from_millis(500)), 60);
        assert_eq!(thousandths(7, 20), 350);
        assert_eq!(median(vec![9, 1, 5]), Some(5));
        assert_eq!(median(vec![9, 1]), Some(1));
        assert_eq!(median(Vec::<u64>::new()), None);
    }
}
