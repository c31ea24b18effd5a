//! Reports: what is counted when something is recorded, and what can be asked of it.

pub mod cap;
pub mod cohort;
pub mod cost;
pub mod postback;
pub mod range;
pub mod tally;

mod figures;
mod grain;
mod measured;
mod question;
mod rollup;
mod spend;
mod spreadsheet;
mod unmerged;

pub use figures::Figures;
pub use grain::{Bucket, Grain, Period, Piece, pieces};
pub use measured::{Measured, quotient, ratio, share};
pub use question::{
    DIMENSIONS_MAX, Dimension, GroupBy, OTHER, Rollup, StatsQuestion, StatsRow, TimeUnit,
};
pub use rollup::{
    CampaignKey, CreditKey, Increments, NameKey, NetworkKey, PlaceKey, RollupRows, Stretch,
};
pub use spend::{CostSum, Place, Spend, measured_rows};
pub use spreadsheet::spreadsheet_field;
pub use unmerged::Merge;
