//! Authentication and authorization of REST callers. Store methods require the [`Authorized`] value
//! in a [`Caller`], so a handler cannot skip this check.

use crate::error::{ApiError, Code};
use crate::metrics;
use crate::read_cache::CachedKey;
use crate::request::{LoggedKey, RequestContext};
use crate::state::ApiState;
use axum::extract::FromRequestParts;
use axum::http::header;
use axum::http::request::Parts;
use std::net::IpAddr;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Instant;
use tracing::Instrument as _;
use tributary_domain::access::admission::SlotHolder;
use tributary_domain::access::key::{KeyKind, KeyText};
use tributary_domain::access::{AccessDenied, Authorized, Scope, authorize};
use tributary_domain::audit::{AuditContext, Client};
use tributary_domain::vocabulary::subnet::address_range;
use tributary_store::ChangeNote;
use tributary_store::report_slots::{ReportSlot, SlotKind};

/// A caller whose valid private key has a permission that includes scope `S`.
#[derive(Debug)]
pub(crate) struct Caller<S> {
    /// Proof of permission that store methods require.
    pub(crate) authorized: Authorized<S>,
    client: Client,
    /// Set if the request may change something.
    _change: Option<ChangeNote>,
}

impl<S> Caller<S> {
    /// Returns the data for the audit log entry of a change that this caller makes now: actor,
    /// client address, request id and time.
    pub(crate) fn origin(&self, state: &ApiState) -> AuditContext {
        origin(state, &self.authorized, self.client)
    }
}

/// Returns the data for an audit log entry: actor, client address, request id and time.
fn origin<S>(state: &ApiState, authorized: &Authorized<S>, client: Client) -> AuditContext {
    let origin = state.runtime.origin(
        authorized.actor().clone(),
        Some(client.address),
        Some(client.request_id.to_string()),
    );
    AuditContext {
        environment: authorized.environment(),
        ..origin
    }
}

impl<S: Scope> FromRequestParts<ApiState> for Caller<S> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &ApiState) -> Result<Self, ApiError> {
        let context = parts
            .extensions
            .get::<RequestContext>()
            .cloned()
            .ok_or_else(ApiError::internal)?;
        let key = match authenticate(parts, state).await {
            Ok(key) => key,
            Err(error) => {
                if error.code() == Code::InvalidApiKey {
                    state.limits.count_failure(context.client.address)?;
                }
                return Err(error);
            }
        };
        context.record_key(LoggedKey::Private(key.id), key.organization);
        let address = context.client.address;
        let authorized = authorize::<S>(&key, address).inspect_err(|denied| {
            metrics::count_authentication(match denied {
                AccessDenied::AddressNotAllowed => "wrong_address",
                AccessDenied::InsufficientPermission | AccessDenied::LiveOnly => "denied",
            });
            let scope = S::NAME.as_str();
            tracing::warn!(key = %key.id, scope, %denied, "permission denied");
        });
        if let Err(denied @ AccessDenied::AddressNotAllowed) = authorized {
            // Counted for the address and not for the key, so that a stolen key cannot use up the
            // limit of its owner's programs.
            state.limits.count_failure(address)?;
            return Err(denied.into());
        }
        state
            .limits
            .count_key(key.id, Instant::now())
            .inspect_err(|_| metrics::count_authentication("limited"))?;
        record_key_use(state, &key, address);
        let authorized = authorized.map_err(|denied| match denied {
            AccessDenied::InsufficientPermission => ApiError::new(
                Code::InsufficientPermission,
                format!(
                    "This request requires the scope {}; the key's permission is {}.",
                    S::NAME.as_str(),
                    key.permission.as_str()
                ),
            ),
            AccessDenied::LiveOnly | AccessDenied::AddressNotAllowed => denied.into(),
        })?;
        metrics::count_authentication("ok");
        let actor = authorized.actor();
        let change =
            (!parts.method.is_safe()).then(|| ChangeNote::new(state.store.clone(), actor.clone()));
        Ok(Self {
            authorized,
            client: context.client,
            _change: change,
        })
    }
}

/// A caller with a slot for a report. Every handler that reads many rows takes one; the slot is
/// freed when the handler ends.
#[derive(Debug)]
pub(crate) struct ReportCaller<S> {
    caller: Caller<S>,
    _slot: ReportSlot,
}

impl<S> Deref for ReportCaller<S> {
    type Target = Caller<S>;

    fn deref(&self) -> &Caller<S> {
        &self.caller
    }
}

impl<S: Scope> FromRequestParts<ApiState> for ReportCaller<S> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &ApiState) -> Result<Self, ApiError> {
        let caller = Caller::from_request_parts(parts, state).await?;
        let holder = SlotHolder::from(&caller.authorized);
        let slot = state.report_slots.admit(SlotKind::Report, holder).await?;
        Ok(Self {
            caller,
            _slot: slot,
        })
    }
}

/// A caller with a slot for an export. The slot belongs to the streamed body, which outlives the
/// handler.
#[derive(Debug)]
pub(crate) struct ExportCaller<S> {
    /// Proof of permission that store methods require.
    pub(crate) authorized: Authorized<S>,
    /// Keep it until the last byte is sent.
    pub(crate) slot: ReportSlot,
    client: Client,
}

impl<S> ExportCaller<S> {
    /// Returns the data for the audit log entry of an export that begins now.
    pub(crate) fn origin(&self, state: &ApiState) -> AuditContext {
        origin(state, &self.authorized, self.client)
    }
}

impl<S: Scope> FromRequestParts<ApiState> for ExportCaller<S> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &ApiState) -> Result<Self, ApiError> {
        let caller = Caller::from_request_parts(parts, state).await?;
        let holder = SlotHolder::from(&caller.authorized);
        let slot = state.report_slots.admit(SlotKind::Export, holder).await?;
        Ok(Self {
            client: caller.client,
            authorized: caller.authorized,
            slot,
        })
    }
}

async fn authenticate(parts: &Parts, state: &ApiState) -> Result<Arc<CachedKey>, ApiError> {
    let Some(header) = parts.headers.get(header::AUTHORIZATION) else {
        metrics::count_authentication("missing");
        return Err(ApiError::new(
            Code::MissingApiKey,
            "Missing API key. Send the header `Authorization: Bearer ak_live_…`.",
        ));
    };
    let invalid = || {
        metrics::count_authentication("invalid");
        ApiError::new(
            Code::InvalidApiKey,
            "Invalid API key: it is mistyped, unknown, revoked or expired.",
        )
    };
    let presented = header
        .to_str()
        .ok()
        .and_then(bearer_credentials)
        .ok_or_else(|| {
            metrics::count_authentication("invalid");
            ApiError::new(
                Code::InvalidApiKey,
                "The Authorization header must be `Bearer`, a space and the API key.",
            )
        })?;
    // The checksum rejects mistyped keys without a database lookup.
    let presented = KeyText::parse(presented).map_err(|_| invalid())?;
    match presented.kind {
        KeyKind::Private => {}
        KeyKind::Sdk => {
            return Err(ApiError::new(
                Code::PrivateKeyRequired,
                "This endpoint requires a private key (ak_…), not an SDK key (pk_…).",
            ));
        }
        KeyKind::Setup | KeyKind::Session | KeyKind::Share | KeyKind::Reset => {
            return Err(invalid());
        }
    }
    let found = state
        .read_cache
        .key(&state.store, presented.digest())
        .await?;
    found
        .filter(|key| key.is_valid(state.runtime.now()))
        .ok_or_else(invalid)
}

/// Returns the credentials of a Bearer header. The scheme name is case-insensitive.
fn bearer_credentials(header: &str) -> Option<&str> {
    let (scheme, credentials) = header.split_once(' ')?;
    scheme
        .eq_ignore_ascii_case("bearer")
        .then(|| credentials.trim())
}

/// Records the key's last use, and the range of the address, in the background.
fn record_key_use(state: &ApiState, key: &CachedKey, address: IpAddr) {
    let now = state.runtime.now();
    if !key.begin_recording_use(now) {
        return;
    }
    let (store, key, range) = (state.store.clone(), key.id, address_range(address));
    let noting = async move {
        if let Err(error) = store.note_key_use(key, now, range).await {
            tracing::warn!(%error, "failed to record key use");
        }
    };
    tokio::spawn(noting.in_current_span());
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("Bearer abc", Some("abc"))]
    #[case("bearer abc", Some("abc"))]
    #[case("Bearer  abc ", Some("abc"))]
    #[case("Basic abc", None)]
    #[case("abc", None)]
    #[case("", None)]
    fn credentials(#[case] header: &str, #[case] expected: Option<&str>) {
        assert_eq!(bearer_credentials(header), expected);
    }
}
