//! `GET /apps/{app}/events` — the log. New events appear by themselves: the table asks for itself every few seconds,
//! and is answered with nothing as long as nothing is new.

use super::EventTableRow;
use crate::access::PageContext;
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
            ("", "any"),
            ("sdk", "SDK"),
            ("billing", "Billing"),
            ("web", "Website"),
        ]
    }

    fn networks(&self) -> [(&'static str, &'static str); 8] {
        [
            ("", "any"),
            ("network_a", "network_a"),
            ("network_b", "network_b"),
            ("network_c", "network_c"),
            ("network_d", "network_d"),
            ("apple_ads", "apple_ads"),
            ("other", "other"),
            ("organic", "organic"),
        ]
    }
}

/// The table, which asks for itself.
#[derive(Template)]
#[template(path = "event_rows.html")]
struct RowsPart {
    shell: Shell,
    rows: Vec<EventTableRow>,
    older: Option<String>,
    /// Where it asks; nothing on a page of older events.
    live: Option<String>,
    is_filtered: bool,
}

/// Bytes of the digest by which the table knows that nothing is new.
const SEEN_BYTES: usize = 8;

fn filter(reader: &PageContext<AnalyticsRead>) -> EventFilter {
    let text = |name: &str| reader.query.get(name);
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
    reader: &PageContext<AnalyticsRead>,
) -> Result<RowsPart, Failure> {
    let app = reader.app()?;
    let before = reader.query.get("before");
    let before = before.and_then(|text| EventId::parse(text).ok());
    let filter = filter(reader);
    let is_filtered = filter != EventFilter::default();
    let request = paging::request(before.map(|id| *id.as_bytes()));
    let found = handles
        .store
        .events(&reader.authorized, app.id, filter, request)
        .await?;
    let rows = super::rows(handles, app.id, &app.timezone, &found.items).await?;
    // A search that no index helps stops somewhere, and the next page continues there.
    let last = found
        .stopped_at
        .or_else(|| found.items.last().map(|event| event.id));
    let last = last.map(|id| id.to_string());
    let live = before.is_none().then(|| {
        let query = reader.query.with(&[("seen", Some(&rows_digest(&rows)))]);
        format!("/apps/{}/events/rows?{query}", app.id)
    });
    Ok(RowsPart {
        shell: reader.shell(Section::Events),
        rows,
        older: paging::older(&reader.query, found.has_more, last),
        live,
        is_filtered,
    })
}

/// What tells one state of the table from another.
fn rows_digest(rows: &[EventTableRow]) -> String {
    let mut text = String::new();
    for row in rows {
        text.push_str(&row.id);
        text.push_str(row.network);
        for (network, tone) in &row.deliveries {
            text.push_str(network);
            text.push_str(tone);
        }
    }
    hex(&Digest::of(text.as_bytes()).as_bytes()[..SEEN_BYTES])
}

/// The page.
pub(crate) async fn show(
    State(handles): State<DashboardHandles>,
    reader: PageContext<AnalyticsRead>,
) -> Result<Response, Failure> {
    let value = |name: &str| reader.query.get(name).unwrap_or_default().to_owned();
    let form = FormState::default()
        .with("name", value("name"))
        .with("source", value("source"))
        .with("network", value("network"))
        .with("eventId", value("eventId"))
        .with("deviceId", value("deviceId"));
    let page = EventsPage {
        shell: reader.shell(Section::Events),
        form,
        rows: load_rows(&handles, &reader).await?,
    };
    Ok(reader.page(&page))
}

/// `GET /apps/{app}/events/rows` — the table, where something is new.
pub(crate) async fn rows(
    State(handles): State<DashboardHandles>,
    reader: PageContext<AnalyticsRead>,
) -> Result<Response, Failure> {
    let part = load_rows(&handles, &reader).await?;
    if reader.query.get("seen") == Some(rows_digest(&part.rows).as_str()) {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    Ok(reader.page(&part))
}
