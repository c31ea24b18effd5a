//! `GET /api/v1/apps/{appId}/deliveries` — what networks were told, newest first by the events' own time.

use super::fields::DeliveriesQuery;
use super::shape::{DeliveryListEnvelope, DeliveryOut, example};
use crate::caller::Caller;
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

/// Everything that makes this another list.
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
    get, path = "/api/v1/apps/{appId}/deliveries", tag = "Deliveries", operation_id = "listDeliveries",
    summary = "List deliveries",
    description = "One for each event and network that is to hear of it, newest first by the events' own time. What is \
                   not to be sent makes none: the event itself says why, in its `deliveries`. A test key finds none, \
                   since test events are never sent. Needs `apps:read`.",
    params(
        ("appId" = String, Path, description = "The app's id."),
        ("status" = inline(Option<crate::choices::DeliveryStatusChoice>), Query, description = "Those that stand here only."),
        ("network" = inline(Option<crate::choices::NetworkChoice>), Query, description = "Those to this network only."),
        ("eventId" = Option<String>, Query, description = "Those of the event of this id, as its sender gave it."),
        ("from" = Option<String>, Query, description = "The first day of the events' own time, such as `2026-01-01`."),
        ("to" = Option<String>, Query, description = "The last day, inclusive."),
        ("timezone" = Option<String>, Query, description = "In which zone the days begin; the app's when absent."),
        ("limit" = Option<i64>, Query, description = "Items of a page; 50 when absent.", minimum = 1, maximum = 500),
        ("cursor" = Option<String>, Query, description = "`meta.cursor` of the page before."),
    ),
    extensions(("x-errors" = json!([API_KEY, PAGE_QUERY, [Code::AppNotFound]]))),
    responses((status = 200, description = "A page of deliveries.", body = inline(DeliveryListEnvelope),
        example = json!({"data": [example()], "meta": {"hasMore": false, "cursor": null}})))
)]
pub(crate) async fn list(
    caller: Caller<AppsRead>,
    ids: PathIds,
    query: QueryString,
    State(state): State<ApiState>,
) -> Result<impl IntoResponse, ApiError> {
    let (asked, page) = query.read(|parameters| {
        (
            DeliveriesQuery::from_query(parameters),
            PageQuery::read(parameters),
        )
    })?;
    let app = ids.app()?;
    let filter = asked.into_filter(&state, &caller.authorized, app).await?;
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
