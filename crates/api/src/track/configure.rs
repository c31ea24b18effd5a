//! `POST /api/track/configure` — registers a device and returns its attribution.

use super::attestation;
use super::body::TrackBody;
use super::caller::SdkCaller;
use super::configure_fields::{ConfigureFields, ConfigureRequest, read};
use super::opened_link::{self, OpenedLink, find_opened_link};
use super::referrer::{self, claims};
use super::shape::{self, DecisionOut};
use super::skan::device_document;
use super::skan_shape::DeviceSkanOut;
use crate::body::{Envelope, JsonResponse};
use crate::error::ApiError;
use crate::openapi::errors::{SDK_BODY, SDK_KEY};
use crate::state::ApiState;
use axum::extract::State;
use axum::response::IntoResponse;
use serde::Serialize;
use std::collections::BTreeMap;
use tributary_domain::app::PROBABILISTIC_WINDOW_HOURS;
use tributary_domain::click::Click;
use tributary_domain::click::address::{ComparableAddress, classify};
use tributary_domain::click::token::ClickTokens;
use tributary_domain::device::AdvertisingId;
use tributary_domain::erasure::may_have_erase_token;
use tributary_domain::install::ConfigureCommand;
use tributary_domain::ledger::sdk_policy;
use tributary_domain::skan::device::DeviceDocument;
use tributary_domain::vocabulary::id::{AttributionId, EventId};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::ConfigureOutcome;
use utoipa::ToSchema;

/// Response to `configure`.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "Configured")]
struct ConfigureOut {
    /// If false, the SDK must stop and send nothing more. All other fields are then null or false.
    sdk_enabled: bool,
    /// Whether this was the device's first call, which recorded its install.
    first_open: bool,
    attribution: Option<DecisionOut>,
    /// Link that opened the app, if `openedUrl` is one of the app's links.
    opened: Option<OpenedOut>,
    /// The same document that `GET /api/track/skan` returns.
    skan: Option<DeviceSkanOut>,
}

/// Link that opened the app.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct OpenedOut {
    link_id: String,
    deep_link: Option<String>,
    custom_data: BTreeMap<String, String>,
    /// Query parameters in the URL, except known tracking parameters such as click ids.
    query_params: BTreeMap<String, String>,
}

impl ConfigureOut {
    const STOP: Self = Self {
        sdk_enabled: false,
        first_open: false,
        attribution: None,
        opened: None,
        skan: None,
    };

    fn of(configured: ConfigureOutcome, caller: &SdkCaller, tokens: &ClickTokens) -> Self {
        Self {
            sdk_enabled: true,
            first_open: configured.is_first_open,
            attribution: Some(DecisionOut::of(
                configured.attribution,
                caller.app.id,
                tokens,
            )),
            ..Self::STOP
        }
    }

    fn with_link_and_skan(self, opened: Option<OpenedLink>, skan: &DeviceDocument) -> Self {
        Self {
            opened: opened.map(OpenedOut::from),
            skan: Some(DeviceSkanOut::of(skan)),
            ..self
        }
    }
}

impl From<OpenedLink> for OpenedOut {
    fn from(opened: OpenedLink) -> Self {
        Self {
            link_id: opened.link.id.to_string(),
            deep_link: opened.link.deep_link.map(|url| url.as_str().to_owned()),
            custom_data: opened.link.custom_data,
            query_params: opened.click.captured.query_params,
        }
    }
}

type ConfigureEnvelope = Envelope<ConfigureOut>;

#[utoipa::path(
    post, path = "/api/track/configure", tag = "SDK", operation_id = "configureDevice",
    summary = "Register a device and get its attribution",
    description = "A device's first call records its `install` and attributes it. Later calls \
                   return the same attribution, or a better one if late evidence arrived. A call \
                   from the platform `web` records no install. Calls with the same `openedUrl` \
                   within ten minutes count as one tap. The body may also be sent as `text/plain`, \
                   and the key as `?key=`.",
    security(("sdkKey" = [])),
    request_body(content = inline(ConfigureFields), description = "The device.", example = json!({
        "deviceId": "6f9619ff-8b86-4011-b42d-00c04fc964ff",
        "platform": "android",
        "osVersion": "14",
        "model": "Pixel 8",
        "manufacturer": "Google",
        "appVersion": "3.1.0",
        "bundleId": "com.example.runner",
        "locale": "en_US",
        "timezone": "America/New_York",
        "screen": {"width": 412, "height": 915, "scale": 2.625},
        "sdkVersion": "1.0.0",
        "installReferrer": {
            "referrer": "utm_source=google-play&utm_medium=organic",
            "clickAtServerSeconds": 0,
            "installBeginAtServerSeconds": 1_767_225_000
        },
        "consent": {"adUserData": true, "adPersonalization": null, "tracking": "notDetermined"},
        "eraseToken": "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"
    })),
    extensions(("x-errors" = json!([SDK_KEY, SDK_BODY]))),
    responses((status = 200, description = "The attribution.",
        body = inline(ConfigureEnvelope), example = json!({
        "data": {
            "sdkEnabled": true,
            "firstOpen": true,
            "attribution": shape::example(),
            "opened": null,
            "skan": null
        }
    })))
)]
pub(crate) async fn configure(
    caller: SdkCaller,
    State(state): State<ApiState>,
    body: TrackBody,
) -> Result<impl IntoResponse, ApiError> {
    if !caller.app.runs_sdk() {
        return Ok(JsonResponse::ok(ConfigureOut::STOP));
    }
    let request = body.read_lenient(read)?;
    let at = state.runtime.now();
    let opened = find_opened_link(&state, &caller, &request, at).await?;
    let click = opened.as_ref().map(|opened| opened.click.clone());
    let command = configure_command(&state, &caller, request, click, at);
    let skan = device_document(&state, &caller, Some(command.device.clone()), at).await?;
    let configured = state.store.configure(command).await?;
    let answer = ConfigureOut::of(configured, &caller, &state.click_tokens)
        .with_link_and_skan(opened, &skan);
    Ok(JsonResponse::ok(answer))
}

/// Builds the store's command from the request and from what the server knows about the client.
fn configure_command(
    state: &ApiState,
    caller: &SdkCaller,
    request: ConfigureRequest,
    opened: Option<Click>,
    at: Timestamp,
) -> ConfigureCommand {
    let geo = &caller.geo;
    let hasher = state.address_hasher();
    let comparable = ComparableAddress::of(caller.address, geo.is_relay);
    let window = *PROBABILISTIC_WINDOW_HOURS.end();
    let in_url = request
        .opened_url
        .as_deref()
        .and_then(opened_link::click_id_in_url);
    let by_client = request.click_id.as_deref().or(in_url);
    let may_match = AdvertisingId::may_match(request.traits.platform, request.consent);
    let advertised = request.advertising_id.as_ref().filter(|_| may_match);
    let attestation = attestation::check(state, caller, &request, at);
    ConfigureCommand {
        app: caller.app.id,
        environment: caller.environment,
        rules: caller.app.attribution.clone(),
        policy: sdk_policy(&caller.app),
        at,
        claims: claims(
            &state.click_tokens,
            caller.app.id,
            request.referrer.as_ref(),
            by_client,
        ),
        advertising_hash: advertised.map(|id| hasher.advertising_id(id)),
        erase_proof: request
            .erase_token
            .filter(|_| may_have_erase_token(&request.device))
            .map(|token| token.proof(&request.device)),
        device: request.device,
        traits: request.traits,
        identity: caller.claim(state, at, request.user, request.user_signature.as_deref()),
        advertising_id: request.advertising_id,
        idfv: request.idfv,
        consent: request.consent,
        country: geo.country.clone(),
        referrer: request
            .referrer
            .map(|referrer| referrer::decrypt_referrer(state, caller, referrer)),
        times: request.times,
        ad_services_token: request.ad_services_token,
        attestation,
        address_class: classify(caller.address, geo.is_relay),
        address_hash: comparable.map(|address| hasher.hash(address, at)),
        address_hashes: comparable.map_or_else(Vec::new, |address| {
            hasher.hashes_within(address, at, window)
        }),
        app_link_click: opened,
        attribution_id: AttributionId::new(at, state.runtime.id_bytes()),
        install_id: EventId::new(at, state.runtime.id_bytes()),
    }
}
