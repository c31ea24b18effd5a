//! Reports: the figures counted when clicks and events are recorded, and the queries over them.

pub mod anomaly;
pub mod cardinality_cap;
pub mod cohort;
pub mod cost;
pub mod cost_table;
pub mod metric;
pub mod number_text;
pub mod postback;
pub mod range;
pub mod tally;
pub mod view;
pub mod written_amount;

mod campaign_names;
mod click_breakdown;
mod day_values;
mod figures;
mod grain;
mod merging;
mod pivot_history;
mod query;
mod report_figures;
mod rollup;
mod spend;
mod spreadsheet;
mod unmerged;

pub use campaign_names::{CampaignNames, NAME_SOURCES_MAX};
pub use click_breakdown::{CLICKS_SCANNED_MAX, ClickBreakdown};
pub use day_values::{ChangedValues, DayValues};
pub use figures::Figures;
pub use grain::{Bucket, Grain, GrainSpan, Period, split_by_grain};
pub use merging::PendingIncrements;
pub use pivot_history::{PivotFacts, PivotHistory};
pub use query::{
    APP_PLATFORMS, DIMENSIONS_MAX, Dimension, GroupBy, OTHER, ReportQuery, Rollup, StatsRow,
    TimeUnit,
};
pub use report_figures::{ReportFigures, is_paid_network, quotient, ratio, share};
pub use rollup::{
    BucketKey, CampaignKey, CreditKey, Increments, NameKey, NetworkKey, PivotKey, PlaceKey,
    RollupRows,
};
pub use spend::{CostSum, ReportRowKey, Spend, counted_costs, report_rows};
pub use spreadsheet::{report_file_name, spreadsheet_field};
pub use unmerged::RollupMerge;
