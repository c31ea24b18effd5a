//! `PUT /api/v1/apps/{appId}/cost-sources/{network}` — sets a cost source.

use super::fields::CostSourceFields;
use super::reporting_network;
use super::shape::{CostSourceEnvelope, CostSourceOut, example};
use crate::body::{JsonBody, JsonResponse};
use crate::caller::Caller;
use crate::error::{ApiError, Code};
use crate::fields::cost_source::read_draft;
use crate::if_match::IfMatch;
use crate::openapi::errors::{API_KEY, JSON_BODY};
use crate::path::PathIds;
use crate::sealing::AppSealer;
use crate::state::ApiState;
use axum::extract::State;
use axum::response::IntoResponse;
use tributary_domain::access::AppsWrite;
use tributary_domain::cost_source::credential_owner;
use tributary_domain::integration::Credential;

#[utoipa::path(
    put, path = "/api/v1/apps/{appId}/cost-sources/{network}", tag = "Analytics",
    operation_id = "putCostSource", summary = "Set a cost source",
    description = "Costs are then imported from the network's report every four hours, with the \
                   last weeks again, because networks restate them. Use credentials that may only \
                   read reports: they are encrypted at rest and never returned. Settings are \
                   replaced as a whole; credentials that are left out stay, and null removes one. \
                   Settings: `accountId`; `apiVersion` (`network_a`, `network_b`); \
                   `loginAccountId`, `clientId` (`network_b`). Credentials: `accessToken` \
                   (`network_a`, `network_c`), `appSecret` (`network_a`, optional); \
                   `developerToken` with `clientSecret` and `refreshToken`, or with \
                   `serviceAccountKey` (`network_b`). Requires `apps:write` and a live key.",
    params(
        ("appId" = String, Path, description = "App id."),
        ("network" = String, Path, description = "`network_a` (Meta), `network_b` (Google Ads) or \
            `network_c` (TikTok)."),
        ("If-Match" = Option<String>, Header, description = "ETag of the version to replace."),
    ),
    request_body(content = inline(CostSourceFields), description = "The cost source.",
        example = json!({
        "enabled": true,
        "settings": {"accountId": "1234567890"},
        "credentials": {"accessToken": "EAABsbCS1234567890"}
    })),
    extensions(("x-errors" = json!([API_KEY, JSON_BODY, [
        Code::LiveOnly, Code::AppNotFound, Code::NetworkNotFound, Code::VersionConflict
    ]]))),
    responses((status = 200, description = "The cost source.", body = inline(CostSourceEnvelope),
        headers(("ETag" = String)), example = json!({"data": example()})))
)]
pub(crate) async fn replace(
    caller: Caller<AppsWrite>,
    ids: PathIds,
    IfMatch(precondition): IfMatch,
    State(state): State<ApiState>,
    body: JsonBody,
) -> Result<impl IntoResponse, ApiError> {
    let (app, network) = (ids.app()?, reporting_network(&ids)?);
    let (mut draft, credentials) = body.read(|fields| read_draft(fields, network))?;
    let sealer = AppSealer::new(&state, caller.authorized.organization(), app);
    for (name, credential) in credentials {
        let credential = credential.map(|(text, hint)| Credential {
            sealed: sealer.seal(credential_owner(network), name, &text),
            hint,
        });
        draft.credentials.insert(name, credential);
    }
    let origin = caller.origin(&state);
    let stored = state
        .store
        .put_cost_source(
            &caller.authorized,
            app,
            network,
            draft,
            precondition,
            origin,
        )
        .await?;
    Ok(JsonResponse::ok(CostSourceOut::from(&stored)).with_etag(&stored.tag()))
}
