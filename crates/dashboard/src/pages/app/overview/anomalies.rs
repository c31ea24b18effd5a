//! Unusual traffic of the last days.

use crate::failure::Failure;
use crate::state::DashboardHandles;
use crate::text;
use crate::value_names::link_names;
use tributary_domain::access::{AnalyticsRead, Authorized};
use tributary_domain::report::anomaly::{TrafficFigure, TrafficSubject, shown_since};
use tributary_domain::vocabulary::money::Amount;
use tributary_store::AppName;

/// A row of the table.
pub(super) struct AnomalyLine {
    pub(super) hour: String,
    pub(super) subject: String,
    pub(super) figure: &'static str,
    pub(super) value: String,
    pub(super) expected: String,
    pub(super) is_open: bool,
}

/// Loads the anomalies, newest first.
pub(super) async fn anomalies(
    handles: &DashboardHandles,
    caller: &Authorized<AnalyticsRead>,
    app: &AppName,
) -> Result<Vec<AnomalyLine>, Failure> {
    let since = shown_since(handles.runtime.now());
    let found = handles
        .store
        .traffic_anomalies(caller, app.id, since)
        .await?;
    let ids: Vec<String> = found.iter().map(|one| one.subject.id()).collect();
    let names = link_names(handles, caller, app.id, ids.iter()).await?;
    let lines = found.into_iter().map(|one| {
        let written = |value: i64| match one.figure {
            TrafficFigure::Revenue => text::usd(Amount::from_micros(value)),
            TrafficFigure::Installs | TrafficFigure::Events => text::count(value),
        };
        let id = one.subject.id();
        AnomalyLine {
            hour: text::hour(one.hour, &app.timezone),
            subject: match one.subject {
                TrafficSubject::App => "The app".to_owned(),
                TrafficSubject::Link(_) => names.get(&id).cloned().unwrap_or(id),
                TrafficSubject::Address(_) => format!("One address range ({id})"),
            },
            figure: one.figure.as_str(),
            value: written(one.value),
            expected: written(one.expected),
            is_open: one.ended_at.is_none(),
        }
    });
    Ok(lines.collect())
}
