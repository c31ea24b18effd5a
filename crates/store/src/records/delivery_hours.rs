//! How deliveries ended, by the hour.

use super::columns::StoredRow;
use super::report::sum_columns;
use tributary_domain::forwarding::DeliveryStatus;
use tributary_domain::vocabulary::time::Timestamp;

/// The columns of `delivery_hours` that count how deliveries ended.
const TERMINAL_STATUSES: [DeliveryStatus; 6] = [
    DeliveryStatus::Delivered,
    DeliveryStatus::Validated,
    DeliveryStatus::Unconfirmed,
    DeliveryStatus::Failed,
    DeliveryStatus::Expired,
    DeliveryStatus::Cancelled,
];

/// How deliveries of a queue ended, in the order of the columns of `delivery_hours`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TerminalCounts(pub [i64; 6]);

impl TerminalCounts {
    /// Its columns, in the order of its counts.
    pub const COLUMNS: &'static str =
        "delivered, validated, unconfirmed, failed, expired, cancelled";

    /// Counts them.
    pub fn of(ends: impl IntoIterator<Item = DeliveryStatus>) -> Self {
        let mut counts = Self::default();
        counts.add(ends);
        counts
    }

    /// Counts more.
    pub fn add(&mut self, ends: impl IntoIterator<Item = DeliveryStatus>) {
        for status in ends {
            let counts = TERMINAL_STATUSES.iter().zip(&mut self.0);
            counts
                .filter(|(one, _)| **one == status)
                .for_each(|(_, count)| *count += 1);
        }
    }

    /// Whether there is nothing to count.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|count| *count == 0)
    }

    /// Their columns, each summed up.
    pub fn summed_columns() -> String {
        sum_columns(&Self::COLUMNS.split(", ").collect::<Vec<_>>())
    }

    /// Reads them from the columns that begin at a place. The sum of no rows is nothing.
    pub fn from_row<R: StoredRow>(row: &R, first: usize) -> Result<Self, R::Failure> {
        let mut counts = Self::default();
        for (place, count) in (first..).zip(&mut counts.0) {
            *count = row.column::<Option<i64>>(place)?.unwrap_or_default();
        }
        Ok(counts)
    }

    /// How many were delivered.
    pub fn delivered(&self) -> u64 {
        self.count(|status| status == DeliveryStatus::Delivered)
    }

    /// How many count as failed.
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

    /// Returns how many failed in an hour before these were counted, and with them, from its count after that.
    pub fn failures_before_and_after(&self, failed_now: i64) -> (u64, u64) {
        let [_, _, _, failed, _, _] = self.0;
        (count_to_u64(failed_now - failed), count_to_u64(failed_now))
    }

    /// The assignments of an upsert that adds these to the counts of the row of this name.
    pub fn upsert_additions(stored: &str) -> String {
        let columns = Self::COLUMNS.split(", ");
        let sums =
            columns.map(|column| format!("{column} = {stored}.{column} + excluded.{column}"));
        sums.collect::<Vec<_>>().join(", ")
    }
}

/// Reads a count, which is never negative.
pub fn count_to_u64(count: i64) -> u64 {
    u64::try_from(count).unwrap_or(0)
}

/// The first hour of the day that ends with this moment, as `delivery_hours` has it.
pub const fn first_hour_of_last_day(now: Timestamp) -> i64 {
    const HOURS_PER_DAY: i64 = 24;
    hour_of(now) - HOURS_PER_DAY + 1
}

/// The hour that a moment falls into, as `delivery_hours` has it.
pub const fn hour_of(at: Timestamp) -> i64 {
    const MILLIS_PER_HOUR: i64 = 3_600_000;
    at.as_millis().div_euclid(MILLIS_PER_HOUR)
}
