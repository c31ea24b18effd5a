//! Request bodies of links, described by their readers.

use crate::fields::described_body;
use crate::fields::link::{read_change, read_new};

described_body! {
    /// Settings of a link. Missing or null: default.
    pub(super) NewLink("LinkFields") = read_new
}

described_body! {
    /// Settings of a link. Missing: unchanged; null: default.
    pub(super) ChangedLink("LinkFields") = read_change
}
