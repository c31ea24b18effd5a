//! `/api/v1/apps/{appId}/devices`.

pub(super) mod delete;
pub(super) mod get;

mod explained;
mod shape;
