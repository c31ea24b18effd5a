//! `/api/v1/portfolio`.

pub(super) mod list;
