//! `/api/v1/audit-log`.

pub(super) mod list;
