//! Redeems the tokens that devices sent, at Apple's.
//!
//! The device was answered long ago; its next `configure` returns what came of it. A token is leased before
//! it is redeemed, so that no two nodes ask about the same one, and comes back by itself when the lease is
//! over: whatever happens here, Apple is asked again or the token grows too old. What is to be made of an
//! answer is the domain's to say.
//!
//! Neither the token nor the device nor Apple's answer is ever logged.

mod response;
#[cfg(test)]
mod tests;

use super::periodic::{Worker, WorkerActivity};
use crate::metrics;
use crate::outbound::{self, AddressPolicy, Outbound, OutboundError};
use reqwest::header::CONTENT_TYPE;
use reqwest::{Method, StatusCode};
use response::RESPONSE_BYTES_MAX;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tracing::Instrument as _;
use tributary_domain::attribution::ad_services::{
    AdServices, AdServicesResponse, RedemptionOutcome, TOKEN_LIFE, judge,
};
use tributary_domain::runtime::Runtime;
use tributary_store::{Devices, LeasedToken, StoreResult, TokenOutcome};
use url::Url;

/// For one request. Apple may hold one for a second before it says that it knows nothing yet.
const REQUEST_MAX: Duration = Duration::from_secs(5);
/// Tokens that are leased at a time.
const BATCH: u32 = 64;
/// Requests under way at a time.
const CONCURRENCY: u32 = 16;
/// How long a token is one worker's.
const LEASE: Duration = Duration::from_mins(1);

// A lease that ends before the last request of its batch would let two nodes redeem one token. Half of it is
// left for the database.
const _: () = assert!(REQUEST_MAX.as_secs() * (BATCH / CONCURRENCY) as u64 * 2 < LEASE.as_secs());

/// Redeems tokens.
pub(super) struct AdServicesWorker {
    redeemer: Arc<Redeemer>,
}

/// What each request needs.
struct Redeemer {
    store: Arc<dyn Devices>,
    runtime: Runtime,
    outbound: Outbound,
    url: Url,
}

/// What came of one token.
struct RedemptionAttempt {
    /// How it is counted.
    label: &'static str,
    /// Why Apple gave no answer that could be used.
    failure: Option<String>,
}

impl AdServicesWorker {
    pub(super) fn new(
        store: Arc<dyn Devices>,
        source: Runtime,
        base_url: &Url,
        reach: AddressPolicy,
    ) -> anyhow::Result<Self> {
        let base = base_url.as_str().trim_end_matches('/');
        let redeemer = Redeemer {
            store,
            runtime: source,
            outbound: Outbound::new(reach, REQUEST_MAX)?,
            url: Url::parse(&format!("{base}/api/v1/"))?,
        };
        Ok(Self {
            redeemer: Arc::new(redeemer),
        })
    }

    async fn lease(&self) -> StoreResult<Vec<LeasedToken>> {
        let Redeemer {
            store,
            runtime: source,
            ..
        } = &*self.redeemer;
        let now = source.now();
        store
            .lease_ad_services_tokens(now, now.plus(LEASE), BATCH)
            .await
    }

    /// Redeems a batch, so many at a time. Dropped, it drops the requests that are under way.
    async fn redeem_all(&self, tokens: Vec<LeasedToken>) -> anyhow::Result<Vec<RedemptionAttempt>> {
        let mut waiting = tokens.into_iter();
        let mut running = JoinSet::new();
        let mut attempts = Vec::new();
        for token in waiting.by_ref().take(CONCURRENCY as usize) {
            running.spawn(self.redeemer.clone().redeem(token).in_current_span());
        }
        while let Some(ended) = running.join_next().await {
            let attempt = ended??;
            metrics::record_ad_services_attempt(attempt.label);
            attempts.push(attempt);
            if let Some(token) = waiting.next() {
                running.spawn(self.redeemer.clone().redeem(token).in_current_span());
            }
        }
        Ok(attempts)
    }
}

impl Worker for AdServicesWorker {
    const NAME: &'static str = "ad_services";
    /// Apps ask again within seconds, and the record is there after seconds.
    const PERIOD: Duration = Duration::from_secs(1);

    async fn run_once(&mut self) -> anyhow::Result<WorkerActivity> {
        let mut attempts = Vec::new();
        loop {
            let tokens = self.lease().await?;
            let is_last = tokens.len() < BATCH as usize;
            attempts.extend(self.redeem_all(tokens).await?);
            if is_last {
                break;
            }
        }
        let failures: Vec<&String> = attempts
            .iter()
            .filter_map(|one| one.failure.as_ref())
            .collect();
        match (failures.first(), attempts.len()) {
            (Some(first), all) => anyhow::bail!(
                "{} of {all} AdServices tokens could not be redeemed: {first}",
                failures.len()
            ),
            (None, 0) => Ok(WorkerActivity::Idle),
            (None, _) => Ok(WorkerActivity::Done),
        }
    }
}

impl Redeemer {
    /// Asks Apple about a token and settles it.
    async fn redeem(self: Arc<Self>, lease: LeasedToken) -> StoreResult<RedemptionAttempt> {
        let age = self.runtime.now().since(lease.received_at);
        // A token that is too old is not worth a question: Apple would say that it knows nothing.
        let asked = if age < TOKEN_LIFE {
            Some(self.query_apple(&lease.token).await)
        } else {
            None
        };
        let (status, answer, failure) = match asked {
            None => (None, None, None),
            Some(Ok((status, answer))) => {
                let failure = failure_message(status, answer.is_some());
                (Some(status), answer, failure)
            }
            Some(Err(error)) => (None, None, Some(error.to_string())),
        };
        let verdict = judge(status, answer, lease.attempts.saturating_add(1), age);
        let label = metric_label(status, &verdict);
        let now = self.runtime.now();
        let outcome = match verdict {
            RedemptionOutcome::Final(word) => TokenOutcome::Final(word),
            RedemptionOutcome::RetryAfter(wait) => TokenOutcome::RetryAt(now.plus(wait)),
        };
        let was_ours = self
            .store
            .settle_ad_services_token(lease, outcome, now)
            .await?;
        let label = if was_ours { label } else { "lost" };
        Ok(RedemptionAttempt { label, failure })
    }

    /// The status of Apple's answer, and what it says where that can be read.
    async fn query_apple(
        &self,
        token: &str,
    ) -> Result<(u16, Option<AdServicesResponse>), OutboundError> {
        let request = self
            .outbound
            .request(Method::POST, &self.url)
            .header(CONTENT_TYPE, "text/plain")
            .body(token.to_owned());
        let answer = self.outbound.send(request).await?;
        let status = answer.status();
        // What comes with a refusal says nothing that its status does not say.
        if status != StatusCode::OK {
            return Ok((status.as_u16(), None));
        }
        let content = outbound::read_body(answer, RESPONSE_BYTES_MAX).await?;
        Ok((status.as_u16(), response::read(&content)))
    }
}

/// What an operator should hear of: 400 and 404 are ordinary answers, anything else is trouble.
fn failure_message(status: u16, is_readable: bool) -> Option<String> {
    match (status, is_readable) {
        (200, true) | (400 | 404, _) => None,
        (200, false) => Some("the answer cannot be read".to_owned()),
        _ => Some(format!("the answer has status {status}")),
    }
}

fn metric_label(status: Option<u16>, verdict: &RedemptionOutcome) -> &'static str {
    match (verdict, status) {
        (RedemptionOutcome::Final(AdServices::Tap(_) | AdServices::View(_)), _) => "attributed",
        (RedemptionOutcome::Final(AdServices::Invalid), _) => "invalid",
        (RedemptionOutcome::Final(AdServices::Expired), _) => "expired",
        (RedemptionOutcome::Final(_), _) => "not_attributed",
        (RedemptionOutcome::RetryAfter(_), Some(404)) => "not_ready",
        (RedemptionOutcome::RetryAfter(_), _) => "failed",
    }
}
