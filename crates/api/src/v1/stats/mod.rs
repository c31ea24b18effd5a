//! `/api/v1/apps/{appId}/stats`.

pub(super) mod list;

mod asked;
mod log;
mod shape;
