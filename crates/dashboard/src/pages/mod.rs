//! The pages: a file or a folder each, named after its URL.

pub(crate) mod front;
pub(crate) mod setup;
