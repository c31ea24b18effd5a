//! `/api/v1/apps/{appId}/links`.

pub(super) mod bulk;
pub(super) mod create;
pub(super) mod delete;
pub(super) mod get;
pub(super) mod list;
pub(super) mod qr;
pub(super) mod shape;
pub(super) mod update;

mod fields;
