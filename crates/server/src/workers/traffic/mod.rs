//! Compares every app's last hour with the weeks before it, and raises `traffic.anomaly`.
//!
//! Every node with the role `forward` runs this worker. An hour is stored once per app, by the node that finishes first.

use super::periodic::{Worker, WorkerActivity};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tributary_domain::access::{AnalyticsRead, Authorized};
use tributary_domain::forwarding::alert::{Alert, AlertKind};
use tributary_domain::report::anomaly::{
    ADDRESS_FLOOR, HISTORY_HOURS, LINKS_MAX, TrafficFigure, TrafficSeries, TrafficSubject,
    check_hour, message,
};
use tributary_domain::report::{Dimension, Figures, Grain, Period, ReportQuery};
use tributary_domain::runtime::Runtime;
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::id::{AppId, LinkId, OrganizationId};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::records::alert_id;
use tributary_store::{CheckedHour, Store, StoreResult};

const MILLIS_PER_HOUR: i64 = 60 * 60 * 1_000;
/// How long after its end an hour is checked. SDKs send events in batches.
const SETTLING_MILLIS: i64 = 5 * 60 * 1_000;
/// Apps checked per run. The next run continues.
const APPS_MAX: u32 = 1_000;
/// Links read for the checked hour. Links beyond this number are not compared.
const LINK_ROWS_MAX: u32 = 1_000;

/// Compares traffic with earlier weeks.
pub(super) struct TrafficWorker {
    store: Arc<dyn Store>,
    runtime: Runtime,
}

/// An app that is checked.
struct CheckedApp {
    reader: Authorized<AnalyticsRead>,
    app: AppId,
    hour: Timestamp,
}

fn hours_before(hour: Timestamp, hours: i64) -> Timestamp {
    Timestamp::from_millis(
        hour.as_millis()
            .saturating_sub(hours.saturating_mul(MILLIS_PER_HOUR)),
    )
}

/// Returns the last hour that is complete.
fn complete_hour(now: Timestamp) -> Timestamp {
    let settled = Timestamp::from_millis(now.as_millis().saturating_sub(SETTLING_MILLIS));
    hours_before(Grain::Hour.bucket_start(settled), 1)
}

fn is_noticeable(figures: &Figures) -> bool {
    let reaches = |figure: &TrafficFigure| figure.of(figures) >= figure.floor();
    TrafficFigure::ALL.iter().any(reaches)
}

impl TrafficWorker {
    pub(super) fn new(store: Arc<dyn Store>, runtime: Runtime) -> Self {
        Self { store, runtime }
    }

    async fn figures(
        &self,
        checked: &CheckedApp,
        periods: Vec<Period>,
        link: Option<LinkId>,
    ) -> StoreResult<Vec<Figures>> {
        let count = periods.len();
        let query = ReportQuery {
            rows_max: u32::try_from(count).unwrap_or(u32::MAX),
            periods,
            group_by: Vec::new(),
            filters: link
                .map(|link| (Dimension::Link, link.to_string()))
                .into_iter()
                .collect(),
        };
        let mut figures = vec![Figures::default(); count];
        for row in self
            .store
            .stats(&checked.reader, checked.app, query)
            .await?
        {
            if let Some(period) = figures.get_mut(row.period) {
                period.add(&row.figures, 1);
            }
        }
        Ok(figures)
    }

    /// Returns the links with the highest figures in the hour, if they reach a floor.
    async fn busy_links(&self, checked: &CheckedApp) -> StoreResult<Vec<(LinkId, Figures)>> {
        let query = ReportQuery {
            periods: vec![(checked.hour, hours_before(checked.hour, -1))],
            group_by: vec![Dimension::Link],
            filters: Vec::new(),
            rows_max: LINK_ROWS_MAX,
        };
        let rows = self
            .store
            .stats(&checked.reader, checked.app, query)
            .await?;
        let mut links: Vec<(LinkId, Figures)> = rows
            .into_iter()
            .filter(|row| is_noticeable(&row.figures))
            .filter_map(|row| Some((LinkId::parse(&row.values.concat()).ok()?, row.figures)))
            .collect();
        let rank = |figures: &Figures| {
            use TrafficFigure::{Events, Installs, Revenue};
            [Revenue, Installs, Events].map(|figure| figure.of(figures))
        };
        links.sort_by_key(|(link, figures)| (std::cmp::Reverse(rank(figures)), *link));
        links.truncate(LINKS_MAX);
        Ok(links)
    }

    /// Builds the series of a subject: the hour's figures that reach their floor, with history.
    async fn series(
        &self,
        checked: &CheckedApp,
        link: Option<LinkId>,
        now: &Figures,
    ) -> StoreResult<Vec<TrafficSeries>> {
        let hours: Vec<Timestamp> = (1..=HISTORY_HOURS)
            .map(|age| hours_before(checked.hour, age))
            .collect();
        let periods = hours.iter().map(|hour| (*hour, hours_before(*hour, -1)));
        let history = self.figures(checked, periods.collect(), link).await?;
        let series = TrafficFigure::ALL.iter().map(|figure| TrafficSeries {
            subject: link.map_or(TrafficSubject::App, TrafficSubject::Link),
            figure: *figure,
            floor: figure.floor(),
            value: figure.of(now),
            history: hours
                .iter()
                .zip(&history)
                .map(|(hour, figures)| (*hour, figure.of(figures)))
                .collect(),
        });
        Ok(series.collect())
    }

    async fn all_series(&self, checked: &CheckedApp) -> StoreResult<Vec<TrafficSeries>> {
        let period = (checked.hour, hours_before(checked.hour, -1));
        let now = self.figures(checked, vec![period], None).await?;
        let now = now.into_iter().next().unwrap_or_default();
        // No link has more than its app, so most apps need no further query.
        if !is_noticeable(&now) {
            return Ok(Vec::new());
        }
        let mut series = self.series(checked, None, &now).await?;
        for (link, figures) in self.busy_links(checked).await? {
            series.extend(self.series(checked, Some(link), &figures).await?);
        }
        Ok(series)
    }

    async fn check(
        &self,
        (organization, app): (OrganizationId, AppId),
        hour: Timestamp,
        busiest: Option<&(Digest, i64)>,
    ) -> StoreResult<bool> {
        let checked = CheckedApp {
            reader: Authorized::operator(organization),
            app,
            hour,
        };
        let since = hours_before(hour, HISTORY_HOURS);
        let mut series = self.all_series(&checked).await?;
        let history = self.store.traffic_history(app, since).await?;
        series.extend(busiest.map(|(address, installs)| TrafficSeries {
            subject: TrafficSubject::address(address),
            figure: TrafficFigure::Installs,
            floor: ADDRESS_FLOOR,
            value: *installs,
            history: history.peaks,
        }));
        let check = check_hour(hour, &series, &history.anomalies);
        let (at, random) = (self.runtime.now(), self.runtime.random_bytes());
        let alerts = check.raised.iter().zip(0..).map(|(anomaly, number)| Alert {
            id: alert_id(at, random, number),
            app,
            kind: AlertKind::TrafficAnomaly,
            network: None,
            at,
            message: message(anomaly),
        });
        let record = CheckedHour {
            app,
            hour,
            peak: busiest.map_or(0, |(_, installs)| *installs),
            alerts: alerts.collect(),
            check,
            at,
        };
        self.store.record_checked_hour(record, since).await
    }
}

impl Worker for TrafficWorker {
    const NAME: &'static str = "traffic";
    const PERIOD: Duration = Duration::from_mins(5);

    async fn run_once(&mut self) -> anyhow::Result<WorkerActivity> {
        let hour = complete_hour(self.runtime.now());
        let apps = self.store.unchecked_apps(hour, APPS_MAX).await?;
        if apps.is_empty() {
            return Ok(WorkerActivity::Idle);
        }
        let busiest = self.store.busiest_addresses(hour, hours_before(hour, -1));
        let busiest: BTreeMap<AppId, (Digest, i64)> = busiest
            .await?
            .into_iter()
            .map(|(app, address, installs)| (app, (address, installs)))
            .collect();
        let mut failure = None;
        for app in apps {
            // One app's failure does not keep the others from being checked.
            if let Err(error) = self.check(app, hour, busiest.get(&app.1)).await {
                failure = Some(error);
            }
        }
        failure.map_or(Ok(WorkerActivity::Done), |error| Err(error.into()))
    }
}

#[cfg(test)]
mod tests;
