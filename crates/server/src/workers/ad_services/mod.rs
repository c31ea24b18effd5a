//! Redeems devices' AdServices tokens at Apple's API.
//!
//! A token is redeemed after the `configure` call that sent it has finished; the device's next
//! `configure` call returns the result. A token is leased before it is redeemed, so that two nodes
//! never redeem the same token. If anything fails, the lease expires and the token is retried until
//! it is too old. The domain crate decides what a response means.
//!
//! Tokens, devices and Apple's responses are never logged.

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
use tributary_domain::due_work::WorkKind;
use tributary_domain::runtime::Runtime;
use tributary_store::{Devices, LeasedToken, StoreResult, TokenOutcome};
use url::Url;

/// Timeout for one request. Apple may take a second to respond that a record is not ready.
const REQUEST_MAX: Duration = Duration::from_secs(5);
/// Tokens leased at a time.
const BATCH: u32 = 64;
/// Concurrent requests.
const CONCURRENCY: u32 = 16;
/// Longest time for the requests of a batch.
const BATCH_MAX: Duration =
    Duration::from_secs(REQUEST_MAX.as_secs() * (BATCH / CONCURRENCY) as u64);
/// Duration of a lease.
const LEASE: Duration = Duration::from_mins(1);

// If a lease expired before the last request in its batch, two nodes could redeem the same token.
// Half of the lease is left for the database.
const _: () = assert!(BATCH_MAX.as_secs() * 2 < LEASE.as_secs());

/// Redeems tokens.
pub(super) struct AdServicesWorker {
    redeemer: Arc<Redeemer>,
}

/// Everything that a request needs.
struct Redeemer {
    store: Arc<dyn Devices>,
    runtime: Runtime,
    outbound: Outbound,
    url: Url,
}

/// Result of redeeming one token.
struct RedemptionAttempt {
    /// Label for the metric.
    label: &'static str,
    /// Reason why Apple's response was unusable.
    failure: Option<String>,
}

impl AdServicesWorker {
    pub(super) fn new(
        store: Arc<dyn Devices>,
        runtime: Runtime,
        base_url: &Url,
        policy: AddressPolicy,
    ) -> anyhow::Result<Self> {
        let base = base_url.as_str().trim_end_matches('/');
        let redeemer = Redeemer {
            store,
            runtime,
            outbound: Outbound::new(policy, REQUEST_MAX)?,
            url: Url::parse(&format!("{base}/api/v1/"))?,
        };
        Ok(Self {
            redeemer: Arc::new(redeemer),
        })
    }

    async fn lease(&self) -> StoreResult<Vec<LeasedToken>> {
        let Redeemer { store, runtime, .. } = &*self.redeemer;
        let now = runtime.now();
        store
            .lease_ad_services_tokens(now, now.plus(LEASE), BATCH)
            .await
    }

    /// Redeems a batch with limited concurrency. Dropping the future cancels the requests.
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
    /// Short, because apps ask for the result again within seconds, and Apple's record is ready
    /// within seconds.
    const PERIOD: Duration = Duration::from_secs(1);
    const KIND: Option<WorkKind> = Some(WorkKind::Tokens);
    const DRAIN: Duration = BATCH_MAX;

    /// One batch at most: a shutdown waits for it.
    async fn run_once(&mut self) -> anyhow::Result<WorkerActivity> {
        let tokens = self.lease().await?;
        let is_last = tokens.len() < BATCH as usize;
        let attempts = self.redeem_all(tokens).await?;
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
            (None, _) if is_last => Ok(WorkerActivity::Done),
            (None, _) => Ok(WorkerActivity::More),
        }
    }
}

impl Redeemer {
    /// Redeems a token at Apple's API and stores the result.
    async fn redeem(self: Arc<Self>, lease: LeasedToken) -> StoreResult<RedemptionAttempt> {
        let age = self.runtime.now().since(lease.received_at);
        // Apple has no record for a token that is too old, so skip the request.
        let result = if age < TOKEN_LIFE {
            Some(self.query_apple(&lease.token).await)
        } else {
            None
        };
        let (status, response, failure) = match result {
            None => (None, None, None),
            Some(Ok((status, response))) => {
                let failure = failure_message(status, response.is_some());
                (Some(status), response, failure)
            }
            Some(Err(error)) => (None, None, Some(error.to_string())),
        };
        let verdict = judge(status, response, lease.attempts.saturating_add(1), age);
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

    /// Returns the status of Apple's response, and its content if it can be parsed.
    async fn query_apple(
        &self,
        token: &str,
    ) -> Result<(u16, Option<AdServicesResponse>), OutboundError> {
        let request = self
            .outbound
            .request(Method::POST, &self.url)
            .header(CONTENT_TYPE, "text/plain")
            .body(token.to_owned());
        let response = self.outbound.send(request).await?;
        let status = response.status();
        // The body of an error response adds nothing to its status.
        if status != StatusCode::OK {
            return Ok((status.as_u16(), None));
        }
        let content = outbound::read_body(response, RESPONSE_BYTES_MAX).await?;
        Ok((status.as_u16(), response::read(&content)))
    }
}

/// Returns the failure to report to the operator: 400 and 404 are normal, anything else is a
/// failure.
fn failure_message(status: u16, is_readable: bool) -> Option<String> {
    match (status, is_readable) {
        (200, true) | (400 | 404, _) => None,
        (200, false) => Some("the response cannot be parsed".to_owned()),
        _ => Some(format!("the response has status {status}")),
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
