//! `POST /token`: access tokens in exchange for refresh tokens or service account assertions.

use super::{grants, responses};
use crate::clock::SECOND;
use crate::ledger::RecordedBody;
use crate::network::{Endpoint, SimulatedNetwork};
use crate::reply::SimulatedOutcome;
use crate::request_pipeline::{self, EndpointHandler, ReceivedRequest, RequestRoute};
use crate::state::SimulatorState;
use axum::extract::{Request, State as Shared};
use axum::response::Response;
use std::collections::HashMap;
use std::sync::Arc;
use url::form_urlencoded;

/// Required OAuth scope.
pub(super) const SCOPE: &str = "https://www.googleapis.com/auth/datamanager";
/// OAuth scope of the Google Ads API.
pub(crate) const ADS_SCOPE: &str = "https://www.googleapis.com/auth/adwords";
/// Lifetime of a token in seconds.
pub(super) const LIFETIME: i64 = 3_599;
/// Maximum number of tokens. Expired tokens are dropped first; if there are none, all are dropped.
const TOKENS_MAX: usize = 10_000;

const HANDLER: EndpointHandler = EndpointHandler {
    account_of,
    process,
    expired: |_| responses::invalid_grant("Token has been expired or revoked."),
};

/// A token's owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TokenHolder {
    Client(String),
    Service(String),
}

#[derive(Debug, Clone)]
pub(super) struct Token {
    pub(super) holder: TokenHolder,
    pub(super) scope: String,
    expires: i64,
}

impl Token {
    pub(super) fn has_scope(&self) -> bool {
        self.scope.split(' ').any(|one| one == SCOPE)
    }
}

/// Valid tokens.
#[derive(Debug, Default)]
pub(crate) struct IssuedTokens {
    issued: HashMap<String, Token>,
}

impl IssuedTokens {
    /// Invalidates all tokens issued so far.
    pub(crate) fn expire_all(&mut self) {
        self.issued.clear();
    }

    /// Returns whether a valid token has a scope; `None` without a valid token.
    pub(crate) fn has_scope(&self, token: &str, scope: &str, now: i64) -> Option<bool> {
        let token = self.find(token, now)?;
        Some(token.scope.split(' ').any(|one| one == scope))
    }

    pub(super) fn find(&self, token: &str, now: i64) -> Option<&Token> {
        self.issued.get(token).filter(|one| one.expires > now)
    }

    pub(super) fn keep(&mut self, text: String, holder: TokenHolder, scope: String, now: i64) {
        if self.issued.len() >= TOKENS_MAX {
            self.issued.retain(|_, one| one.expires > now);
        }
        if self.issued.len() >= TOKENS_MAX {
            self.issued.clear();
        }
        let expires = now + LIFETIME * SECOND;
        let token = Token {
            holder,
            scope,
            expires,
        };
        self.issued.insert(text, token);
    }
}

/// Handles `POST /token`.
pub(crate) async fn issue(
    Shared(world): Shared<Arc<SimulatorState>>,
    request: Request,
) -> Response {
    let route = RequestRoute {
        network: SimulatedNetwork::NetworkB,
        endpoint: Endpoint::Token,
        account: None,
    };
    request_pipeline::handle(&world, route, &HANDLER, request).await
}

/// Returns the client id, by which faults target this endpoint.
fn account_of(received: &ReceivedRequest) -> Option<String> {
    let mut pairs = form_urlencoded::parse(&received.body);
    let found = pairs.find(|(name, _)| name == "client_id");
    found.map(|(_, value)| value.into_owned())
}

fn process(world: &SimulatorState, received: &mut ReceivedRequest) -> SimulatedOutcome {
    if received.content_type() != "application/x-www-form-urlencoded" {
        return responses::token_error("invalid_request", "The body must be form-encoded.");
    }
    let pairs: Vec<(String, String)> = form_urlencoded::parse(&received.body)
        .into_owned()
        .collect();
    received.recorded_body = Some(RecordedBody::form(&pairs));
    let own_address = received
        .header("host")
        .map(|host| format!("http://{host}/token"));
    let form = grants::TokenForm {
        pairs: &pairs,
        own_address,
    };
    let granted = {
        let state = world.state();
        grants::grant(&form, &state.registry.b, world.options.open, received.now)
    };
    let granted = match granted {
        Ok(granted) => granted,
        Err(refused) => return refused,
    };
    let text = format!("ya29.a0{}", world.fresh_hex());
    let outcome = responses::token(&text, &granted.scope, granted.refresh_token.as_deref());
    let grants::TokenGrantResult { holder, scope, .. } = granted;
    world.state().tokens.keep(text, holder, scope, received.now);
    outcome
}
