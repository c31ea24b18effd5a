//! Which app calls: the SDK's key, which ships inside the app and is no secret.

use crate::error::{ApiError, Code};
use crate::geo::GeoLocation;
use crate::metrics;
use crate::request::RequestContext;
use crate::state::ApiState;
use axum::extract::FromRequestParts;
use axum::http::HeaderName;
use axum::http::request::Parts;
use std::net::IpAddr;
use tributary_domain::access::Environment;
use tributary_domain::access::key::{KeyKind, KeyText};
use tributary_domain::app::App;
use tributary_domain::keyring::seal::SealedSecret;
use tributary_store::SdkApp;

/// Where the SDK puts its key.
const X_TRIBUTARY_KEY: HeaderName = HeaderName::from_static("x-tributary-key");
/// Where `sendBeacon`, which sends no headers of its own, puts it.
const KEY_PARAMETER: &str = "key";

/// An app whose SDK calls.
#[derive(Debug)]
pub(super) struct SdkCaller {
    /// The app that the key names.
    pub(super) app: App,
    /// Live or test, as the key says.
    pub(super) environment: Environment,
    /// Decrypts the social network's referrer, where it is set.
    pub(super) social_referrer_key: Option<SealedSecret>,
    /// Where the call comes from.
    pub(super) address: IpAddr,
    /// Where that is.
    pub(super) geo: GeoLocation,
}

/// An app whose SDK calls and has not been told to stop.
#[derive(Debug)]
pub(super) struct EnabledSdkCaller(pub(super) SdkCaller);

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
        context.record_key(app, organization);
        state
            .limits
            .count_sdk_key(app, found.environment)
            .inspect_err(|_| metrics::count_authentication("limited"))?;
        metrics::count_authentication("ok");
        Ok(Self {
            app: found.app,
            environment: found.environment,
            social_referrer_key: found.social_referrer_key,
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
        let message = "The SDK is switched off for this app (sdk.enabled is false, or the app is archived); nothing was recorded.";
        Err(ApiError::new(Code::SdkDisabled, message))
    }
}

async fn authenticate(parts: &Parts, state: &ApiState) -> Result<SdkApp, ApiError> {
    let invalid = || {
        metrics::count_authentication("invalid");
        let message =
            "This is no valid SDK key: it is mistyped, unknown, or not one of the SDK's (pk_…).";
        ApiError::new(Code::InvalidApiKey, message)
    };
    let presented = match parts.headers.get(X_TRIBUTARY_KEY) {
        Some(header) => Some(header.to_str().map_err(|_| invalid())?.trim()),
        None => key_in_query(parts.uri.query().unwrap_or_default()),
    };
    let Some(presented) = presented else {
        metrics::count_authentication("missing");
        let message =
            "Send the app's SDK key: the header X-Tributary-Key with the value pk_live_….";
        return Err(ApiError::new(Code::MissingApiKey, message));
    };
    // A wrong checksum costs no look-up.
    let key = KeyText::parse(presented).map_err(|_| invalid())?;
    if key.kind != KeyKind::Sdk {
        return Err(invalid());
    }
    let found = state.store.sdk_app(key.reveal()).await?;
    found.ok_or_else(invalid)
}

/// The key in a query. Its letters need no decoding.
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
