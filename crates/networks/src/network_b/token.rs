//! Access tokens. No event is sent while one is asked for, so every failure may be tried again.

use super::account::{GoogleAdsAccount, TokenGrant};
use crate::json::{integer, text};
use crate::request::{NetworkRequest, RequestMethod};
use crate::response::{NetworkResponse, SendOutcome};
use crate::secret::Secret;
use crate::text::form_encode;
use std::time::Duration;

/// What a token is good for where the answer does not say.
const DEFAULT_LIFETIME: Duration = Duration::from_hours(1);

/// What came of asking for a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenRuling {
    /// Here it is.
    Token {
        /// The token.
        access_token: Secret,
        /// How long it is good. It is not to be used in its last minute.
        expires_in: Duration,
    },
    /// Ask again later.
    Retry,
    /// The credentials are wrong, or were taken back.
    Pause {
        /// The network's code.
        code: String,
        /// The network's words.
        message: Option<String>,
    },
}

/// Asks for an access token, at the base URL of tokens. `now` is in seconds since 1970.
pub fn token_request(account: &GoogleAdsAccount, now: i64) -> NetworkRequest {
    let body = match &account.grant {
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
            ("assertion", &account.assertion(now).unwrap_or_default()),
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

/// What came of it.
pub fn judge_token(outcome: &SendOutcome) -> TokenRuling {
    let answer = match outcome {
        SendOutcome::Response(answer) => answer,
        SendOutcome::NotSent | SendOutcome::Interrupted => return TokenRuling::Retry,
    };
    match answer.status {
        200..=299 => token(answer).unwrap_or(TokenRuling::Retry),
        408 | 429 => TokenRuling::Retry,
        400..=499 => refused(answer),
        _ => TokenRuling::Retry,
    }
}

fn token(answer: &NetworkResponse) -> Option<TokenRuling> {
    let body = answer.object()?;
    let seconds = integer(&body, "expires_in").and_then(|seconds| u64::try_from(seconds).ok());
    Some(TokenRuling::Token {
        access_token: Secret::new(text(&body, "access_token")?),
        expires_in: seconds.map_or(DEFAULT_LIFETIME, Duration::from_secs),
    })
}

fn refused(answer: &NetworkResponse) -> TokenRuling {
    let body = answer.object().unwrap_or_default();
    let code = text(&body, "error").map_or_else(|| answer.status.to_string(), str::to_owned);
    TokenRuling::Pause {
        code,
        message: text(&body, "error_description").map(str::to_owned),
    }
}
