//! `/api/v1/apps/{appId}/integrations`.

pub(super) mod get;
pub(super) mod list;
pub(super) mod resume;
pub(super) mod shape;
pub(super) mod test;
pub(super) mod update;

mod fields;
mod health;
