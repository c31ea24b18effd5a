//! The bodies of links, described by their readers.

use crate::fields::described_body;
use crate::fields::link::{read_change, read_new};

described_body! {
    /// What can be set of a link. Absent: the default; null: the default.
    pub(super) NewLink("LinkFields") = read_new
}

described_body! {
    /// What can be set of a link. Absent: unchanged; null: the default.
    pub(super) ChangedLink("LinkFields") = read_change
}
