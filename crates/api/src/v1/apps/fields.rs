//! The bodies of apps, described by their readers.

use crate::fields::app::{read_change, read_new};
use crate::fields::described_body;

described_body! {
    /// What can be set of an app. Absent: the default; null: the default.
    pub(super) NewApp("AppFields") = |fields| read_new(fields, "")
}

described_body! {
    /// What can be set of an app. Absent: unchanged; null: the default.
    pub(super) ChangedApp("AppFields") = |fields| read_change(fields, "")
}
