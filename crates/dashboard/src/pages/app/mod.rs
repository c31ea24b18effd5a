//! Pages of one app.

pub(crate) mod cohorts;
pub(crate) mod costs;
pub(crate) mod explore;
pub(crate) mod new;
pub(crate) mod overview;
pub(crate) mod start;
