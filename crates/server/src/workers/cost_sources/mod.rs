//! Imports costs from the networks' reports.
//!
//! A due cost source is leased, so one node pulls it at a time. The days that the network may have
//! restated are pulled again, in spans; each span replaces the imported costs of its days in one
//! transaction. If the node stops, the lease ends and another node starts again. The domain crate
//! decides which days are pulled, when the next pull is due and when a source pauses.
//!
//! Credentials, tokens and responses are never logged.

use super::periodic::{Worker, WorkerActivity};
use crate::metrics;
use crate::transport::NetworkTransport;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tributary_domain::cost_source::{
    DaySpan, PullOutcome, ReportedCost, credential_owner, days_to_pull, imported_costs,
};
use tributary_domain::keyring::Keyring;
use tributary_domain::keyring::secret_scope::SecretScope;
use tributary_domain::refusal::Refusal;
use tributary_domain::runtime::Runtime;
use tributary_domain::vocabulary::day::Day;
use tributary_forwarder::RequestTarget;
use tributary_networks::network_b::{TokenRuling, judge_token};
use tributary_networks::{
    CostReportAccount, REPORT_BYTES_MAX, RESPONSE_BYTES_MAX, ReportRuling, Secret,
};
use tributary_store::{LeasedCostSource, Store, StoreError};

/// Timeout for one request. Reports of large accounts take long.
const REQUEST_MAX: Duration = Duration::from_mins(1);
/// Longest time for one pull, with all spans and pages.
const PULL_MAX: Duration = Duration::from_mins(5);
/// Duration of a lease: a pull, and as long again for the database.
const LEASE: Duration = Duration::from_mins(10);
/// Maximum number of pages of a span. A cursor that never ends must not keep a worker busy.
const PAGES_MAX: usize = 100;
/// Maximum number of rows of a span: 30 days of 1,500 campaigns.
const ROWS_MAX: usize = 45_000;

const _: () = assert!(PULL_MAX.as_secs() * 2 <= LEASE.as_secs());

/// Imports costs.
pub(super) struct CostSourcesWorker {
    store: Arc<dyn Store>,
    runtime: Runtime,
    keyring: Keyring,
    transport: NetworkTransport,
}

/// Why a pull ended early.
enum Interruption {
    /// The pull is over, with this outcome.
    Outcome(PullOutcome),
    /// Another node or a change took the lease.
    LeaseLost,
    /// The database failed.
    Store(StoreError),
}

impl From<StoreError> for Interruption {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl Interruption {
    fn retry(code: &str, message: impl Into<String>) -> Self {
        Self::Outcome(PullOutcome::Retry {
            code: code.to_owned(),
            message: message.into(),
            wait: None,
        })
    }

    fn refused(code: &str, message: impl Into<String>) -> Self {
        Self::Outcome(PullOutcome::Refused {
            code: code.to_owned(),
            message: message.into(),
        })
    }
}

/// A pull in progress.
struct Pull<'a> {
    worker: &'a CostSourcesWorker,
    lease: &'a LeasedCostSource,
    account: CostReportAccount,
    /// Access token for `network_b`.
    token: Option<Secret>,
}

impl CostSourcesWorker {
    pub(super) fn new(
        store: Arc<dyn Store>,
        runtime: Runtime,
        keyring: Keyring,
        transport: NetworkTransport,
    ) -> Self {
        Self {
            store,
            runtime,
            keyring,
            transport,
        }
    }

    /// Decrypts the credentials.
    fn open(&self, lease: &LeasedCostSource) -> Result<CostReportAccount, Interruption> {
        let source = &lease.source;
        let open = |name: &String, sealed| {
            let owner = credential_owner(source.network);
            let scope = SecretScope::new(lease.organization, source.app, owner, name);
            let bytes = self.keyring.open(&scope.parts(), sealed).ok();
            bytes.and_then(|bytes| String::from_utf8(bytes).ok())
        };
        let mut credentials = BTreeMap::new();
        for (name, credential) in &source.credentials {
            let Some(text) = open(name, &credential.sealed) else {
                let message = format!(
                    "credentials.{name} was encrypted with another secret_key; enter it again."
                );
                return Err(Interruption::refused("not_usable", message));
            };
            credentials.insert(name.clone(), Secret::new(text));
        }
        CostReportAccount::open(source, &credentials)
            .map_err(|unusable| Interruption::refused("not_usable", unusable.message))
    }

    async fn pull(&self, lease: &LeasedCostSource) -> Result<Day, Interruption> {
        let today = Day::of(self.runtime.now());
        let mut pull = Pull {
            worker: self,
            lease,
            account: self.open(lease)?,
            token: None,
        };
        pull.refresh_token().await?;
        let network = lease.source.network;
        for span in days_to_pull(network, today, lease.source.pulls.pulled_until) {
            let costs = imported_costs(network, pull.rows(span).await?);
            let at = self.runtime.now();
            let stored = self
                .store
                .store_imported_costs(lease.clone(), span, costs, at);
            match stored.await {
                Ok(true) => {}
                Ok(false) => return Err(Interruption::LeaseLost),
                Err(StoreError::Refused(Refusal::Invalid(_))) => {
                    let message = "There is no exchange rate for the account's currency yet.";
                    return Err(Interruption::retry("no_exchange_rate", message));
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(today)
    }

    /// Pulls a source and stores how the pull ended. Returns the outcome's label.
    async fn pull_and_settle(&self, lease: LeasedCostSource) -> Result<&'static str, StoreError> {
        let pulled = tokio::time::timeout(PULL_MAX, self.pull(&lease)).await;
        let pulled = pulled.unwrap_or_else(|_elapsed| {
            let message = "The report took longer than five minutes.";
            Err(Interruption::retry("timeout", message))
        });
        let outcome = match pulled {
            Ok(until) => PullOutcome::Done { until },
            Err(Interruption::Outcome(outcome)) => outcome,
            Err(Interruption::LeaseLost) => return Ok("lost"),
            Err(Interruption::Store(error)) => return Err(error),
        };
        let label = match &outcome {
            PullOutcome::Done { .. } => "done",
            PullOutcome::Retry { .. } => "failed",
            PullOutcome::Refused { .. } => "refused",
        };
        let now = self.runtime.now();
        let was_ours = self.store.settle_cost_source(lease, outcome, now).await?;
        Ok(if was_ours { label } else { "lost" })
    }
}

impl Pull<'_> {
    /// Fetches an access token if the network needs one.
    async fn refresh_token(&mut self) -> Result<(), Interruption> {
        let now = self.worker.runtime.now().as_millis().div_euclid(1_000);
        let Some(request) = self.account.token_request(now) else {
            return Ok(());
        };
        let target = RequestTarget::TokenEndpoint;
        let sent = self
            .worker
            .transport
            .fetch(target, request, REQUEST_MAX, RESPONSE_BYTES_MAX)
            .await;
        match judge_token(&sent) {
            TokenRuling::Token { access_token, .. } => {
                self.token = Some(access_token);
                Ok(())
            }
            TokenRuling::Retry => {
                let message = "Google's token endpoint did not issue a token.";
                Err(Interruption::retry("no_token", message))
            }
            TokenRuling::Pause { code, message } => {
                let message = message.unwrap_or_default();
                let message = self.account.redact(&message);
                let advice = "Check the client id, the client secret and the refresh token, or the \
                              service account key.";
                let code = self.account.redact(&code);
                Err(Interruption::refused(&code, format!("{message} {advice}")))
            }
        }
    }

    /// Reads all pages of a span.
    async fn rows(&mut self, span: DaySpan) -> Result<Vec<ReportedCost>, Interruption> {
        let (mut rows, mut page) = (Vec::new(), None);
        for _ in 0..PAGES_MAX {
            let (found, next) = self.page(span, page.as_deref()).await?;
            rows.extend(found);
            if rows.len() > ROWS_MAX {
                break;
            }
            match next {
                None => return Ok(rows),
                Some(next) => page = Some(next),
            }
        }
        let message = format!("The report has more than {ROWS_MAX} rows or {PAGES_MAX} pages.");
        Err(Interruption::refused("too_many_rows", message))
    }

    /// Reads a page. A rejected access token is replaced once.
    async fn page(
        &mut self,
        span: DaySpan,
        page: Option<&str>,
    ) -> Result<(Vec<ReportedCost>, Option<String>), Interruption> {
        let mut is_fresh = false;
        loop {
            let request = self.account.request(span, page, self.token.as_ref());
            let target = RequestTarget::Reports(self.lease.source.network);
            let sent = self
                .worker
                .transport
                .fetch(target, request, REQUEST_MAX, REPORT_BYTES_MAX)
                .await;
            let ruling = self.account.read(span, &sent, self.worker.runtime.now());
            match ruling {
                ReportRuling::Page { rows, next } => return Ok((rows, next)),
                ReportRuling::Retry {
                    code,
                    message,
                    wait,
                } => {
                    return Err(Interruption::Outcome(PullOutcome::Retry {
                        code,
                        message: self.without_token(&message),
                        wait,
                    }));
                }
                ReportRuling::TokenRefused { .. } if !is_fresh => {
                    is_fresh = true;
                    self.refresh_token().await?;
                }
                ReportRuling::Refused { code, message }
                | ReportRuling::TokenRefused { code, message } => {
                    let message = self.without_token(&message);
                    return Err(Interruption::refused(&code, message));
                }
            }
        }
    }

    /// Removes the access token from a message, which the account does not know.
    fn without_token(&self, message: &str) -> String {
        match &self.token {
            Some(token) => message.replace(token.expose(), "***"),
            None => message.to_owned(),
        }
    }
}

impl Worker for CostSourcesWorker {
    const NAME: &'static str = "cost_sources";
    /// Short, because people wait for the first import.
    const PERIOD: Duration = Duration::from_secs(10);
    const DRAIN: Duration = Duration::from_secs(10);

    /// One source at most: a shutdown waits for it.
    async fn run_once(&mut self) -> anyhow::Result<WorkerActivity> {
        let now = self.runtime.now();
        let leased = self.store.lease_cost_source(now, now.plus(LEASE)).await?;
        let Some(lease) = leased else {
            return Ok(WorkerActivity::Idle);
        };
        let network = lease.source.network;
        let label = self.pull_and_settle(lease).await?;
        metrics::record_cost_pull(network, label);
        Ok(WorkerActivity::More)
    }
}
