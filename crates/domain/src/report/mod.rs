//! Reports, as far as they are prepared when something is recorded.

pub mod postback;

mod rollup;

pub use rollup::{Bucket, CreditKey, Figures, Increments, NameKey, PlaceKey};
