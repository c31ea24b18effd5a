//! Access tokens. No event is sent while one is asked for, so every failure may be tried again.

use super::account::{Account, WayIn};
use crate::answer::{Answer, Outcome};
use crate::json::{integer, text};
use crate::request::{Method, Request};
use crate::secret::Secret;
use crate::text::form;
use std::time::Duration;

/// What a token is good for where the answer does not say.
const GOOD_UNLESS_SAID: Duration = Duration::from_hours(1);

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
        words: Option<String>,
    },
}

/// Asks for an access token, at the base URL of tokens. `now` is in seconds since 1970.
pub fn token_request(account: &Account, now: i64) -> Request {
    let body = match &account.way_in {
        WayIn::RefreshToken {
            client_id,
            client_secret,
            refresh_token,
        } => form(&[
            ("client_id", client_id),
            ("client_secret", client_secret.expose()),
            ("refresh_token", refresh_token.expose()),
            ("grant_type", "refresh_token"),
        ]),
        WayIn::ServiceAccount(account) => form(&[
            ("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer"),
            ("assertion", &account.assertion(now).unwrap_or_default()),
        ]),
    };
    let content_type = "application/x-www-form-urlencoded".to_owned();
    Request {
        method: Method::Post,
        path_and_query: "/token".to_owned(),
        headers: vec![("content-type", content_type)],
        body: body.into_bytes(),
    }
}

/// What came of it.
pub fn judge_token(outcome: &Outcome) -> TokenRuling {
    let answer = match outcome {
        Outcome::Answered(answer) => answer,
        Outcome::NotSent | Outcome::Broken => return TokenRuling::Retry,
    };
    match answer.status {
        200..=299 => token(answer).unwrap_or(TokenRuling::Retry),
        408 | 429 => TokenRuling::Retry,
        400..=499 => refused(answer),
        _ => TokenRuling::Retry,
    }
}

fn token(answer: &Answer) -> Option<TokenRuling> {
    let body = answer.object()?;
    let seconds = integer(&body, "expires_in").and_then(|seconds| u64::try_from(seconds).ok());
    Some(TokenRuling::Token {
        access_token: Secret::new(text(&body, "access_token")?),
        expires_in: seconds.map_or(GOOD_UNLESS_SAID, Duration::from_secs),
    })
}

fn refused(answer: &Answer) -> TokenRuling {
    let body = answer.object().unwrap_or_default();
    let code = text(&body, "error").map_or_else(|| answer.status.to_string(), str::to_owned);
    TokenRuling::Pause {
        code,
        words: text(&body, "error_description").map(str::to_owned),
    }
}
