//! All reports of an app, without values that differ between two apps with the same history.

use super::fixtures::at;
use super::outbox_fixtures::ForwardingApp;
use crate::LogPart;
use std::collections::BTreeMap;
use tributary_domain::access::{AppsRead, Authorized};
use tributary_domain::event::{Event, EventSource};
use tributary_domain::report::cohort::{CohortFigures, CohortReportQuery};
use tributary_domain::report::{Dimension, Figures, Period, ReportQuery};

const DAY: i64 = 24 * 60 * 60;
const ROWS_MAX: u32 = 10_000;
/// Dimensions to query: each dimension alone, and combinations that one table covers.
const DIMENSIONS: [&[Dimension]; 13] = [
    &[],
    &[Dimension::Network],
    &[Dimension::Link],
    &[Dimension::Campaign],
    &[Dimension::Adset],
    &[Dimension::Ad],
    &[Dimension::Country],
    &[Dimension::Platform],
    &[Dimension::Event],
    &[Dimension::Source],
    &[Dimension::Network, Dimension::Link, Dimension::Campaign],
    &[Dimension::Source, Dimension::Event],
    &[Dimension::Country, Dimension::Platform],
];
const COHORTS: [&[Dimension]; 5] = [
    &[],
    &[Dimension::Network],
    &[Dimension::Link],
    &[Dimension::Campaign],
    &[Dimension::Country],
];

/// Returns two days as two periods, and both days as one period.
fn periods() -> Vec<Period> {
    vec![
        (at(0), at(DAY)),
        (at(DAY), at(2 * DAY)),
        (at(0), at(2 * DAY)),
    ]
}

/// Replaces ids, which depend on the app, with stable names.
pub(super) struct StableNames(Vec<(String, String)>);

impl StableNames {
    /// Collects the ids of an app and its events.
    pub(super) fn of(one: &ForwardingApp, log: &[Event]) -> Self {
        let (app, link) = (one.tenant.app.id, one.tenant.link.id);
        let mut names = vec![
            (format!("{app:?}"), "app".to_owned()),
            (app.to_string(), "app".to_owned()),
            (format!("{link:?}"), "link".to_owned()),
            (link.to_string(), "link".to_owned()),
        ];
        for event in log {
            let name = format!("event {}", event.external_id);
            names.push((format!("{:?}", event.id), name));
            let click = event.credit.as_ref().and_then(|credit| credit.click);
            if let Some(click) = click {
                names.push((format!("{click:?}"), "click".to_owned()));
            }
        }
        Self(names)
    }

    /// Formats a value with stable names.
    pub(super) fn text(&self, value: &impl std::fmt::Debug) -> String {
        let text = format!("{value:?}");
        let replaced = |text: String, (id, name): &(String, String)| text.replace(id, name);
        self.0.iter().fold(text, replaced)
    }
}

/// Formats an event without the values that differ between two apps.
pub(super) fn event_text(event: &Event, payments: &BTreeMap<String, String>) -> String {
    let credit = event
        .credit
        .as_ref()
        .map(|credit| (credit.network, credit.match_type));
    let first = payments.get(&event.external_id);
    if event.source == EventSource::Sdk {
        // Without the user: an SDK event keeps the user that was known on arrival, which depends on
        // the order.
        return format!(
            "{} {} sdk {:?} {:?} {:?} {credit:?} duplicate={} first={} {:?} {first:?}",
            event.external_id,
            event.name,
            event.occurred_at,
            event.device,
            event.revenue,
            event.duplicate_of.is_some(),
            event.first_payment,
            event.skipped,
        );
    }
    format!(
        "{} {} {} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} first={} {:?} {:?} {first:?}",
        event.external_id,
        event.name,
        event.source.as_str(),
        event.original_name,
        event.occurred_at,
        event.received_at,
        event.device,
        event.user.as_ref().map(|user| user.as_str().to_owned()),
        event.platform,
        event.country,
        event.revenue,
        credit,
        event.params,
        event.first_payment,
        event.is_service_install,
        event.skipped,
    )
}

/// Returns all reports of an app. Rows of zeros are omitted.
pub(super) async fn reports(of: &ForwardingApp, names: &StableNames) -> Vec<String> {
    let tenant = &of.tenant;
    let (store, app, reader) = (&tenant.store, tenant.app.id, &tenant.reader);
    let mut reports = Vec::new();
    for by in DIMENSIONS {
        let query = ReportQuery {
            periods: periods(),
            group_by: by.to_vec(),
            filters: Vec::new(),
            rows_max: ROWS_MAX,
        };
        let rows = store.stats(reader, app, query).await;
        let rows = rows.expect("figures are read").into_iter();
        let rows = rows.filter(|row| row.figures != Figures::default());
        reports.extend(rows.map(|row| format!("by {by:?}: {}", names.text(&row))));
    }
    for by in COHORTS {
        let query = CohortReportQuery::new(periods(), by, 30, ROWS_MAX);
        let rows = store.cohorts(reader, app, query).await;
        let rows = rows.expect("cohorts are read").into_iter();
        let rows = rows.filter(|row| row.figures != CohortFigures::default());
        reports.extend(rows.map(|row| format!("cohorts by {by:?}: {}", names.text(&row))));
    }
    let caller = Authorized::<AppsRead>::operator(tenant.writer.organization());
    let totals = store.totals(&caller, vec![(app, periods())]).await;
    reports.push(format!(
        "totals: {}",
        names.text(&totals.expect("totals are read"))
    ));
    for installs in [false, true] {
        let part = LogPart {
            after: None,
            from: at(0),
            until: at(2 * DAY),
            limit: ROWS_MAX,
        };
        let log = store.log_events(reader, app, part, installs).await;
        let log = log.expect("the log is read").into_iter();
        let mut log: Vec<String> = log
            .filter(|event| !event.is_service_install)
            .map(|event| format!("export, installs {installs}: {}", names.text(&event)))
            .collect();
        // Events with the same time are ordered by id.
        log.sort();
        reports.extend(log);
    }
    reports.sort();
    reports
}
