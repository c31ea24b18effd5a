//! What reports have in common: the days that they are about, the figures that they show, their pages.

pub(crate) mod figures;
pub(crate) mod kpis;
pub(crate) mod range;

mod cost;
mod row_page;

pub(crate) use cost::load_spend;
pub(crate) use row_page::{RowKey, RowPage, row_key};

use tributary_domain::vocabulary::fault::{FaultCode, Faults, Problem};

use crate::error::ApiError;

/// One parameter that asks for too much.
pub(crate) fn out_of_range(field: &str, message: impl Into<String>) -> ApiError {
    invalid_parameter(field, Problem::new(FaultCode::OutOfRange, message.into()))
}

/// One parameter that is at fault.
pub(crate) fn invalid_parameter(field: &str, problem: Problem) -> ApiError {
    let mut faults = Faults::new();
    faults.add(field, problem);
    faults.into()
}
