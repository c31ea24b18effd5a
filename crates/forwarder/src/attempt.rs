//! One request, and what its answer means for the deliveries that it carried.

use crate::clean::{self, Forbidden};
use crate::tokens::NoToken;
use crate::transport::{Sent, Service};
use crate::{Shared, metrics};
use std::time::Duration;
use tributary_domain::forwarding::delivery::ANSWER_CHARS_MAX;
use tributary_domain::forwarding::{Attempt, Conversion, Verdict};
use tributary_domain::integration::Network;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_networks::{Account, Judgement, Request, RetryAfter, Ruling, Secret, encode, judge};
use tributary_store::QueueRef;

/// The way to a network for one integration.
pub(crate) struct Line<'a> {
    pub(crate) shared: &'a Shared,
    pub(crate) queue: QueueRef,
    /// Of the integration: another one has other credentials.
    pub(crate) revision: i64,
    pub(crate) account: &'a Account,
}

/// A request that was made, or could not be.
pub(crate) struct Made {
    pub(crate) judgement: Judgement,
    pub(crate) at: Timestamp,
    pub(crate) took: Duration,
    /// The network's code; the status where it gave none.
    code: String,
    /// To be taken out of whatever is kept.
    token: Option<Secret>,
    /// And this.
    forbidden: Forbidden,
}

/// A judgement without an answer.
pub(crate) const fn unanswered(ruling: Ruling) -> Judgement {
    Judgement {
        ruling,
        status: None,
        code: None,
        words: None,
        trace: None,
        pace: None,
        retry_after: None,
        warning: None,
    }
}

impl Line<'_> {
    /// Sends a batch. A token that the network refuses is replaced once.
    pub(crate) async fn send(&self, batch: &[Conversion]) -> Made {
        let mut stale = None;
        loop {
            let at = self.shared.parts.source.now();
            let token = match self.token(stale.as_ref()).await {
                Ok(token) => token,
                Err(none) => return Made::without_token(none, at, batch),
            };
            let secret = token.as_ref().map(Secret::expose);
            let request = encode(self.account, batch, secret);
            let sent = self.transmit(request).await;
            let mut judgement = judge(self.account, batch.len(), &sent.outcome);
            let is_first = stale.is_none();
            if judgement.ruling == Ruling::TokenRefused {
                if is_first && token.is_some() {
                    stale = token;
                    continue;
                }
                judgement.ruling = Ruling::Pause;
            }
            metrics::request(self.queue.network, label(&judgement.ruling), sent.took);
            return Made {
                code: code_of(&judgement),
                judgement,
                at,
                took: sent.took,
                token,
                forbidden: Forbidden::of(batch),
            };
        }
    }

    /// The access token, where the network wants one.
    pub(crate) async fn token(&self, stale: Option<&Secret>) -> Result<Option<Secret>, NoToken> {
        let Account::B(account) = self.account else {
            return Ok(None);
        };
        let tokens = &self.shared.tokens;
        let token = tokens.get(self.shared, self.queue, self.revision, account, stale);
        token.await.map(Some)
    }

    pub(crate) async fn transmit(&self, request: Request) -> Sent {
        let network = self.queue.network;
        self.shared
            .projects
            .turn(self.account.quota_project())
            .await;
        let transport = &self.shared.parts.transport;
        transport
            .send(
                Service::Network(network),
                request,
                network.request_timeout(),
            )
            .await
    }

    /// The record of an attempt for one delivery: no secret, no personal data.
    pub(crate) fn record(&self, made: &Made, verdict: Verdict) -> Attempt {
        Attempt {
            at: made.at,
            status: made.judgement.status,
            duration_ms: u32::try_from(made.took.as_millis()).unwrap_or(u32::MAX),
            verdict,
            answer: self.answer(made),
            refusal: None,
        }
    }

    /// What the network said, in a line.
    pub(crate) fn answer(&self, made: &Made) -> Option<String> {
        let judgement = &made.judgement;
        let mut parts = Vec::new();
        if let Some(code) = &judgement.code {
            parts.push(format!("[{}]", clean::code(code)));
        }
        parts.extend(judgement.words.clone());
        parts.extend(judgement.warning.clone());
        if let Some(trace) = &judgement.trace {
            parts.push(format!("(trace {trace})"));
        }
        if parts.is_empty() {
            return None;
        }
        let text = parts.join(" ");
        let text = made
            .forbidden
            .clean(self.account, made.token.as_ref(), &text);
        Some(text.chars().take(ANSWER_CHARS_MAX).collect())
    }
}

impl Made {
    fn without_token(none: NoToken, at: Timestamp, batch: &[Conversion]) -> Self {
        let judgement = none.into_judgement();
        Self {
            code: code_of(&judgement),
            judgement,
            at,
            took: Duration::ZERO,
            token: None,
            forbidden: Forbidden::of(batch),
        }
    }

    /// How long the network asked to wait.
    pub(crate) fn asked(&self, now: Timestamp) -> Option<Duration> {
        match self.judgement.retry_after? {
            RetryAfter::Delta(seconds) => Some(Duration::from_secs(seconds)),
            RetryAfter::Date(seconds) => {
                let at = Timestamp::from_millis(seconds.saturating_mul(1_000));
                Some(at.since(now)).filter(|wait| !wait.is_zero())
            }
        }
    }

    /// The network's code; the status where it gave none.
    pub(crate) fn code(&self) -> &str {
        &self.code
    }
}

fn code_of(judgement: &Judgement) -> String {
    let status = || match judgement.status {
        Some(status) => format!("http_{status}"),
        None => "no_answer".to_owned(),
    };
    judgement.code.as_deref().map_or_else(status, clean::code)
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

/// Whether what this account sends is looked at and not kept.
pub(crate) const fn validates_only(account: &Account) -> bool {
    matches!(account.network(), Network::B | Network::D) && account.test_mode()
}
