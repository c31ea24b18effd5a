//! Request bodies of apps, described by their readers.

use crate::fields::app::{read_change, read_new};
use crate::fields::described_body;

described_body! {
    /// Settings of an app. Missing or null: default.
    pub(super) NewApp("AppFields") = |fields| read_new(fields, "")
}

described_body! {
    /// Settings of an app. Missing: unchanged; null: default.
    pub(super) ChangedApp("AppFields") = |fields| read_change(fields, "")
}
