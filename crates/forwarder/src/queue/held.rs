//! A queue in our hands, round after round.

use super::Work;
use super::prepare::{Prepared, Sending};
use crate::attempt::Line;
use crate::parts::Carried;
use crate::round::{Outcome, Round};
use futures_util::future::join_all;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tributary_domain::forwarding::Conversion;
use tributary_domain::forwarding::queue::QueueState;
use tributary_domain::vocabulary::id::DeliveryId;
use tributary_networks::{Account, group_key};
use tributary_store::{Gathered, LeasedQueue, StoreResult};

/// Requests of one integration under way at the same time.
const IN_FLIGHT: usize = 4;
/// Rounds after which the queue is given back, so that another node, or another app, gets its turn.
const ROUNDS_MAX: u32 = 200;

/// A queue in our hands.
pub(super) struct Held<'a> {
    pub(super) work: &'a Work,
    pub(super) leased: &'a LeasedQueue,
    pub(super) account: &'a Account,
    /// The queue was lost, or the server stops.
    pub(super) stopping: &'a CancellationToken,
}

impl Held<'_> {
    pub(super) fn line(&self) -> Line<'_> {
        Line {
            shared: &self.work.shared,
            queue: self.work.queue,
            revision: self.leased.integration.revision.number(),
            account: self.account,
        }
    }

    pub(super) async fn rounds(&self) -> StoreResult<()> {
        let mut state = self.leased.state.clone();
        // Its time has come, or nobody would be here.
        state.not_before = None;
        let most = self.work.queue.network.batch_max();
        for _ in 0..ROUNDS_MAX {
            if self.stopping.is_cancelled() {
                return Ok(());
            }
            let batch = state.batch(most);
            let limit = if batch == 1 { 1 } else { batch * IN_FLIGHT };
            let Some(gathered) = self.due(limit).await? else {
                return Ok(());
            };
            let was_all = gathered.len() < limit;
            let round = self.round(gathered, state, batch).await?;
            let Some((next_state, slow_down)) = round else {
                return Ok(());
            };
            let is_over = was_all || next_state.pause.is_some() || next_state.not_before.is_some();
            if is_over {
                return Ok(());
            }
            state = next_state;
            if let Some(wait) = slow_down {
                tokio::time::sleep(wait).await;
            }
        }
        Ok(())
    }

    /// What is due, with what the network may know of it; nothing when there is nothing, or the queue is not ours to
    /// work on any more.
    async fn due(&self, limit: usize) -> StoreResult<Option<Vec<Gathered>>> {
        let (work, store) = (self.work, &self.work.shared.parts.store);
        let limit = u32::try_from(limit).unwrap_or(u32::MAX);
        let revision = self.leased.integration.revision.number();
        let due = store.due_deliveries(work.queue, work.lease, revision, work.now(), limit);
        match due.await? {
            Some(pending) if !pending.is_empty() => {
                Ok(Some(store.gather(work.queue, pending).await?))
            }
            _ => Ok(None),
        }
    }

    /// Notes that these are being sent, and leaves out what is not to be sent any more. False when the queue is lost.
    async fn begin(&self, ready: &mut Vec<(Sending, Conversion)>) -> StoreResult<bool> {
        if ready.is_empty() {
            return Ok(true);
        }
        let (work, store) = (self.work, &self.work.shared.parts.store);
        let ids = ready
            .iter()
            .map(|(sending, _)| sending.pending.id)
            .collect();
        let begun = store.begin_sending(work.queue, work.lease, ids, work.now());
        let Some(begun) = begun.await? else {
            return Ok(false);
        };
        let begun: HashSet<DeliveryId> = begun.into_iter().collect();
        ready.retain(|(sending, _)| begun.contains(&sending.pending.id));
        Ok(true)
    }

    /// One round. Gives how the queue stands after it; nothing when it is lost.
    async fn round(
        &self,
        gathered: Vec<Gathered>,
        state: QueueState,
        batch: usize,
    ) -> StoreResult<Option<(QueueState, Option<Duration>)>> {
        let now = self.work.now();
        let mut settled = Vec::new();
        let mut ready = Vec::new();
        for one in gathered {
            match self.prepare(one, now) {
                Prepared::Settled(one) => settled.push(one),
                Prepared::Ready(sending, conversion) => ready.push((*sending, *conversion)),
            }
        }
        if !self.begin(&mut ready).await? {
            return Ok(None);
        }
        let mut under_way = HashMap::new();
        let mut groups: BTreeMap<_, Vec<Carried>> = BTreeMap::new();
        for (sending, conversion) in ready {
            let key = group_key(self.account, &conversion);
            let carried = Carried::new(conversion, &sending.pending);
            groups.entry(key).or_default().push(carried);
            under_way.insert(sending.pending.id, sending);
        }
        let batches: Vec<Vec<Carried>> = groups
            .into_values()
            .flat_map(|group| chunks(group, batch))
            .collect();
        let state = Mutex::new(state);
        let outcome = self.send(batches, &state).await;
        for tried in outcome.tried {
            if let Some(sending) = under_way.remove(&tried.id) {
                settled.push(self.settled(sending, tried));
            }
        }
        let state = state.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut settlement = self.work.settlement(self.leased, state.clone(), settled);
        settlement.checks = outcome.checks;
        settlement.is_test = self.account.test_mode();
        let is_ours = self.work.settle(settlement).await?;
        Ok(is_ours.then_some((state, outcome.slow_down)))
    }

    /// Sends batches, so many at a time.
    async fn send(&self, batches: Vec<Vec<Carried>>, state: &Mutex<QueueState>) -> Outcome {
        let round = Round {
            line: self.line(),
            state,
            stopping: self.stopping,
        };
        let mut together = Outcome::default();
        let mut waiting = batches.into_iter();
        loop {
            let now: Vec<Vec<Carried>> = waiting.by_ref().take(IN_FLIGHT).collect();
            if now.is_empty() {
                return together;
            }
            for outcome in join_all(now.into_iter().map(|batch| round.run(batch))).await {
                together.tried.extend(outcome.tried);
                together.checks.extend(outcome.checks);
                together.slow_down = together.slow_down.max(outcome.slow_down);
            }
        }
    }
}

fn chunks(mut group: Vec<Carried>, most: usize) -> Vec<Vec<Carried>> {
    let mut chunks = Vec::new();
    while group.len() > most {
        let rest = group.split_off(most);
        chunks.push(std::mem::replace(&mut group, rest));
    }
    chunks.push(group);
    chunks
}
