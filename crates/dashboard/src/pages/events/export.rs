//! `GET /apps/{app}/events.csv` — the events that match the filter, newest first, as CSV.

use super::filter::EventSearch;
use super::{hold_explanation, source_label, uncounted_explanation};
use crate::access::ReportContext;
use crate::failure::Failure;
use crate::network_label::NetworkLabel;
use crate::response::csv_file;
use crate::state::DashboardHandles;
use crate::text;
use axum::extract::State;
use axum::response::Response;
use tributary_domain::access::resource::ExportsRead;
use tributary_domain::audit::{Action, AuditContext};
use tributary_domain::device::{DeviceKey, Platform, UserKey};
use tributary_domain::event::Event;
use tributary_domain::vocabulary::currency::Currency;
use tributary_domain::vocabulary::page::{Limit, PageRequest};
use tributary_store::ActionNote;

/// Maximum number of events in a file. A file is built in memory while it holds a report slot; the
/// REST API pages through more.
pub(super) const EXPORTED_EVENTS_MAX: usize = 10_000;
/// Maximum number of pages that one export reads. A filter without an index may find few events per
/// page.
const EXPORTED_PAGES_MAX: usize = 40;

const HEADS: [&str; 15] = [
    "time",
    "event",
    "source",
    "device_id",
    "user_id",
    "platform",
    "country",
    "network",
    "campaign",
    "campaign_id",
    "amount",
    "currency",
    "revenue_usd",
    "not_counted_because",
    "event_id",
];

/// Returns the file.
pub(crate) async fn csv(
    State(handles): State<DashboardHandles>,
    context: ReportContext<ExportsRead>,
) -> Result<Response, Failure> {
    let app = context.app()?;
    let search = EventSearch::read(&context.query, &app.timezone);
    if !search.is_valid() {
        return Err(Failure::NotFound);
    }
    let note = ActionNote {
        organization: context.session.organization.id,
        action: Action::DataExported,
        app: Some(app.id),
        target: "events".to_owned(),
    };
    let origin = AuditContext {
        environment: context.authorized.environment(),
        ..context.session.origin(&handles)
    };
    handles.store.note_action(note, origin).await?;
    let caller = context.authorized.analytics_access();
    let (mut events, mut before, mut is_cut) = (Vec::new(), None, true);
    for _ in 0..EXPORTED_PAGES_MAX {
        let request = PageRequest {
            limit: Limit::MAX,
            before,
        };
        let filter = search.filter.clone();
        let found = handles
            .store
            .events(&caller, app.id, filter, request)
            .await?;
        let last = found.stopped_at.or(found.items.last().map(|one| one.id));
        before = last.map(|id| *id.as_bytes());
        events.extend(found.items);
        is_cut = found.has_more;
        if !is_cut || events.len() >= EXPORTED_EVENTS_MAX {
            break;
        }
    }
    is_cut |= events.len() > EXPORTED_EVENTS_MAX;
    events.truncate(EXPORTED_EVENTS_MAX);
    // The name says whether older events are missing.
    let name = if is_cut {
        "events-newest.csv"
    } else {
        "events.csv"
    };
    Ok(csv_file(name, HEADS, events.iter().map(row)))
}

/// Returns an event's fields, in the order of [`HEADS`].
fn row(event: &Event) -> [String; 15] {
    let optional = |text: Option<&str>| text.unwrap_or_default().to_owned();
    let credit = event.credit.as_ref();
    let campaign = credit.map(|credit| &credit.campaign);
    let revenue = event.revenue.as_ref();
    let uncounted = revenue.and_then(|revenue| revenue.uncounted.map(uncounted_explanation));
    let hold = revenue.and_then(|_| event.hold().and_then(hold_explanation));
    [
        text::rfc3339(event.occurred_at),
        event.name.clone(),
        source_label(event.source).to_owned(),
        optional(event.device.as_ref().map(DeviceKey::as_str)),
        optional(event.user.as_ref().map(UserKey::as_str)),
        optional(event.platform.map(Platform::as_str)),
        optional(event.country.as_deref()),
        optional(credit.map(|credit| NetworkLabel::credited(credit.network).name)),
        optional(campaign.and_then(|one| one.name.as_deref())),
        optional(campaign.and_then(|one| one.id.as_deref())),
        revenue.map_or_else(String::new, |revenue| revenue.amount.to_string()),
        optional(revenue.and_then(|one| one.currency.as_ref().map(Currency::as_str))),
        revenue
            .and_then(|revenue| revenue.usd)
            .map_or_else(String::new, |usd| usd.to_string()),
        optional(uncounted.or(hold)),
        event.external_id.clone(),
    ]
}
