//! Step two: drops deliveries that may no longer be sent and groups the rest into batches.

use crate::lease::Lease;
use std::collections::{BTreeMap, HashSet};
use tributary_domain::forwarding::Conversion;
use tributary_domain::forwarding::eligibility::{check_eligibility, end_without_event};
use tributary_domain::forwarding::lifecycle::SettledDelivery;
use tributary_domain::forwarding::queue::QueueState;
use tributary_domain::forwarding::round::{DeliveryBatch, OutgoingEvent, Round, RoundSettings};
use tributary_domain::vocabulary::id::DeliveryId;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_networks::{Account, BODY_BYTES_MAX, check, encode, group_key};
use tributary_store::{GatheredDelivery, StoreResult};

/// A round that is ready to send, and deliveries that were settled without being sent.
pub(crate) struct PreparedRound {
    pub(crate) round: Round,
    /// When the round began.
    pub(crate) begun_at: Timestamp,
    pub(crate) settled: Vec<SettledDelivery>,
}

/// Prepares a round; `None` if the lease was lost.
pub(crate) async fn prepare(
    lease: &Lease,
    account: &Account,
    state: QueueState,
    due: Vec<GatheredDelivery>,
) -> StoreResult<Option<PreparedRound>> {
    let now = lease.now();
    let mut settled = Vec::new();
    let mut outgoing = Vec::new();
    for one in due {
        match prepare_one(lease, account, one, now) {
            Ok(event) => outgoing.push(event),
            Err(one) => settled.push(one),
        }
    }
    if !begin(lease, &mut outgoing).await? {
        return Ok(None);
    }
    let terms = RoundSettings {
        network: lease.queue.network,
        validates_only: account.validates_only(),
    };
    let most = state.batch_size(lease.queue.network.batch_max());
    let batches = batches(account, outgoing, most);
    Ok(Some(PreparedRound {
        round: Round::new(state, terms, batches),
        begun_at: now,
        settled,
    }))
}

fn prepare_one(
    lease: &Lease,
    account: &Account,
    gathered: GatheredDelivery,
    now: Timestamp,
) -> Result<OutgoingEvent, SettledDelivery> {
    let mut pending = gathered.pending;
    pending.note_interruption(lease.queue.network);
    let Some(mut conversion) = gathered.conversion else {
        return Err(SettledDelivery::unsent(pending, end_without_event()));
    };
    if conversion.page_url.is_none() {
        let base = lease.leased.app.link_base(&lease.shared.parts.base_url);
        conversion.page_url = gathered.link.map(|link| link.url(&base));
    }
    let unsendable = check(account, &conversion).err().map(|reason| reason.code);
    let integration = &lease.leased.integration;
    match check_eligibility(integration, &pending, &conversion, unsendable, now) {
        Ok(progress) => Ok(OutgoingEvent {
            conversion,
            progress,
            earlier_attempts: pending.attempts,
            attempts: Vec::new(),
        }),
        Err(next) => Err(SettledDelivery::unsent(pending, next)),
    }
}

/// Marks deliveries as being sent, and drops those that may no longer be sent. Returns false if the
/// lease was lost.
async fn begin(lease: &Lease, outgoing: &mut Vec<OutgoingEvent>) -> StoreResult<bool> {
    if outgoing.is_empty() {
        return Ok(true);
    }
    let store = &lease.shared.parts.store;
    let ids = outgoing.iter().map(|event| event.conversion.delivery);
    let sending = store.begin_sending(lease.queue, lease.id, ids.collect(), lease.now());
    let Some(sending) = sending.await? else {
        return Ok(false);
    };
    let sending: HashSet<DeliveryId> = sending.into_iter().collect();
    outgoing.retain(|event| sending.contains(&event.conversion.delivery));
    Ok(true)
}

/// Groups events that may share a request into batches of at most `most` events.
fn batches(account: &Account, outgoing: Vec<OutgoingEvent>, most: usize) -> Vec<DeliveryBatch> {
    let is_too_long =
        |batch: &[Conversion]| encode(account, batch, None).body.len() > BODY_BYTES_MAX;
    let mut groups: BTreeMap<_, Vec<Vec<OutgoingEvent>>> = BTreeMap::new();
    for event in outgoing {
        let chunks = groups
            .entry(group_key(account, &event.conversion))
            .or_default();
        match chunks.last_mut() {
            Some(chunk) if chunk.len() < most => chunk.push(event),
            _ => chunks.push(vec![event]),
        }
    }
    let chunks = groups.into_values().flatten();
    chunks
        .map(|chunk| DeliveryBatch::new(chunk, is_too_long))
        .collect()
}
