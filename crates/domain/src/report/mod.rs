//! Reports: what is counted when something is recorded, and what can be asked of it.

pub mod cap;
pub mod cohort;
pub mod cost;
pub mod postback;
pub mod tally;

mod figures;
mod grain;
mod question;
mod rollup;

pub use figures::Figures;
pub use grain::{Bucket, Grain, Period, Piece, pieces};
pub use question::{
    DIMENSIONS_MAX, Dimension, GroupBy, OTHER, Rollup, StatsQuestion, StatsRow, TimeUnit,
};
pub use rollup::{CreditKey, Increments, NameKey, NetworkKey, PlaceKey, RollupRows, Stretch};
