//! The access tokens of `network_b`: fetched once, used until shortly before their end.

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

/// A token is not used in the last minute of its life.
const EXPIRY_MARGIN: Duration = Duration::from_mins(1);

/// A token, and until when.
struct Token {
    revision: i64,
    secret: Secret,
    until: Instant,
}

type Slot = Arc<Mutex<Option<Token>>>;

/// The tokens of this process, one an integration. Whoever asks while one is being fetched waits for it.
#[derive(Default)]
pub(crate) struct TokenCache {
    slots: SyncMutex<HashMap<QueueRef, Slot>>,
}

/// Why there is no token.
pub(crate) enum TokenError {
    /// Ask again later.
    Retry,
    /// The credentials are wrong.
    Refused {
        /// The network's code.
        code: String,
        /// The network's words.
        message: Option<String>,
    },
}

impl TokenError {
    /// As if the network itself had said it.
    pub(crate) fn into_judgement(self) -> Judgement {
        match self {
            Self::Retry => Judgement::of(Ruling::retry()),
            Self::Refused {
                code,
                message: words,
            } => Judgement {
                code: Some(code),
                message: words,
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

    /// A token for these credentials; `stale` is one that the network refused.
    pub(crate) async fn get(
        &self,
        shared: &ForwarderState,
        queue: QueueRef,
        revision: i64,
        account: &network_b::GoogleAdsAccount,
        stale: Option<&Secret>,
    ) -> Result<Secret, TokenError> {
        let slot = self.slot(queue);
        let mut held = slot.lock().await;
        let usable = held.as_ref().filter(|token| {
            token.revision == revision
                && token.until > Instant::now()
                && Some(&token.secret) != stale
        });
        if let Some(token) = usable {
            return Ok(token.secret.clone());
        }
        *held = None;
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
                *held = Some(Token {
                    revision,
                    secret: access_token.clone(),
                    until: Instant::now() + expires_in.saturating_sub(EXPIRY_MARGIN),
                });
                Ok(access_token)
            }
            TokenRuling::Retry => Err(TokenError::Retry),
            TokenRuling::Pause {
                code,
                message: words,
            } => Err(TokenError::Refused {
                code,
                message: words,
            }),
        }
    }
}
