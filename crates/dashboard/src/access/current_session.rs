//! A signed-in user's session.

use super::cookie;
use crate::failure::Failure;
use crate::state::DashboardHandles;
use axum::Extension;
use axum::extract::{FromRequestParts, OriginalUri};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use tributary_domain::access::factor::FactorState;
use tributary_domain::access::person::User;
use tributary_domain::access::session::SignInMethod;
use tributary_domain::access::session_client::SessionClient;
use tributary_domain::access::{Actor, Authorized, Environment, Scope, authorize_person};
use tributary_domain::audit::{AuditContext, Client};
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::{Organization, UserSession};

/// Header that htmx sends when it requests a fragment.
pub(super) const HX_REQUEST: &str = "hx-request";

/// A signed-in user, before any permission check.
#[derive(Debug, Clone)]
pub(crate) struct CurrentSession {
    pub(crate) user: User,
    pub(crate) organization: Organization,
    pub(crate) token_digest: Digest,
    /// Whether the user has a second factor, and needs one.
    pub(crate) factors: FactorState,
    /// Last proof of who the user is.
    pub(crate) proved_at: Timestamp,
    /// How the user signed in.
    pub(crate) method: SignInMethod,
    client: Option<Client>,
}

impl CurrentSession {
    /// Returns the session of a token if it is valid.
    async fn find(
        digest: Digest,
        handles: &DashboardHandles,
    ) -> Result<Option<UserSession>, Failure> {
        let found = handles.store.session(digest).await?;
        Ok(found.filter(|found| found.session.is_valid(handles.runtime.now())))
    }

    /// Returns the session of a request if it is valid, for pages that need none. It does not count
    /// as a use of the session.
    pub(super) async fn of_headers(
        headers: &HeaderMap,
        handles: &DashboardHandles,
    ) -> Result<Option<Self>, Failure> {
        let Some(token) = cookie::token(headers, handles) else {
            return Ok(None);
        };
        let found = Self::find(token.digest(), handles).await?;
        Ok(found.map(|found| Self {
            user: found.user,
            organization: found.organization,
            token_digest: token.digest(),
            factors: found.factors,
            proved_at: found.session.proved_at,
            method: found.session.method,
            client: None,
        }))
    }

    /// Returns the authorization for scope `S` if the user's role has it.
    pub(crate) fn authorize<S: Scope>(
        &self,
        environment: Environment,
    ) -> Result<Authorized<S>, Failure> {
        authorize_person(&self.user, environment).map_err(|denied| {
            let (role, scope) = (self.user.role.as_str(), S::NAME.as_str());
            tracing::warn!(user = %self.user.id, role, scope, %denied, "access denied");
            Failure::Denied(self.user.role)
        })
    }

    /// Returns the client of the request.
    pub(super) const fn client(&self) -> Option<&Client> {
        self.client.as_ref()
    }

    /// Describes where a request of this session comes from.
    pub(crate) fn session_client(&self, headers: &HeaderMap) -> SessionClient {
        session_client(headers, self.client.as_ref())
    }

    /// Returns the origin of a change by this user, for the audit log.
    pub(crate) fn origin(&self, handles: &DashboardHandles) -> AuditContext {
        change_origin(Actor::User(self.user.id), self.client.as_ref(), handles)
    }
}

/// Describes where a request comes from, for the list of sessions.
pub(crate) fn session_client(headers: &HeaderMap, client: Option<&Client>) -> SessionClient {
    let user_agent = headers.get(header::USER_AGENT);
    let user_agent = user_agent.and_then(|value| value.to_str().ok());
    SessionClient::of(user_agent, client.map(|client| client.address))
}

/// Returns the origin of a change, for the audit log.
pub(crate) fn change_origin(
    actor: Actor,
    client: Option<&Client>,
    handles: &DashboardHandles,
) -> AuditContext {
    let address = client.map(|client| client.address);
    let request_id = client.map(|client| client.request_id.to_string());
    handles.runtime.origin(actor, address, request_id)
}

impl FromRequestParts<DashboardHandles> for CurrentSession {
    type Rejection = Failure;

    async fn from_request_parts(
        parts: &mut Parts,
        handles: &DashboardHandles,
    ) -> Result<Self, Failure> {
        let is_part = parts.headers.contains_key(HX_REQUEST);
        // The full path in the browser; a nested router sees only part of it.
        let OriginalUri(typed) = OriginalUri::from_request_parts(parts, handles)
            .await
            .unwrap_or_else(|never| match never {});
        // The target of a form cannot be opened as a page, so after sign-in the user gets the
        // home page.
        let requested = if parts.method.is_safe() {
            typed.path_and_query().map(ToString::to_string)
        } else {
            Some("/home".to_owned())
        };
        let sign_in = || match &requested {
            Some(requested) if !is_part => Failure::NotSignedIn(requested.clone()),
            _ => Failure::SessionExpired,
        };
        let token = cookie::token(&parts.headers, handles).ok_or_else(sign_in)?;
        let digest = token.digest();
        let found = Self::find(digest, handles).await?.ok_or_else(sign_in)?;
        let client = Option::<Extension<Client>>::from_request_parts(parts, handles).await;
        let client = client.ok().flatten().map(|Extension(client)| client);
        let now = handles.runtime.now();
        if found.session.should_record_use(now) {
            let seen = session_client(&parts.headers, client.as_ref());
            let noted = handles.store.note_session_use(digest, now, seen);
            noted.await?;
        }
        tracing::Span::current().record(
            "organization",
            tracing::field::display(found.organization.id),
        );
        Ok(Self {
            user: found.user,
            organization: found.organization,
            token_digest: digest,
            factors: found.factors,
            proved_at: found.session.proved_at,
            method: found.session.method,
            client,
        })
    }
}
