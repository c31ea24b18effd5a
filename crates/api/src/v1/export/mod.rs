//! `/api/v1/apps/{appId}/export`.

pub(super) mod get;

mod csv;
mod file;
mod packing;
mod records;
mod stream;
