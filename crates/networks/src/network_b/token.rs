//! Access tokens. A token request contains no events, so it can safely be repeated after any
//! failure.

use super::account::{GoogleAdsAccount, TokenGrant};
use crate::json::{integer, text};
use crate::request::{NetworkRequest, RequestMethod};
use crate::response::{NetworkResponse, SendOutcome};
use crate::secret::Secret;
use crate::text::form_encode;
use std::time::Duration;

/// OAuth scope for conversions.
pub(super) const SCOPE: &str = "https://www.googleapis.com/auth/datamanager";
/// Lifetime of a token if the response does not state one.
const DEFAULT_LIFETIME: Duration = Duration::from_hours(1);

/// Outcome of a token request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenRuling {
    /// A token was issued.
    Token {
        /// The access token.
        access_token: Secret,
        /// Lifetime. Do not use the token in its last minute.
        expires_in: Duration,
    },
    /// Temporary failure.
    Retry,
    /// The credentials are wrong or were revoked.
    Pause {
        /// The network's code.
        code: String,
        /// The network's message.
        message: Option<String>,
    },
}

/// Returns a request for an access token, relative to the token endpoint. `now` is in Unix seconds.
pub fn token_request(account: &GoogleAdsAccount, now: i64) -> NetworkRequest {
    grant_request(&account.grant, SCOPE, now)
}

/// Returns a request for an access token. A refresh token keeps the scope that its user agreed to.
pub(super) fn grant_request(grant: &TokenGrant, scope: &str, now: i64) -> NetworkRequest {
    let body = match grant {
        TokenGrant::RefreshToken {
            client_id,
            client_secret,
            refresh_token,
        } => form_encode(&[
            ("client_id", client_id),
            ("client_secret", client_secret.expose()),
            ("refresh_token", refresh_token.expose()),
            ("grant_type", "refresh_token"),
        ]),
        TokenGrant::ServiceAccount(account) => form_encode(&[
            ("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer"),
            (
                "assertion",
                &account.assertion(scope, now).unwrap_or_default(),
            ),
        ]),
    };
    let content_type = "application/x-www-form-urlencoded".to_owned();
    NetworkRequest {
        method: RequestMethod::Post,
        path_and_query: "/token".to_owned(),
        headers: vec![("content-type", content_type)],
        body: body.into_bytes(),
    }
}

/// Classifies the response to a token request.
pub fn judge_token(outcome: &SendOutcome) -> TokenRuling {
    let response = match outcome {
        SendOutcome::Response(response) => response,
        SendOutcome::NotSent | SendOutcome::Interrupted => return TokenRuling::Retry,
    };
    match response.status {
        200..=299 => token(response).unwrap_or(TokenRuling::Retry),
        408 | 429 => TokenRuling::Retry,
        400..=499 => refused(response),
        _ => TokenRuling::Retry,
    }
}

fn token(response: &NetworkResponse) -> Option<TokenRuling> {
    let body = response.object()?;
    let seconds = integer(&body, "expires_in").and_then(|seconds| u64::try_from(seconds).ok());
    Some(TokenRuling::Token {
        access_token: Secret::new(text(&body, "access_token")?),
        expires_in: seconds.map_or(DEFAULT_LIFETIME, Duration::from_secs),
    })
}

fn refused(response: &NetworkResponse) -> TokenRuling {
    let body = response.object().unwrap_or_default();
    let code = text(&body, "error").map_or_else(|| response.status.to_string(), str::to_owned);
    TokenRuling::Pause {
        code,
        message: text(&body, "error_description").map(str::to_owned),
    }
}
