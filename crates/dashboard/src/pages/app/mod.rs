//! Pages of one app, and of all of them.

pub(crate) mod new;
pub(crate) mod overview;
pub(crate) mod start;
