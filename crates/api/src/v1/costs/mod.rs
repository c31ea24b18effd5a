//! `/api/v1/apps/{appId}/costs`.

pub(super) mod list;
pub(super) mod replace;

mod fields;
mod shape;
