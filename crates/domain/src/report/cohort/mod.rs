//! Cohorts: activity and revenue of devices by their install date.
//!
//! A device's age counts whole days of 24 hours since its install, so it does not depend on the
//! time zone. A device is active at an age if it has an event then, and counts once. Money counts
//! at the age of its event. Website events belong to a click and not to an install, so they are in
//! no cohort. Neither are events of devices that were never configured.
//!
//! When an event moves to another device, as subscription events may, its money moves with it
//! exactly. Only the other events of the old device tell whether it was still active on that day.
//! Such an age is an [`UncertainAge`], which the caller checks against the events.

mod ages;
mod entry;
mod query;
mod rows;
mod update;

pub use ages::{AGE_DAYS_MAX, Ages, age_in_days};
pub use entry::{CohortCredit, CohortEntry, CohortMember};
pub use query::{CohortDimension, CohortReportQuery, CohortRow};
pub use rows::{CohortFigures, CohortKey, CohortPlaceKey, CohortRows};
pub use update::{CohortDevice, CohortUpdate, UncertainAge, update_cohorts};

#[cfg(test)]
mod tests;
