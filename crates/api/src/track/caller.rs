//! Authenticates the SDK by its key, which ships inside the app and is not secret.

use crate::error::{ApiError, Code};
use crate::geo::GeoLocation;
use crate::metrics;
use crate::read_cache::CachedSdkApp;
use crate::request::{LoggedKey, RequestContext};
use crate::sealing::AppSealer;
use crate::state::ApiState;
use axum::extract::FromRequestParts;
use axum::http::HeaderName;
use axum::http::request::Parts;
use std::net::IpAddr;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Instant;
use tracing::Instrument as _;
use tributary_domain::access::key::{KeyKind, KeyText};
use tributary_domain::app::AppSecret;
use tributary_domain::click::address::ComparableAddress;
use tributary_domain::device::{ClaimProof, ContactHashes, IdentityClaim, UserKey, prove};
use tributary_domain::keyring::seal::SealedSecret;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::SdkApp;

/// Header with the SDK key.
const X_TRIBUTARY_KEY: HeaderName = HeaderName::from_static("x-tributary-key");
/// Query parameter with the SDK key, for `sendBeacon`, which cannot set headers.
const KEY_PARAMETER: &str = "key";

/// The app that an SDK request belongs to.
#[derive(Debug)]
pub(super) struct SdkCaller {
    /// The key's app and environment.
    found: Arc<CachedSdkApp>,
    /// Client address.
    pub(super) address: IpAddr,
    /// Location of the client address.
    pub(super) geo: GeoLocation,
}

impl Deref for SdkCaller {
    type Target = SdkApp;

    fn deref(&self) -> &SdkApp {
        &self.found
    }
}

/// Like [`SdkCaller`], but rejects apps whose SDK is disabled.
#[derive(Debug)]
pub(super) struct EnabledSdkCaller(pub(super) SdkCaller);

impl SdkCaller {
    /// Returns a device's claim of a user, with what the server knows about the caller. A wrong
    /// signature does not reject the call, because an app release with a wrong secret must not lose
    /// its events.
    pub(super) fn claim(
        &self,
        state: &ApiState,
        at: Timestamp,
        user: Option<UserKey>,
        signature: Option<&str>,
    ) -> IdentityClaim {
        let comparable = ComparableAddress::of(self.address, self.geo.is_relay);
        IdentityClaim {
            proof: user.as_ref().map_or(ClaimProof::Unsigned, |user| {
                prove(user, signature, &self.open_identity_secrets(state))
            }),
            user,
            contact_hashes: ContactHashes::default(),
            mode: self.app.sdk.identity,
            address_hash: comparable.map(|address| state.address_hasher().hash(address, at)),
        }
    }

    fn open_identity_secrets(&self, state: &ApiState) -> Vec<String> {
        let sealer = AppSealer::new(state, self.app.organization, self.app.id);
        let open = |sealed: &SealedSecret| {
            let secret = sealer.open_app_secret(AppSecret::Identity, sealed);
            if secret.is_none() {
                tracing::error!(app = %self.app.id, "failed to decrypt identity secret");
            }
            secret
        };
        self.identity_secrets.iter().filter_map(open).collect()
    }
}

impl FromRequestParts<ApiState> for SdkCaller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &ApiState) -> Result<Self, ApiError> {
        let context = parts.extensions.get::<RequestContext>().cloned();
        let context = context.ok_or_else(ApiError::internal)?;
        let address = context.client.address;
        let found = match authenticate(parts, state).await {
            Ok(found) => found,
            Err(error) => {
                if error.code() == Code::InvalidApiKey {
                    state.limits.count_failure(address)?;
                }
                return Err(error);
            }
        };
        let (app, organization) = (found.app.id, found.app.organization);
        context.record_key(LoggedKey::Sdk(app), organization);
        state
            .limits
            .count_sdk_key(app, found.environment, Instant::now())
            .inspect_err(|_| metrics::count_authentication("limited"))?;
        metrics::count_authentication("ok");
        record_key_use(state, &found);
        Ok(Self {
            found,
            address,
            geo: state.geo_location(address, parts),
        })
    }
}

impl FromRequestParts<ApiState> for EnabledSdkCaller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &ApiState) -> Result<Self, ApiError> {
        let caller = SdkCaller::from_request_parts(parts, state).await?;
        if caller.app.runs_sdk() {
            return Ok(Self(caller));
        }
        let message = "The SDK is disabled for this app (sdk.enabled is false, or the app is \
                       archived). Nothing was recorded.";
        Err(ApiError::new(Code::SdkDisabled, message))
    }
}

async fn authenticate(parts: &Parts, state: &ApiState) -> Result<Arc<CachedSdkApp>, ApiError> {
    let invalid = || {
        metrics::count_authentication("invalid");
        let message = "Invalid SDK key: it is mistyped, unknown, replaced by a newer one, or not an \
                       SDK key (pk_…).";
        ApiError::new(Code::InvalidApiKey, message)
    };
    let presented = match parts.headers.get(X_TRIBUTARY_KEY) {
        Some(header) => Some(header.to_str().map_err(|_| invalid())?.trim()),
        None => key_in_query(parts.uri.query().unwrap_or_default()),
    };
    let Some(presented) = presented else {
        metrics::count_authentication("missing");
        let message = "Missing SDK key. Send the header `X-Tributary-Key: pk_live_…`.";
        return Err(ApiError::new(Code::MissingApiKey, message));
    };
    // The checksum rejects mistyped keys without a database lookup.
    let key = KeyText::parse(presented).map_err(|_| invalid())?;
    if key.kind != KeyKind::Sdk {
        return Err(invalid());
    }
    let found = state.read_cache.sdk_app(&state.store, key.reveal()).await?;
    let now = state.runtime.now();
    let found = found.filter(|found| found.key.is_valid(now));
    found.ok_or_else(invalid)
}

/// Records the key's last use in the background.
fn record_key_use(state: &ApiState, found: &CachedSdkApp) {
    let now = state.runtime.now();
    if !found.begin_recording_use(now) {
        return;
    }
    let (store, app, key) = (state.store.clone(), found.app.id, found.key.text.clone());
    let noting = async move {
        if let Err(error) = store.note_sdk_key_use(app, &key, now).await {
            tracing::warn!(%error, "failed to record SDK key use");
        }
    };
    tokio::spawn(noting.in_current_span());
}

/// Returns the key in a query string. Keys need no percent-decoding.
fn key_in_query(query: &str) -> Option<&str> {
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs
        .into_iter()
        .find(|(name, _)| *name == KEY_PARAMETER)
        .map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::alone("key=pk_live_1", Some("pk_live_1"))]
    #[case::among_others("a=b&key=pk_live_1&c", Some("pk_live_1"))]
    #[case::empty("key=", Some(""))]
    #[case::another_name("apikey=pk_live_1", None)]
    #[case::no_value("key", None)]
    #[case::nothing("", None)]
    fn keys_in_queries(#[case] query: &str, #[case] expected: Option<&str>) {
        assert_eq!(key_in_query(query), expected);
    }
}
