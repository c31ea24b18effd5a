//! What reports have in common: the days that they are about, the figures that they show, their pages.

pub(crate) mod figures;
pub(crate) mod kpis;
pub(crate) mod range;

mod cost;
mod pages;

pub(crate) use cost::spend;
pub(crate) use pages::{Pages, RowKey, row_key};

use tributary_domain::vocabulary::fault::{FaultCode, Faults, Problem};

use crate::error::ApiError;

/// One parameter that asks for too much.
pub(crate) fn out_of_range(field: &str, message: impl Into<String>) -> ApiError {
    faulty(field, Problem::new(FaultCode::OutOfRange, message.into()))
}

/// One parameter that is at fault.
pub(crate) fn faulty(field: &str, problem: Problem) -> ApiError {
    let mut faults = Faults::new();
    faults.add(field, problem);
    faults.into()
}
