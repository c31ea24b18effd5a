//! Processes one queue: lease → prepare → send → judge → settle, repeated until nothing is due.
//!
//! If nodes share the queue, this node leases one part after another.

use crate::lease::{self, Lease};
use crate::send::NetworkClient;
use crate::{ForwarderState, POLL_RETRY_WAIT, account, judge, prepare, settle, status_checks};
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt as _, StreamExt as _};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;
use tributary_domain::forwarding::round::Round;
use tributary_domain::forwarding::sharing::{PARTS, QueueShare};
use tributary_networks::Account;
use tributary_store::{QueueRef, StoreError, StoreResult};

/// Rounds after which the queue is released, so that another node or app gets its turn.
const ROUNDS_MAX: u32 = 200;
/// Rounds after which a part is released for another one, so that deliveries of all parts wait about
/// equally long.
const PART_ROUNDS_MAX: u32 = 8;
/// Parts that are leased one after another. Together they take as many rounds as a whole queue.
const PARTS_MAX: u32 = ROUNDS_MAX / PART_ROUNDS_MAX;

/// How the work on a lease ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TurnEnd {
    /// Nothing is due, or the queue has to wait.
    Done,
    /// This part has had its turn, and others may be due.
    NextPart,
    /// Nothing is due in this part, but others may be due.
    EmptyPart,
}

/// Leases a queue, processes it, and releases it. Failures are retried at the next poll.
pub(crate) async fn process_queue(
    shared: Arc<ForwarderState>,
    queue: QueueRef,
    stopping: CancellationToken,
) {
    let mut empty_parts = 0;
    for _ in 0..PARTS_MAX {
        let turn = process_turn(shared.clone(), queue, &stopping).await;
        match turn {
            Ok(TurnEnd::NextPart) if !stopping.is_cancelled() => empty_parts = 0,
            // All parts are tried once.
            Ok(TurnEnd::EmptyPart) if !stopping.is_cancelled() && empty_parts + 1 < PARTS => {
                empty_parts += 1;
            }
            Ok(_) => return,
            Err(error) => {
                log_failure(&error);
                // Wait before the next attempt. Otherwise deliveries whose results cannot be
                // stored would be sent again and again.
                tokio::select! {
                    biased;
                    () = stopping.cancelled() => {}
                    () = tokio::time::sleep(POLL_RETRY_WAIT) => {}
                }
                return;
            }
        }
    }
}

/// Processes the queue, or the part of it that can be leased.
async fn process_turn(
    shared: Arc<ForwarderState>,
    queue: QueueRef,
    stopping: &CancellationToken,
) -> StoreResult<TurnEnd> {
    let lease = match lease::acquire(shared, queue, stopping).await {
        Ok(Some(lease)) => lease,
        Ok(None) => return Ok(TurnEnd::Done),
        Err(error) => {
            log_failure(&error);
            return Ok(TurnEnd::Done);
        }
    };
    // A round that has ended counts, even if the lease was lost at the same moment.
    let worked = tokio::select! {
        biased;
        worked = process_leased(&lease) => worked,
        () = lease.renew() => Ok(TurnEnd::Done),
    };
    let released = lease.release().await;
    let end = worked?;
    released.map(|()| end)
}

async fn process_leased(lease: &Lease) -> StoreResult<TurnEnd> {
    let (shared, leased) = (&lease.shared, &lease.leased);
    let organization = leased.app.organization;
    let account = account::open_account(&shared.parts.keyring, organization, &leased.integration);
    let account = match account {
        Ok(account) => account,
        Err(reason) => {
            settle::pause_queue(lease, reason).await?;
            return Ok(TurnEnd::Done);
        }
    };
    if shared.pacer.is_delayed(account.quota_project()) {
        return Ok(TurnEnd::Done);
    }
    let client = NetworkClient {
        shared,
        queue: lease.queue,
        revision: lease.revision(),
        account: &account,
    };
    let end = run_rounds(lease, &client).await?;
    if matches!(&account, Account::B(_)) && leased.share.checks_status() {
        status_checks::check_due(&client, lease).await?;
    }
    Ok(end)
}

async fn run_rounds(lease: &Lease, client: &NetworkClient<'_>) -> StoreResult<TurnEnd> {
    let account = client.account;
    let mut state = lease.leased.state.clone();
    let (rounds, end, end_if_empty) = match lease.leased.share {
        QueueShare::Whole => (ROUNDS_MAX, TurnEnd::Done, TurnEnd::Done),
        QueueShare::Part(_) => (PART_ROUNDS_MAX, TurnEnd::NextPart, TurnEnd::EmptyPart),
    };
    for _ in 0..rounds {
        if lease.stopping.is_cancelled() {
            return Ok(TurnEnd::Done);
        }
        let limit = state.deliveries_per_round(lease.queue.network.batch_max());
        let Some(due) = lease.take_due(limit).await? else {
            return Ok(TurnEnd::Done);
        };
        let took_all = due.len() < limit;
        if due.is_empty() {
            return Ok(end_if_empty);
        }
        let prepared = prepare::prepare(lease, account, state, due).await?;
        let Some(mut prepared) = prepared else {
            return Ok(TurnEnd::Done);
        };
        send_all(lease, client, &mut prepared.round).await;
        let slow_down = prepared.round.slow_down;
        let Some(next_state) = settle::settle(lease, account, prepared).await? else {
            return Ok(TurnEnd::Done);
        };
        if next_state.has_to_wait() {
            return Ok(TurnEnd::Done);
        }
        if took_all {
            return Ok(end);
        }
        state = next_state;
        if let Some(wait) = slow_down {
            tokio::time::sleep(wait).await;
        }
    }
    Ok(end)
}

/// Sends a round's requests and processes each response as it arrives, until no request is left.
async fn send_all(lease: &Lease, client: &NetworkClient<'_>, round: &mut Round) {
    let mut under_way = FuturesUnordered::new();
    loop {
        let is_stopping = lease.stopping.is_cancelled();
        let response = match round.next_request(is_stopping, client.shared.decision_context()) {
            Some(request) => {
                under_way.push(async move {
                    let outcome = client.send(&request.part.conversions()).await;
                    (request, outcome)
                });
                // If a response has already arrived, process it before sending the next request.
                under_way.next().now_or_never().flatten()
            }
            None if under_way.is_empty() => return,
            None => under_way.next().await,
        };
        if let Some((request, outcome)) = response {
            judge::judge(client, round, request, outcome);
        }
    }
}

fn log_failure(error: &StoreError) {
    tracing::warn!(%error, "failed to process queue; will retry");
}
