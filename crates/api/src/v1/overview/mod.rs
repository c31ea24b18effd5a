//! `/api/v1/apps/{appId}/overview`.

pub(super) mod get;

mod load;
mod shape;
