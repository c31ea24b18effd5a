//! `/api/v1/apps/{appId}/cohorts`.

pub(super) mod list;

mod shape;
