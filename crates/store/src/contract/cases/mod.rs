//! The lists of cases. A case that is not listed does not run.

mod administration;
mod forwarding;
mod money;
mod reporting;
mod tracking;
