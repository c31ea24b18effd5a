//! Stretches of time that roll-ups count by, and how a period is made of them.
//!
//! A quarter of an hour is what every time zone's days are made of. To add up a month of them takes 2,880 rows
//! for each key, so the same figures are kept by the hour and by the day of UTC too: a period is read as the
//! fewest stretches that make it up.

use crate::vocabulary::time::Timestamp;

const MILLIS_PER_MINUTE: i64 = 60 * 1_000;

/// How long a stretch is. All are of UTC, and each is made of whole shorter ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Grain {
    /// Fifteen minutes.
    Quarter,
    /// An hour.
    Hour,
    /// A day of UTC.
    Day,
}

impl Grain {
    /// From the shortest to the longest.
    pub const ALL: [Self; 3] = [Self::Quarter, Self::Hour, Self::Day];

    /// As stored.
    pub const fn minutes(self) -> i64 {
        match self {
            Self::Quarter => 15,
            Self::Hour => 60,
            Self::Day => 24 * 60,
        }
    }

    /// Reads what [`Self::minutes`] wrote.
    pub fn parse(minutes: i64) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.minutes() == minutes)
    }

    /// Where the stretch begins that a moment falls into.
    pub const fn bucket_start(self, moment: Timestamp) -> Timestamp {
        let millis = self.minutes() * MILLIS_PER_MINUTE;
        Timestamp::from_millis(moment.as_millis().div_euclid(millis).saturating_mul(millis))
    }

    /// Where the first stretch begins that does not begin before a moment.
    fn begin_from(self, moment: Timestamp) -> Timestamp {
        let begun = self.bucket_start(moment);
        if begun == moment {
            return begun;
        }
        let millis = self.minutes() * MILLIS_PER_MINUTE;
        Timestamp::from_millis(begun.as_millis().saturating_add(millis))
    }
}

/// Fifteen minutes of UTC, by their begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bucket(Timestamp);

impl Bucket {
    /// The one that a moment falls into.
    pub const fn of(moment: Timestamp) -> Self {
        Self(Grain::Quarter.bucket_start(moment))
    }

    /// The longer stretch that it is a part of.
    #[must_use]
    pub const fn within(self, grain: Grain) -> Self {
        Self(grain.bucket_start(self.0))
    }

    /// When it begins, as stored.
    pub const fn begins_at(self) -> Timestamp {
        self.0
    }
}

/// From a moment until before another.
pub type Period = (Timestamp, Timestamp);

/// Stretches of one grain, one after the other, that make up a part of a period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GrainSpan {
    /// Which of the periods that were asked for.
    pub period: usize,
    /// How long each is.
    pub grain: Grain,
    /// Where the first begins.
    pub from: Timestamp,
    /// Before which the last begins.
    pub until: Timestamp,
}

/// The fewest stretches that make up these periods. A moment within a quarter of an hour stands for its begin.
pub fn split_by_grain(periods: &[Period]) -> Vec<GrainSpan> {
    let mut found = Vec::new();
    for (number, (from, until)) in periods.iter().enumerate() {
        let (from, until) = (
            Grain::Quarter.bucket_start(*from),
            Grain::Quarter.bucket_start(*until),
        );
        split(number, Grain::Day, from, until, &mut found);
    }
    found
}

fn split(
    period: usize,
    grain: Grain,
    from: Timestamp,
    until: Timestamp,
    found: &mut Vec<GrainSpan>,
) {
    if from >= until {
        return;
    }
    let (first, last) = (grain.begin_from(from), grain.bucket_start(until));
    let finer = match grain {
        Grain::Day => Grain::Hour,
        Grain::Hour | Grain::Quarter => Grain::Quarter,
    };
    if first >= last {
        if grain != Grain::Quarter {
            split(period, finer, from, until, found);
        }
        return;
    }
    if grain != Grain::Quarter {
        split(period, finer, from, first, found);
    }
    found.push(GrainSpan {
        period,
        grain,
        from: first,
        until: last,
    });
    if grain != Grain::Quarter {
        split(period, finer, last, until, found);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HOUR: i64 = 60 * MILLIS_PER_MINUTE;
    const DAY: i64 = 24 * HOUR;

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

    fn told(from: i64, until: i64) -> Vec<(Grain, i64, i64)> {
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
    fn a_period_is_the_fewest_stretches() {
        assert_eq!(told(0, 30 * DAY), [(Grain::Day, 0, 30 * DAY)]);
        // Two days of Berlin, in winter.
        assert_eq!(
            told(DAY - HOUR, 3 * DAY - HOUR),
            [
                (Grain::Hour, DAY - HOUR, DAY),
                (Grain::Day, DAY, 2 * DAY),
                (Grain::Hour, 2 * DAY, 3 * DAY - HOUR)
            ]
        );
        // A day of India: five hours and a half ahead.
        let begin = DAY - 5 * HOUR - HOUR / 2;
        assert_eq!(
            told(begin, begin + DAY),
            [
                (Grain::Quarter, begin, begin + HOUR / 2),
                (Grain::Hour, begin + HOUR / 2, begin + DAY - HOUR / 2),
                (Grain::Quarter, begin + DAY - HOUR / 2, begin + DAY)
            ]
        );
        assert_eq!(told(5, 5), []);
        assert_eq!(told(DAY, 0), []);
        assert!(!told(i64::MIN, i64::MAX).is_empty());
    }

    proptest! {
        #[test]
        fn the_stretches_make_up_the_period_and_nothing_else(
            from in -5_000_i64..5_000, length in 0_i64..5_000
        ) {
            let quarter = 15 * MILLIS_PER_MINUTE;
            let (begin, end) = (from * quarter, (from + length) * quarter);
            let mut next = begin;
            for (grain, from, until) in told(begin, end) {
                let millis = grain.minutes() * MILLIS_PER_MINUTE;
                prop_assert_eq!(from, next);
                prop_assert!(from < until && from % millis == 0 && until % millis == 0);
                next = until;
            }
            prop_assert_eq!(next, end);
        }
    }
}
