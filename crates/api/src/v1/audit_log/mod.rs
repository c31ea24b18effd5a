//! `/api/v1/audit-log`.

pub(super) mod export;
pub(super) mod list;
