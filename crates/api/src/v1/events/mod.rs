//! `/api/v1/apps/{appId}/events`.

pub(super) mod list;

pub(crate) mod deliveries;
pub(crate) mod shape;
