//! Working on one queue: while it is held, round after round.

use crate::attempt::Line;
use crate::round::{Outcome, Round, Tried};
use crate::{LOOK_FAILED_WAIT, Shared, account, checks, metrics};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tributary_domain::attribution::CreditedNetwork;
use tributary_domain::erasure::is_pseudonym;
use tributary_domain::forwarding::alert::{Alert, AlertKind};
use tributary_domain::forwarding::course::{
    self, ATTRIBUTION_CHANGED, CONSENT_WITHDRAWN, ERASED, INTERRUPTED, Next, Standing,
};
use tributary_domain::forwarding::delivery::kept;
use tributary_domain::forwarding::limits::expires_at;
use tributary_domain::forwarding::queue::{NOT_USABLE, QueueState};
use tributary_domain::forwarding::{Attempt, Conversion, DeliveryStatus, Verdict};
use tributary_domain::integration::{EventScope, Integration};
use tributary_domain::vocabulary::id::{AlertId, DeliveryId};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_networks::{Account, check, group_key};
use tributary_store::{
    Gathered, LeaseId, LeasedQueue, PendingDelivery, QueueRef, Settled, Settlement, StoreResult,
};

/// A queue is held without a word for as long as a request may take, and this. It is renewed long before it ends.
const LEASE_MARGIN: Duration = Duration::from_secs(15);
/// How often it is renewed.
const RENEWAL: Duration = Duration::from_secs(5);
/// Requests of one integration under way at the same time.
const IN_FLIGHT: usize = 4;
/// Rounds after which the queue is given back, so that another node, or another app, gets its turn.
const ROUNDS_MAX: u32 = 200;
/// Its event is gone.
const EVENT_GONE: &str = "event_gone";

/// One queue to be worked on.
pub(crate) struct Work {
    shared: Arc<Shared>,
    queue: QueueRef,
    stopping: CancellationToken,
    lease: LeaseId,
}

/// A queue in our hands.
struct Held<'a> {
    work: &'a Work,
    leased: &'a LeasedQueue,
    account: &'a Account,
    /// The queue was lost, or the server stops.
    stopping: &'a CancellationToken,
}

impl Work {
    pub(crate) fn new(shared: Arc<Shared>, queue: QueueRef, stopping: CancellationToken) -> Self {
        let lease = LeaseId(shared.parts.source.bytes());
        Self {
            shared,
            queue,
            stopping,
            lease,
        }
    }

    fn now(&self) -> Timestamp {
        self.shared.parts.source.now()
    }

    fn until(&self, now: Timestamp) -> Timestamp {
        now.plus(self.queue.network.request_timeout() + LEASE_MARGIN)
    }

    /// Takes the queue, works on it, and gives it back. What fails here is tried again by whoever looks next.
    pub(crate) async fn run(self) {
        let store = &self.shared.parts.store;
        let now = self.now();
        let leased = store.lease_queue(self.queue, self.lease, now, self.until(now));
        let leased = match leased.await {
            Ok(Some(leased)) => leased,
            Ok(None) => return,
            Err(error) => return self.complain(&error),
        };
        let lost = self.stopping.child_token();
        let worked = tokio::select! {
            worked = self.work(&leased, &lost) => worked,
            () = self.renew(&lost) => Ok(()),
        };
        let released = store.release_queue(self.queue, self.lease, self.now());
        let released = released.await;
        if let Err(error) = worked.and(released) {
            self.complain(&error);
            // What cannot be written down must not be sent again and again.
            tokio::select! {
                () = self.stopping.cancelled() => {}
                () = tokio::time::sleep(LOOK_FAILED_WAIT) => {}
            }
        }
    }

    fn complain(&self, error: &tributary_store::StoreError) {
        let (app, network) = (self.queue.app, self.queue.network.as_str());
        tracing::warn!(%app, network, "deliveries wait: {error}");
    }

    /// Keeps the queue. Ends when it is somebody else's: then nothing more is sent or written.
    async fn renew(&self, lost: &CancellationToken) {
        loop {
            tokio::time::sleep(RENEWAL).await;
            let until = self.until(self.now());
            let renewed = self
                .shared
                .parts
                .store
                .renew_lease(self.queue, self.lease, until);
            // A database that does not answer takes nothing away; the lease itself runs out then.
            if matches!(renewed.await, Ok(false)) {
                lost.cancel();
                return;
            }
        }
    }

    async fn work(&self, leased: &LeasedQueue, stopping: &CancellationToken) -> StoreResult<()> {
        let keyring = &self.shared.parts.keyring;
        let account = account::open(keyring, leased.app.organization, &leased.integration);
        let account = match account {
            Ok(account) => account,
            Err(reason) => {
                let mut state = leased.state.clone();
                state.pause(self.now(), NOT_USABLE, Some(reason.words));
                let settlement = self.settlement(leased, state, Vec::new());
                self.settle(settlement).await?;
                return Ok(());
            }
        };
        if self.shared.projects.is_held(account.quota_project()) {
            return Ok(());
        }
        let held = Held {
            work: self,
            leased,
            account: &account,
            stopping,
        };
        held.rounds().await?;
        if let Account::B(_) = &account {
            checks::ask(&held.line(), self.lease, stopping).await?;
        }
        Ok(())
    }

    /// Everything that is written after a round.
    fn settlement(
        &self,
        leased: &LeasedQueue,
        state: QueueState,
        settled: Vec<Settled>,
    ) -> Settlement {
        let at = self.now();
        let name = leased.app.name.as_str();
        let network = self.queue.network;
        let alert = |kind, message| Alert {
            id: AlertId::new(at, self.shared.parts.source.bytes()),
            app: self.queue.app,
            kind,
            network: Some(network),
            at,
            message,
        };
        let paused = state.pause.as_ref().map(|pause| {
            let words = pause.words.as_deref().unwrap_or("no words");
            let message = format!(
                "{} of {name} stopped (code {}: {words}). Deliveries are kept until it is mended.",
                network.as_str(),
                pause.code
            );
            alert(AlertKind::IntegrationPaused, message)
        });
        let message = format!(
            "Many deliveries of {name} to {} failed within an hour.",
            network.as_str()
        );
        Settlement {
            at,
            state,
            revision: leased.integration.revision.number(),
            settled,
            is_test: false,
            checks: Vec::new(),
            paused,
            failing: Some(alert(AlertKind::DeliveriesFailing, message)),
        }
    }

    /// Writes it; false when the queue is somebody else's.
    async fn settle(&self, settlement: Settlement) -> StoreResult<bool> {
        let network = self.queue.network;
        let ends: Vec<DeliveryStatus> = settlement
            .settled
            .iter()
            .filter_map(|settled| match settled.next {
                Next::Ends { status, .. } => Some(status),
                Next::Waits { .. } => None,
            })
            .collect();
        let paused = settlement.paused.is_some();
        let store = &self.shared.parts.store;
        let is_ours = store.settle(self.queue, self.lease, settlement).await?;
        if is_ours {
            for status in ends {
                metrics::ended(network, status);
            }
            if paused {
                metrics::paused(network);
                let app = self.queue.app;
                tracing::warn!(%app, network = network.as_str(), "the integration is paused");
            }
        }
        Ok(is_ours)
    }
}

impl Held<'_> {
    fn line(&self) -> Line<'_> {
        Line {
            shared: &self.work.shared,
            queue: self.work.queue,
            revision: self.leased.integration.revision.number(),
            account: self.account,
        }
    }

    async fn rounds(&self) -> StoreResult<()> {
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
        let mut groups: BTreeMap<_, Vec<Conversion>> = BTreeMap::new();
        for (sending, conversion) in ready {
            let key = group_key(self.account, &conversion);
            groups.entry(key).or_default().push(conversion);
            under_way.insert(sending.pending.id, sending);
        }
        let batches: Vec<Vec<Conversion>> = groups
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
    async fn send(&self, batches: Vec<Vec<Conversion>>, state: &Mutex<QueueState>) -> Outcome {
        let round = Round {
            line: self.line(),
            state,
            stopping: self.stopping,
        };
        let mut together = Outcome::default();
        let mut waiting = batches.into_iter();
        loop {
            let now: Vec<Vec<Conversion>> = waiting.by_ref().take(IN_FLIGHT).collect();
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

    /// Looks at a delivery right before it is sent: whether it still may, and still can.
    fn prepare(&self, gathered: Gathered, now: Timestamp) -> Prepared {
        let mut pending = gathered.pending;
        self.note_interruption(&mut pending);
        let Some(mut conversion) = gathered.conversion else {
            return over(pending, DeliveryStatus::Cancelled, EVENT_GONE);
        };
        if conversion.page_url.is_none() {
            let base = self.leased.app.link_base(&self.work.shared.parts.base_url);
            conversion.page_url = gathered.link.map(|link| link.url(&base));
        }
        // It was on its way when somebody erased it, or somebody brought it back since.
        if conversion.event.device.as_ref().is_some_and(is_pseudonym) {
            return over(pending, DeliveryStatus::Cancelled, ERASED);
        }
        if !belongs(&self.leased.integration, &conversion) {
            return over(pending, DeliveryStatus::Cancelled, ATTRIBUTION_CHANGED);
        }
        let standing = standing(&self.leased.integration, &pending, &conversion);
        if let Some(next) = course::before(&standing, now) {
            return Prepared::Settled(untouched(pending, next));
        }
        match check(self.account, &conversion) {
            Err(reason) if reason.code == "consent" => {
                over(pending, DeliveryStatus::Cancelled, CONSENT_WITHDRAWN)
            }
            Err(reason) => over(pending, DeliveryStatus::Failed, reason.code),
            Ok(()) => {
                let sending = Sending { pending, standing };
                Prepared::Ready(Box::new(sending), Box::new(conversion))
            }
        }
    }

    /// Somebody took it and never said what came of it: the network may have it.
    fn note_interruption(&self, pending: &mut PendingDelivery) {
        let Some(at) = pending.interrupted_at else {
            return;
        };
        if self.work.queue.network.dedup_window().is_some() {
            pending.ambiguous_since = pending.ambiguous_since.or(Some(at));
        }
        pending.attempts_made = pending.attempts_made.saturating_add(1);
        let attempt = Attempt {
            at,
            status: None,
            duration_ms: 0,
            verdict: Verdict::Unknown,
            answer: Some(INTERRUPTED.to_owned()),
        };
        pending.attempts = kept(std::mem::take(&mut pending.attempts), [attempt]);
    }

    fn settled(&self, sending: Sending, tried: Tried) -> Settled {
        let Sending { pending, standing } = sending;
        let now = self.work.now();
        let Some(ruled) = tried.ruled else {
            let next = Next::Waits {
                due_at: now,
                ambiguous_since: standing.ambiguous_since,
            };
            let attempts = kept(pending.attempts.clone(), tried.attempts);
            return Settled {
                attempts,
                ..untouched(pending, next)
            };
        };
        let random = u64::from_be_bytes(self.work.shared.parts.source.bytes());
        let next = course::after(&standing, &ruled, tried.sent_at, now, random);
        Settled {
            id: pending.id,
            attempts_made: pending.attempts_made.saturating_add(1),
            attempts: kept(pending.attempts, tried.attempts),
            next,
        }
    }
}

/// A delivery on its way.
struct Sending {
    pending: PendingDelivery,
    standing: Standing,
}

enum Prepared {
    Settled(Settled),
    Ready(Box<Sending>, Box<Conversion>),
}

/// Whether the event is still this network's. Its credit may have moved while it was on its way.
fn belongs(integration: &Integration, conversion: &Conversion) -> bool {
    let credited = conversion
        .event
        .credit
        .as_ref()
        .map(|credit| credit.network);
    integration.scope == EventScope::All
        || credited == Some(CreditedNetwork::Ad(integration.network))
}

fn standing(
    integration: &Integration,
    pending: &PendingDelivery,
    conversion: &Conversion,
) -> Standing {
    let occurred_at = conversion.event.told_at();
    Standing {
        network: integration.network,
        occurred_at,
        expires_at: expires_at(integration, occurred_at, conversion.clicked_at()),
        attempts_made: pending.attempts_made,
        ambiguous_since: pending.ambiguous_since,
    }
}

/// Without an attempt.
fn untouched(pending: PendingDelivery, next: Next) -> Settled {
    Settled {
        id: pending.id,
        attempts_made: pending.attempts_made,
        attempts: pending.attempts,
        next,
    }
}

fn over(pending: PendingDelivery, status: DeliveryStatus, reason: &str) -> Prepared {
    let next = Next::Ends {
        status,
        reason: Some(reason.to_owned()),
    };
    Prepared::Settled(untouched(pending, next))
}

fn chunks(mut group: Vec<Conversion>, most: usize) -> Vec<Vec<Conversion>> {
    let mut chunks = Vec::new();
    while group.len() > most {
        let rest = group.split_off(most);
        chunks.push(std::mem::replace(&mut group, rest));
    }
    chunks.push(group);
    chunks
}

/// Waits for all of them at once.
async fn join_all<T>(futures: impl Iterator<Item = impl Future<Output = T>>) -> Vec<T> {
    let mut futures: Vec<_> = futures.map(|one| (Box::pin(one), None)).collect();
    std::future::poll_fn(|context| {
        let mut all_ready = true;
        for (future, done) in &mut futures {
            if done.is_none() {
                match future.as_mut().poll(context) {
                    std::task::Poll::Ready(value) => *done = Some(value),
                    std::task::Poll::Pending => all_ready = false,
                }
            }
        }
        if all_ready {
            std::task::Poll::Ready(())
        } else {
            std::task::Poll::Pending
        }
    })
    .await;
    futures.into_iter().filter_map(|(_, done)| done).collect()
}
