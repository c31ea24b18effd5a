//! `PATCH /api/v1/apps/{appId}` — changes an app.

use super::fields::{AppFields, read_change};
use super::shape::{AppEnvelope, AppOut, example};
use crate::body::{Answer, JsonBody};
use crate::caller::Caller;
use crate::error::{ApiError, Code};
use crate::fields::{Current, text_as};
use crate::if_match::IfMatch;
use crate::openapi::errors::{API_KEY, JSON_BODY};
use crate::path::PathIds;
use crate::sealing::Sealer;
use crate::state::ApiState;
use axum::extract::State;
use axum::response::IntoResponse;
use tributary_domain::access::AppsWrite;
use tributary_domain::app::AppChange;
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::text::Name;

#[utoipa::path(
    patch, path = "/api/v1/apps/{appId}", tag = "Apps", operation_id = "updateApp",
    summary = "Change an app",
    description = "Absent: unchanged. Null: back to the default. A list is replaced whole. The document that GET \
                   answers may be sent back: fields that cannot be changed are ignored when they carry their \
                   current value. Needs `apps:write` and a live key.",
    params(
        ("appId" = String, Path, description = "The app's id."),
        ("If-Match" = Option<String>, Header, description = "The ETag that the change builds on."),
    ),
    request_body(content = inline(AppFields), description = "What is to be changed.",
        example = json!({"webEvents": {"enabled": true}})),
    extensions(("x-errors" = json!([API_KEY, JSON_BODY, [
        Code::ProductionOnly, Code::AppNotFound, Code::StoreIdTaken, Code::DomainTaken, Code::VersionConflict
    ]]))),
    responses((status = 200, description = "The app after the change.", body = inline(AppEnvelope),
        headers(("ETag" = String)), example = json!({"data": example()})))
)]
pub(crate) async fn update(
    caller: Caller<AppsWrite>,
    ids: PathIds,
    IfMatch(precondition): IfMatch,
    State(state): State<ApiState>,
    body: JsonBody,
) -> Result<impl IntoResponse, ApiError> {
    // A path that is no id names no app, which is said after the body was judged. Until then any id does:
    // nothing that is sealed for it is kept.
    let named = ids.app();
    let place = named
        .as_ref()
        .copied()
        .unwrap_or(AppId::from_bytes([0; 16]));
    let sealer = Sealer::new(&state, caller.authorized.organization(), place);
    let reader = caller.authorized.reading();
    let found = async { Ok(state.store.app(&reader, ids.app()?).await?) }.await;
    let current = Current::of(found, |app| AppOut::of(app, &state.base_url))?;
    let change = body.read_change(&current, |fields| AppChange {
        name: fields.settable("name", text_as(Name::parse)),
        ..read_change(fields, &sealer, &state.base_url)
    })?;
    let origin = caller.origin(&state);
    let app = state
        .store
        .update_app(&caller.authorized, named?, change, precondition, origin)
        .await?;
    let tag = app.tag();
    Ok(Answer::ok(AppOut::of(app, &state.base_url)).tagged(&tag))
}
