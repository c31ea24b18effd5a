//! Queries over cohorts, and their rows.

use super::rows::CohortFigures;
use crate::report::{Dimension, Period, ReportQuery};

/// A table of cohort figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CohortTable {
    /// By country.
    Places,
    /// By the install's credit.
    Credits,
}

impl CohortTable {
    /// All tables, the one with the fewest rows first.
    pub const ALL: [Self; 2] = [Self::Places, Self::Credits];

    /// Returns the dimensions of the table, besides the install date and the age.
    pub const fn dimensions(self) -> &'static [Dimension] {
        match self {
            Self::Places => &[Dimension::Country],
            Self::Credits => &[Dimension::Network, Dimension::Link, Dimension::Campaign],
        }
    }

    /// Returns the smallest table that has all these dimensions; `None` if no single table has
    /// them.
    pub fn for_dimensions(dimensions: &[Dimension]) -> Option<Self> {
        Self::ALL.into_iter().find(|table| {
            let known = table.dimensions();
            dimensions.iter().all(|dimension| known.contains(dimension))
        })
    }

    /// Returns whether cohorts can be grouped and filtered by a dimension.
    pub fn has_dimension(dimension: Dimension) -> bool {
        Self::for_dimensions(&[dimension]).is_some()
    }
}

/// A query over an app's cohorts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CohortReportQuery {
    /// Install periods, one per cohort, with the grouping and the filters.
    pub report: ReportQuery,
    /// Highest number of days since install to return.
    pub age_max: u8,
}

impl CohortReportQuery {
    /// Returns a query without filters.
    pub fn new(periods: Vec<Period>, group_by: &[Dimension], age_max: u8, rows_max: u32) -> Self {
        Self {
            report: ReportQuery {
                periods,
                group_by: group_by.to_vec(),
                filters: Vec::new(),
                rows_max,
            },
            age_max,
        }
    }

    /// Returns the table that covers the dimensions; `None` if no single table does.
    pub fn table(&self) -> Option<CohortTable> {
        CohortTable::for_dimensions(&self.report.dimensions())
    }

    /// Returns the query that reads the same figures split by network, so that paid and organic
    /// revenue are known. Reads at most `rows_max` rows.
    #[must_use]
    pub fn split_by_network(&self, rows_max: u32) -> Self {
        let mut split = self.clone();
        split.report = ReportQuery {
            rows_max,
            ..self.report.split_by_network()
        };
        split
    }

    /// Returns whether this many rows may be only a part of the report.
    pub fn is_cut(&self, rows: usize) -> bool {
        u32::try_from(rows).map_or(true, |rows| rows >= self.report.rows_max)
    }
}

/// Figures for one cohort on one day since install.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CohortRow {
    /// Index of the period.
    pub period: usize,
    /// One value per dimension of `group_by`, in order; empty if there is none.
    pub values: Vec<String>,
    /// Days since the install.
    pub age: u8,
    /// The figures.
    pub figures: CohortFigures,
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::nothing(&[], Some(CohortTable::Places))]
    #[case::country(&[Dimension::Country], Some(CohortTable::Places))]
    #[case::network(&[Dimension::Network], Some(CohortTable::Credits))]
    #[case::credit(&[Dimension::Campaign, Dimension::Link, Dimension::Network], Some(CohortTable::Credits))]
    #[case::country_of_a_network(&[Dimension::Country, Dimension::Network], None)]
    #[case::platform(&[Dimension::Platform], None)]
    #[case::event(&[Dimension::Event], None)]
    fn a_table_has_all_requested_dimensions(
        #[case] dimensions: &[Dimension],
        #[case] expected: Option<CohortTable>,
    ) {
        assert_eq!(CohortTable::for_dimensions(dimensions), expected);
    }

    #[rstest]
    #[case::below(9, false)]
    #[case::at_the_limit(10, true)]
    fn a_full_answer_may_be_a_part(#[case] rows: usize, #[case] expected: bool) {
        let query = CohortReportQuery::new(Vec::new(), &[], 30, 10);
        assert_eq!(query.is_cut(rows), expected);
    }
}
