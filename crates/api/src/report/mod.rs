//! Common parts of reports: day ranges, figures and paging.

pub(crate) mod figures;
pub(crate) mod filters;
pub(crate) mod kpis;
pub(crate) mod range;

mod cost;
mod row_page;

pub(crate) use cost::load_spend;
pub(crate) use row_page::{RowKey, RowPage, row_key};

use tributary_domain::vocabulary::fault::{FaultCode, Faults, Problem};

use crate::error::ApiError;

/// Returns the error for one parameter that is out of range.
pub(crate) fn out_of_range(field: &str, message: impl Into<String>) -> ApiError {
    invalid_parameter(field, Problem::new(FaultCode::OutOfRange, message.into()))
}

/// Returns the error for one invalid parameter.
pub(crate) fn invalid_parameter(field: &str, problem: Problem) -> ApiError {
    let mut faults = Faults::new();
    faults.add(field, problem);
    faults.into()
}
