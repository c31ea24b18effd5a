//! Time grains of roll-ups, and splitting a period into them.
//!
//! The days of every time zone consist of whole quarter hours. Reading a month of quarter hours
//! takes 2,880 rows per key, so the same figures are also kept per UTC hour and UTC day. A period
//! is read as the fewest buckets that cover it.

use crate::vocabulary::time::Timestamp;

const MILLIS_PER_MINUTE: i64 = 60 * 1_000;

/// Length of a bucket, aligned to UTC. Each grain is a multiple of the shorter ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Grain {
    /// Fifteen minutes.
    Quarter,
    /// An hour.
    Hour,
    /// A UTC day.
    Day,
    /// Details by quarter hour of figures that count under `(other)`. Reports do not read them.
    FoldedQuarter,
    /// Details by UTC day of figures that count under `(other)`. Reports do not read them.
    FoldedDay,
}

impl Grain {
    /// All grains that reports read, shortest first.
    pub const ALL: [Self; 3] = [Self::Quarter, Self::Hour, Self::Day];

    /// The grains of details.
    pub const FOLDED: [Self; 2] = [Self::FoldedQuarter, Self::FoldedDay];

    /// Returns the stored form: the length in minutes, negative for details.
    pub const fn minutes(self) -> i64 {
        match self {
            Self::Quarter => 15,
            Self::Hour => 60,
            Self::Day => 24 * 60,
            Self::FoldedQuarter => -15,
            Self::FoldedDay => -24 * 60,
        }
    }

    /// Reads a stored grain.
    pub fn parse(minutes: i64) -> Option<Self> {
        let mut all = Self::ALL.into_iter().chain(Self::FOLDED);
        all.find(|one| one.minutes() == minutes)
    }

    /// Returns the start of the bucket that contains `moment`.
    pub const fn bucket_start(self, moment: Timestamp) -> Timestamp {
        let millis = self.minutes().abs() * MILLIS_PER_MINUTE;
        Timestamp::from_millis(moment.as_millis().div_euclid(millis).saturating_mul(millis))
    }

    /// Returns the start of the first bucket that starts at or after `moment`.
    fn next_bucket_start(self, moment: Timestamp) -> Timestamp {
        let start = self.bucket_start(moment);
        if start == moment {
            return start;
        }
        let millis = self.minutes().abs() * MILLIS_PER_MINUTE;
        Timestamp::from_millis(start.as_millis().saturating_add(millis))
    }
}

/// A bucket, identified by its start. It is a quarter hour unless widened by [`Self::within`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bucket(Timestamp);

impl Bucket {
    /// Returns the quarter hour that contains `moment`.
    pub const fn of(moment: Timestamp) -> Self {
        Self(Grain::Quarter.bucket_start(moment))
    }

    /// Returns the longer bucket that contains this one.
    #[must_use]
    pub const fn within(self, grain: Grain) -> Self {
        Self(grain.bucket_start(self.0))
    }

    /// Returns the start, which is the stored form.
    pub const fn begins_at(self) -> Timestamp {
        self.0
    }
}

/// Half-open period: start inclusive, end exclusive.
pub type Period = (Timestamp, Timestamp);

/// A run of consecutive buckets of one grain that covers part of a period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GrainSpan {
    /// Index of the period.
    pub period: usize,
    /// Grain of the buckets.
    pub grain: Grain,
    /// Start of the first bucket.
    pub from: Timestamp,
    /// End of the last bucket, exclusive.
    pub until: Timestamp,
}

/// Splits periods into the fewest buckets that cover them. Bounds are rounded down to the quarter
/// hour.
pub fn split_by_grain(periods: &[Period]) -> Vec<GrainSpan> {
    let mut spans = Vec::new();
    for (number, (from, until)) in periods.iter().enumerate() {
        let (from, until) = (
            Grain::Quarter.bucket_start(*from),
            Grain::Quarter.bucket_start(*until),
        );
        split(number, Grain::Day, from, until, &mut spans);
    }
    spans
}

fn split(
    period: usize,
    grain: Grain,
    from: Timestamp,
    until: Timestamp,
    spans: &mut Vec<GrainSpan>,
) {
    if from >= until {
        return;
    }
    let (first, last) = (grain.next_bucket_start(from), grain.bucket_start(until));
    let finer = match grain {
        Grain::Day | Grain::FoldedDay => Grain::Hour,
        Grain::Hour | Grain::Quarter | Grain::FoldedQuarter => Grain::Quarter,
    };
    if first >= last {
        if grain != Grain::Quarter {
            split(period, finer, from, until, spans);
        }
        return;
    }
    if grain != Grain::Quarter {
        split(period, finer, from, first, spans);
    }
    spans.push(GrainSpan {
        period,
        grain,
        from: first,
        until: last,
    });
    if grain != Grain::Quarter {
        split(period, finer, last, until, spans);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HOUR: i64 = 60 * MILLIS_PER_MINUTE;
    const DAY: i64 = 24 * HOUR;

    #[test]
    fn every_grain_parses_from_its_stored_form() {
        for grain in Grain::ALL.into_iter().chain(Grain::FOLDED) {
            assert_eq!(Grain::parse(grain.minutes()), Some(grain));
        }
        assert_eq!(Grain::parse(0), None);
    }

    #[test]
    fn buckets_are_a_quarter_of_an_hour() {
        let bucket = |millis| {
            Bucket::of(Timestamp::from_millis(millis))
                .begins_at()
                .as_millis()
        };
        assert_eq!(bucket(0), 0);
        assert_eq!(bucket(899_999), 0);
        assert_eq!(bucket(900_000), 900_000);
        assert_eq!(bucket(-1), -900_000);
    }

    fn spans(from: i64, until: i64) -> Vec<(Grain, i64, i64)> {
        let period = (Timestamp::from_millis(from), Timestamp::from_millis(until));
        let all = split_by_grain(&[period]).into_iter();
        all.map(|piece| {
            let GrainSpan {
                grain, from, until, ..
            } = piece;
            (grain, from.as_millis(), until.as_millis())
        })
        .collect()
    }

    #[test]
    fn a_period_is_split_into_the_fewest_buckets() {
        assert_eq!(spans(0, 30 * DAY), [(Grain::Day, 0, 30 * DAY)]);
        // Two winter days in Berlin.
        assert_eq!(
            spans(DAY - HOUR, 3 * DAY - HOUR),
            [
                (Grain::Hour, DAY - HOUR, DAY),
                (Grain::Day, DAY, 2 * DAY),
                (Grain::Hour, 2 * DAY, 3 * DAY - HOUR)
            ]
        );
        // A day in India, five and a half hours ahead of UTC.
        let begin = DAY - 5 * HOUR - HOUR / 2;
        assert_eq!(
            spans(begin, begin + DAY),
            [
                (Grain::Quarter, begin, begin + HOUR / 2),
                (Grain::Hour, begin + HOUR / 2, begin + DAY - HOUR / 2),
                (Grain::Quarter, begin + DAY - HOUR / 2, begin + DAY)
            ]
        );
        assert_eq!(spans(5, 5), []);
        assert_eq!(spans(DAY, 0), []);
        assert!(!spans(i64::MIN, i64::MAX).is_empty());
    }

    proptest! {
        #[test]
        fn buckets_cover_exactly_the_period(
            from in -5_000_i64..5_000, length in 0_i64..5_000
        ) {
            let quarter = 15 * MILLIS_PER_MINUTE;
            let (begin, end) = (from * quarter, (from + length) * quarter);
            let mut next = begin;
            for (grain, from, until) in spans(begin, end) {
                let millis = grain.minutes() * MILLIS_PER_MINUTE;
                prop_assert_eq!(from, next);
                prop_assert!(from < until && from % millis == 0 && until % millis == 0);
                next = until;
            }
            prop_assert_eq!(next, end);
        }
    }
}
