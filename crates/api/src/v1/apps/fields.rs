//! Request bodies for apps, described by their readers.

use crate::fields::app::{read_change, read_new};
use crate::fields::described_body;

described_body! {
    /// An app's settings. Missing or null fields get their default.
    pub(super) NewApp("AppFields") = |fields| read_new(fields, "")
}

described_body! {
    /// An app's settings. Missing fields are unchanged; null resets a field to its default.
    pub(super) ChangedApp("AppFields") = |fields| read_change(fields, "")
}
