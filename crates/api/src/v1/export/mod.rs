//! `/api/v1/apps/{appId}/export`.

pub(super) mod get;

mod csv;
mod packing;
mod records;
mod stream;
