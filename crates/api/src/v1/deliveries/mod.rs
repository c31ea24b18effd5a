//! `/api/v1/apps/{appId}/deliveries`.

pub(super) mod get;
pub(super) mod list;
pub(super) mod retry;
pub(super) mod retry_many;

mod fields;
mod shape;
