//! The query for a report.

use crate::error::ApiError;
use crate::page::PageQuery;
use crate::query::QueryParameters;
use crate::report::filters::read_filters;
use crate::report::out_of_range;
use crate::report::range::RangeQuery;
use tributary_domain::report::{DIMENSIONS_MAX, Dimension, GroupBy, TimeUnit};

/// Requested grouping, filters, range and page.
#[derive(Debug)]
pub(super) struct StatsQuery {
    pub(super) group: GroupBy,
    pub(super) filters: Vec<(Dimension, String)>,
    pub(super) range: RangeQuery,
    pub(super) page: PageQuery,
}

impl StatsQuery {
    pub(super) fn read(parameters: &mut QueryParameters<'_>) -> Self {
        let by_day = || GroupBy {
            time: Some(TimeUnit::Day),
            dimensions: Vec::new(),
        };
        let group = parameters.optional("groupBy", GroupBy::parse);
        Self {
            group: group.unwrap_or_else(by_day),
            filters: read_filters(parameters, Dimension::ALL),
            range: RangeQuery::read(parameters),
            page: PageQuery::read(parameters),
        }
    }

    /// Rejects more filters than roll-ups support.
    pub(super) fn check(&self) -> Result<(), ApiError> {
        let Some((dimension, _)) = self.filters.get(DIMENSIONS_MAX) else {
            return Ok(());
        };
        let message = format!("Filter by at most {DIMENSIONS_MAX} dimensions.");
        Err(out_of_range(dimension.as_str(), message))
    }
}
