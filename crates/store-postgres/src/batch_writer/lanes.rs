//! The queued items, in lanes. Items of one lane may share a transaction.

use super::{BATCH_ITEMS_MAX, BATCH_ROWS_MAX, BatchItem, QueuedItem, SECOND_BATCH_ITEMS_MIN};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
use tributary_store::waiting_line::is_overloaded;

/// Number of concurrent batches of all lanes, beyond which more batches would only wait for
/// connections. Items that queue up meanwhile form larger batches.
const BATCHES_MAX: usize = 4;
/// Number of concurrent batches of failing lanes. Otherwise, batches that wait for a server that does
/// not respond would keep the other lanes waiting.
const FAILING_BATCHES_MAX: usize = 1;

/// Identifies the items that may share a transaction.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Lane {
    /// All items, because the database is a single server.
    Shared,
    /// Items of apps in this shard.
    Shard(i64),
    /// Items of one app, which only the transaction looks up, by this name.
    Name(String),
}

struct LaneQueue<T, A> {
    waiting: VecDeque<QueuedItem<T, A>>,
    /// Number of batches under way.
    under_way: usize,
    /// Whether the last batch failed.
    is_failing: bool,
}

/// Queued items in order of arrival, by lane.
pub(super) struct Lanes<T, A> {
    lanes: BTreeMap<Lane, LaneQueue<T, A>>,
    /// Maximum number of concurrent batches of a lane.
    at_a_time: usize,
    /// The lane of the latest batch. The next batch is of a lane after it.
    latest: Option<Lane>,
}

impl<T: BatchItem, A> Lanes<T, A> {
    pub(super) fn new(at_a_time: usize) -> Self {
        Self {
            lanes: BTreeMap::new(),
            at_a_time,
            latest: None,
        }
    }

    /// Queues an item. Returns the item if its lane is overloaded, or if it is failing and has a whole
    /// batch waiting, because the item would take the place of items that can be written.
    pub(super) fn push(
        &mut self,
        lane: Lane,
        item: QueuedItem<T, A>,
    ) -> Result<(), QueuedItem<T, A>> {
        let queue = self.lanes.entry(lane).or_insert_with(|| LaneQueue {
            waiting: VecDeque::new(),
            under_way: 0,
            is_failing: false,
        });
        let (waiting, first) = (queue.waiting.len(), queue.waiting.front());
        let first_waits = first.map_or(Duration::ZERO, |first| {
            item.queued_at.saturating_duration_since(first.queued_at)
        });
        if is_overloaded(waiting, BATCH_ITEMS_MAX, first_waits)
            || (queue.is_failing && waiting >= BATCH_ITEMS_MAX)
        {
            return Err(item);
        }
        queue.waiting.push_back(item);
        Ok(())
    }

    /// Returns the next batch that may start, if any. Lanes take turns.
    pub(super) fn start_batch(&mut self) -> Option<(Lane, Vec<QueuedItem<T, A>>)> {
        let under_way = |failing: bool| -> usize {
            let lanes = self.lanes.values();
            let counted = lanes.filter(|lane| lane.is_failing || !failing);
            counted.map(|lane| lane.under_way).sum()
        };
        if under_way(false) >= BATCHES_MAX {
            return None;
        }
        let may_fail = under_way(true) < FAILING_BATCHES_MAX;
        let may_start = |queue: &LaneQueue<T, A>| {
            let enough = if queue.under_way == 0 {
                1
            } else {
                SECOND_BATCH_ITEMS_MIN
            };
            queue.waiting.len() >= enough
                && queue.under_way < self.at_a_time
                && (may_fail || !queue.is_failing)
        };
        let startable = |(lane, queue): (&Lane, &LaneQueue<T, A>)| {
            may_start(queue).then(|| (Some(lane) <= self.latest.as_ref(), lane.clone()))
        };
        let (_, lane) = self.lanes.iter().filter_map(startable).min()?;
        self.latest = Some(lane.clone());
        let queue = self.lanes.get_mut(&lane)?;
        queue.under_way += 1;
        Some((lane, queue.take_batch()))
    }

    /// Records that a batch has ended. A single server has no other lanes to protect, so its lane
    /// never counts as failing: items wait for the server to come back.
    pub(super) fn end_batch(&mut self, lane: &Lane, is_failing: bool) {
        let Some(queue) = self.lanes.get_mut(lane) else {
            return;
        };
        queue.under_way = queue.under_way.saturating_sub(1);
        queue.is_failing = is_failing && *lane != Lane::Shared;
        let is_idle = queue.under_way == 0 && queue.waiting.is_empty();
        // There are few shards, but any number of names.
        if is_idle && (!queue.is_failing || matches!(lane, Lane::Name(_))) {
            self.lanes.remove(lane);
        }
    }
}

impl<T: BatchItem, A> LaneQueue<T, A> {
    /// Takes as many items as fit into a batch.
    fn take_batch(&mut self) -> Vec<QueuedItem<T, A>> {
        let mut batch = Vec::new();
        let mut rows = 0;
        while let Some(waiting) = self.waiting.pop_front() {
            rows += waiting.item.rows();
            if rows > BATCH_ROWS_MAX && !batch.is_empty() {
                self.waiting.push_front(waiting);
                break;
            }
            batch.push(waiting);
            if batch.len() == BATCH_ITEMS_MAX {
                break;
            }
        }
        batch
    }
}
