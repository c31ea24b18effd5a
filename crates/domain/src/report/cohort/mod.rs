//! Cohorts: activity and revenue of devices by their install date.
//!
//! A device's age is the number of whole days since its install. A day has 24 hours and starts at
//! the time of the install, so it does not depend on the time zone. A device with at least one
//! event on such a day counts once as active on that day. Revenue counts on the day of its event.
//! Website events belong to a click and not to an install, so they are in no cohort. Events from
//! devices that were never configured are in no cohort either.
//!
//! When an event moves to another device, as subscription events may, its revenue moves along.
//! Whether the old device was active on that day depends on its other events. Such a day is an
//! [`UncertainAge`], which the caller checks against the events.

mod ages;
mod entry;
mod query;
mod report;
mod returning;
mod rows;
mod update;

pub use ages::{AGE_DAYS_MAX, Ages, age_in_days};
pub use entry::{CohortCredit, CohortEntry, CohortMember};
pub use query::{CohortReportQuery, CohortRow, CohortTable};
pub use report::{
    Cohort, CohortAge, CohortMeasure, CohortSums, cohort_report, same_cohorts, weighted_average,
};
pub use returning::{InstallStage, STAGE_AGE_MAX, StageStep, install_stages};
pub use rows::{CohortFigures, CohortKey, CohortPlaceKey, CohortRows};
pub use update::{CohortDevice, CohortUpdate, UncertainAge, update_cohorts};

#[cfg(test)]
mod tests;
