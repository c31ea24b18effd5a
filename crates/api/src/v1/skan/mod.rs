//! `/api/v1/apps/{appId}/skan`.

pub(super) mod evaluate;
pub(super) mod get;
pub(super) mod postbacks;
pub(super) mod presets;
pub(super) mod replace;
pub(crate) mod shape;
pub(super) mod stats;
pub(super) mod update;
pub(super) mod versions;

mod fields;
mod postback_shape;
mod query_values;
mod stats_meaning;
mod stats_shape;
