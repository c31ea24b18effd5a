//! Group commit: many small changes per transaction.
//!
//! Callers wait for the commit, not for a connection. Items that queue up while one batch commits
//! form the next batch, so a click or an event costs a row instead of a transaction. One batch runs
//! at a time. For some kinds of items, a second batch starts once enough items are waiting, so that
//! the database has work while the first batch syncs. Two concurrent batches behave like batches
//! from two nodes.
//!
//! On a distributed database, the items of each shard form batches of their own ([`Lane`]). So a
//! transaction needs one worker, and a worker that is down stops only its own apps.
//!
//! When the database rejects one item, the batch is written again item by item, so the other items
//! succeed. The same happens when every attempt ended in a conflict: in a large batch some item may
//! always conflict with another node, while a single item conflicts only a few times. So an item
//! that is written twice must count once.

mod lanes;

pub(crate) use lanes::Lane;

use crate::database_error::DatabaseError;
use lanes::Lanes;
use std::collections::HashMap;
use std::iter;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::Instant;
use tributary_domain::vocabulary::id::AppId;
use tributary_store::waiting_line::QUEUE_CHANGES_MAX;
use tributary_store::{StoreError, StoreResult};

/// Error for a caller beyond the limits of the queue.
const QUEUE_FULL: &str = "too many queued changes";
/// Maximum number of items per transaction. More would delay the first item for no benefit.
const BATCH_ITEMS_MAX: usize = 500;
/// Maximum number of rows per transaction. A batch with more rows would keep its devices locked for
/// too long. A single item with more rows is still written.
const BATCH_ROWS_MAX: usize = 1_000;
/// Number of waiting items that justifies a second concurrent batch.
const SECOND_BATCH_ITEMS_MIN: usize = 16;
/// Number of concurrent batches, where several are allowed: one can be evaluated while the other is
/// being committed.
pub(crate) const CONCURRENT_BATCHES: usize = 2;
/// How long a caller waits for its commit. After that, the caller gets an error, although the
/// commit may still succeed.
const COMMIT_WAIT_MAX: Duration = Duration::from_secs(10);
/// How long closing waits for queued items. By then, every caller has timed out anyway.
const CLOSE_WAIT_MAX: Duration = COMMIT_WAIT_MAX;

/// What decides in which shard an item is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ShardKey {
    /// The app.
    App(AppId),
    /// The app that the transaction finds by this name.
    Name(String),
}

/// An item that is written in a batch.
pub(crate) trait BatchItem: Clone + Send + Sync + 'static {
    /// Returns what decides in which shard the item is stored.
    fn shard_key(&self) -> ShardKey;

    /// Approximate number of rows that the item writes.
    fn rows(&self) -> usize {
        1
    }
}

/// A queue of items and the task that writes them in batches.
pub(crate) struct BatchWriter<T, A> {
    name: &'static str,
    /// `None` after closing. The task ends once the queue is empty.
    inbox: Mutex<Option<Inbox<T, A>>>,
    /// Permits to wait in the queue.
    places: Arc<Semaphore>,
    task: Mutex<Option<JoinHandle<()>>>,
}

type Inbox<T, A> = mpsc::UnboundedSender<(Lane, QueuedItem<T, A>)>;

struct QueuedItem<T, A> {
    item: T,
    reply: Reply<A>,
    queued_at: Instant,
    /// The item's place in the queue, until it is in a batch.
    _place: OwnedSemaphorePermit,
}

impl<T, A> BatchWriter<T, A>
where
    T: BatchItem,
    A: Send + 'static,
{
    /// Starts the task. `write` writes a batch in one transaction with this name and returns one
    /// result per item, in order.
    pub(crate) fn start<F>(
        name: &'static str,
        write: impl Fn(Arc<[T]>) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = StoreResult<Vec<A>>> + Send + 'static,
    {
        Self::start_concurrent(name, 1, write)
    }

    /// Like [`Self::start`], with up to `at_a_time` concurrent batches.
    pub(crate) fn start_concurrent<F>(
        name: &'static str,
        at_a_time: usize,
        write: impl Fn(Arc<[T]>) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = StoreResult<Vec<A>>> + Send + 'static,
    {
        let write = move |items| {
            let writing = write(items);
            async move { Ok(writing.await?.into_iter().map(Some).collect()) }
        };
        Self::start_partial(name, at_a_time, write)
    }

    /// Like [`Self::start_concurrent`], but `write` need not write all items. It returns `None` for
    /// the others, and gets them again with the rest of the batch.
    pub(crate) fn start_partial<F>(
        name: &'static str,
        at_a_time: usize,
        write: impl Fn(Arc<[T]>) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = StoreResult<Vec<Option<A>>>> + Send + 'static,
    {
        let (inbox, waiting) = mpsc::unbounded_channel();
        let task = tokio::spawn(write_batches(name, at_a_time, waiting, Arc::new(write)));
        Self {
            name,
            inbox: Mutex::new(Some(inbox)),
            places: Arc::new(Semaphore::new(QUEUE_CHANGES_MAX)),
            task: Mutex::new(Some(task)),
        }
    }

    /// Queues an item and waits for its commit.
    pub(crate) async fn write(&self, lane: Lane, item: T) -> StoreResult<A> {
        let name = self.name;
        let (reply, answer) = oneshot::channel();
        self.queue(lane, item, reply)
            .map_err(|why| StoreError::unavailable(name, why))?;
        match tokio::time::timeout(COMMIT_WAIT_MAX, answer).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) => Err(StoreError::unavailable(name, "the store is closed")),
            Err(_) => Err(StoreError::unavailable(
                name,
                "timed out waiting for the commit",
            )),
        }
    }

    fn queue(&self, lane: Lane, item: T, reply: Reply<A>) -> Result<(), &'static str> {
        let closed = "the store is closed";
        let inbox = self.inbox.lock().map_err(|_| closed)?;
        let inbox = inbox.as_ref().ok_or(closed)?;
        let place = self.places.clone().try_acquire_owned();
        let queued = QueuedItem {
            item,
            reply,
            queued_at: Instant::now(),
            _place: place.map_err(|_| QUEUE_FULL)?,
        };
        inbox.send((lane, queued)).map_err(|_| closed)
    }

    /// Rejects new items and writes the queued items.
    pub(crate) async fn close(&self) {
        drop(self.inbox.lock().ok().and_then(|mut inbox| inbox.take()));
        let task = self.task.lock().ok().and_then(|mut task| task.take());
        let Some(task) = task else { return };
        if !matches!(tokio::time::timeout(CLOSE_WAIT_MAX, task).await, Ok(Ok(()))) {
            tracing::error!(
                writer = self.name,
                "failed to write queued items before closing"
            );
        }
    }
}

async fn write_batches<T, A, F>(
    name: &'static str,
    at_a_time: usize,
    mut inbox: mpsc::UnboundedReceiver<(Lane, QueuedItem<T, A>)>,
    write: Arc<impl Fn(Arc<[T]>) -> F + Send + Sync + 'static>,
) where
    T: BatchItem,
    A: Send + 'static,
    F: Future<Output = StoreResult<Vec<Option<A>>>> + Send + 'static,
{
    let mut lanes = Lanes::new(at_a_time);
    let mut under_way = JoinSet::new();
    let mut lane_of_task = HashMap::new();
    let mut is_open = true;
    while is_open || !under_way.is_empty() {
        tokio::select! {
            received = inbox.recv(), if is_open => match received {
                Some((lane, item)) => queue_item(name, &mut lanes, lane, item),
                None => is_open = false,
            },
            Some(ended) = under_way.join_next_with_id(), if !under_way.is_empty() => {
                let (task, is_failing) = match ended {
                    Ok((task, is_failing)) => (task, is_failing),
                    Err(error) => (error.id(), true),
                };
                if let Some(lane) = lane_of_task.remove(&task) {
                    lanes.end_batch(&lane, is_failing);
                }
            }
        }
        while let Ok((lane, item)) = inbox.try_recv() {
            queue_item(name, &mut lanes, lane, item);
        }
        while let Some((lane, batch)) = lanes.start_batch() {
            let task = under_way.spawn(write_batch(name, batch, write.clone()));
            lane_of_task.insert(task.id(), lane);
        }
    }
}

fn queue_item<T: BatchItem, A>(
    name: &'static str,
    lanes: &mut Lanes<T, A>,
    lane: Lane,
    item: QueuedItem<T, A>,
) {
    if let Err(QueuedItem { reply, .. }) = lanes.push(lane, item) {
        send_error(name, vec![reply], StoreError::unavailable(name, QUEUE_FULL));
    }
}

/// Writes a batch and sends the replies. If a write leaves out items, the next one gets the
/// remaining items, but at most twice as many as the last one wrote. Otherwise the last items would
/// be read over and over again. Returns whether the database was unavailable.
async fn write_batch<T, A, F>(
    name: &'static str,
    batch: Vec<QueuedItem<T, A>>,
    write: Arc<impl Fn(Arc<[T]>) -> F + Send + Sync + 'static>,
) -> bool
where
    T: BatchItem,
    A: Send + 'static,
    F: Future<Output = StoreResult<Vec<Option<A>>>> + Send + 'static,
{
    let (items, mut replies): (Vec<T>, Replies<A>) = batch
        .into_iter()
        .map(|QueuedItem { item, reply, .. }| (item, reply))
        .unzip();
    let mut items: Arc<[T]> = items.into();
    let mut size = items.len();
    let mut is_failing = false;
    while !items.is_empty() {
        let part: Arc<[T]> = if size < items.len() {
            items.iter().take(size).cloned().collect()
        } else {
            items.clone()
        };
        let later = replies.split_off(part.len().min(replies.len()));
        let left_out = match run_isolated(name, write(part.clone())).await {
            Ok(answers) => answer(&part, replies, answers),
            Err(error) if part.len() > 1 && may_succeed_alone(&error) => {
                tracing::warn!(writer = name, %error, "retrying batch item by item");
                for (item, reply) in part.iter().zip(replies) {
                    let alone: Arc<[T]> = [item.clone()].into();
                    match run_isolated(name, write(alone.clone())).await {
                        // A caller without a result gets an error, because its reply is dropped.
                        Ok(answers) => drop(answer(&alone, vec![reply], answers)),
                        Err(error) => send_error(name, vec![reply], error),
                    }
                }
                Vec::new()
            }
            Err(error) => {
                // A database that rejects one item is available.
                let is_unavailable = matches!(error, StoreError::Unavailable { .. });
                is_failing = is_unavailable && !may_succeed_alone(&error);
                send_error(name, replies, error);
                Vec::new()
            }
        };
        let written = part.len() - left_out.len();
        let (left_out, mut again): (Vec<T>, Replies<A>) = left_out.into_iter().unzip();
        again.extend(later);
        replies = again;
        if written == 0 {
            let error = StoreError::unavailable(name, "bug: missing result");
            send_error(name, replies, error);
            return false;
        }
        size = written.saturating_mul(2);
        let rest = items.iter().skip(part.len()).cloned();
        items = left_out.into_iter().chain(rest).collect();
    }
    is_failing
}

/// Runs the write in its own task, so that a panic fails one batch and the loop continues.
async fn run_isolated<A: Send + 'static>(
    name: &'static str,
    writing: impl Future<Output = StoreResult<Vec<A>>> + Send + 'static,
) -> StoreResult<Vec<A>> {
    let done = tokio::spawn(writing).await;
    done.unwrap_or_else(|_| Err(StoreError::unavailable(name, "bug: the write panicked")))
}

/// Returns whether the items may succeed one by one: the database rejected one item, or one item
/// conflicts with another node.
fn may_succeed_alone(error: &StoreError) -> bool {
    match error {
        StoreError::Refused(_) | StoreError::Corrupt { .. } => true,
        StoreError::Unavailable { source, .. } => source
            .downcast_ref::<DatabaseError>()
            .is_some_and(|error| error.is_value_error() || error.is_conflict()),
    }
}

type Reply<A> = oneshot::Sender<StoreResult<A>>;
type Replies<A> = Vec<Reply<A>>;

/// Sends each caller its result. Returns the items without a result.
fn answer<T: Clone, A>(
    items: &[T],
    replies: Replies<A>,
    answers: Vec<Option<A>>,
) -> Vec<(T, Reply<A>)> {
    let answers = answers.into_iter().chain(iter::repeat_with(|| None));
    let mut left_out = Vec::new();
    for ((item, reply), answer) in items.iter().zip(replies).zip(answers) {
        match answer {
            Some(answer) => {
                // The caller may have stopped waiting.
                let _gone = reply.send(Ok(answer));
            }
            None => left_out.push((item.clone(), reply)),
        }
    }
    left_out
}

/// Sends each caller the error when a batch was not written.
fn send_error<A>(name: &'static str, mut replies: Replies<A>, error: StoreError) {
    let text = match &error {
        StoreError::Unavailable { source, .. } => source.to_string(),
        other => other.to_string(),
    };
    let last = replies.pop();
    for reply in replies {
        let error = DatabaseError::new(text.clone());
        let _gone = reply.send(Err(StoreError::unavailable(name, error)));
    }
    // The last caller gets the original error, so a single caller gets it with its type.
    if let Some(reply) = last {
        let _gone = reply.send(Err(error));
    }
}

#[cfg(test)]
mod tests;
