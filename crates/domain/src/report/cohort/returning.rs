//! How many devices of a range's installs were active again: a funnel over the same devices.

use super::CohortRow;
use super::report::is_complete;
use crate::report::Period;
use crate::vocabulary::time::Timestamp;

/// A stage: the installs that are old enough, and those of them that were active again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReturnStage {
    /// Days since the install.
    pub age: u8,
    /// Installs whose day of this age is over.
    pub installs: i64,
    /// Devices of these installs that were active on that day; never more than `installs`.
    pub devices: i64,
}

/// Returns one stage per age. Only periods in which every device has lived through the whole day of
/// that age count, both in `installs` and in `devices`, so that recent installs do not lower the
/// share. `rows` are the cohorts of `periods`.
pub fn return_stages(
    periods: &[Period],
    rows: &[CohortRow],
    ages: &[u8],
    now: Timestamp,
) -> Vec<ReturnStage> {
    let is_old_enough = |row: &&CohortRow, age: u8| {
        let period = periods.get(row.period);
        age == 0 || period.is_some_and(|period| is_complete(*period, age, now))
    };
    let devices = |age: u8, at: u8| {
        let rows = rows.iter().filter(|row| row.age == at);
        let old = rows.filter(|row| is_old_enough(row, age));
        old.map(|row| row.figures.devices).sum()
    };
    let stage = |age: &u8| ReturnStage {
        age: *age,
        installs: devices(*age, 0),
        devices: devices(*age, *age),
    };
    ages.iter().map(stage).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::cohort::CohortFigures;

    const DAY: i64 = 24 * 60 * 60 * 1_000;

    fn row(period: usize, age: u8, devices: i64) -> CohortRow {
        CohortRow {
            period,
            values: Vec::new(),
            age,
            figures: CohortFigures {
                devices,
                ..CohortFigures::default()
            },
        }
    }

    #[test]
    fn recent_installs_count_only_for_ages_that_they_have_reached() {
        let day = |day: i64| Timestamp::from_millis(day * DAY);
        let periods = [(day(0), day(1)), (day(6), day(7))];
        let rows = [
            row(0, 0, 10),
            row(0, 1, 4),
            row(0, 7, 2),
            row(1, 0, 30),
            row(1, 1, 6),
        ];
        let found = |now| {
            let stages = return_stages(&periods, &rows, &[0, 1, 7], day(now));
            let stages = stages
                .iter()
                .map(|one| (one.age, one.installs, one.devices));
            stages.collect::<Vec<_>>()
        };
        assert_eq!(found(9), [(0, 40, 40), (1, 40, 10), (7, 10, 2)]);
        assert_eq!(found(8), [(0, 40, 40), (1, 10, 4), (7, 0, 0)]);
    }
}
