//! `PATCH /api/v1/apps/{appId}/integrations/{network}` — changes an integration.

use super::fields::IntegrationFields;
use super::get::find;
use super::health::load_health;
use super::shape::{IntegrationEnvelope, IntegrationOut, example};
use crate::body::{JsonBody, JsonResponse};
use crate::caller::Caller;
use crate::current_document::CurrentDocument;
use crate::error::{ApiError, Code};
use crate::fields::integration::read_change;
use crate::if_match::IfMatch;
use crate::openapi::errors::{API_KEY, JSON_BODY};
use crate::path::PathIds;
use crate::sealing::AppSealer;
use crate::state::ApiState;
use axum::extract::State;
use axum::response::IntoResponse;
use tributary_domain::access::AppsWrite;
use tributary_domain::integration::Credential;

#[utoipa::path(
    patch, path = "/api/v1/apps/{appId}/integrations/{network}", tag = "Integrations",
    operation_id = "updateIntegration", summary = "Change an integration",
    description = "Missing fields are unchanged; null resets a field to its default. \
                   `eventMapping` replaces the stored mapping. Credentials are encrypted at rest \
                   and never returned. You may send back the document that GET returned: read-only \
                   fields are ignored if they have their current value; `health` and \
                   `statusReason` are always ignored. Requires `apps:write` and a live key.",
    params(
        ("appId" = String, Path, description = "App id."),
        ("network" = String, Path, description = "`network_a` (Meta), `network_b` (Google Ads), \
            `network_c` (TikTok) or `network_d` (OpenAI Ads)."),
        ("If-Match" = Option<String>, Header, description = "ETag of the version to change."),
    ),
    request_body(content = inline(IntegrationFields), description = "Fields to change.",
        example = json!({
        "enabled": true,
        "settings": {"pixelId": "1234567890"},
        "credentials": {"accessToken": "EAABsbCS1234567890"},
        "eventMapping": [
            {"event": "purchase", "networkEvent": "Purchase", "enabled": true},
            {"event": "boss_defeated", "networkEvent": "BossDefeated", "enabled": true}
        ]
    })),
    extensions(("x-errors" = json!([API_KEY, JSON_BODY, [
        Code::LiveOnly, Code::AppNotFound, Code::NetworkNotFound, Code::VersionConflict
    ]]))),
    responses((status = 200, description = "The integration after the change.",
        body = inline(IntegrationEnvelope), headers(("ETag" = String)),
        example = json!({"data": example()})))
)]
pub(crate) async fn update(
    caller: Caller<AppsWrite>,
    ids: PathIds,
    IfMatch(precondition): IfMatch,
    State(state): State<ApiState>,
    body: JsonBody,
) -> Result<impl IntoResponse, ApiError> {
    // The fields depend on the network, so an unknown network is reported before faults in the
    // body.
    let (app, network) = (ids.app()?, ids.network()?);
    let reader = caller.authorized.read_access();
    let found = find(&state, &reader, &ids).await;
    let current = CurrentDocument::of(found, |(one, health)| IntegrationOut::of(&one, &health))?;
    let (mut change, credentials) = body.read_change(&current, |fields| {
        fields.ignore("health");
        fields.ignore("statusReason");
        read_change(fields, network)
    })?;
    let sealer = AppSealer::new(&state, caller.authorized.organization(), app);
    for (name, credential) in credentials {
        let credential = credential.map(|(text, hint)| Credential {
            sealed: sealer.seal(network.as_str(), name, &text),
            hint,
        });
        change.credentials.insert(name, credential);
    }
    let origin = caller.origin(&state);
    let after = state
        .store
        .update_integration(
            &caller.authorized,
            app,
            network,
            change,
            precondition,
            origin,
        )
        .await?;
    let health = load_health(&state, &reader, &after).await?;
    Ok(JsonResponse::ok(IntegrationOut::of(&after, &health)).with_etag(&after.tag()))
}
