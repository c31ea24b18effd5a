//! `GET /apps/{app}/undelivered` — what was not delivered to a network, and why.

use crate::access::ReportContext;
use crate::failure::Failure;
use crate::form_state::FormState;
use crate::network_label::NetworkLabel;
use crate::pages::events::{
    Explanation, reason_explanation, reason_label, skip_explanation, skip_label, tone,
};
use crate::query::UrlQuery;
use crate::shell::{Section, Shell};
use crate::state::DashboardHandles;
use crate::text;
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use std::collections::BTreeSet;
use tributary_domain::access::AppsRead;
use tributary_domain::forwarding::skipped::SKIPPED_SCANNED_MAX;
use tributary_domain::forwarding::undelivered::{
    UndeliveredCounts, UndeliveredEvents, UndeliveredReason,
};
use tributary_domain::integration::Network;
use tributary_domain::report::range::days_before;
use tributary_domain::vocabulary::calendar::{day_bounds, today};
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::time::Timestamp;

/// Choices for the period: days up to today, and label.
const PERIODS: [(&str, &str); 3] = [("1", "Today"), ("7", "Last 7 days"), ("30", "Last 30 days")];
/// Days of the default period.
const DEFAULT_DAYS: &str = "7";

#[derive(Template)]
#[template(path = "undelivered.html")]
struct UndeliveredPage {
    shell: Shell,
    form: FormState,
    names: Vec<String>,
    /// Events that the network should have received.
    lost: Vec<Row>,
    /// Events that were not meant for the network.
    intended: Vec<Row>,
    stopped_early: bool,
}

struct Row {
    network: NetworkLabel,
    event: String,
    /// Status of the deliveries and its colour. `None` if no delivery was planned.
    status: Option<(&'static str, &'static str)>,
    label: String,
    explanation: Explanation,
    count: String,
    /// URL of the events or deliveries.
    href: String,
}

impl UndeliveredPage {
    fn networks(&self) -> Vec<(&'static str, &'static str)> {
        let all = Network::ALL
            .into_iter()
            .map(|one| (one.as_str(), one.name()));
        std::iter::once(("", "Any")).chain(all).collect()
    }

    fn events(&self) -> Vec<(&str, &str)> {
        let all = self.names.iter().map(|name| (name.as_str(), name.as_str()));
        std::iter::once(("", "Any")).chain(all).collect()
    }

    const fn periods(&self) -> [(&'static str, &'static str); 3] {
        PERIODS
    }

    fn scanned(&self) -> String {
        text::count(i64::from(SKIPPED_SCANNED_MAX))
    }
}

impl Row {
    fn of(app: AppId, events: &UndeliveredEvents, count: u64, from: &str) -> Self {
        let network = events.network.as_str();
        let name = events.event.as_deref();
        let (status, label, explanation, page, query) = match &events.reason {
            UndeliveredReason::Skipped(skip) => {
                let query = [
                    ("name", name),
                    ("notSentTo", Some(network)),
                    ("reason", Some(skip.as_str())),
                    ("from", Some(from)),
                ];
                let label = skip_label(*skip).to_owned();
                let query = UrlQuery::default().with(&query);
                (None, label, skip_explanation(*skip), "events", query)
            }
            UndeliveredReason::Ended(status, reason) => {
                let reason = reason.as_deref();
                let query = [
                    ("name", name),
                    ("network", Some(network)),
                    ("status", Some(status.as_str())),
                    ("reason", reason),
                    ("from", Some(from)),
                ];
                let label = reason.map_or_else(
                    || "No code".to_owned(),
                    |code| reason_label(code).to_owned(),
                );
                let explanation = reason_explanation(*status, reason);
                let status = Some((status.as_str(), tone(*status)));
                let query = UrlQuery::default().with(&query);
                (status, label, explanation, "deliveries", query)
            }
        };
        Self {
            network: NetworkLabel::of(events.network),
            event: name.unwrap_or("deleted event").to_owned(),
            status,
            label,
            explanation,
            count: text::count(i64::try_from(count).unwrap_or(i64::MAX)),
            href: format!("/apps/{app}/{page}?{query}"),
        }
    }
}

/// Returns the rows of the events that pass the filter: those lost, and those not meant for the
/// network.
fn rows(app: AppId, counts: &UndeliveredCounts, form: &FormState, from: &str) -> [Vec<Row>; 2] {
    let (network, event) = (form.value("network"), form.value("event"));
    let mut all = [Vec::new(), Vec::new()];
    for (events, count) in counts.most_frequent_first() {
        let is_wanted = (network.is_empty() || network == events.network.as_str())
            && (event.is_empty() || events.event.as_deref() == Some(event));
        if is_wanted {
            let part = usize::from(!events.reason.loses_conversion());
            all[part].push(Row::of(app, events, count, from));
        }
    }
    all
}

/// Shows the page.
pub(crate) async fn show(
    State(handles): State<DashboardHandles>,
    context: ReportContext<AppsRead>,
) -> Result<Response, Failure> {
    let app = context.app()?;
    let wanted = context.query.get("days").unwrap_or(DEFAULT_DAYS);
    let is_choice = PERIODS.iter().any(|(days, _)| *days == wanted);
    let days = if is_choice { wanted } else { DEFAULT_DAYS };
    let ago = days.parse::<i32>().map_or(0, |days| days - 1);
    let first = days_before(today(handles.runtime.now(), &app.timezone), ago);
    let (since, _) = day_bounds(Some(first), None, &app.timezone);
    let counts = handles
        .store
        .undelivered(
            &context.authorized,
            app.id,
            since.unwrap_or(Timestamp::from_millis(0)),
        )
        .await?;
    let value = |name: &str| context.query.get(name).unwrap_or_default();
    let form = FormState::default()
        .with("network", value("network"))
        .with("event", value("event"))
        .with("days", days);
    let names: BTreeSet<&str> = counts
        .most_frequent_first()
        .into_iter()
        .filter_map(|(events, _)| events.event.as_deref())
        .collect();
    let names = names.into_iter().map(str::to_owned).collect();
    let [lost, intended] = rows(app.id, &counts, &form, &first.to_string());
    let page = UndeliveredPage {
        shell: context.shell(Section::Deliveries),
        stopped_early: counts.stopped_early(),
        form,
        names,
        lost,
        intended,
    };
    Ok(context.page(&page))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tributary_domain::forwarding::{DeliveryStatus, SkipReason};

    const APP: AppId = AppId::from_bytes([1; 16]);

    fn counts() -> UndeliveredCounts {
        let mut counts = UndeliveredCounts::default();
        let skips = [
            (Network::C, SkipReason::IntegrationDisabled),
            (Network::A, SkipReason::NotAttributed),
        ];
        counts.add_skipped("purchase", &skips, 24);
        let failed = UndeliveredEvents {
            network: Network::C,
            event: Some("sign_up".to_owned()),
            reason: UndeliveredReason::Ended(DeliveryStatus::Failed, Some("40002".to_owned())),
        };
        counts.add(failed, 3);
        counts
    }

    fn form(network: &str, event: &str) -> FormState {
        FormState::default()
            .with("network", network)
            .with("event", event)
    }

    #[test]
    fn lost_events_are_separate_from_those_meant_for_another_network() {
        let [lost, intended] = rows(APP, &counts(), &form("", ""), "2026-11-12");
        let labels = |rows: &[Row]| rows.iter().map(|row| row.label.clone()).collect::<Vec<_>>();
        assert_eq!(labels(&lost), ["Integration was off", "40002"]);
        assert_eq!(labels(&intended), ["Not credited to the network"]);
        assert_eq!(
            (lost[0].count.as_str(), lost[0].network.name),
            ("24", "TikTok")
        );
        assert_eq!(lost[1].status, Some(("failed", "bad")));
    }

    #[test]
    fn a_count_leads_to_its_events() {
        let [lost, _] = rows(APP, &counts(), &form("", ""), "2026-11-12");
        let events = format!(
            "/apps/{APP}/events?name=purchase&notSentTo=network_c&reason=integration_disabled\
             &from=2026-11-12"
        );
        assert_eq!(lost[0].href, events);
        let deliveries = format!(
            "/apps/{APP}/deliveries?name=sign_up&network=network_c&status=failed&reason=40002\
             &from=2026-11-12"
        );
        assert_eq!(lost[1].href, deliveries);
    }

    #[test]
    fn the_filter_narrows_by_network_and_event() {
        let found = |network, event| {
            let [lost, intended] = rows(APP, &counts(), &form(network, event), "2026-11-12");
            (lost.len(), intended.len())
        };
        assert_eq!(found("network_c", ""), (2, 0));
        assert_eq!(found("", "purchase"), (1, 1));
        assert_eq!(found("network_d", ""), (0, 0));
    }
}
