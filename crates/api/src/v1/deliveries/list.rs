//! `GET /api/v1/apps/{appId}/deliveries` — lists deliveries, newest first by event time.

use super::fields::DeliveriesQuery;
use super::shape::{DeliveryListEnvelope, DeliveryOut, example};
use crate::caller::{Caller, ReportCaller};
use crate::error::{ApiError, Code};
use crate::openapi::errors::{API_KEY, PAGE_QUERY};
use crate::page::{List, PageQuery};
use crate::path::PathIds;
use crate::query::QueryString;
use crate::state::ApiState;
use axum::extract::State;
use axum::response::IntoResponse;
use tributary_domain::access::AppsRead;
use tributary_domain::forwarding::DeliveryStatus;
use tributary_domain::forwarding::delivery::DeliveryFilter;
use tributary_domain::integration::Network;
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::page::ListScope;
use tributary_domain::vocabulary::time::Timestamp;

/// Serializes app and filters for the cursor, which is valid only for the same ones.
fn narrowed_by(caller: &Caller<AppsRead>, app: AppId, filter: &DeliveryFilter) -> String {
    serde_json::json!([
        app.to_string(),
        caller.authorized.environment().as_str(),
        filter.status.map(DeliveryStatus::as_str),
        filter.network.map(Network::as_str),
        filter.external_id,
        filter.from.map(Timestamp::as_millis),
        filter.until.map(Timestamp::as_millis)
    ])
    .to_string()
}

#[utoipa::path(
    get, path = "/api/v1/apps/{appId}/deliveries", tag = "Deliveries",
    operation_id = "listDeliveries",
    summary = "List deliveries",
    description = "One delivery per event and network, newest first by event time. An event that \
                   is skipped for a network has no delivery; the event's `deliveries` show the \
                   reason. Test events are never forwarded, so a test key gets an empty list. \
                   Requires `apps:read`.",
    params(
        ("appId" = String, Path, description = "App id."),
        ("status" = inline(Option<crate::choices::DeliveryStatusChoice>), Query,
            description = "Filter by status."),
        ("network" = inline(Option<crate::choices::NetworkChoice>), Query,
            description = "Filter by network."),
        ("eventId" = Option<String>, Query, description = "Filter by the sender's event id."),
        ("from" = Option<String>, Query,
            description = "First day, by event time, such as `2026-01-01`."),
        ("to" = Option<String>, Query, description = "Last day, inclusive."),
        ("timezone" = Option<String>, Query,
            description = "Time zone for day boundaries. Default: the app's time zone."),
        ("limit" = Option<i64>, Query,
            description = "Items per page. Default: 50.", minimum = 1, maximum = 500),
        ("cursor" = Option<String>, Query, description = "`meta.cursor` from the previous page."),
    ),
    extensions(("x-errors" = json!([API_KEY, PAGE_QUERY, [Code::AppNotFound]]))),
    responses((status = 200, description = "A page of deliveries.",
        body = inline(DeliveryListEnvelope),
        example = json!({"data": [example()], "meta": {"hasMore": false, "cursor": null}})))
)]
pub(crate) async fn list(
    caller: ReportCaller<AppsRead>,
    ids: PathIds,
    query: QueryString,
    State(state): State<ApiState>,
) -> Result<impl IntoResponse, ApiError> {
    let (filters, page) = query.read(|parameters| {
        (
            DeliveriesQuery::from_query(parameters),
            PageQuery::read(parameters),
        )
    })?;
    let app = ids.app()?;
    let filter = filters.into_filter(&state, &caller.authorized, app).await?;
    let scope = ListScope {
        list: "deliveries",
        organization: caller.authorized.organization(),
        filters: narrowed_by(&caller, app, &filter),
    };
    let request = page.open(&state, &scope)?;
    let page = state
        .store
        .deliveries(&caller.authorized, app, filter, request)
        .await?;
    Ok(List::of(
        page,
        &state,
        &scope,
        |found| *found.delivery.id.as_bytes(),
        DeliveryOut::from,
    ))
}
