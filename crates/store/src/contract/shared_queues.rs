//! Queues that several nodes share.

use super::fixtures::{SharedStore, at, origin};
use super::outbox_fixtures::{
    ForwardingApp, ends_with, expired_credential, forwarding_app, settled,
};
use crate::{LeaseId, LeaseRequest, LeasedQueue, PendingDelivery};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tributary_domain::forwarding::lifecycle::NextStep;
use tributary_domain::forwarding::queue_change::QueueChange;
use tributary_domain::forwarding::sharing::{PARTS, QueueShare};
use tributary_domain::forwarding::{AttemptVerdict, DeliveryStatus};
use tributary_domain::integration::Network;
use tributary_domain::vocabulary::id::DeliveryId;
use tributary_domain::vocabulary::revision::Precondition;

/// Deliveries in a backlog that is shared.
const BACKLOG: usize = 40;
/// Number of due deliveries from which queues are shared in these cases.
const LARGE: u32 = 8;
/// A number that no backlog reaches.
const NEVER: u32 = 1_000;

const fn lease(number: u8) -> LeaseId {
    LeaseId([number; 16])
}

/// Creates an app with due deliveries.
async fn backlog(store: &SharedStore) -> ForwardingApp {
    let one = forwarding_app(store).await;
    one.attribute_install("phone", 10).await;
    let ids: Vec<String> = (1..BACKLOG).map(|number| format!("s{number}")).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    one.send_events("phone", &ids, "sign_up", 11).await;
    one
}

impl ForwardingApp {
    /// Leases the queue or a part of it. The queue is shared if it is [`LARGE`].
    async fn lease_share(&self, number: u8, from: i64, until: i64) -> Option<LeasedQueue> {
        self.lease_share_if(number, (from, until), LARGE).await
    }

    async fn lease_share_if(
        &self,
        number: u8,
        (from, until): (i64, i64),
        shared_from: u32,
    ) -> Option<LeasedQueue> {
        let request = LeaseRequest {
            id: lease(number),
            now: at(from),
            until: at(until),
            shared_from,
        };
        self.lease_as(request).await
    }

    async fn release(&self, number: u8, seconds: i64) {
        let store = &self.tenant.store;
        let released = store.release_queue(self.queue, lease(number), at(seconds));
        released.await.expect("the call succeeds");
    }

    async fn renew(&self, number: u8, until: i64) -> bool {
        let store = &self.tenant.store;
        let renewed = store.renew_lease(self.queue, lease(number), at(until));
        renewed.await.expect("the call succeeds")
    }

    async fn is_due(&self, seconds: i64) -> bool {
        let store = &self.tenant.store;
        let due = store.due_queues(Network::A, at(seconds), 10);
        !due.await.expect("queues").is_empty()
    }

    async fn settle_changes(&self, number: u8, changes: Vec<QueueChange>, seconds: i64) -> bool {
        let mut settlement = self.settlement(Vec::new(), seconds);
        settlement.changes = changes;
        self.settle(lease(number), settlement).await
    }

    /// Makes nodes share the queue, and leases its first parts at the second 20 until the second
    /// 60, with the leases from 1 on.
    async fn lease_parts(&self, parts: u8) {
        self.lease_share(101, 12, 100).await.expect("a lease");
        assert!(self.lease_share(102, 13, 100).await.is_none());
        self.release(101, 14).await;
        for number in 1..=parts {
            let leased = self.lease_share(number, 20, 60).await.expect("a part");
            assert!(matches!(leased.share, QueueShare::Part(_)));
        }
    }
}

/// A process that leases a large queue offers to share it. When another process asks for a share,
/// the first one stops, and each process leases a part. A small queue is leased as a whole again.
pub async fn a_large_queue_is_shared_on_request(store: &SharedStore) {
    let one = backlog(store).await;
    let first = one.lease_share(1, 12, 100).await.expect("a lease");
    assert_eq!(first.share, QueueShare::Whole);
    assert_eq!(
        one.take_due(lease(1), 12).await.map(|due| due.len()),
        Some(BACKLOG)
    );
    assert!(one.is_due(13).await, "the holder offers to share it");
    assert!(one.lease_share(2, 13, 100).await.is_none(), "it is leased");
    assert_eq!(
        one.take_due(lease(1), 14).await,
        None,
        "it has to be shared"
    );
    assert!(one.renew(1, 100).await, "results can still be stored");
    assert!(one.settle(lease(1), one.settlement(Vec::new(), 14)).await);
    assert!(one.lease_share(2, 14, 100).await.is_none(), "still leased");
    one.release(1, 15).await;

    let mut taken = BTreeSet::new();
    for number in 1..=PARTS {
        let leased = one.lease_share(number, 16, 100).await.expect("a part");
        let due = one.take_due(lease(number), 17).await.expect("deliveries");
        assert!(due.iter().all(|due| leased.share.contains(&due.id)));
        let ids: Vec<DeliveryId> = due.iter().map(|due| due.id).collect();
        assert!(ids.iter().all(|id| taken.insert(*id)), "taken twice");
    }
    assert_eq!(taken.len(), BACKLOG, "the parts contain all deliveries");
    assert!(
        one.lease_share(9, 18, 100).await.is_none(),
        "all parts are leased"
    );

    for number in 1..=PARTS {
        let due = one.take_due(lease(number), 19).await.expect("deliveries");
        let delivered = ends_with(DeliveryStatus::Delivered);
        let ended = |due| settled(due, AttemptVerdict::Delivered, delivered.clone(), at(19));
        let settlement = one.settlement(due.iter().map(ended).collect(), 20);
        assert!(one.settle(lease(number), settlement).await);
        one.release(number, 21).await;
    }
    assert!(!one.is_due(22).await, "everything is delivered");
    one.send_events("phone", &["last"], "sign_up", 22).await;
    let last = one.lease_share(1, 23, 100).await.expect("a lease");
    assert_eq!(last.share, QueueShare::Whole, "the backlog is small");
    assert!(!one.is_due(24).await, "a small queue is not shared");
    assert_eq!(
        one.take_due(lease(1), 24).await.map(|due| due.len()),
        Some(1)
    );
}

/// While parts are leased, the whole queue is not, and the other way round. The queue stays leased
/// until its last part is released.
pub async fn parts_and_the_whole_are_never_leased_together(store: &SharedStore) {
    let one = backlog(store).await;
    one.lease_parts(2).await;
    let whole = |seconds| one.lease_share_if(8, (seconds, 200), NEVER);
    assert!(whole(21).await.is_none(), "two parts are leased");
    one.release(1, 22).await;
    assert!(whole(23).await.is_none(), "a part is leased");
    assert!(one.renew(2, 80).await);
    assert!(whole(79).await.is_none(), "its lease was renewed");
    one.release(2, 79).await;
    let leased = whole(79).await.expect("a lease");
    assert_eq!(leased.share, QueueShare::Whole);
    assert!(one.lease_share(3, 80, 200).await.is_none());
    assert!(!one.is_due(80).await, "the holder found a small queue");
    assert_eq!(
        one.take_due(lease(8), 81).await.map(|due| due.len()),
        Some(BACKLOG)
    );
}

/// When the leases of all parts have ended, another process may lease the whole queue. The former
/// holders of parts can then change nothing, not even after the queue was released.
pub async fn an_older_split_has_no_effect(store: &SharedStore) {
    let one = backlog(store).await;
    one.lease_parts(2).await;
    let due = one.take_due(lease(1), 21).await.expect("deliveries");
    let whole = one.lease_share_if(8, (60, 100), NEVER).await;
    assert!(whole.is_some(), "the leases of the parts have ended");
    for step in 0..2 {
        assert!(!one.renew(1, 200).await);
        assert_eq!(one.take_due(lease(1), 61).await, None);
        let ids = due.iter().map(|due| due.id).collect();
        let begun = store.begin_sending(one.queue, lease(1), ids, at(61));
        assert_eq!(begun.await.expect("the call succeeds"), None);
        assert!(!one.settle_changes(1, Vec::new(), 61).await);
        one.release(1, 61).await;
        if step == 0 {
            let all = one.take_due(lease(8), 62).await.expect("deliveries");
            assert_eq!(all.len(), BACKLOG);
            one.release(8, 63).await;
        }
    }
    let next = one.lease_share_if(9, (64, 100), NEVER).await;
    assert_eq!(next.map(|leased| leased.share), Some(QueueShare::Whole));
}

/// When the lease of a part ends, another process takes the part over, while the others continue.
pub async fn a_lost_part_is_taken_over(store: &SharedStore) {
    let one = backlog(store).await;
    one.lease_parts(PARTS).await;
    let begun = one.take_due(lease(2), 21).await.expect("deliveries");
    for number in [1, 3, 4] {
        assert!(one.renew(number, 200).await);
    }
    assert!(
        one.lease_share(7, 59, 200).await.is_none(),
        "all are leased"
    );
    assert!(one.lease_share(7, 60, 200).await.is_some(), "one was lost");
    assert_eq!(one.take_due(lease(2), 61).await, None);
    assert!(!one.renew(2, 200).await);
    assert!(!one.settle_changes(2, Vec::new(), 61).await);
    one.release(2, 61).await;
    let again = one.take_due(lease(7), 62).await.expect("deliveries");
    let ids = |due: &[PendingDelivery]| due.iter().map(|one| one.id).collect::<Vec<_>>();
    assert_eq!(ids(&again), ids(&begun));
    assert!(again.iter().all(|one| one.interrupted_at == Some(at(21))));
    assert!(one.take_due(lease(1), 62).await.is_some());
}

/// A pause or a back-off by one holder stops the others before their next round, and their results
/// do not end it.
pub async fn a_stop_by_one_holder_stops_all(store: &SharedStore) {
    let one = backlog(store).await;
    one.lease_parts(2).await;
    assert!(one.take_due(lease(2), 21).await.is_some());
    let failed = QueueChange::Failed {
        at: at(22),
        wait: Some(Duration::from_secs(10)),
        random: 0,
    };
    assert!(one.settle_changes(1, vec![failed], 22).await);
    assert_eq!(one.take_due(lease(2), 31).await, None, "the queue waits");
    let accepted = || vec![QueueChange::Accepted { at: at(31) }];
    assert!(one.settle_changes(2, accepted(), 31).await);
    assert_eq!(one.take_due(lease(1), 31).await, None, "it still waits");
    assert!(one.lease_share(3, 31, 90).await.is_none());
    assert!(
        one.take_due(lease(1), 32).await.is_some(),
        "the wait is over"
    );

    assert!(
        one.settle_changes(1, vec![expired_credential(33)], 33)
            .await
    );
    assert_eq!(
        one.take_due(lease(2), 34).await,
        None,
        "the queue is paused"
    );
    assert!(one.settle_changes(2, accepted(), 34).await);
    assert!(one.lease_share(3, 35, 90).await.is_none());
    let reader = one.reader();
    let health = store.integration_health(&reader, one.queue.app, at(36));
    let state = health.await.expect("health")[0].1.state.clone();
    assert_eq!(state.pause.map(|pause| pause.code).as_deref(), Some("190"));
    assert_eq!(state.last_delivered_at, Some(at(31)));
}

/// A holder's round that began before the queue was resumed does not pause the queue again. A later
/// one does.
pub async fn a_round_from_before_a_resume_does_not_pause_again(store: &SharedStore) {
    let one = backlog(store).await;
    one.lease_parts(2).await;
    let expired = vec![expired_credential(22)];
    assert!(one.settle_changes(1, expired.clone(), 22).await);
    let resumed = store.resume_integration(
        &one.tenant.writer,
        one.queue.app,
        Network::A,
        Precondition::None,
        origin(30),
    );
    resumed.await.expect("resumed");
    let mut settlement = one.settlement(Vec::new(), 31);
    settlement.changes = expired.clone();
    settlement.begun_at = at(21);
    assert!(one.settle(lease(2), settlement).await);
    assert!(one.take_due(lease(1), 32).await.is_some(), "it goes on");
    assert!(one.settle_changes(2, expired, 33).await);
    assert_eq!(one.take_due(lease(1), 34).await, None, "paused again");
}

/// After a back-off, one process tries whether the network has recovered.
pub async fn a_queue_that_is_being_probed_has_one_holder(store: &SharedStore) {
    let one = backlog(store).await;
    one.lease_parts(1).await;
    let failed = QueueChange::Failed {
        at: at(22),
        wait: Some(Duration::from_secs(10)),
        random: 0,
    };
    assert!(one.settle_changes(1, vec![failed], 22).await);
    assert!(
        one.lease_share(2, 32, 90).await.is_none(),
        "a part is leased"
    );
    one.release(1, 32).await;
    let leased = one.lease_share(2, 32, 90).await.expect("a lease");
    assert_eq!(leased.share, QueueShare::Whole);
    assert!(leased.state.is_probing && leased.state.not_before.is_none());
    assert!(one.lease_share(3, 33, 90).await.is_none());
    assert!(one.take_due(lease(2), 33).await.is_some(), "it goes on");
    let accepted = QueueChange::Accepted { at: at(34) };
    assert!(one.settle_changes(2, vec![accepted], 34).await);
    assert!(one.lease_share(3, 35, 90).await.is_none(), "it asks now");
    assert_eq!(one.take_due(lease(2), 36).await, None);
}

/// Numbers that look random and are the same in every run.
struct Dice(u64);

impl Dice {
    /// Returns a number below `sides`.
    fn roll(&mut self, sides: u64) -> u64 {
        // Knuth's MMIX generator. Its high bits are the random ones.
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }

    fn seconds(&mut self, most: u64) -> i64 {
        i64::try_from(self.roll(most)).expect("a small number") + 1
    }
}

/// A process with a lease, as the model sees it.
struct Holder {
    lease: u8,
    until: i64,
    taken: BTreeMap<DeliveryId, PendingDelivery>,
}

/// Processes that lease, send, stop and disappear at random.
struct Model {
    one: ForwardingApp,
    dice: Dice,
    now: i64,
    leases: u8,
    holders: Vec<Holder>,
    /// Numbers of leases of parts and of the whole queue.
    leased: [usize; 2],
    delivered: BTreeSet<DeliveryId>,
}

impl Model {
    async fn acquire(&mut self) {
        self.leases += 1;
        let until = self.now + self.dice.seconds(12);
        let shared_from = if self.dice.roll(4) == 0 { NEVER } else { 1 };
        let times = (self.now, until);
        let leased = self.one.lease_share_if(self.leases, times, shared_from);
        if let Some(leased) = leased.await {
            let is_whole = leased.share == QueueShare::Whole;
            self.leased[usize::from(is_whole)] += 1;
            self.holders.push(Holder {
                lease: self.leases,
                until,
                taken: BTreeMap::new(),
            });
        }
    }

    /// Begins to send all due deliveries of a holder's share. No other holder whose lease lasts may
    /// have any of them.
    async fn take(&mut self, index: usize) {
        let holder = &self.holders[index];
        let Some(due) = self.one.take_due(lease(holder.lease), self.now).await else {
            return;
        };
        for other in self.holders.iter().filter(|one| one.lease != holder.lease) {
            let is_shared = due.iter().any(|due| other.taken.contains_key(&due.id));
            assert!(!is_shared || other.until <= self.now, "taken twice");
        }
        let delivered = due.iter().any(|due| self.delivered.contains(&due.id));
        assert!(!delivered, "taken after it was delivered");
        let taken = due.into_iter().map(|due| (due.id, due));
        self.holders[index].taken.extend(taken);
    }

    /// Settles what a holder has sent: half of it is delivered, the rest is sent again.
    async fn settle(&mut self, index: usize) {
        let sent = std::mem::take(&mut self.holders[index].taken);
        let (mut results, mut ends) = (Vec::new(), Vec::new());
        for due in sent.values() {
            let waits = NextStep::Wait {
                due_at: at(self.now + 1),
                ambiguous_since: None,
            };
            let (verdict, next) = if self.dice.roll(2) == 0 {
                ends.push(due.id);
                let delivered = ends_with(DeliveryStatus::Delivered);
                (AttemptVerdict::Delivered, delivered)
            } else {
                (AttemptVerdict::Retry, waits)
            };
            results.push(settled(due, verdict, next, at(self.now)));
        }
        let holder = &self.holders[index];
        let settlement = self.one.settlement(results, self.now);
        if self.one.settle(lease(holder.lease), settlement).await {
            for id in ends {
                assert!(self.delivered.insert(id), "delivered twice");
            }
        } else {
            assert!(holder.until <= self.now, "a valid lease was lost");
            self.holders.swap_remove(index);
        }
    }

    async fn renew(&mut self, index: usize) {
        let until = self.now + self.dice.seconds(12);
        let holder = &mut self.holders[index];
        if self.one.renew(holder.lease, until).await {
            holder.until = until;
        } else {
            assert!(holder.until <= self.now, "a valid lease was lost");
            self.holders.swap_remove(index);
        }
    }

    async fn step(&mut self) {
        let choice = self.dice.roll(10);
        let holders = u64::try_from(self.holders.len()).expect("few");
        if holders == 0 || choice < 2 {
            return self.acquire().await;
        }
        let index = usize::try_from(self.dice.roll(holders)).expect("few");
        match choice {
            2 | 3 => self.now += self.dice.seconds(8),
            4 | 5 => self.take(index).await,
            6 | 7 => self.settle(index).await,
            8 => self.renew(index).await,
            _ => {
                let holder = self.holders.swap_remove(index);
                self.one.release(holder.lease, self.now).await;
            }
        }
    }
}

/// Whatever processes do and whenever they disappear, no delivery has two holders at a time, no
/// valid lease is lost, and each delivery is delivered once.
pub async fn no_delivery_has_two_holders(store: &SharedStore) {
    let mut leased = [0; 2];
    for seed in 1..9 {
        let mut model = Model {
            one: backlog(store).await,
            dice: Dice(seed),
            now: 20,
            leases: 0,
            holders: Vec::new(),
            leased: [0; 2],
            delivered: BTreeSet::new(),
        };
        for _ in 0..120 {
            model.step().await;
        }
        for (sum, leases) in leased.iter_mut().zip(model.leased) {
            *sum += leases;
        }
        model.now += 100;
        model.holders.clear();
        model.leases += 1;
        let times = (model.now, model.now + 10);
        let last = model.one.lease_share_if(model.leases, times, NEVER).await;
        assert_eq!(last.expect("a lease").share, QueueShare::Whole);
        let rest = model.one.take_due(lease(model.leases), model.now).await;
        let rest: BTreeSet<DeliveryId> =
            rest.expect("deliveries").iter().map(|one| one.id).collect();
        assert!(rest.is_disjoint(&model.delivered));
        assert_eq!(rest.len() + model.delivered.len(), BACKLOG, "seed {seed}");
    }
    let is_covered = leased.iter().all(|leases| *leases > 10);
    assert!(is_covered, "too few leases of parts or wholes: {leased:?}");
}
