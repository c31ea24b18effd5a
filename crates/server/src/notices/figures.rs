//! Reads the figures of messages from the same roll-ups as the overview.

use std::cmp::Reverse;
use tributary_domain::access::{AnalyticsRead, Authorized};
use tributary_domain::attribution::CreditedNetwork;
use tributary_domain::report::range::DayRange;
use tributary_domain::report::{Dimension, ReportFigures, ReportQuery, Spend, report_rows};
use tributary_domain::vocabulary::id::AppId;
use tributary_store::{Store, StoreResult};

/// Rows per query. There are fewer networks.
const ROWS_MAX: u32 = 100;
/// Networks in a summary.
const NETWORKS_MAX: usize = 8;

/// Reads an app's figures.
pub(super) struct NoticeFigures<'a> {
    pub(super) store: &'a dyn Store,
    pub(super) reader: &'a Authorized<AnalyticsRead>,
    pub(super) app: AppId,
}

impl NoticeFigures<'_> {
    async fn rows(
        &self,
        range: &DayRange,
        by: Vec<Dimension>,
        network: Option<CreditedNetwork>,
    ) -> StoreResult<Vec<(Vec<String>, ReportFigures)>> {
        let filter = network.map(|one| (Dimension::Network, one.as_str().to_owned()));
        let query = ReportQuery {
            periods: vec![range.period()],
            group_by: by,
            filters: filter.into_iter().collect(),
            rows_max: ROWS_MAX,
        };
        let found = self
            .store
            .stats(self.reader, self.app, query.split_by_network());
        let costs = self
            .store
            .cost_sums(self.reader, vec![self.app], range.from, range.to);
        let (found, costs) = tokio::try_join!(found, costs)?;
        let spend: Spend = costs.into_iter().map(|(_, sum)| sum).collect();
        let rows = report_rows(found, &query, &range.split(None), Some(&spend));
        Ok(rows
            .into_iter()
            .map(|((_, values), row)| (values, row))
            .collect())
    }

    /// Returns the figures of these days, of one network or of all.
    pub(super) async fn total(
        &self,
        range: &DayRange,
        network: Option<CreditedNetwork>,
    ) -> StoreResult<ReportFigures> {
        let rows = self.rows(range, Vec::new(), network).await?;
        Ok(rows
            .into_iter()
            .next()
            .map_or_else(ReportFigures::zero, |(_, row)| row))
    }

    /// Returns the figures of these days by network, highest net revenue first.
    pub(super) async fn networks(
        &self,
        range: &DayRange,
    ) -> StoreResult<Vec<(String, ReportFigures)>> {
        let rows = self.rows(range, vec![Dimension::Network], None).await?;
        let named = rows.into_iter().map(|(values, row)| (values.concat(), row));
        let mut rows: Vec<_> = named.filter(|(network, _)| !network.is_empty()).collect();
        rows.sort_by_cached_key(|(network, row)| {
            let rank = (row.figures.net_micros(), row.figures.installs);
            (Reverse(rank), network.clone())
        });
        rows.truncate(NETWORKS_MAX);
        Ok(rows)
    }
}
