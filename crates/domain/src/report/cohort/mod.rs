//! Cohorts: what devices that were installed together do in the days after.
//!
//! A device's age counts whole days of 24 hours since its install, so that it is the same in every time zone. A
//! device is seen at an age when it has an event then, and counts once for it; money counts at the age of its
//! event. Website events belong to their click and not to an install, so they are in no cohort, and neither are
//! those of devices that never were configured.
//!
//! An event that becomes another device's, as those of a subscription may, takes its money along to the micro-unit.
//! Whether the device that it leaves was seen on that day by something else only its other events can tell: such an
//! age is a [`Doubt`], and whoever has the events is asked.

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
