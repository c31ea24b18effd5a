//! Loads the figures of an overview, filtered as the bar says.

use crate::analysis::AnalysisBar;
use crate::failure::Failure;
use crate::state::DashboardHandles;
use crate::value_names::ValueNames;
use std::collections::BTreeMap;
use tributary_domain::access::{AnalyticsRead, Authorized, Environment};
use tributary_domain::report::range::{DayRange, Span};
use tributary_domain::report::{
    Dimension, Period, ReportFigures, ReportQuery, Rollup, Spend, StatsRow, TimeUnit, report_rows,
};
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::id::AppId;

/// Maximum rows to read. Rows are sorted here, so more are read than shown.
const ROWS_READ_MAX: u32 = 50_000;

/// Reads an app's figures with the filters of the bar.
pub(in crate::pages::app) struct FigureReader<'a> {
    pub(in crate::pages::app) handles: &'a DashboardHandles,
    pub(in crate::pages::app) caller: &'a Authorized<AnalyticsRead>,
    pub(in crate::pages::app) app: AppId,
    pub(in crate::pages::app) bar: &'a AnalysisBar,
}

/// The figures of the range and of the range that it is compared with.
pub(in crate::pages::app) struct RangeFigures {
    /// Spans of the chart.
    pub(super) spans: Vec<Span>,
    /// Spans of the compared range.
    pub(super) spans_before: Vec<Span>,
    /// Figures of each span, without costs if the spans are hours.
    pub(super) series: Vec<ReportFigures>,
    /// Figures of each span of the compared range.
    pub(super) series_before: Vec<ReportFigures>,
    pub(super) total: ReportFigures,
    /// Total of the part that is compared; `None` if that part is not complete.
    pub(super) total_before: Option<ReportFigures>,
    /// Rows of the range by network, if the filters allow it.
    pub(super) by_network: Option<Vec<StatsRow>>,
    /// Rows of the compared part by network, if they are known and complete.
    pub(super) by_network_before: Option<Vec<StatsRow>>,
    /// Costs of the range, if they are known with these filters.
    pub(super) spend: Option<Spend>,
    /// Costs of the compared range, if they are known and the range is over.
    pub(super) spend_before: Option<Spend>,
    /// Whether there are costs that are not known with these filters.
    pub(super) hides_costs: bool,
}

impl RangeFigures {
    /// Returns whether changes of costs are missing, because a part of a day has no costs.
    pub(super) fn lacks_compared_costs(&self) -> bool {
        let before = self.total_before.map(|before| before.cost);
        self.total.cost.is_some_and(|cost| cost > 0) && before == Some(None)
    }
}

impl FigureReader<'_> {
    /// Returns the query for these periods; `None` if no roll-up covers it.
    pub(super) fn query(&self, periods: Vec<Period>, by: &[Dimension]) -> Option<ReportQuery> {
        let query = ReportQuery {
            periods,
            group_by: by.to_vec(),
            filters: self.bar.filters(),
            rows_max: ROWS_READ_MAX,
        };
        Rollup::for_dimensions(&query.dimensions()).map(|_| query)
    }

    /// Loads the figures of the whole range by these dimensions; `None` if no roll-up covers them.
    pub(super) async fn whole(&self, by: &[Dimension]) -> Result<Option<Vec<StatsRow>>, Failure> {
        self.rows(vec![self.bar.range.whole()], by).await
    }

    /// Loads the figures of these periods by these dimensions; `None` if no roll-up covers them or if
    /// one does, but not yet for all of these periods.
    pub(super) async fn rows(
        &self,
        periods: Vec<Period>,
        by: &[Dimension],
    ) -> Result<Option<Vec<StatsRow>>, Failure> {
        match self.query(periods, by) {
            None => Ok(None),
            Some(query) if !by.is_empty() && self.lacks_history(&query).await? => Ok(None),
            Some(query) => {
                let rows = self.handles.store.stats(self.caller, self.app, query);
                Ok(Some(rows.await?))
            }
        }
    }

    /// Loads the names of values in the range.
    pub(super) async fn names<'a>(
        &self,
        values: impl IntoIterator<Item = (Dimension, &'a String)>,
    ) -> Result<ValueNames, Failure> {
        let period = self.bar.range.whole();
        ValueNames::load(self.handles, self.caller, self.app, period, values).await
    }

    async fn lacks_history(&self, query: &ReportQuery) -> Result<bool, Failure> {
        let store = &self.handles.store;
        let from = store.complete_from(self.caller, self.app, query).await?;
        Ok(from.is_some())
    }

    /// Returns the first day from which the figures with the bar's filters are complete; `None` if
    /// they lack nothing.
    pub(super) async fn complete_from(&self) -> Result<Option<Day>, Failure> {
        let compared = self.bar.range.compared.as_ref();
        let periods = std::iter::once(self.bar.range.whole());
        let periods = periods.chain(compared.map(|compared| compared.period));
        let Some(query) = self.query(periods.collect(), &[]) else {
            return Ok(None);
        };
        let store = &self.handles.store;
        let from = store.complete_from(self.caller, self.app, &query).await?;
        Ok(from.map(Day::first_from))
    }

    /// Returns whether costs are known with the bar's filters.
    fn knows_costs(&self) -> bool {
        let query = self.query(Vec::new(), &[]);
        query.is_some_and(|query| Spend::is_available_for(self.caller.environment(), None, &query))
    }

    /// Loads the costs of these days.
    async fn spend(&self, days: &DayRange) -> Result<Spend, Failure> {
        let store = &self.handles.store;
        let sums = store.cost_sums(self.caller, vec![self.app], days.from, days.to);
        Ok(sums.await?.into_iter().map(|(_, sum)| sum).collect())
    }

    /// Returns whether the app had data in a period, as far as it is known.
    pub(super) fn has_begun(&self, period: Period) -> bool {
        let begin = self.bar.data_begin;
        begin.is_none_or(|begin| self.bar.range.start_of(begin) < period.1)
    }

    /// Loads the figures of the range and of the compared range in one query.
    pub(in crate::pages::app) async fn load(&self) -> Result<RangeFigures, Failure> {
        let range = &self.bar.range;
        let spans = range.chart_spans();
        let unit = range.chart_unit();
        let spans_before = range
            .compared
            .as_ref()
            .map(|compared| compared.days.split(Some(unit)))
            .unwrap_or_default();
        let part = range.compared.as_ref().map(|compared| compared.period);
        let periods = spans.iter().chain(&spans_before).map(|span| span.period);
        let periods: Vec<Period> = periods.chain(part).collect();
        let by_network = self.rows(periods.clone(), &[Dimension::Network]);
        let (mut rows, is_split) = match by_network.await? {
            Some(rows) => (rows, true),
            None => (self.rows(periods, &[]).await?.unwrap_or_default(), false),
        };
        let all_spend = self.spend(&range.days).await?;
        let knows_costs = self.knows_costs();
        let hides_costs =
            !knows_costs && self.caller.environment() == Environment::Live && all_spend.total() > 0;
        let spend = Some(all_spend).filter(|_| knows_costs);
        let over = range.compared.as_ref().filter(|one| !one.is_partial());
        let spend_before = match over.filter(|_| knows_costs) {
            Some(compared) => Some(self.spend(&compared.days).await?),
            None => None,
        };
        let part_rows = take_from(&mut rows, spans.len() + spans_before.len());
        let rows_before = take_from(&mut rows, spans.len());
        // Costs are known by day.
        let by_span = |spend| Option::filter(spend, |_: &&Spend| unit != TimeUnit::Hour);
        let series = |rows, spans: &[Span], spend| {
            let rows = report_rows(rows, &self.ungrouped(), spans, spend);
            rows.into_values().collect::<Vec<ReportFigures>>()
        };
        let total = |rows: Vec<StatsRow>, days: &DayRange, spend| {
            let rows = rows.into_iter().map(|row| StatsRow { period: 0, ..row });
            let rows = series(rows.collect(), &days.split(None), spend);
            rows.first().copied().unwrap_or_default()
        };
        // A change from a part of a period would look like growth.
        let is_comparable = self.bar.data_begin.is_none();
        Ok(RangeFigures {
            total: total(rows.clone(), &range.days, spend.as_ref()),
            total_before: range
                .compared
                .as_ref()
                .filter(|_| is_comparable)
                .map(|compared| total(part_rows.clone(), &compared.days, spend_before.as_ref())),
            by_network_before: (is_split && is_comparable && range.compared.is_some())
                .then_some(part_rows),
            series: series(rows.clone(), &spans, by_span(spend.as_ref())),
            series_before: series(rows_before, &spans_before, by_span(spend_before.as_ref())),
            by_network: is_split.then_some(rows),
            spans,
            spans_before,
            spend,
            spend_before,
            hides_costs,
        })
    }

    /// Returns the query for totals, which tells how rows by network are added up.
    fn ungrouped(&self) -> ReportQuery {
        ReportQuery {
            periods: Vec::new(),
            group_by: Vec::new(),
            filters: self.bar.filters(),
            rows_max: 0,
        }
    }
}

/// Removes the rows of later periods and returns them, with periods counted from `first`.
fn take_from(rows: &mut Vec<StatsRow>, first: usize) -> Vec<StatsRow> {
    let taken = rows.extract_if(.., |row| row.period >= first);
    taken
        .map(|row| StatsRow {
            period: row.period - first,
            ..row
        })
        .collect()
}

/// Adds up rows of some days by their values.
pub(super) fn sums(
    reader: &FigureReader<'_>,
    days: &DayRange,
    rows: Vec<StatsRow>,
    by: &[Dimension],
    spend: Option<&Spend>,
) -> BTreeMap<String, ReportFigures> {
    let query = ReportQuery {
        group_by: by.to_vec(),
        ..reader.ungrouped()
    };
    let rows = rows.into_iter().map(|row| StatsRow { period: 0, ..row });
    let spans = days.split(None);
    let rows = report_rows(rows.collect(), &query, &spans, spend).into_iter();
    rows.map(|((_, values), row)| (values.concat(), row))
        .collect()
}
