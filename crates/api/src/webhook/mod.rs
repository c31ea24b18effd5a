//! `POST /api/webhook/{provider}/{appId}`: what billing providers report.
//!
//! A provider is a file that says how it proves who it is and what its words mean. What follows from that is the same
//! for all of them. Success is 200 and nothing else, after the commit: some count no other status. A body that could
//! not prove who it is from is neither read nor kept. What we do not know is kept and answered with success; only what
//! can never become valid is 400, since a provider may give up on it.
//!
//! # Adding a provider
//!
//! 1. A variant of `domain::app::BillingProvider`, and its secrets.
//! 2. A file here with a [`Provider`], and its line in [`provider`].

mod appstore;
mod fields;
mod meaning;
mod redact;
mod revenuecat;
mod superwall;

use crate::body::{malformed, read_bytes};
use crate::error::{ApiError, Code};
use crate::json::JsonNode;
use crate::metrics;
use crate::path::PathIds;
use crate::request::record_organization;
use crate::sealing::AppSealer;
use crate::state::ApiState;
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use redact::redact;
use tracing::Span;
use tributary_domain::app::{App, AppSecret, BillingProvider, FraudPolicy};
use tributary_domain::billing::certificate::Roots;
use tributary_domain::billing::hold::trial_hold;
use tributary_domain::billing::{
    IncomingNotification, PREVIOUS_SECRET_VALID, ProviderNotification,
};
use tributary_domain::refusal::Refusal;
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::{BillingApp, NotificationOutcome};

/// The door.
pub(crate) fn router() -> Router<ApiState> {
    Router::new().route("/api/webhook/{provider}/{appId}", post(accept))
}

/// A post, and all that it can be held against.
struct WebhookRequest<'a> {
    headers: &'a HeaderMap,
    body: &'a [u8],
    app: &'a App,
    secrets: &'a ProviderSecrets,
    roots: &'a Roots,
    now: Timestamp,
}

impl WebhookRequest<'_> {
    /// A header that is there once, as text.
    fn header(&self, name: &str) -> Option<&str> {
        let mut all = self.headers.get_all(name).iter();
        match (all.next(), all.next()) {
            (Some(value), None) => value.to_str().ok(),
            _ => None,
        }
    }

    /// The body as JSON.
    fn json(&self) -> Result<JsonNode, WebhookRejection> {
        let text = std::str::from_utf8(self.body).map_err(|_| WebhookRejection::NotJson)?;
        crate::json::parse(text).map_err(|_| WebhookRejection::NotJson)
    }
}

/// The secrets of an app for one provider, opened.
#[derive(Default)]
struct ProviderSecrets {
    /// The present one, and the one before it for a while.
    values: Vec<String>,
    signing: Option<String>,
}

/// Why a post is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WebhookRejection {
    /// It did not prove who it is from. Why is nobody's business.
    Unauthorized,
    /// It is no JSON.
    NotJson,
    /// It is no notification.
    Malformed,
}

/// A billing provider.
trait Provider: Sync {
    /// Proves who a post is from, over the bytes as they came; only then is it read.
    fn authenticate(&self, post: &WebhookRequest<'_>) -> Result<JsonNode, WebhookRejection>;

    /// What it says. Everything but its id and its type may be missing.
    fn translate(&self, body: &JsonNode) -> Result<ProviderNotification, WebhookRejection>;
}

fn provider(named: BillingProvider) -> &'static dyn Provider {
    match named {
        BillingProvider::Revenuecat => &revenuecat::RevenueCat,
        BillingProvider::Superwall => &superwall::Superwall,
        BillingProvider::Appstore => &appstore::AppStore,
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
    let bytes = read_bytes(&parts.headers, body, &state).await?;
    let now = state.runtime.now();
    let post = WebhookRequest {
        headers: &parts.headers,
        body: &bytes,
        app: &found.app,
        secrets: &open_secrets(&state, &found, named, now),
        roots: &state.app_store_roots,
        now,
    };
    let read = provider(named)
        .authenticate(&post)
        .and_then(|body| Ok((provider(named).translate(&body)?, redact(&body))));
    let (said, body) = match read {
        Ok(read) => read,
        Err(refused) => return Err(refuse(&state, app, named, refused).await),
    };
    let arrival = notification_arrival(&found.app, named, said, body, now);
    let accepted = state.store.accept_notification(arrival).await?;
    let duplicate = count(named, accepted);
    Ok(answer(duplicate))
}

/// The secrets that are valid now.
fn open_secrets(
    state: &ApiState,
    found: &BillingApp,
    provider: BillingProvider,
    now: Timestamp,
) -> ProviderSecrets {
    let sealer = AppSealer::new(state, found.app.organization, found.app.id);
    let mut secrets = ProviderSecrets::default();
    for one in &found.secrets {
        // What was replaced is sealed for the place that it had.
        let place = match one.secret {
            AppSecret::BillingPrevious(it) => AppSecret::Billing(it),
            other => other,
        };
        let is_of = |wanted: AppSecret| one.secret == wanted;
        let is_valid_still = now < one.set_at.plus(PREVIOUS_SECRET_VALID);
        let open = || sealer.open_app_secret(place, &one.sealed);
        if is_of(AppSecret::Billing(provider))
            || (is_of(AppSecret::BillingPrevious(provider)) && is_valid_still)
        {
            secrets.values.extend(open());
        } else if is_of(AppSecret::BillingSigning(provider)) {
            secrets.signing = open();
        }
    }
    secrets
}

async fn refuse(
    state: &ApiState,
    app: AppId,
    provider: BillingProvider,
    refused: WebhookRejection,
) -> ApiError {
    match refused {
        WebhookRejection::NotJson => {
            metrics::count_notification(provider.as_str(), "malformed");
            malformed()
        }
        WebhookRejection::Malformed => {
            metrics::count_notification(provider.as_str(), "malformed");
            let message = "This is no notification of the provider's: it needs an id and a type.";
            ApiError::new(Code::MalformedNotification, message)
        }
        WebhookRejection::Unauthorized => {
            metrics::count_notification(provider.as_str(), "unauthorized");
            let at = state.runtime.now();
            // The answer is the same whether it could be counted or not.
            if let Err(error) = state.store.note_unauthorized(app, provider, at).await {
                tracing::warn!(%error, "a refused notification could not be counted");
            }
            ApiError::new(Code::WebhookUnauthorized, unauthorized_message(provider))
        }
    }
}

/// What to do about a notification that is not authentic. The App Store signs with certificates and has no secret.
const fn unauthorized_message(provider: BillingProvider) -> &'static str {
    match provider {
        BillingProvider::Appstore => {
            "The notification is not signed by Apple for this app. Check the app's `ios.bundleId` and `ios.appStoreId`."
        }
        BillingProvider::Revenuecat | BillingProvider::Superwall => {
            "The notification is not authentic. Set the same secret here and at the provider."
        }
    }
}

fn notification_arrival(
    app: &App,
    provider: BillingProvider,
    said: ProviderNotification,
    body: String,
    received_at: Timestamp,
) -> IncomingNotification {
    IncomingNotification {
        app: app.id,
        provider,
        content: said,
        body,
        received_at,
        trial_hold: trial_hold(&app.qualified_trial),
        holds_suspicious: app.attribution.fraud == FraudPolicy::Hold,
    }
}

/// Counts what became of it; true when it was here before.
fn count(provider: BillingProvider, accepted: NotificationOutcome) -> bool {
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
