//! Flagged installs that are held for a review.

pub(super) mod decide;
pub(super) mod decide_many;
mod fields;
pub(super) mod list;
pub(super) mod shape;
