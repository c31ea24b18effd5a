//! Request bodies for links, described by their readers.

use crate::fields::described_body;
use crate::fields::link::{read_bulk, read_change, read_new};

described_body! {
    /// A link's settings. Missing or null fields get their default.
    pub(super) NewLink("LinkFields") = read_new
}

described_body! {
    /// A link's settings. Missing fields are unchanged; null resets a field to its default.
    pub(super) ChangedLink("LinkFields") = read_change
}

described_body! {
    /// Links to create.
    pub(super) BulkLinks("LinksToCreate") = read_bulk
}
