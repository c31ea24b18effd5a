//! Partitions of a large table by the time in its rows' ids.
//!
//! Rows are removed from a partitioned table by dropping a whole partition, which costs the same for
//! a thousand rows and for a hundred million. So rows stay up to the length of a partition longer
//! than their retention period. A row that was settled long after its time delays its partition; the
//! other rows are then removed one by one.

use crate::vocabulary::time::Timestamp;
use std::time::Duration;

/// Rows from which a table is partitioned. Removing rows one by one from a smaller table is cheap,
/// and each partition adds to the cost of a statement.
pub const PARTITIONED_ROWS_MIN: u64 = 5_000_000;

/// Partitions begin on a Monday. 1970 began on a Thursday.
const WEEK: Duration = Duration::from_hours(7 * 24);
const FIRST_MONDAY: Timestamp = Timestamp::from_millis(4 * 24 * 60 * 60 * 1000);
/// Number of partitions that a retention period is divided into: few, because statements without an
/// id look into all of them, and enough that rows are not kept much longer than the period.
const PARTITIONS_PER_PERIOD: u64 = 8;
/// How far ahead partitions are made. Nodes try every hour, so there is time to notice a failure.
const MADE_AHEAD: Duration = Duration::from_hours(3 * 7 * 24);
/// How far ahead the rows of a table end while it is being converted. Until the table is partitioned,
/// it rejects later rows, so this is much longer than a conversion takes.
const CONVERSION_AHEAD: Duration = Duration::from_hours(5 * 7 * 24);
/// Time that must be left when a conversion is continued.
const CONVERSION_LEFT_MIN: Duration = Duration::from_hours(3 * 7 * 24);
/// Time for dropping a partition before its rows are removed one by one.
const DROP_DELAY: Duration = Duration::from_hours(24);
/// Ids may lie this much in the future: more than the clocks of nodes and devices may differ.
const CLOCK_TOLERANCE: Duration = Duration::from_hours(24);

/// Times of a partition's ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartitionRange {
    /// Start, inclusive. `None` for the former table, which became the first partition.
    pub from: Option<Timestamp>,
    /// End, exclusive.
    pub until: Timestamp,
}

impl PartitionRange {
    /// Returns whether the partition may be dropped: all its ids are from before the cut-off, and no
    /// row was settled after it.
    pub fn may_drop(self, has_recent_rows: bool, cutoff: Timestamp) -> bool {
        self.until <= cutoff && !has_recent_rows
    }

    /// Returns how many of the compacted partitions before this one, passed newest first, are merged
    /// with it: those that are not longer than what is already merged. So a row is copied only a few
    /// times, and a table has few partitions even after years.
    pub fn merged_with(self, earlier: impl Iterator<Item = Self>) -> usize {
        let mut merged = self;
        let mut count = 0;
        for range in earlier {
            let (Some(from), Some(start)) = (range.from, merged.from) else {
                break;
            };
            if range.until != start || start.since(from) > merged.until.since(start) {
                break;
            }
            merged.from = Some(from);
            count += 1;
        }
        count
    }

    /// Returns the end of the partition's name: its first day, or the day after its last one if it has
    /// no start.
    pub fn label(self) -> String {
        let (prefix, day) = match self.from {
            Some(from) => ("", from),
            None => ("until_", self.until),
        };
        let day = jiff::Timestamp::from_millisecond(day.as_millis()).unwrap_or_default();
        format!("{prefix}{}", day.strftime("%Y%m%d"))
    }
}

/// The partitions of a table, except for the default one. None if the table is not partitioned.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PartitionRanges(pub Vec<PartitionRange>);

impl PartitionRanges {
    /// Returns the ranges for which partitions have to be made, in order. If they were not made in
    /// time, the rows of this week stay in the default partition, and the new ones begin after it.
    /// Partitions that a node with a wrong clock has made far ahead change nothing.
    pub fn missing(&self, now: Timestamp, retention: Duration) -> Vec<PartitionRange> {
        let earliest = now.plus(CLOCK_TOLERANCE);
        let mut from = self
            .end_around(earliest)
            .unwrap_or_else(|| next_monday(earliest));
        let mut missing = Vec::new();
        while from < now.plus(MADE_AHEAD) {
            if let Some(end) = self.end_around(from) {
                from = end;
                continue;
            }
            let starts = self.0.iter().filter_map(|range| range.from);
            let next = starts.filter(|start| *start > from).min();
            let until = from.plus(width(retention));
            let until = next.map_or(until, |next| until.min(next));
            missing.push(PartitionRange {
                from: Some(from),
                until,
            });
            from = until;
        }
        missing
    }

    /// Returns the end of the partition that contains a time.
    fn end_around(&self, time: Timestamp) -> Option<Timestamp> {
        let contains = |range: &&PartitionRange| {
            range.from.is_none_or(|from| from <= time) && time < range.until
        };
        self.0.iter().find(contains).map(|range| range.until)
    }
}

/// Returns whether a node's clock and the database server's differ so little that the node may change
/// partitions. A clock far ahead would remove rows too early.
pub fn clocks_agree(node: Timestamp, server: Timestamp) -> bool {
    let (earlier, later) = (node.min(server), node.max(server));
    earlier.plus(CLOCK_TOLERANCE) >= later
}

/// The end of the ids in a table that is being converted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConversionEnd(pub Timestamp);

impl ConversionEnd {
    /// Chooses the end for a conversion that begins now.
    pub fn choose(now: Timestamp) -> Self {
        Self(next_monday(now.plus(CONVERSION_AHEAD)))
    }

    /// Returns whether an interrupted conversion may continue. Otherwise it begins again.
    pub fn may_continue(self, now: Timestamp) -> bool {
        self.0 >= now.plus(CONVERSION_LEFT_MIN)
    }
}

/// Returns the time before which rows are removed one by one. Rows of a partitioned table wait until
/// their partition is dropped, and a day longer, so that a drop that fails can be tried again.
pub fn single_rows_cutoff(now: Timestamp, retention: Duration, is_partitioned: bool) -> Timestamp {
    let cutoff = now.minus(retention);
    if is_partitioned {
        cutoff.minus(width(retention)).minus(DROP_DELAY)
    } else {
        cutoff
    }
}

/// Returns the time before which clicks lose their addresses one by one. If clicks without an install
/// are not kept longer than addresses, most addresses are dropped with their partition; changing each
/// row shortly before would cost more than deleting it. The clicks that remain of compacted
/// partitions do not wait.
pub fn addresses_cutoff(
    now: Timestamp,
    addresses: Duration,
    clicks: Duration,
    is_partitioned: bool,
    compacted_until: Option<Timestamp>,
) -> Timestamp {
    let cutoff = now.minus(addresses);
    if addresses < clicks {
        return cutoff;
    }
    let waiting = single_rows_cutoff(now, clicks, is_partitioned);
    cutoff.min(compacted_until.map_or(waiting, |until| waiting.max(until)))
}

/// Returns the length of a partition: an eighth of the retention period, rounded up to whole weeks.
fn width(retention: Duration) -> Duration {
    let weeks = retention
        .as_secs()
        .div_ceil(WEEK.as_secs() * PARTITIONS_PER_PERIOD);
    Duration::from_secs(WEEK.as_secs() * weeks.max(1))
}

/// Returns the first Monday at or after a time.
fn next_monday(time: Timestamp) -> Timestamp {
    let week = i64::try_from(WEEK.as_millis()).unwrap_or(i64::MAX);
    let since = time.as_millis().saturating_sub(FIRST_MONDAY.as_millis());
    let wait = since.saturating_neg().rem_euclid(week);
    Timestamp::from_millis(time.as_millis().saturating_add(wait))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    const DAY: i64 = 24 * 60 * 60 * 1000;

    /// A time in days after a Monday.
    fn day(days: i64) -> Timestamp {
        Timestamp::from_millis(FIRST_MONDAY.as_millis() + days * DAY)
    }

    fn days(days: u64) -> Duration {
        Duration::from_hours(24 * days)
    }

    fn range(from: i64, until: i64) -> PartitionRange {
        PartitionRange {
            from: Some(day(from)),
            until: day(until),
        }
    }

    /// The rows from before the conversion.
    fn converted(until: i64) -> PartitionRange {
        PartitionRange {
            from: None,
            until: day(until),
        }
    }

    #[rstest]
    #[case::shortest_period(7, 7)]
    #[case::default_period(30, 7)]
    #[case::eight_weeks(56, 7)]
    #[case::a_day_more(57, 14)]
    #[case::a_year(365, 49)]
    #[case::longest_period(400, 56)]
    fn a_partition_is_an_eighth_of_the_period(#[case] retention: u64, #[case] expected: u64) {
        assert_eq!(width(days(retention)), days(expected));
    }

    #[rstest]
    #[case::monday(0, 35)]
    #[case::tuesday(1, 42)]
    #[case::sunday(6, 42)]
    #[case::before_the_first_monday(-3, 35)]
    fn a_conversion_ends_on_a_monday_five_weeks_ahead(#[case] now: i64, #[case] end: i64) {
        assert_eq!(ConversionEnd::choose(day(now)), ConversionEnd(day(end)));
    }

    #[rstest]
    #[case::just_begun(0, true)]
    #[case::two_weeks_later(14, true)]
    #[case::three_weeks_later(15, false)]
    #[case::after_the_end(36, false)]
    fn a_conversion_continues_while_time_is_left(#[case] now: i64, #[case] expected: bool) {
        assert_eq!(ConversionEnd(day(35)).may_continue(day(now)), expected);
    }

    #[rstest]
    #[case::after_the_conversion(&[converted(35)], 0, &[])]
    #[case::the_first(&[converted(35)], 15, &[range(35, 42)])]
    #[case::the_next(&[converted(35), range(35, 42)], 22, &[range(42, 49)])]
    #[case::nothing_is_missing(&[range(35, 42), range(42, 49)], 28, &[])]
    #[case::several(&[range(0, 7)], 3, &[range(7, 14), range(14, 21), range(21, 28)])]
    #[case::late(&[range(0, 7)], 8, &[range(14, 21), range(21, 28), range(28, 35)])]
    #[case::nearly_late(&[range(0, 7)], 6, &[range(7, 14), range(14, 21), range(21, 28)])]
    #[case::a_clock_was_far_ahead(&[range(0, 7), range(70, 77)], 3, &[range(7, 14), range(14, 21), range(21, 28)])]
    #[case::between_others(&[range(0, 7), range(18, 25)], 3, &[range(7, 14), range(14, 18)])]
    #[case::no_partition_at_all(&[], 7, &[range(14, 21), range(21, 28)])]
    fn partitions_are_made_three_weeks_ahead(
        #[case] existing: &[PartitionRange],
        #[case] now: i64,
        #[case] expected: &[PartitionRange],
    ) {
        let existing = PartitionRanges(existing.to_vec());
        assert_eq!(existing.missing(day(now), days(30)), expected);
    }

    #[rstest]
    #[case::equal(0, true)]
    #[case::a_day_ahead(1, true)]
    #[case::a_day_behind(-1, true)]
    #[case::two_days_ahead(2, false)]
    #[case::two_days_behind(-2, false)]
    fn a_clock_that_differs_by_more_than_a_day_is_wrong(#[case] node: i64, #[case] expected: bool) {
        assert_eq!(clocks_agree(day(node), day(0)), expected);
    }

    #[test]
    fn partitions_are_named_by_days() {
        assert_eq!(range(0, 7).label(), "19700105");
        assert_eq!(converted(7).label(), "until_19700112");
    }

    #[rstest]
    #[case::all_rows_are_old(range(0, 7), false, 7, true)]
    #[case::a_row_was_settled_late(range(0, 7), true, 7, false)]
    #[case::an_id_may_be_recent(range(0, 7), false, 6, false)]
    #[case::the_table_before_the_conversion(converted(7), false, 7, true)]
    fn a_partition_is_dropped_after_its_last_row(
        #[case] partition: PartitionRange,
        #[case] has_recent_rows: bool,
        #[case] cutoff: i64,
        #[case] expected: bool,
    ) {
        assert_eq!(partition.may_drop(has_recent_rows, day(cutoff)), expected);
    }

    #[rstest]
    #[case::nothing_before_it(&[], 0)]
    #[case::a_partition_of_the_same_length(&[range(21, 28)], 1)]
    #[case::a_longer_one(&[range(14, 28)], 0)]
    #[case::each_is_as_long_as_all_after_it(&[range(21, 28), range(7, 21), range(-21, 7)], 3)]
    #[case::until_a_longer_one(&[range(21, 28), range(0, 21)], 1)]
    #[case::not_beyond_a_gap(&[range(14, 21)], 0)]
    #[case::not_the_former_table(&[converted(28)], 0)]
    fn compacted_partitions_are_merged_like_digits(
        #[case] earlier: &[PartitionRange],
        #[case] expected: usize,
    ) {
        assert_eq!(range(28, 35).merged_with(earlier.iter().copied()), expected);
    }

    #[rstest]
    #[case::not_partitioned(30, 30, false, None, 30)]
    #[case::with_their_partition(30, 30, true, None, 38)]
    #[case::a_shorter_period_is_kept(29, 30, true, None, 29)]
    #[case::a_little_longer(31, 30, true, None, 38)]
    #[case::much_longer(90, 30, true, None, 90)]
    #[case::remaining_clicks_do_not_wait(30, 30, true, Some(33), 33)]
    #[case::nor_are_they_too_early(40, 30, true, Some(33), 40)]
    #[case::compacted_long_ago(30, 30, true, Some(60), 38)]
    fn addresses_wait_for_their_partition(
        #[case] addresses: u64,
        #[case] clicks: u64,
        #[case] is_partitioned: bool,
        #[case] compacted: Option<i64>,
        #[case] age: i64,
    ) {
        let compacted = compacted.map(|age| day(-age));
        let (addresses, clicks) = (days(addresses), days(clicks));
        let cutoff = addresses_cutoff(day(0), addresses, clicks, is_partitioned, compacted);
        assert_eq!(cutoff, day(-age));
    }

    #[rstest]
    #[case::not_partitioned(30, false, 30)]
    #[case::after_a_week_and_a_day(30, true, 38)]
    #[case::wide_partitions(365, true, 365 + 49 + 1)]
    fn single_rows_wait_for_their_partition(
        #[case] retention: u64,
        #[case] is_partitioned: bool,
        #[case] age: i64,
    ) {
        let cutoff = single_rows_cutoff(day(0), days(retention), is_partitioned);
        assert_eq!(cutoff, day(-age));
    }
}
