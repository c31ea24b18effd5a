//! `PATCH /api/v1/apps/{appId}/skan` — changes `enabled` and `acceptTestSignals`.

use super::shape::{SkanEnvelope, SkanOut, answer, example};
use crate::body::JsonBody;
use crate::caller::Caller;
use crate::current_document::CurrentDocument;
use crate::error::{ApiError, Code};
use crate::fields::{Fields, described_body, flag};
use crate::if_match::IfMatch;
use crate::openapi::errors::{API_KEY, JSON_BODY};
use crate::path::PathIds;
use crate::state::ApiState;
use axum::extract::State;
use axum::response::IntoResponse;
use tributary_domain::access::AppsWrite;
use tributary_domain::vocabulary::change::Change;

described_body! {
    /// Two switches. A missing switch is unchanged; null turns it off.
    SkanSwitches("SkanSwitches") = read
}

fn read(fields: &mut Fields<'_>) -> (Change<bool>, Change<bool>) {
    let enabled = fields.change("enabled", flag());
    (enabled, fields.change("acceptTestSignals", flag()))
}

#[utoipa::path(
    patch, path = "/api/v1/apps/{appId}/skan", tag = "Conversion value",
    operation_id = "updateSkan", summary = "Enable or disable the conversion-value configuration",
    description = "Changes only `enabled` and `acceptTestSignals`; neither creates a new version. \
                   The document's other fields are ignored if they have their current value. \
                   Requires `apps:write` and a live key.",
    params(
        ("appId" = String, Path, description = "App id."),
        ("If-Match" = Option<String>, Header,
            description = "ETag or version to change."),
    ),
    request_body(content = inline(SkanSwitches), description = "Fields to change.",
        example = json!({"enabled": true})),
    extensions(("x-errors" = json!([API_KEY, JSON_BODY, [
        Code::LiveOnly, Code::AppNotFound, Code::VersionConflict
    ]]))),
    responses((status = 200, description = "The configuration.", body = inline(SkanEnvelope),
        headers(("ETag" = String)), example = json!(example())))
)]
pub(crate) async fn update(
    caller: Caller<AppsWrite>,
    ids: PathIds,
    IfMatch(precondition): IfMatch,
    State(state): State<ApiState>,
    body: JsonBody,
) -> Result<impl IntoResponse, ApiError> {
    let reader = caller.authorized.read_access();
    let found = async { Ok(state.store.skan(&reader, ids.app()?).await?) }.await;
    let current = CurrentDocument::of(found, |found| SkanOut::of(&found))?;
    let (enabled, test_signals) = body.read_change(&current, read)?;
    let (app, origin) = (ids.app()?, caller.origin(&state));
    let after = state
        .store
        .patch_skan(
            &caller.authorized,
            app,
            enabled,
            test_signals,
            precondition,
            origin,
        )
        .await?;
    Ok(answer(&after))
}
