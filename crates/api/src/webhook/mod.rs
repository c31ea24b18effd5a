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
mod period;
mod redacted;
mod revenuecat;
mod superwall;

use crate::body::{malformed, read_bytes};
use crate::error::{ApiError, Code};
use crate::json::Node;
use crate::metrics;
use crate::path::PathIds;
use crate::request::record_organization;
use crate::sealing::Sealer;
use crate::state::ApiState;
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use redacted::redacted;
use tracing::Span;
use tributary_domain::app::{App, AppSecret, BillingProvider, FraudPolicy};
use tributary_domain::billing::certificate::Roots;
use tributary_domain::billing::hold::trial_hold;
use tributary_domain::billing::{Arrival, PREVIOUS_SECRET_VALID, Said};
use tributary_domain::refusal::Refusal;
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::{BillingApp, NotificationAccepted};

/// The door.
pub(crate) fn router() -> Router<ApiState> {
    Router::new().route("/api/webhook/{provider}/{appId}", post(accept))
}

/// A post, and all that it can be held against.
struct Post<'a> {
    headers: &'a HeaderMap,
    body: &'a [u8],
    app: &'a App,
    secrets: &'a Secrets,
    roots: &'a Roots,
    now: Timestamp,
}

impl Post<'_> {
    /// A header that is there once, as text.
    fn header(&self, name: &str) -> Option<&str> {
        let mut all = self.headers.get_all(name).iter();
        match (all.next(), all.next()) {
            (Some(value), None) => value.to_str().ok(),
            _ => None,
        }
    }

    /// The body as JSON.
    fn json(&self) -> Result<Node, Refused> {
        let text = std::str::from_utf8(self.body).map_err(|_| Refused::NotJson)?;
        crate::json::parse(text).map_err(|_| Refused::NotJson)
    }
}

/// The secrets of an app for one provider, opened.
#[derive(Default)]
struct Secrets {
    /// The present one, and the one before it for a while.
    values: Vec<String>,
    signing: Option<String>,
}

/// Why a post is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refused {
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
    fn authenticate(&self, post: &Post<'_>) -> Result<Node, Refused>;

    /// What it says. Everything but its id and its type may be missing.
    fn translate(&self, body: &Node) -> Result<Said, Refused>;
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
    let now = state.source.now();
    let post = Post {
        headers: &parts.headers,
        body: &bytes,
        app: &found.app,
        secrets: &opened(&state, &found, named, now),
        roots: &state.store_roots,
        now,
    };
    let read = provider(named)
        .authenticate(&post)
        .and_then(|body| Ok((provider(named).translate(&body)?, redacted(&body))));
    let (said, body) = match read {
        Ok(read) => read,
        Err(refused) => return Err(refuse(&state, app, named, refused).await),
    };
    let arrival = arrival(&found.app, named, said, body, now);
    let accepted = state.store.accept_notification(arrival).await?;
    let duplicate = count(named, accepted);
    Ok(answer(duplicate))
}

/// The secrets that are valid now.
fn opened(
    state: &ApiState,
    found: &BillingApp,
    provider: BillingProvider,
    now: Timestamp,
) -> Secrets {
    let sealer = Sealer::new(state, found.app.organization, found.app.id);
    let mut secrets = Secrets::default();
    for one in &found.secrets {
        // What was replaced is sealed for the place that it had.
        let place = match one.secret {
            AppSecret::BillingBefore(it) => AppSecret::Billing(it),
            other => other,
        };
        let is_of = |wanted: AppSecret| one.secret == wanted;
        let is_valid_still = now < one.set_at.plus(PREVIOUS_SECRET_VALID);
        let open = || sealer.open_app_secret(place, &one.sealed);
        if is_of(AppSecret::Billing(provider))
            || (is_of(AppSecret::BillingBefore(provider)) && is_valid_still)
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
    refused: Refused,
) -> ApiError {
    match refused {
        Refused::NotJson => {
            metrics::notification(provider.as_str(), "malformed");
            malformed()
        }
        Refused::Malformed => {
            metrics::notification(provider.as_str(), "malformed");
            let message = "This is no notification of the provider's: it needs an id and a type.";
            ApiError::new(Code::MalformedNotification, message)
        }
        Refused::Unauthorized => {
            metrics::notification(provider.as_str(), "unauthorized");
            let at = state.source.now();
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

fn arrival(
    app: &App,
    provider: BillingProvider,
    said: Said,
    body: String,
    received_at: Timestamp,
) -> Arrival {
    Arrival {
        app: app.id,
        provider,
        said,
        body,
        received_at,
        trial_hold: trial_hold(&app.qualified_trial),
        holds_suspicious: app.attribution.fraud == FraudPolicy::Hold,
    }
}

/// Counts what became of it; true when it was here before.
fn count(provider: BillingProvider, accepted: NotificationAccepted) -> bool {
    let (outcome, duplicate) = match accepted {
        NotificationAccepted::Stored { event: false, .. } => ("receipt", false),
        NotificationAccepted::Stored { matched: true, .. } => ("matched", false),
        NotificationAccepted::Stored { .. } => ("unmatched", false),
        NotificationAccepted::Duplicate => ("duplicate", true),
        NotificationAccepted::Reused => ("id_reuse", true),
    };
    metrics::notification(provider.as_str(), outcome);
    duplicate
}

fn answer(duplicate: bool) -> Response {
    let json = HeaderValue::from_static("application/json");
    let body = format!("{{\"data\":{{\"received\":true,\"duplicate\":{duplicate}}}}}");
    ([(header::CONTENT_TYPE, json)], Body::from(body)).into_response()
}
