//! `POST /api/v1/apps` — creates an app with its SDK keys.

use super::fields::NewApp;
use super::shape::{AppEnvelope, AppOut, example};
use crate::body::{JsonBody, JsonResponse};
use crate::caller::Caller;
use crate::error::{ApiError, Code};
use crate::fields::app::read_new;
use crate::openapi::errors::{API_KEY, JSON_BODY};
use crate::sealing::AppSealer;
use crate::state::ApiState;
use axum::extract::State;
use axum::response::IntoResponse;
use tributary_domain::access::key::KeyKind;
use tributary_domain::access::{AppsWrite, Environment};
use tributary_domain::app::{App, AppCreation};
use tributary_domain::vocabulary::change::Change;
use tributary_domain::vocabulary::id::AppId;

#[utoipa::path(
    post, path = "/api/v1/apps", tag = "Apps", operation_id = "createApp",
    summary = "Create an app",
    description = "Only `name` is required. Also creates the app's SDK keys. Requires `apps:write` \
                   and a live key that is not limited to apps.",
    request_body(content = inline(NewApp), description = "The app.", example = json!({
        "name": "Runner",
        "timezone": "Europe/Berlin",
        "ios": {"bundleId": "com.example.runner", "teamId": "ABCDE12345"},
        "android": {"packageName": "com.example.runner"},
        "webEvents": {"enabled": true}
    })),
    extensions(("x-errors" = json!([API_KEY, JSON_BODY, [
        Code::LiveOnly, Code::AppNotAllowed, Code::StoreIdTaken
    ]]))),
    responses((status = 201, description = "The app.", body = inline(AppEnvelope),
        headers(("Location" = String, description = "Path of the app."), ("ETag" = String)),
        example = json!({"data": example()})))
)]
pub(crate) async fn create(
    caller: Caller<AppsWrite>,
    State(state): State<ApiState>,
    body: JsonBody,
) -> Result<impl IntoResponse, ApiError> {
    let organization = caller.authorized.organization();
    let at = state.runtime.now();
    let id = AppId::new(at, state.runtime.random_bytes());
    let sealer = AppSealer::new(&state, organization, id);
    let (name, change, secrets) = body.read_whole(|fields| read_new(fields, &state.base_url))?;
    let sdk_key = |environment| {
        state
            .runtime
            .new_key(KeyKind::Sdk, environment)
            .reveal()
            .to_owned()
    };
    let birth = AppCreation {
        id,
        organization,
        live_key: sdk_key(Environment::Live),
        test_key: sdk_key(Environment::Test),
        at,
    };
    let mut app = App::new(birth, name);
    let secrets: Vec<_> = sealer
        .seal_app_secrets(secrets)
        .into_iter()
        .filter_map(|(secret, change)| match change {
            Change::Set(sealed) => Some((secret, sealed)),
            Change::Keep | Change::Reset => None,
        })
        .collect();
    app.secrets = secrets.iter().map(|(secret, _)| *secret).collect();
    app.apply(change);
    let origin = caller.origin(&state);
    let app = state
        .store
        .create_app(&caller.authorized, app, secrets, origin)
        .await?;
    let (tag, location) = (app.tag(), format!("/api/v1/apps/{}", app.id));
    Ok(JsonResponse::created(AppOut::of(app, &state), &location).with_etag(&tag))
}
