//! `/api/v1/apps/{appId}/overview`.

pub(super) mod get;

mod gather;
mod shape;
