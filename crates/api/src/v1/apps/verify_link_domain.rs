//! `POST /api/v1/apps/{appId}/link-domain/verify` — verifies the link domain by its TXT record.

use super::shape::{AppEnvelope, AppOut, example};
use crate::body::JsonResponse;
use crate::caller::Caller;
use crate::error::{ApiError, Code};
use crate::openapi::errors::API_KEY;
use crate::path::PathIds;
use crate::state::ApiState;
use axum::extract::State;
use axum::response::IntoResponse;
use tributary_domain::access::AppsWrite;
use tributary_domain::ownership::link_domain::DomainChallenge;
use tributary_domain::refusal::Refusal;

#[utoipa::path(
    post, path = "/api/v1/apps/{appId}/link-domain/verify", tag = "Apps",
    operation_id = "verifyLinkDomain",
    summary = "Verify the link domain",
    description = "Looks up the TXT record that `linkDomainVerification` of the app shows. If the \
                   record exists, the domain belongs to the app: it serves the app's links and \
                   association files, and no other app can verify it. Requires `apps:write` and a \
                   live key.",
    params(("appId" = String, Path, description = "App id.")),
    extensions(("x-errors" = json!([API_KEY, [
        Code::LiveOnly, Code::AppNotFound, Code::DomainTaken, Code::VersionConflict,
        Code::ValidationFailed, Code::DomainNotVerified, Code::DnsUnavailable
    ]]))),
    responses((status = 200, description = "The app with the verified domain.",
        body = inline(AppEnvelope), headers(("ETag" = String)),
        example = json!({"data": example()})))
)]
pub(crate) async fn verify(
    caller: Caller<AppsWrite>,
    ids: PathIds,
    State(state): State<ApiState>,
) -> Result<impl IntoResponse, ApiError> {
    let (app, reader) = (ids.app()?, caller.authorized.read_access());
    let found = state.store.app(&reader, app).await?;
    let host = found.claimed_link_domain()?;
    let challenge = DomainChallenge::new(&state.keyring, app, host);
    let records = (state.txt_lookup)(challenge.record_name.clone()).await;
    if !challenge.is_met_by(&records.ok_or(Refusal::DnsUnavailable)?) {
        return Err(Refusal::DomainUnproven.into());
    }
    let (host, origin) = (host.clone(), caller.origin(&state));
    let verified =
        state
            .store
            .set_link_domain_verified(&caller.authorized, app, host, true, origin);
    let app = verified.await?;
    let tag = app.tag();
    Ok(JsonResponse::ok(AppOut::of(app, &state)).with_etag(&tag))
}
