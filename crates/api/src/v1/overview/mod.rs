//! `/api/v1/apps/{appId}/overview`.

pub(super) mod get;

mod anomaly;
mod load;
mod shape;
