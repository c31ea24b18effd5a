//! Attribution rules.

mod shape;
pub(super) mod what_if;
