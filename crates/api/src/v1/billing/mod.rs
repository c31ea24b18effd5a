//! `/api/v1/apps/{appId}/billing`.

pub(super) mod get;
pub(super) mod secret;
