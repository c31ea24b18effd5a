//! `GET /apps/{app}/events` — the event log. The table polls for new events every few seconds and
//! receives 204 while nothing has changed.

use super::EventTableRow;
use super::export::EXPORTED_EVENTS_MAX;
use super::filter::EventSearch;
use crate::access::{PageContext, ReportContext};
use crate::failure::Failure;
use crate::form_state::FormState;
use crate::query::UrlQuery;
use crate::shell::{Section, Shell};
use crate::state::DashboardHandles;
use crate::{paging, text};
use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use tributary_domain::access::AnalyticsRead;
use tributary_domain::event::EventFilter;
use tributary_domain::forwarding::SkipReason;
use tributary_domain::integration::Network;
use tributary_domain::vocabulary::digest::{Digest, hex};
use tributary_domain::vocabulary::id::EventId;

#[derive(Template)]
#[template(path = "events.html")]
struct EventsPage {
    shell: Shell,
    form: FormState,
    /// URL of the file with the matching events.
    export: String,
    rows: RowsPart,
    not_sent: Option<NotSentFilter>,
    /// URL of the file about the user in the filter, if the member may export it.
    personal_data: Option<String>,
}

/// The part of the filter that comes from the page of undelivered events.
struct NotSentFilter {
    network: Network,
    reason: SkipReason,
    /// URL of the list without this part.
    without: String,
}

impl NotSentFilter {
    fn of(search: &EventSearch, query: &UrlQuery) -> Option<Self> {
        let (network, reason) = search.filter.not_sent?;
        let removed = [("notSentTo", None), ("reason", None), ("before", None)];
        Some(Self {
            network,
            reason,
            without: format!("?{}", query.with(&removed)),
        })
    }

    const fn label(&self) -> &'static str {
        super::skip_label(self.reason)
    }
}

impl EventsPage {
    /// Returns the hint of the export.
    fn export_hint(&self) -> String {
        let most = i64::try_from(EXPORTED_EVENTS_MAX).unwrap_or(i64::MAX);
        format!("The newest {} matching events at most", text::count(most))
    }

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
            ("network_a", Network::A.name()),
            ("network_b", Network::B.name()),
            ("network_c", Network::C.name()),
            ("network_d", Network::D.name()),
            ("apple_ads", "Apple Ads"),
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

impl RowsPart {
    /// Returns the part without rows, for a filter with errors.
    const fn empty(shell: Shell) -> Self {
        Self {
            shell,
            rows: Vec::new(),
            older: None,
            live: None,
            is_filtered: true,
        }
    }
}

/// Length of the digest that identifies the table's state.
const SEEN_BYTES: usize = 8;

async fn load_rows(
    handles: &DashboardHandles,
    context: &PageContext<AnalyticsRead>,
    search: EventSearch,
) -> Result<RowsPart, Failure> {
    let app = context.app()?;
    if !search.is_valid() {
        return Ok(RowsPart::empty(context.shell(Section::Events)));
    }
    let before = context.query.get("before");
    let before = before.and_then(|text| EventId::parse(text).ok());
    let filter = search.filter;
    let is_past = filter
        .until
        .is_some_and(|until| until <= handles.runtime.now());
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
    let live = (before.is_none() && !is_past).then(|| {
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
    let search = EventSearch::read(&context.query, &context.app()?.timezone);
    let form = search.form.clone();
    let export = format!(
        "/apps/{}/events.csv?{}",
        context.app()?.id,
        context.query.with(&[("before", None)])
    );
    let shell = context.shell(Section::Events);
    let user = search.filter.user.as_ref().filter(|_| shell.changes_apps);
    let personal_data = user.map(|user| shell.app_url(text::user_data_path(user.as_str())));
    let page = EventsPage {
        shell,
        personal_data,
        not_sent: NotSentFilter::of(&search, &context.query),
        form,
        export,
        rows: load_rows(&handles, &context, search).await?,
    };
    Ok(context.page(&page))
}

/// `GET /apps/{app}/events/rows` — the table, or 204 if nothing has changed.
pub(crate) async fn rows(
    State(handles): State<DashboardHandles>,
    context: ReportContext<AnalyticsRead>,
) -> Result<Response, Failure> {
    let search = EventSearch::read(&context.query, &context.app()?.timezone);
    let part = load_rows(&handles, &context, search).await?;
    if context.query.get("seen") == Some(rows_digest(&part.rows).as_str()) {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    Ok(context.page(&part))
}
