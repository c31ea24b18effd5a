//! `/api/v1/apps/{appId}/test-data`.

pub(super) mod delete;
