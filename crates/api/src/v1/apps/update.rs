//! `PATCH /api/v1/apps/{appId}` — changes an app.

use super::fields::ChangedApp;
use super::shape::{AppEnvelope, AppOut, example};
use crate::body::{JsonBody, JsonResponse};
use crate::caller::Caller;
use crate::current_document::CurrentDocument;
use crate::error::{ApiError, Code};
use crate::fields::Fields;
use crate::fields::app::read_change;
use crate::if_match::IfMatch;
use crate::openapi::errors::{API_KEY, JSON_BODY};
use crate::path::PathIds;
use crate::sealing::AppSealer;
use crate::state::ApiState;
use axum::extract::State;
use axum::response::IntoResponse;
use tributary_domain::access::AppsWrite;

#[utoipa::path(
    patch, path = "/api/v1/apps/{appId}", tag = "Apps", operation_id = "updateApp",
    summary = "Change an app",
    description = "Missing fields are unchanged; null resets a field to its default. A list in the \
                   request replaces the stored list. You may send back the document that GET \
                   returned: read-only fields are ignored if they have their current value. \
                   Requires `apps:write` and a live key.",
    params(
        ("appId" = String, Path, description = "App id."),
        ("If-Match" = Option<String>, Header, description = "ETag of the version to change."),
    ),
    request_body(content = inline(ChangedApp), description = "Fields to change.",
        example = json!({"webEvents": {"enabled": true}})),
    extensions(("x-errors" = json!([API_KEY, JSON_BODY, [
        Code::LiveOnly, Code::AppNotFound, Code::StoreIdTaken, Code::VersionConflict
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
    let reader = caller.authorized.read_access();
    let found = async { Ok(state.store.app(&reader, ids.app()?).await?) }.await;
    let current = CurrentDocument::of(found, |app| AppOut::of(app, &state))?;
    let read = |fields: &mut Fields<'_>| read_change(fields, &state.base_url);
    let (mut change, secrets) = body.read_change(&current, read)?;
    let app = ids.app()?;
    let sealer = AppSealer::new(&state, caller.authorized.organization(), app);
    change.secrets = sealer.seal_app_secrets(secrets);
    let origin = caller.origin(&state);
    let app = state
        .store
        .update_app(&caller.authorized, app, change, precondition, origin)
        .await?;
    let tag = app.tag();
    Ok(JsonResponse::ok(AppOut::of(app, &state)).with_etag(&tag))
}
