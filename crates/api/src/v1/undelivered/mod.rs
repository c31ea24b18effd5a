//! `/api/v1/apps/{appId}/undelivered`.

pub(super) mod get;

mod shape;
