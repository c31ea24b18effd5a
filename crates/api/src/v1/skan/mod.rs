//! `/api/v1/apps/{appId}/skan`.

pub(super) mod get;
pub(super) mod replace;
pub(super) mod shape;
pub(super) mod update;

mod fields;
