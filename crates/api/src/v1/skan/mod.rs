//! `/api/v1/apps/{appId}/skan`.

pub(super) mod get;
pub(super) mod replace;
pub(crate) mod shape;
pub(super) mod update;

mod fields;
