//! `/api/v1/apps/{appId}/export`.

pub(super) mod get;

mod compression;
mod csv;
mod file;
mod line;
mod records;
mod stream;

pub use line::{EXPORT_LINE_BYTES_MAX, read_exported_event};
