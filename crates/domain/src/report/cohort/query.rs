//! Queries over cohorts, and their rows.

use super::rows::CohortFigures;
use crate::report::Period;

/// Dimension to group cohorts by, besides the install date.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CohortDimension {
    /// Credited network.
    Network,
    /// Link.
    Link,
    /// Campaign id.
    Campaign,
    /// Country, two letters.
    Country,
}

crate::keywords! {
    CohortDimension {
        Network => "network",
        Link => "link",
        Campaign => "campaign",
        Country => "country",
    }
}

/// A query over an app's cohorts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CohortReportQuery {
    /// Install periods, one per cohort.
    pub periods: Vec<Period>,
    /// Additional dimension to group by.
    pub group_by: Option<CohortDimension>,
    /// Highest number of days since install to return.
    pub age_max: u8,
    /// Maximum number of rows.
    pub rows_max: u32,
}

/// Figures for one cohort on one day since install.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CohortRow {
    /// Index of the period.
    pub period: usize,
    /// Value of the dimension in `group_by`; empty if there is none.
    pub value: String,
    /// Days since the install.
    pub age: u8,
    /// The figures.
    pub figures: CohortFigures,
}
