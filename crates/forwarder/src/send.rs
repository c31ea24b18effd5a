//! Step three: sends one request.

use crate::tokens::TokenError;
use crate::transport::{RequestTarget, TransportOutcome};
use crate::{ForwarderState, metrics};
use std::time::Duration;
use tributary_domain::forwarding::Conversion;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_networks::{Account, Judgement, NetworkRequest, Ruling, Secret, encode, judge};
use tributary_store::QueueRef;

/// Sends one integration's requests to its network.
pub(crate) struct NetworkClient<'a> {
    pub(crate) shared: &'a ForwarderState,
    pub(crate) queue: QueueRef,
    /// The integration's revision. The credentials may differ between revisions.
    pub(crate) revision: i64,
    pub(crate) account: &'a Account,
}

/// Outcome of a request, whether or not it could be sent.
pub(crate) struct RequestOutcome {
    pub(crate) judgement: Judgement,
    pub(crate) sent_at: Timestamp,
    pub(crate) duration: Duration,
    /// Access token that was used; it must be redacted from stored text.
    pub(crate) token: Option<Secret>,
}

impl NetworkClient<'_> {
    /// Sends a batch. If the network rejects the token, fetches another token and retries once.
    pub(crate) async fn send(&self, batch: &[Conversion]) -> RequestOutcome {
        let mut stale = None;
        loop {
            let sent_at = self.shared.parts.runtime.now();
            let token = match self.token(stale.as_ref()).await {
                Ok(token) => token,
                Err(none) => {
                    return RequestOutcome {
                        judgement: none.into_judgement(),
                        sent_at,
                        duration: Duration::ZERO,
                        token: None,
                    };
                }
            };
            let secret = token.as_ref().map(Secret::expose);
            let request = encode(self.account, batch, secret);
            let sent = self.transmit(request).await;
            let mut judgement = judge(self.account, batch.len(), &sent.outcome);
            if judgement.ruling == Ruling::TokenRefused {
                if stale.is_none() && token.is_some() {
                    stale = token;
                    continue;
                }
                judgement.ruling = Ruling::Pause;
            }
            metrics::record_request(self.queue.network, label(&judgement.ruling), sent.duration);
            return RequestOutcome {
                judgement,
                sent_at,
                duration: sent.duration,
                token,
            };
        }
    }

    /// Returns the access token, if the network needs one.
    pub(crate) async fn token(&self, stale: Option<&Secret>) -> Result<Option<Secret>, TokenError> {
        let Account::B(account) = self.account else {
            return Ok(None);
        };
        let tokens = &self.shared.tokens;
        let token = tokens.get(self.shared, self.queue, self.revision, account, stale);
        token.await.map(Some)
    }

    pub(crate) async fn transmit(&self, request: NetworkRequest) -> TransportOutcome {
        let network = self.queue.network;
        let projects = &self.shared.pacer;
        let project = self.account.quota_project();
        projects.wait_turn(&self.shared.parts, project).await;
        let service = RequestTarget::Network(network);
        let transport = &self.shared.parts.transport;
        transport
            .send(service, request, network.request_timeout())
            .await
    }
}

const fn label(ruling: &Ruling) -> &'static str {
    match ruling {
        Ruling::Delivered => "delivered",
        Ruling::DeliveredExcept { .. } => "delivered_in_part",
        Ruling::Retry(retry) if retry.throttled => "throttled",
        Ruling::Retry(_) => "retry",
        Ruling::Rejected { .. } | Ruling::InvalidEvent => "rejected",
        Ruling::TooLarge => "too_large",
        Ruling::TokenRefused | Ruling::Pause => "paused",
        Ruling::Unknown => "unknown",
    }
}
