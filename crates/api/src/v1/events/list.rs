//! `GET /api/v1/apps/{appId}/events` — lists events, newest first by event time.

use super::deliveries::EventDeliveries;
use super::shape::{EventListEnvelope, EventOut, EventPageMeta, example};
use crate::caller::{Caller, ReportCaller};
use crate::days::DayFilter;
use crate::error::{ApiError, Code};
use crate::openapi::errors::{API_KEY, PAGE_QUERY};
use crate::page::{List, PageQuery};
use crate::path::PathIds;
use crate::query::{QueryParameters, QueryString};
use crate::state::ApiState;
use axum::extract::State;
use axum::response::IntoResponse;
use tributary_domain::access::AnalyticsRead;
use tributary_domain::attribution::CreditedNetwork;
use tributary_domain::device::{DeviceKey, UserKey};
use tributary_domain::event::name::canonical;
use tributary_domain::event::{Event, EventFilter, EventSource};
use tributary_domain::vocabulary::fault::{FaultCode, Problem};
use tributary_domain::vocabulary::id::{AppId, LinkId};
use tributary_domain::vocabulary::page::ListScope;
use tributary_domain::vocabulary::text::{check_length, parse_event_name};
use tributary_domain::vocabulary::timezone::Timezone;

/// Longest external id in characters. The limit in bytes is the same.
const EXTERNAL_ID_CHARS_MAX: usize = tributary_domain::vocabulary::text::EXTERNAL_ID_BYTES_MAX;

/// Filters for the event list.
#[derive(Debug)]
struct EventsQuery {
    name: Option<String>,
    external_id: Option<String>,
    device: Option<DeviceKey>,
    user: Option<UserKey>,
    source: Option<EventSource>,
    network: Option<CreditedNetwork>,
    link: Option<LinkId>,
    days: DayFilter,
    timezone: Option<Timezone>,
}

/// Parses a sender's event id.
pub(crate) fn parse_external_id(text: &str) -> Result<String, Problem> {
    check_length(text, 1, EXTERNAL_ID_CHARS_MAX).map(|()| text.to_owned())
}

/// Error message for an unknown network.
const NETWORKS: &str =
    "Must be one of network_a, network_b, network_c, network_d, apple_ads, other, organic.";

fn unknown(message: &'static str) -> Problem {
    Problem::new(FaultCode::UnknownValue, message)
}

fn read(parameters: &mut QueryParameters<'_>) -> (EventsQuery, PageQuery) {
    let days = DayFilter::read(parameters);
    // Standard event names are stored in lower case, so the filter must be in lower case, too.
    let name = |text: &str| parse_event_name(text).map(|name| canonical(&name).0);
    let filters = EventsQuery {
        name: parameters.optional("name", name),
        external_id: parameters.optional("eventId", parse_external_id),
        device: parameters.optional("deviceId", DeviceKey::parse),
        user: parameters.optional("userId", UserKey::parse),
        source: parameters.optional("source", |text| {
            EventSource::parse(text).ok_or_else(|| unknown("Must be one of sdk, billing, web."))
        }),
        network: parameters.optional("network", |text| {
            CreditedNetwork::parse(text).ok_or_else(|| unknown(NETWORKS))
        }),
        link: parameters.optional("linkId", |text| {
            LinkId::parse(text).map_err(|_| unknown("Must be a link id (lnk_…)."))
        }),
        days,
        timezone: parameters.optional("timezone", Timezone::parse),
    };
    (filters, PageQuery::read(parameters))
}

/// Serializes app and filters for the cursor, which is valid only for the same ones.
fn narrowed_by(caller: &Caller<AnalyticsRead>, app: AppId, filter: &EventFilter) -> String {
    let environment = caller.authorized.environment().as_str();
    let device = filter.device.as_ref().map(DeviceKey::as_str);
    let moment = |moment: Option<tributary_domain::vocabulary::time::Timestamp>| {
        moment.map(tributary_domain::vocabulary::time::Timestamp::as_millis)
    };
    serde_json::json!([
        app.to_string(),
        environment,
        filter.name,
        filter.external_id,
        device,
        filter.user.as_ref().map(UserKey::as_str),
        filter.source.map(EventSource::as_str),
        filter.network.map(CreditedNetwork::as_str),
        filter.link.map(|link| link.to_string()),
        moment(filter.from),
        moment(filter.until)
    ])
    .to_string()
}

#[utoipa::path(
    get, path = "/api/v1/apps/{appId}/events", tag = "Analytics", operation_id = "listEvents",
    summary = "List events",
    description = "Newest first by event time, in the key's environment. Requires \
                   `analytics:read`.",
    params(
        ("appId" = String, Path, description = "App id."),
        ("name" = Option<String>, Query,
            description = "Filter by event name. Standard names are case-insensitive."),
        ("eventId" = Option<String>, Query, description = "Filter by the sender's event id."),
        ("deviceId" = Option<String>, Query, description = "Filter by device id."),
        ("userId" = Option<String>, Query, description = "Filter by the app's user id."),
        ("source" = Option<String>, Query,
            description = "Filter by source: `sdk`, `billing` or `web`. With a filter by `source`, \
                           `network` or `linkId`, a page searches at most 20000 events; if it \
                           stops there, `meta.stoppedEarly` is true."),
        ("network" = Option<String>, Query, description = "Filter by credited network."),
        ("linkId" = Option<String>, Query, description = "Filter by credited link id."),
        ("from" = Option<String>, Query, description = "First day, such as `2026-01-01`."),
        ("to" = Option<String>, Query, description = "Last day, inclusive."),
        ("timezone" = Option<String>, Query,
            description = "Time zone for day boundaries. Default: the app's time zone."),
        ("limit" = Option<i64>, Query,
            description = "Items per page. Default: 50.", minimum = 1, maximum = 500),
        ("cursor" = Option<String>, Query, description = "`meta.cursor` from the previous page."),
    ),
    extensions(("x-errors" = json!([API_KEY, PAGE_QUERY, [Code::AppNotFound]]))),
    responses((status = 200, description = "A page of events.", body = inline(EventListEnvelope),
        example = json!({"data": [example()], "meta": {"hasMore": false, "cursor": null, "stoppedEarly": false}})))
)]
pub(crate) async fn list(
    caller: ReportCaller<AnalyticsRead>,
    ids: PathIds,
    query: QueryString,
    State(state): State<ApiState>,
) -> Result<impl IntoResponse, ApiError> {
    let (filters, page) = query.read(read)?;
    let app = ids.app()?;
    let zone = match filters.timezone {
        Some(zone) => zone,
        None => state.store.app_timezone(&caller.authorized, app).await?,
    };
    let (from, until) = filters.days.timestamps(&zone);
    let filter = EventFilter {
        name: filters.name,
        external_id: filters.external_id,
        device: filters.device,
        user: filters.user,
        source: filters.source,
        network: filters.network,
        link: filters.link,
        not_sent: None,
        from,
        until,
    };
    let scope = ListScope {
        list: "events",
        organization: caller.authorized.organization(),
        filters: narrowed_by(&caller, app, &filter),
    };
    let request = page.open(&state, &scope)?;
    let page = state
        .store
        .events(&caller.authorized, app, filter, request)
        .await?;
    let mut deliveries = EventDeliveries::load(&state, app, &page.items).await?;
    let last = page
        .stopped_at
        .or_else(|| page.items.last().map(|event| event.id));
    let last = last.filter(|_| page.has_more);
    let meta = EventPageMeta {
        has_more: page.has_more,
        cursor: last.map(|last| PageQuery::seal(&state, &scope, last.as_bytes())),
        stopped_early: page.stopped_at.is_some(),
    };
    let shape = |event: Event| {
        let its = deliveries.take(event.id);
        EventOut::of(event, its, &state.click_tokens)
    };
    Ok(List {
        data: page.items.into_iter().map(shape).collect(),
        meta,
    })
}
