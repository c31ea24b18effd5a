//! `GET /api/v1/apps/{appId}/events` — the log, newest first by the events' own time.

use super::deliveries::EventDeliveries;
use super::shape::{EventListEnvelope, EventOut, EventPageMeta, example};
use crate::caller::Caller;
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

/// Characters of a sender's id. It has at most as many bytes.
const EXTERNAL_ID_CHARS_MAX: usize = tributary_domain::vocabulary::text::EXTERNAL_ID_BYTES_MAX;

/// What is asked of the log.
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

/// Reads the id that a sender gave.
pub(crate) fn parse_external_id(text: &str) -> Result<String, Problem> {
    check_length(text, 1, EXTERNAL_ID_CHARS_MAX).map(|()| text.to_owned())
}

/// What is said of a word that is none of those.
const NETWORKS: &str =
    "Must be one of network_a, network_b, network_c, network_d, apple_ads, other, organic.";

fn unknown(message: &'static str) -> Problem {
    Problem::new(FaultCode::UnknownValue, message)
}

fn read(parameters: &mut QueryParameters<'_>) -> (EventsQuery, PageQuery) {
    let days = DayFilter::read(parameters);
    // Standard names are recorded in lower case, however they were sent, and found in the same way.
    let name = |text: &str| parse_event_name(text).map(|name| canonical(&name).0);
    let asked = EventsQuery {
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
            LinkId::parse(text).map_err(|_| unknown("Must be the id of a link."))
        }),
        days,
        timezone: parameters.optional("timezone", Timezone::parse),
    };
    (asked, PageQuery::read(parameters))
}

/// Everything that makes this another list.
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
    summary = "Read the log of events",
    description = "Newest first by the events' own time, in the key's environment. Needs `analytics:read`.",
    params(
        ("appId" = String, Path, description = "The app's id."),
        ("name" = Option<String>, Query, description = "Events of this name only. The case of a standard name does not matter."),
        ("eventId" = Option<String>, Query, description = "The event of this id, as its sender gave it."),
        ("deviceId" = Option<String>, Query, description = "Events of this device only."),
        ("userId" = Option<String>, Query, description = "Events of this person only, as the app names them."),
        ("source" = Option<String>, Query, description = "`sdk`, `billing` or `web` only. For this and the next two a page looks through 20000 events at most, and `meta.stoppedEarly` says so."),
        ("network" = Option<String>, Query, description = "Credited to this network only."),
        ("linkId" = Option<String>, Query, description = "Credited to this link only."),
        ("from" = Option<String>, Query, description = "The first day, such as `2026-01-01`."),
        ("to" = Option<String>, Query, description = "The last day, inclusive."),
        ("timezone" = Option<String>, Query, description = "In which zone the days begin; the app's when absent."),
        ("limit" = Option<i64>, Query, description = "Items of a page; 50 when absent.", minimum = 1, maximum = 500),
        ("cursor" = Option<String>, Query, description = "`meta.cursor` of the page before."),
    ),
    extensions(("x-errors" = json!([API_KEY, PAGE_QUERY, [Code::AppNotFound]]))),
    responses((status = 200, description = "A page of events.", body = inline(EventListEnvelope),
        example = json!({"data": [example()], "meta": {"hasMore": false, "cursor": null, "stoppedEarly": false}})))
)]
pub(crate) async fn list(
    caller: Caller<AnalyticsRead>,
    ids: PathIds,
    query: QueryString,
    State(state): State<ApiState>,
) -> Result<impl IntoResponse, ApiError> {
    let (asked, page) = query.read(read)?;
    let app = ids.app()?;
    let zone = match asked.timezone {
        Some(zone) => zone,
        None => state.store.app_timezone(&caller.authorized, app).await?,
    };
    let (from, until) = asked.days.timestamps(&zone);
    let filter = EventFilter {
        name: asked.name,
        external_id: asked.external_id,
        device: asked.device,
        user: asked.user,
        source: asked.source,
        network: asked.network,
        link: asked.link,
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
