//! `POST /api/webhook/{provider}/{appId}` — accepts notifications from billing providers.
//!
//! Each provider is a file that authenticates requests and translates notifications. Everything
//! else is shared. A successful request always gets 200, after the commit, because some providers
//! accept no other status. A request that fails authentication is neither parsed nor stored, and its
//! body is not read if its headers are wrong.
//! Unknown notification types are stored and acknowledged. Only requests that can never become
//! valid get 400, because some providers do not retry after a 400.
//!
//! # Adding a provider
//!
//! 1. Add a variant of `domain::app::BillingProvider`, and its secrets.
//! 2. Add a file here that implements [`Provider`], and its line in [`provider`].

mod adapty;
mod appstore;
mod fields;
mod meaning;
mod qonversion;
mod redact;
mod revenuecat;
mod stripe;
mod superwall;

use crate::body::{BODY_BYTES_MAX, BodyLimits, malformed, read_bytes_within};
use crate::error::{ApiError, Code};
use crate::gzip::GzipLimits;
use crate::json::JsonNode;
use crate::metrics;
use crate::path::PathIds;
use crate::request::{client_of, record_organization};
use crate::sealing::AppSealer;
use crate::state::ApiState;
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use redact::redact;
use std::net::IpAddr;
use tracing::Span;
use tributary_domain::access::Actor;
use tributary_domain::app::{App, AppSecret, BillingProvider};
use tributary_domain::billing::certificate::TrustedRoots;
use tributary_domain::billing::hold::trial_hold;
use tributary_domain::billing::signature::matches_secret;
use tributary_domain::billing::{
    IncomingNotification, PREVIOUS_SECRET_VALID, ProviderNotification,
};
use tributary_domain::ownership::store_id::{StoreIdProof, is_proving_notification};
use tributary_domain::refusal::Refusal;
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::{BillingApp, NotificationOutcome};

/// Returns the route.
pub(crate) fn router() -> Router<ApiState> {
    Router::new().route("/api/webhook/{provider}/{appId}", post(accept))
}

/// Largest compressed or decompressed notification while its sender is not authenticated. Genuine
/// ones have less than 32 KiB.
const UNPROVEN_BYTES_MAX: usize = 256 * 1024;

/// The headers of a received request, with the data needed to check them.
struct WebhookHead<'a> {
    headers: &'a HeaderMap,
    app: &'a App,
    secrets: &'a ProviderSecrets,
}

impl WebhookHead<'_> {
    /// Returns a header as text. `None` if the header is missing or occurs twice.
    fn header(&self, name: &str) -> Option<&str> {
        let mut all = self.headers.get_all(name).iter();
        match (all.next(), all.next()) {
            (Some(value), None) => value.to_str().ok(),
            _ => None,
        }
    }
}

/// A received request, with the data needed to authenticate it.
struct WebhookRequest<'a> {
    head: WebhookHead<'a>,
    body: &'a [u8],
    roots: &'a TrustedRoots,
    now: Timestamp,
}

impl WebhookRequest<'_> {
    /// Parses the body as JSON.
    fn json(&self) -> Result<JsonNode, WebhookRejection> {
        let text = std::str::from_utf8(self.body).map_err(|_| WebhookRejection::NotJson)?;
        crate::json::parse(text).map_err(|_| WebhookRejection::NotJson)
    }
}

/// What a request's headers prove.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HeaderProof {
    /// The sender knows the secret.
    Authentic,
    /// Nothing yet: the proof needs the body.
    NeedsBody,
}

impl HeaderProof {
    const fn body_limits(self) -> BodyLimits {
        match self {
            Self::Authentic => BodyLimits::AUTHENTICATED,
            Self::NeedsBody => BodyLimits {
                bytes: BODY_BYTES_MAX,
                gzip: GzipLimits::unproven(UNPROVEN_BYTES_MAX),
            },
        }
    }
}

/// Decrypted secrets of an app for one provider.
#[derive(Default)]
struct ProviderSecrets {
    /// The current secret and that of the provider's test environment, and their previous ones as long
    /// as these are valid.
    values: Vec<String>,
    /// The current signing secret, and the previous one as long as it is valid.
    signing: Vec<String>,
}

/// Reason for rejecting a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WebhookRejection {
    /// Another provider of the app reports the same payments, which would count twice.
    OtherSource,
    /// Authentication failed. The response does not say why.
    Unauthorized,
    /// The body is not JSON.
    NotJson,
    /// The body is not a notification.
    Malformed,
}

/// A billing provider.
trait Provider: Sync {
    /// Checks the headers, before the body is read.
    fn check_headers(&self, head: &WebhookHead<'_>) -> Result<HeaderProof, WebhookRejection>;

    /// Authenticates a request whose headers passed [`Self::check_headers`], then parses its body.
    fn authenticate(&self, request: &WebhookRequest<'_>) -> Result<JsonNode, WebhookRejection>;

    /// Returns whether the body only tests the URL. It is answered and not stored.
    fn is_url_test(&self, _body: &JsonNode) -> bool {
        false
    }

    /// Translates the body. Only the id and the type are required.
    fn translate(&self, body: &JsonNode) -> Result<ProviderNotification, WebhookRejection>;
}

fn provider(named: BillingProvider) -> &'static dyn Provider {
    match named {
        BillingProvider::Revenuecat => &revenuecat::RevenueCat,
        BillingProvider::Superwall => &superwall::Superwall,
        BillingProvider::Appstore => &appstore::AppStore,
        BillingProvider::Stripe => &stripe::Stripe,
        BillingProvider::Adapty => &adapty::Adapty,
        BillingProvider::Qonversion => &qonversion::Qonversion,
    }
}

/// Checks that a header value is one of the secrets.
fn check_secret(value: &str, head: &WebhookHead<'_>) -> Result<HeaderProof, WebhookRejection> {
    // Compares all of them, so that the time taken does not reveal which one matched.
    let secrets = head.secrets.values.iter();
    let is_known = secrets.fold(false, |known, secret| known | matches_secret(value, secret));
    if is_known {
        Ok(HeaderProof::Authentic)
    } else {
        Err(WebhookRejection::Unauthorized)
    }
}

async fn accept(
    ids: PathIds,
    State(state): State<ApiState>,
    request: Request,
) -> Result<Response, ApiError> {
    let (named, app) = (ids.provider()?, ids.app()?);
    let found = state.store.billing_app(app).await?;
    let found = found.ok_or(Refusal::AppNotFound)?;
    record_organization(&Span::current(), found.app.organization);
    let (parts, body) = request.into_parts();
    let address = client_of(&parts)?.address;
    let now = state.runtime.now();
    let secrets = open_secrets(&state, &found, named, now);
    let head = WebhookHead {
        headers: &parts.headers,
        app: &found.app,
        secrets: &secrets,
    };
    let checked = if found.app.refuses_source(named) {
        Err(WebhookRejection::OtherSource)
    } else {
        provider(named).check_headers(&head)
    };
    let proof = match checked {
        Ok(proof) => proof,
        Err(reason) => return Err(reject(&state, address, app, named, reason).await),
    };
    let bytes = read_bytes_within(&parts.headers, body, &state, proof.body_limits()).await?;
    let webhook = WebhookRequest {
        head,
        body: &bytes,
        roots: &state.app_store_roots,
        now,
    };
    let (notification, body) = match read_webhook(provider(named), &webhook) {
        Ok(Some(read)) => read,
        Ok(None) => return Ok(answer(false)),
        Err(reason) => return Err(reject(&state, address, app, named, reason).await),
    };
    prove_store_id(&state, &found.app, named, &notification, now).await?;
    let incoming = incoming_notification(&found.app, named, notification, body, now);
    let accepted = state.store.accept_notification(incoming).await?;
    let duplicate = count_outcome(named, accepted);
    Ok(answer(duplicate))
}

/// Authenticates and translates a request. `None` if it only tests the URL.
fn read_webhook(
    provider: &dyn Provider,
    webhook: &WebhookRequest<'_>,
) -> Result<Option<(ProviderNotification, String)>, WebhookRejection> {
    let body = provider.authenticate(webhook)?;
    if provider.is_url_test(&body) {
        return Ok(None);
    }
    let notification = provider.translate(&body)?;
    Ok(Some((notification, redact(&body))))
}

/// Stores that the app owns its App Store id, if the notification proves it. Only Apple can sign it,
/// and only the developer can have it sent to this app's URL.
async fn prove_store_id(
    state: &ApiState,
    app: &App,
    provider: BillingProvider,
    notification: &ProviderNotification,
    now: Timestamp,
) -> Result<(), ApiError> {
    let (environment, happened_at) = (notification.environment, notification.happened_at);
    let Some(store_id) = app.ios.app_store_id.as_deref().filter(|_| {
        provider == BillingProvider::Appstore
            && is_proving_notification(environment, happened_at, now)
    }) else {
        return Ok(());
    };
    let (proof, origin) = (
        StoreIdProof::Notification,
        state.runtime.origin(Actor::Service, None, None),
    );
    let proven = state.store.prove_store_id(app.id, store_id, proof, origin);
    proven.await?;
    Ok(())
}

/// Decrypts the secrets that are valid now.
fn open_secrets(
    state: &ApiState,
    found: &BillingApp,
    provider: BillingProvider,
    now: Timestamp,
) -> ProviderSecrets {
    let sealer = AppSealer::new(state, found.app.organization, found.app.id);
    let mut secrets = ProviderSecrets::default();
    for one in &found.secrets {
        let latest = one.secret.latest();
        let is_previous = latest != one.secret;
        if is_previous && now >= one.set_at.plus(PREVIOUS_SECRET_VALID) {
            continue;
        }
        // A previous secret was encrypted for the field of the current one.
        let open = || sealer.open_app_secret(latest, &one.sealed);
        if latest == AppSecret::Billing(provider) || latest == AppSecret::BillingTest(provider) {
            secrets.values.extend(open());
        } else if latest == AppSecret::BillingSigning(provider) {
            secrets.signing.extend(open());
        }
    }
    secrets
}

async fn reject(
    state: &ApiState,
    address: IpAddr,
    app: AppId,
    provider: BillingProvider,
    reason: WebhookRejection,
) -> ApiError {
    match reason {
        WebhookRejection::NotJson => {
            metrics::count_notification(provider.as_str(), "malformed");
            malformed()
        }
        WebhookRejection::Malformed => {
            metrics::count_notification(provider.as_str(), "malformed");
            let message = "Not a notification from this provider: it must have an id and a type.";
            ApiError::new(Code::MalformedNotification, message)
        }
        WebhookRejection::OtherSource | WebhookRejection::Unauthorized => {
            metrics::count_notification(provider.as_str(), "unauthorized");
            count_unauthorized(state, address, app, provider).await;
            let message = if reason == WebhookRejection::OtherSource {
                OTHER_SOURCE
            } else {
                unauthorized_message(provider)
            };
            ApiError::new(Code::WebhookUnauthorized, message)
        }
    }
}

/// Tells the operator to decide for one source. Names no provider, because the sender is not
/// authenticated yet.
const OTHER_SOURCE: &str = "Another billing provider of this app reports the same payments, which \
                            would count twice. Remove the secret of that provider, or stop sending \
                            notifications to this URL.";

/// Counts a rejected notification in the app's figures, up to a daily quota.
async fn count_unauthorized(
    state: &ApiState,
    address: IpAddr,
    app: AppId,
    provider: BillingProvider,
) {
    let at = state.runtime.now();
    if !state.unverified_writes.allows("notification", address, at) {
        return;
    }
    // A failure to count does not change the response.
    if let Err(error) = state.store.note_unauthorized(app, provider, at).await {
        tracing::warn!(%error, "failed to count rejected notification");
    }
}

/// Tells the operator how to fix authentication. The App Store uses certificates, not a secret.
const fn unauthorized_message(provider: BillingProvider) -> &'static str {
    match provider {
        BillingProvider::Appstore => {
            "The notification is not signed by Apple for this app. Check the app's `ios.bundleId` \
             and `ios.appStoreId`."
        }
        BillingProvider::Revenuecat
        | BillingProvider::Superwall
        | BillingProvider::Stripe
        | BillingProvider::Adapty
        | BillingProvider::Qonversion => {
            "The notification is not authentic. Set the same secret in Tributary and the provider."
        }
    }
}

fn incoming_notification(
    app: &App,
    provider: BillingProvider,
    content: ProviderNotification,
    body: String,
    received_at: Timestamp,
) -> IncomingNotification {
    IncomingNotification {
        app: app.id,
        provider,
        content,
        body,
        received_at,
        trial_hold: trial_hold(&app.qualified_trial),
    }
}

/// Counts the outcome. Returns true for a duplicate.
fn count_outcome(provider: BillingProvider, accepted: NotificationOutcome) -> bool {
    let (outcome, duplicate) = match accepted {
        NotificationOutcome::Stored {
            has_event: false, ..
        } => ("receipt", false),
        NotificationOutcome::Stored {
            is_matched: true, ..
        } => ("matched", false),
        NotificationOutcome::Stored { .. } => ("unmatched", false),
        NotificationOutcome::Duplicate => ("duplicate", true),
        NotificationOutcome::IdReused => ("id_reuse", true),
    };
    metrics::count_notification(provider.as_str(), outcome);
    duplicate
}

fn answer(duplicate: bool) -> Response {
    let json = HeaderValue::from_static("application/json");
    let body = format!("{{\"data\":{{\"received\":true,\"duplicate\":{duplicate}}}}}");
    ([(header::CONTENT_TYPE, json)], Body::from(body)).into_response()
}
