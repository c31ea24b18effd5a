//! `/api/v1/apps/{appId}/stats`.

pub(super) mod list;

mod log;
mod query;
mod shape;
