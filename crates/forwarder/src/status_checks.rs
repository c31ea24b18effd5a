//! Queries Google Ads (`network_b`) for the status of requests that it accepted provisionally.

use crate::lease::Lease;
use crate::send::NetworkClient;
use tributary_domain::forwarding::status_check::{StatusRuling, outcome};
use tributary_networks::Secret;
use tributary_networks::network_b::{judge_status, status_request};
use tributary_store::StoreResult;

/// Requests checked per pass.
const CHECKS_PER_PASS: u32 = 20;

/// Checks all requests that are due.
pub(crate) async fn check_due(client: &NetworkClient<'_>, lease: &Lease) -> StoreResult<()> {
    let store = &lease.shared.parts.store;
    let due = store.due_status_checks(lease.queue, lease.now(), CHECKS_PER_PASS);
    for check in due.await? {
        if lease.stopping.is_cancelled() {
            return Ok(());
        }
        let ruling = check_request(client, &check.request).await;
        if let StatusRuling::Problems(problems) = &ruling
            && !problems.alert.is_empty()
        {
            tracing::warn!(
                reasons = problems.alert.join(", "),
                "Google Ads (network_b) reports a problem; fix the conversion action or the account"
            );
        }
        let now = lease.now();
        let outcome = outcome(&check, ruling, now);
        let settled = store.settle_status_check(lease.queue, lease.id, check.request, outcome, now);
        if !settled.await? {
            return Ok(());
        }
    }
    Ok(())
}

async fn check_request(client: &NetworkClient<'_>, request: &str) -> StatusRuling {
    let mut stale: Option<Secret> = None;
    loop {
        let Ok(Some(token)) = client.token(stale.as_ref()).await else {
            return StatusRuling::Retry;
        };
        let sent = client
            .transmit(status_request(request, token.expose()))
            .await;
        match judge_status(&sent.outcome) {
            StatusRuling::TokenRefused if stale.is_none() => stale = Some(token),
            StatusRuling::TokenRefused => return StatusRuling::Retry,
            ruling => return ruling,
        }
    }
}
