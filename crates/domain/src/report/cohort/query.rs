//! What is asked of cohorts, and answered.

use super::rows::CohortFigures;
use crate::report::Period;

/// By what cohorts can be told apart, beside when they were installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CohortDimension {
    /// Who is credited.
    Network,
    /// Which link.
    Link,
    /// The campaign's id.
    Campaign,
    /// Two letters.
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

/// What is asked of the cohorts of an app.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CohortReportQuery {
    /// When the devices were installed: a period a cohort.
    pub periods: Vec<Period>,
    /// What else is told apart.
    pub group_by: Option<CohortDimension>,
    /// Ages up to this one.
    pub age_max: u8,
    /// Rows, at most.
    pub rows_max: u32,
}

/// What devices of one cohort did at one age.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CohortRow {
    /// Which of the periods.
    pub period: usize,
    /// The value of the dimension that was asked for; empty where there is none.
    pub value: String,
    /// How many days after the install.
    pub age: u8,
    /// The figures.
    pub figures: CohortFigures,
}
