//! Hourly counts of finished deliveries.

use super::columns::StoredRow;
use super::report::sum_columns;
use tributary_domain::forwarding::DeliveryStatus;
use tributary_domain::vocabulary::time::Timestamp;

/// Final statuses that `delivery_hours` counts, in the order of its columns.
const TERMINAL_STATUSES: [DeliveryStatus; 6] = [
    DeliveryStatus::Delivered,
    DeliveryStatus::Validated,
    DeliveryStatus::Unconfirmed,
    DeliveryStatus::Failed,
    DeliveryStatus::Expired,
    DeliveryStatus::Cancelled,
];

/// Counts of final statuses, in the order of the columns of `delivery_hours`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TerminalCounts(pub [i64; 6]);

impl TerminalCounts {
    /// Column list, in the order of the counts.
    pub const COLUMNS: &'static str =
        "delivered, validated, unconfirmed, failed, expired, cancelled";

    /// Counts statuses.
    pub fn of(ends: impl IntoIterator<Item = DeliveryStatus>) -> Self {
        let mut counts = Self::default();
        counts.add(ends);
        counts
    }

    /// Adds statuses.
    pub fn add(&mut self, ends: impl IntoIterator<Item = DeliveryStatus>) {
        for status in ends {
            let counts = TERMINAL_STATUSES.iter().zip(&mut self.0);
            counts
                .filter(|(one, _)| **one == status)
                .for_each(|(_, count)| *count += 1);
        }
    }

    /// Returns whether all counts are zero.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|count| *count == 0)
    }

    /// Returns SQL that sums the columns.
    pub fn summed_columns() -> String {
        sum_columns(&Self::COLUMNS.split(", ").collect::<Vec<_>>())
    }

    /// Reads the counts from the columns starting at `first`. A sum over no rows is null and is
    /// read as zero.
    pub fn from_row<R: StoredRow>(row: &R, first: usize) -> Result<Self, R::Failure> {
        let mut counts = Self::default();
        for (index, count) in (first..).zip(&mut counts.0) {
            *count = row.column::<Option<i64>>(index)?.unwrap_or_default();
        }
        Ok(counts)
    }

    /// Returns the number of successful deliveries.
    pub fn delivered(&self) -> u64 {
        self.count(|status| status == DeliveryStatus::Delivered)
    }

    /// Returns the number of deliveries that count as failed.
    pub fn failed(&self) -> u64 {
        self.count(DeliveryStatus::counts_as_failed)
    }

    fn count(&self, is_wanted: impl Fn(DeliveryStatus) -> bool) -> u64 {
        let wanted = TERMINAL_STATUSES
            .iter()
            .zip(&self.0)
            .filter(|(one, _)| is_wanted(**one));
        count_to_u64(wanted.map(|(_, count)| count).sum())
    }

    /// Returns the failed deliveries in an hour, before and after these counts were added.
    /// `failed_now` is the stored count after they were added.
    pub fn failures_before_and_after(&self, failed_now: i64) -> (u64, u64) {
        let [_, _, _, failed, _, _] = self.0;
        (count_to_u64(failed_now - failed), count_to_u64(failed_now))
    }

    /// Returns the SQL assignments of an upsert that adds these counts to the existing row.
    pub fn upsert_additions(stored: &str) -> String {
        let columns = Self::COLUMNS.split(", ");
        let sums =
            columns.map(|column| format!("{column} = {stored}.{column} + excluded.{column}"));
        sums.collect::<Vec<_>>().join(", ")
    }
}

/// Converts a count. A negative count is read as zero.
pub fn count_to_u64(count: i64) -> u64 {
    u64::try_from(count).unwrap_or(0)
}

/// Returns the first hour of the last 24 hours, as stored in `delivery_hours`.
pub const fn first_hour_of_last_day(now: Timestamp) -> i64 {
    const HOURS_PER_DAY: i64 = 24;
    hour_of(now) - HOURS_PER_DAY + 1
}

/// Returns the hour of a time, as stored in `delivery_hours`.
pub const fn hour_of(at: Timestamp) -> i64 {
    const MILLIS_PER_HOUR: i64 = 3_600_000;
    at.as_millis().div_euclid(MILLIS_PER_HOUR)
}
