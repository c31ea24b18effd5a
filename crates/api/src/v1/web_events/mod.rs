//! Verified website events.

pub(crate) mod accept;
mod fields;
pub(crate) mod parse;
