//! Loads an overview. All parts are read from roll-ups with the coarsest possible buckets.

use super::shape::{OverviewOut, TopOut};
use crate::error::ApiError;
use crate::report::load_spend;
use crate::state::ApiState;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use tributary_domain::access::{AnalyticsRead, Authorized, Environment};
use tributary_domain::report::anomaly::{TrafficAnomaly, shown_since};
use tributary_domain::report::cohort::{
    CohortReportQuery, InstallStage, STAGE_AGE_MAX, install_stages,
};
use tributary_domain::report::range::{ComparedRange, DayRange, Span};
use tributary_domain::report::{
    Dimension, Figures, Period, ReportFigures, ReportQuery, Spend, StatsRow, TimeUnit, report_rows,
};
use tributary_domain::vocabulary::id::{AppId, LinkId};

/// Number of rows in each top list.
const TOP_MAX: usize = 10;
/// Maximum number of rows per query. No app has this many links and campaigns with traffic.
const ROWS_MAX: u32 = 50_000;

/// Loads the overview of an app.
pub(super) struct OverviewLoader<'a> {
    pub(super) state: &'a ApiState,
    pub(super) caller: &'a Authorized<AnalyticsRead>,
    pub(super) app: AppId,
    pub(super) range: &'a DayRange,
}

impl OverviewLoader<'_> {
    /// Loads all parts.
    pub(super) async fn load(&self) -> Result<OverviewOut, ApiError> {
        let days = self.range.split(Some(TimeUnit::Day));
        let periods = days.iter().map(|day| day.period).collect();
        let now = self.state.runtime.now();
        let before = self.range.compared_before(now);
        // Links and campaigns are in the same roll-up, so one query reads both.
        let credits = [Dimension::Network, Dimension::Link, Dimension::Campaign];
        let store = &self.state.store;
        let health = store.delivery_health(self.caller, self.app, now);
        let days_of_arrival = self.range.from..=self.range.to;
        let billing = store.billing_figures(self.caller, self.app, days_of_arrival);
        let (credited, by_network, previous, costs, costs_before, stages, health, billing) = tokio::try_join!(
            self.load_credited(&credits),
            self.rows(periods, &[Dimension::Network]),
            self.rows(vec![before.period], &[Dimension::Network]),
            self.costs(self.range),
            self.costs_before(&before),
            self.install_stages(),
            async { Ok(health.await?) },
            async { Ok(billing.await?) },
        )?;
        let previous = total(&series(
            &before.days.split(None),
            previous,
            costs_before.as_ref(),
        ));
        let series = series(&days, by_network.clone(), costs.as_ref());
        let total = total(&series);
        Ok(OverviewOut::of(self.range, &total, &previous, &series)
            .with_install_funnel(&stages)
            .with_links(self.top_links(&credited).await?)
            .with_campaigns(top_campaigns(&credited, costs.as_ref(), self.range))
            .with_networks(top_networks(&by_network, costs.as_ref(), self.range))
            .with_health(health)
            .with_billing(self.caller.environment(), &billing)
            .with_anomalies(self.anomalies().await?))
    }

    async fn anomalies(&self) -> Result<Vec<TrafficAnomaly>, ApiError> {
        let since = shown_since(self.state.runtime.now());
        let store = &self.state.store;
        Ok(store
            .traffic_anomalies(self.caller, self.app, since)
            .await?)
    }

    /// Loads the figures for the whole range. This is the slowest query, so the range is split into
    /// two halves that are read in parallel.
    async fn load_credited(&self, by: &[Dimension]) -> Result<Vec<StatsRow>, ApiError> {
        let mut days = self.range.split(Some(TimeUnit::Day));
        let later = days.split_off(days.len() / 2);
        let whole = |days: &[Span]| match days {
            [] => Vec::new(),
            [first, .., last] => vec![(first.period.0, last.period.1)],
            [only] => vec![only.period],
        };
        let (mut rows, others) =
            tokio::try_join!(self.rows(whole(&days), by), self.rows(whole(&later), by))?;
        rows.extend(others);
        Ok(rows)
    }

    async fn rows(
        &self,
        periods: Vec<Period>,
        by: &[Dimension],
    ) -> Result<Vec<StatsRow>, ApiError> {
        let report_query = report_query(periods, by);
        let rows = self.state.store.stats(self.caller, self.app, report_query);
        Ok(rows.await?)
    }

    async fn costs(&self, range: &DayRange) -> Result<Option<Spend>, ApiError> {
        if self.caller.environment() == Environment::Test {
            return Ok(None);
        }
        let costs = load_spend(self.state, self.caller, self.app, range).await?;
        Ok(Some(costs))
    }

    /// Loads the costs of the compared range. They are known by whole days, so a part of a day has
    /// none.
    async fn costs_before(&self, before: &ComparedRange) -> Result<Option<Spend>, ApiError> {
        if before.is_partial() {
            return Ok(None);
        }
        self.costs(&before.days).await
    }

    async fn install_stages(&self) -> Result<Vec<InstallStage>, ApiError> {
        let days = self.range.split(Some(TimeUnit::Day));
        let periods: Vec<Period> = days.iter().map(|day| day.period).collect();
        let query = CohortReportQuery::new(periods.clone(), &[], STAGE_AGE_MAX, ROWS_MAX);
        let store = &self.state.store;
        // Read before the cohorts, because it only moves back.
        let payers_from = store.payers_complete_from(self.caller, self.app).await?;
        let rows = store.cohorts(self.caller, self.app, query).await?;
        let now = self.state.runtime.now();
        Ok(install_stages(&periods, &rows, payers_from, now))
    }

    async fn top_links(&self, credited: &[StatsRow]) -> Result<Vec<TopOut>, ApiError> {
        let mut links: BTreeMap<&String, Figures> = BTreeMap::new();
        for row in credited {
            links
                .entry(&row.values[1])
                .or_default()
                .add(&row.figures, 1);
        }
        let links = links.into_iter();
        let rows = links.map(|(link, figures)| (vec![link.clone()], without_cost(figures)));
        let rows: Vec<(Vec<String>, ReportFigures)> = rows.collect();
        let best = top_rows(rows);
        let ids = best
            .iter()
            .filter_map(|(values, _)| LinkId::parse(&values[0]).ok());
        let names = self
            .state
            .store
            .link_names(self.caller, self.app, ids.collect())
            .await?;
        let names: BTreeMap<String, String> = names
            .into_iter()
            .map(|(link, name)| (link.to_string(), name))
            .collect();
        let shaped = best.into_iter().map(|(values, measured)| {
            let name = names.get(&values[0]).cloned();
            TopOut::link(&values[0], name, &measured)
        });
        Ok(shaped.collect())
    }
}

fn report_query(periods: Vec<Period>, by: &[Dimension]) -> ReportQuery {
    ReportQuery {
        periods,
        group_by: by.to_vec(),
        filters: Vec::new(),
        rows_max: ROWS_MAX,
    }
}

const fn without_cost(figures: Figures) -> ReportFigures {
    ReportFigures {
        figures,
        cost: None,
        organic_net: None,
    }
}

fn total(series: &[(String, ReportFigures)]) -> ReportFigures {
    let mut days = series.iter().map(|(_, day)| *day);
    let first = days.next().unwrap_or_default();
    days.fold(first, |mut sum, day| {
        sum.add(&day);
        sum
    })
}

/// Returns the figures and costs of each span. The rows are grouped by network.
fn series(
    spans: &[Span],
    by_network: Vec<StatsRow>,
    costs: Option<&Spend>,
) -> Vec<(String, ReportFigures)> {
    let rows = report_rows(by_network, &report_query(Vec::new(), &[]), spans, costs);
    let labels = spans.iter().map(|span| span.label.clone());
    labels.zip(rows.into_values()).collect()
}

/// Returns the top rows by net revenue, then by installs, then by clicks. Rows whose last dimension
/// has no value are left out.
fn top_rows(rows: Vec<(Vec<String>, ReportFigures)>) -> Vec<(Vec<String>, ReportFigures)> {
    let named = |(values, _): &(Vec<String>, ReportFigures)| {
        values.last().is_some_and(|last| !last.is_empty())
    };
    let mut rows: Vec<_> = rows.into_iter().filter(named).collect();
    rows.sort_by_cached_key(|(values, measured)| {
        let figures = &measured.figures;
        let rank = (figures.net_micros(), figures.installs, figures.clicks);
        (Reverse(rank), values.clone())
    });
    rows.truncate(TOP_MAX);
    rows
}

/// Adds costs to the figures with the same dimension values.
fn with_costs(
    rows: impl Iterator<Item = (Vec<String>, Figures)>,
    by: &[Dimension],
    costs: Option<&Spend>,
    range: &DayRange,
) -> Vec<(Vec<String>, ReportFigures)> {
    let row = |(values, figures)| StatsRow {
        period: 0,
        values,
        figures,
    };
    let report_query = report_query(Vec::new(), by);
    let rows = report_rows(
        rows.map(row).collect(),
        &report_query,
        &range.split(None),
        costs,
    );
    rows.into_iter()
        .map(|((_, values), measured)| (values, measured))
        .collect()
}

fn top_campaigns(credited: &[StatsRow], costs: Option<&Spend>, range: &DayRange) -> Vec<TopOut> {
    let by = [Dimension::Network, Dimension::Campaign];
    let rows = credited.iter().map(|row| {
        let values = vec![row.values[0].clone(), row.values[2].clone()];
        (values, row.figures)
    });
    top_rows(with_costs(rows, &by, costs, range))
        .iter()
        .map(|(values, measured)| TopOut::campaign(&values[0], &values[1], measured))
        .collect()
}

fn top_networks(rows: &[StatsRow], costs: Option<&Spend>, range: &DayRange) -> Vec<TopOut> {
    let rows = rows.iter().map(|row| (row.values.clone(), row.figures));
    top_rows(with_costs(rows, &[Dimension::Network], costs, range))
        .iter()
        .map(|(values, measured)| TopOut::network(&values[0], measured))
        .collect()
}
