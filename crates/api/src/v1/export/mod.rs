//! `/api/v1/apps/{appId}/export`.

pub(super) mod get;

mod compression;
mod csv;
pub(super) mod file;
mod line;
mod records;
pub(super) mod stream;

pub use line::{EXPORT_LINE_BYTES_MAX, read_exported_event};
