//! `/api/v1/apps/{appId}/export`.

pub(super) mod get;

mod compression;
mod csv;
mod file;
mod records;
mod stream;
