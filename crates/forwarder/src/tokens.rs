//! Cache for Google Ads (`network_b`) access tokens.

use crate::ForwarderState;
use crate::transport::RequestTarget;
use std::collections::HashMap;
use std::sync::{Arc, Mutex as SyncMutex, PoisonError};
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::Instant;
use tributary_domain::integration::Network;
use tributary_networks::network_b::{self, TokenRuling, judge_token, token_request};
use tributary_networks::{Judgement, Ruling, Secret};
use tributary_store::QueueRef;

/// Tokens are not used in their last minute.
const EXPIRY_MARGIN: Duration = Duration::from_mins(1);

/// A token and its expiry.
struct Token {
    revision: i64,
    secret: Secret,
    until: Instant,
}

type Slot = Arc<Mutex<Option<Token>>>;

/// Cached tokens, one per integration. Concurrent callers wait for a token that is being fetched.
#[derive(Default)]
pub(crate) struct TokenCache {
    slots: SyncMutex<HashMap<QueueRef, Slot>>,
}

/// Reason why there is no token.
pub(crate) enum TokenError {
    /// Temporary failure.
    Retry,
    /// The credentials are wrong.
    Refused {
        /// The network's code.
        code: String,
        /// The network's message.
        message: Option<String>,
    },
}

impl TokenError {
    /// Converts the error to the classification of a request that could not be sent.
    pub(crate) fn into_judgement(self) -> Judgement {
        match self {
            Self::Retry => Judgement::of(Ruling::retry()),
            Self::Refused { code, message } => Judgement {
                code: Some(code),
                message,
                ..Judgement::of(Ruling::Pause)
            },
        }
    }
}

impl TokenCache {
    fn slot(&self, queue: QueueRef) -> Slot {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        slots.entry(queue).or_default().clone()
    }

    /// Returns a token for these credentials. `stale` is a token that the network rejected.
    pub(crate) async fn get(
        &self,
        shared: &ForwarderState,
        queue: QueueRef,
        revision: i64,
        account: &network_b::GoogleAdsAccount,
        stale: Option<&Secret>,
    ) -> Result<Secret, TokenError> {
        let slot = self.slot(queue);
        let mut cached = slot.lock().await;
        let usable = cached.as_ref().filter(|token| {
            token.revision == revision
                && token.until > Instant::now()
                && Some(&token.secret) != stale
        });
        if let Some(token) = usable {
            return Ok(token.secret.clone());
        }
        *cached = None;
        let now = shared.parts.runtime.now().as_millis().div_euclid(1_000);
        let request = token_request(account, now);
        let timeout = Network::B.request_timeout();
        let sent = shared
            .parts
            .transport
            .send(RequestTarget::TokenEndpoint, request, timeout)
            .await;
        match judge_token(&sent.outcome) {
            TokenRuling::Token {
                access_token,
                expires_in,
            } => {
                *cached = Some(Token {
                    revision,
                    secret: access_token.clone(),
                    until: Instant::now() + expires_in.saturating_sub(EXPIRY_MARGIN),
                });
                Ok(access_token)
            }
            TokenRuling::Retry => Err(TokenError::Retry),
            TokenRuling::Pause { code, message } => Err(TokenError::Refused { code, message }),
        }
    }
}
