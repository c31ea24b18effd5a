//! `GET /apps/{app}/events` — the event log. The table polls for new events every few seconds and
//! receives 204 while nothing has changed.

use super::EventTableRow;
use crate::access::{PageContext, ReportContext};
use crate::failure::Failure;
use crate::form_state::FormState;
use crate::paging;
use crate::shell::{Section, Shell};
use crate::state::DashboardHandles;
use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use tributary_domain::access::AnalyticsRead;
use tributary_domain::attribution::CreditedNetwork;
use tributary_domain::device::DeviceKey;
use tributary_domain::event::{EventFilter, EventSource};
use tributary_domain::integration::Network;
use tributary_domain::vocabulary::digest::{Digest, hex};
use tributary_domain::vocabulary::id::EventId;
use tributary_domain::vocabulary::text::{check_external_id, parse_event_name};

#[derive(Template)]
#[template(path = "events.html")]
struct EventsPage {
    shell: Shell,
    form: FormState,
    rows: RowsPart,
}

impl EventsPage {
    fn sources(&self) -> [(&'static str, &'static str); 4] {
        [
            ("", "Any"),
            ("sdk", "SDK"),
            ("billing", "Billing"),
            ("web", "Website"),
        ]
    }

    fn networks(&self) -> [(&'static str, &'static str); 8] {
        [
            ("", "Any"),
            ("network_a", Network::A.name_with_id()),
            ("network_b", Network::B.name_with_id()),
            ("network_c", Network::C.name_with_id()),
            ("network_d", Network::D.name_with_id()),
            ("apple_ads", "Apple Ads (apple_ads)"),
            ("other", "Other"),
            ("organic", "Organic"),
        ]
    }
}

/// The self-refreshing table.
#[derive(Template)]
#[template(path = "event_rows.html")]
struct RowsPart {
    shell: Shell,
    rows: Vec<EventTableRow>,
    older: Option<String>,
    /// Polling URL; `None` on pages of older events.
    live: Option<String>,
    is_filtered: bool,
}

/// Length of the digest that identifies the table's state.
const SEEN_BYTES: usize = 8;

fn filter(context: &PageContext<AnalyticsRead>) -> EventFilter {
    let text = |name: &str| context.query.get(name);
    EventFilter {
        name: text("name").and_then(|name| parse_event_name(name).ok()),
        external_id: text("eventId")
            .and_then(|id| check_external_id(id).ok())
            .map(str::to_owned),
        device: text("deviceId").and_then(|key| DeviceKey::parse(key).ok()),
        source: text("source").and_then(EventSource::parse),
        network: text("network").and_then(CreditedNetwork::parse),
        ..EventFilter::default()
    }
}

async fn load_rows(
    handles: &DashboardHandles,
    context: &PageContext<AnalyticsRead>,
) -> Result<RowsPart, Failure> {
    let app = context.app()?;
    let before = context.query.get("before");
    let before = before.and_then(|text| EventId::parse(text).ok());
    let filter = filter(context);
    let is_filtered = filter != EventFilter::default();
    let request = paging::request(before.map(|id| *id.as_bytes()));
    let found = handles
        .store
        .events(&context.authorized, app.id, filter, request)
        .await?;
    let rows = super::rows(handles, app.id, &app.timezone, &found.items).await?;
    // A search without an index stops after a certain number of rows; the next page continues
    // there.
    let last = found
        .stopped_at
        .or_else(|| found.items.last().map(|event| event.id));
    let last = last.map(|id| id.to_string());
    let live = before.is_none().then(|| {
        let query = context.query.with(&[("seen", Some(&rows_digest(&rows)))]);
        format!("/apps/{}/events/rows?{query}", app.id)
    });
    Ok(RowsPart {
        shell: context.shell(Section::Events),
        rows,
        older: paging::older(&context.query, found.has_more, last),
        live,
        is_filtered,
    })
}

/// Returns a digest of the displayed rows.
fn rows_digest(rows: &[EventTableRow]) -> String {
    let mut text = String::new();
    for row in rows {
        text.push_str(&row.id);
        text.push_str(row.network.name);
        for (network, tone) in &row.deliveries {
            text.push_str(network.name);
            text.push_str(tone);
        }
    }
    hex(&Digest::of(text.as_bytes()).as_bytes()[..SEEN_BYTES])
}

/// Shows the page.
pub(crate) async fn show(
    State(handles): State<DashboardHandles>,
    context: ReportContext<AnalyticsRead>,
) -> Result<Response, Failure> {
    let value = |name: &str| context.query.get(name).unwrap_or_default().to_owned();
    let form = FormState::default()
        .with("name", value("name"))
        .with("source", value("source"))
        .with("network", value("network"))
        .with("eventId", value("eventId"))
        .with("deviceId", value("deviceId"));
    let page = EventsPage {
        shell: context.shell(Section::Events),
        form,
        rows: load_rows(&handles, &context).await?,
    };
    Ok(context.page(&page))
}

/// `GET /apps/{app}/events/rows` — the table, or 204 if nothing has changed.
pub(crate) async fn rows(
    State(handles): State<DashboardHandles>,
    context: ReportContext<AnalyticsRead>,
) -> Result<Response, Failure> {
    let part = load_rows(&handles, &context).await?;
    if context.query.get("seen") == Some(rows_digest(&part.rows).as_str()) {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    Ok(context.page(&part))
}
