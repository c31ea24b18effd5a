//! What the devices of a range's installs did later: a funnel over the same devices.

use super::CohortRow;
use super::report::is_complete;
use crate::report::Period;
use crate::vocabulary::time::Timestamp;

/// Days since the install of the stages. A later day would read too many rows for an overview.
const STAGE_AGES: [u8; 4] = [0, 1, 3, 7];
/// Highest age of a row that the stages need.
pub const STAGE_AGE_MAX: u8 = STAGE_AGES[STAGE_AGES.len() - 1];

/// What the devices of a stage did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StageStep {
    /// They were installed.
    Installed,
    /// They were active on the day.
    Active,
    /// They paid up to and including the day.
    Paid,
}

crate::keywords! {
    StageStep[3] {
        Installed => "installed",
        Active => "active",
        Paid => "paid",
    }
}

/// A stage: the installs that are old enough, and those of them that reached it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InstallStage {
    /// What the devices did.
    pub step: StageStep,
    /// Days since the install.
    pub age: u8,
    /// Installs whose day of this age is over.
    pub installs: i64,
    /// Devices of these installs that reached the stage; never more than `installs`.
    pub devices: i64,
}

/// Returns the stages: one per age, and the devices that paid. Only periods in which every device has
/// lived through the whole day of that age count, both in `installs` and in `devices`, so that recent
/// installs do not lower the share. `rows` are the cohorts of `periods`, up to [`STAGE_AGE_MAX`].
/// `payers_from` is the time from which on the payers of all installs are counted; `None` if all are.
/// If the range begins earlier, the stage of payers is left out.
pub fn install_stages(
    periods: &[Period],
    rows: &[CohortRow],
    payers_from: Option<Timestamp>,
    now: Timestamp,
) -> Vec<InstallStage> {
    let old_enough = |age: u8| {
        rows.iter().filter(move |row| {
            let period = periods.get(row.period);
            age == 0 || period.is_some_and(|period| is_complete(*period, age, now))
        })
    };
    let devices = |age: u8, at: u8| {
        let rows = old_enough(age).filter(|row| row.age == at);
        rows.map(|row| row.figures.devices).sum()
    };
    let stage = |age: u8| InstallStage {
        step: match age {
            0 => StageStep::Installed,
            _ => StageStep::Active,
        },
        age,
        installs: devices(age, 0),
        devices: devices(age, age),
    };
    let begin = periods.iter().map(|period| period.0).min();
    let knows_payers = payers_from.is_none_or(|from| begin.is_none_or(|begin| from <= begin));
    let paid = InstallStage {
        step: StageStep::Paid,
        age: STAGE_AGE_MAX,
        installs: devices(STAGE_AGE_MAX, 0),
        devices: old_enough(STAGE_AGE_MAX)
            .map(|row| row.figures.payers)
            .sum(),
    };
    let stages = STAGE_AGES.into_iter().map(stage);
    stages.chain(knows_payers.then_some(paid)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::cohort::CohortFigures;
    use StageStep::{Active, Installed, Paid};

    const DAY: i64 = 24 * 60 * 60 * 1_000;

    fn row(period: usize, age: u8, devices: i64, payers: i64) -> CohortRow {
        CohortRow {
            period,
            values: Vec::new(),
            age,
            figures: CohortFigures {
                devices,
                payers,
                ..CohortFigures::default()
            },
        }
    }

    #[test]
    fn recent_installs_count_only_for_ages_that_they_have_reached() {
        let day = |day: i64| Timestamp::from_millis(day * DAY);
        let periods = [(day(0), day(1)), (day(6), day(7))];
        let rows = [
            row(0, 0, 10, 1),
            row(0, 1, 4, 2),
            row(0, 3, 3, 0),
            row(0, 7, 2, 1),
            row(1, 0, 30, 5),
            row(1, 1, 6, 0),
        ];
        let found = |now, payers_from: Option<i64>| {
            let from = payers_from.map(day);
            let stages = install_stages(&periods, &rows, from, day(now));
            let stages = stages
                .iter()
                .map(|one| (one.step, one.age, one.installs, one.devices));
            stages.collect::<Vec<_>>()
        };
        let later = [
            (Installed, 0, 40, 40),
            (Active, 1, 40, 10),
            (Active, 3, 10, 3),
            (Active, 7, 10, 2),
            (Paid, 7, 10, 4),
        ];
        assert_eq!(found(9, None), later);
        assert_eq!(found(9, Some(0)), later);
        assert_eq!(
            found(9, Some(1)),
            later[..4],
            "older payers are not counted"
        );
        let earlier = [
            (Installed, 0, 40, 40),
            (Active, 1, 10, 4),
            (Active, 3, 10, 3),
            (Active, 7, 0, 0),
            (Paid, 7, 0, 0),
        ];
        assert_eq!(found(8, None), earlier);
    }
}
