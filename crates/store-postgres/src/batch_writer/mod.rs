//! Many small changes in few transactions.
//!
//! Callers wait for the commit, not for a connection. Whatever queued up while the last batch was being
//! committed becomes the next batch, so a click or an event costs a row and not a transaction. One batch is
//! under way at a time; of some kinds a second one beside it, once enough is waiting for it, so that the database
//! has something to do while the first is being synced. Two batches are to each other what two nodes are.
//!
//! When the database finds fault with one item, the batch is written again one by one: the others are not to
//! lose by it. So it is when other nodes were first every time: among many items there may always be one that
//! somebody else is just deciding about, while a single one is settled as soon as somebody was first. Each item
//! therefore has to be something that may be written twice and counts once.

use crate::database_error::DatabaseError;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinHandle, JoinSet};
use tributary_store::{StoreError, StoreResult};

/// Items that may wait. Beyond it a caller is told at once to come back later, rather than kept waiting for
/// an answer that its client will not stay for.
const QUEUE_ITEMS_MAX: usize = 8_192;
/// Items of one transaction. More would make the first one wait for the last without saving anything.
const BATCH_ITEMS_MAX: usize = 500;
/// Rows of one transaction. An item can make many: a full batch of them would keep its devices locked for too
/// long, and what it counted would be long to add. One item is written however many it makes.
const BATCH_ROWS_MAX: usize = 1_000;
/// Items that make a second batch worth a transaction.
const SECOND_BATCH_ITEMS_MIN: usize = 16;
/// How long a caller waits for its commit before it is told that the outcome is unknown.
const COMMIT_WAIT_MAX: Duration = Duration::from_secs(10);
/// How long closing waits for what is queued. By then everybody who waited has an answer.
const CLOSE_WAIT_MAX: Duration = COMMIT_WAIT_MAX;

/// Something that is written together with others.
pub(crate) trait BatchItem: Clone + Send + Sync + 'static {
    /// How many rows it makes, more or less.
    fn rows(&self) -> usize {
        1
    }
}

/// A queue of items, written in batches by a task of its own.
pub(crate) struct BatchWriter<T, A> {
    name: &'static str,
    /// Taken away by closing; the task ends when it has worked off what is in it.
    inbox: Mutex<Option<mpsc::Sender<QueuedItem<T, A>>>>,
    task: Mutex<Option<JoinHandle<()>>>,
}

struct QueuedItem<T, A> {
    item: T,
    reply: oneshot::Sender<StoreResult<A>>,
}

impl<T, A> BatchWriter<T, A>
where
    T: BatchItem,
    A: Send + 'static,
{
    /// Starts the task. `write` writes a batch in one transaction of this name, and gives an answer for each
    /// item in the order of the items.
    pub(crate) fn start<F>(
        name: &'static str,
        write: impl Fn(Arc<[T]>) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = StoreResult<Vec<A>>> + Send + 'static,
    {
        Self::start_concurrent(name, 1, write)
    }

    /// As [`Self::start`], with so many batches under way at a time.
    pub(crate) fn start_concurrent<F>(
        name: &'static str,
        at_a_time: usize,
        write: impl Fn(Arc<[T]>) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = StoreResult<Vec<A>>> + Send + 'static,
    {
        let (inbox, waiting) = mpsc::channel(QUEUE_ITEMS_MAX);
        let queue = Queue {
            inbox: waiting,
            taken: VecDeque::new(),
        };
        let task = tokio::spawn(write_batches(name, at_a_time, queue, Arc::new(write)));
        Self {
            name,
            inbox: Mutex::new(Some(inbox)),
            task: Mutex::new(Some(task)),
        }
    }

    /// Queues an item and waits for its commit.
    pub(crate) async fn write(&self, item: T) -> StoreResult<A> {
        let name = self.name;
        let (reply, answer) = oneshot::channel();
        self.queue(QueuedItem { item, reply })
            .map_err(|why| StoreError::unavailable(name, why))?;
        match tokio::time::timeout(COMMIT_WAIT_MAX, answer).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) => Err(StoreError::unavailable(name, "the store is closed")),
            Err(_) => Err(StoreError::unavailable(name, "the commit takes too long")),
        }
    }

    fn queue(&self, waiting: QueuedItem<T, A>) -> Result<(), &'static str> {
        let closed = "the store is closed";
        let inbox = self.inbox.lock().map_err(|_| closed)?;
        match inbox.as_ref().ok_or(closed)?.try_send(waiting) {
            Ok(()) => Ok(()),
            Err(TrySendError::Full(_)) => Err("too many changes are waiting"),
            Err(TrySendError::Closed(_)) => Err(closed),
        }
    }

    /// Takes nothing new, and works off what is waiting.
    pub(crate) async fn close(&self) {
        drop(self.inbox.lock().ok().and_then(|mut inbox| inbox.take()));
        let task = self.task.lock().ok().and_then(|mut task| task.take());
        let Some(task) = task else { return };
        if !matches!(tokio::time::timeout(CLOSE_WAIT_MAX, task).await, Ok(Ok(()))) {
            tracing::error!(batches = self.name, "what was waiting could not be written");
        }
    }
}

/// What waits to be written, in the order of arrival.
struct Queue<T, A> {
    inbox: mpsc::Receiver<QueuedItem<T, A>>,
    /// Taken out, and not in a batch yet: the first of the next one.
    taken: VecDeque<QueuedItem<T, A>>,
}

impl<T: BatchItem, A> Queue<T, A> {
    /// Waits for something, and takes with it what is there and fits; nothing once the queue is closed and
    /// worked off.
    async fn next_batch(&mut self) -> Vec<QueuedItem<T, A>> {
        let mut batch = Vec::new();
        let mut rows = 0;
        let mut next = match self.taken.pop_front() {
            Some(first) => Some(first),
            None => self.inbox.recv().await,
        };
        while let Some(waiting) = next {
            rows += waiting.item.rows();
            if rows > BATCH_ROWS_MAX && !batch.is_empty() {
                self.taken.push_front(waiting);
                break;
            }
            batch.push(waiting);
            if batch.len() == BATCH_ITEMS_MAX {
                break;
            }
            next = self
                .taken
                .pop_front()
                .or_else(|| self.inbox.try_recv().ok());
        }
        batch
    }

    /// Waits until there is enough for a batch beside another one; for ever once the queue is closed, since the
    /// other one's end is waited for, too.
    async fn wait_for_second_batch(&mut self) {
        while self.taken.len() < SECOND_BATCH_ITEMS_MIN {
            match self.inbox.recv().await {
                Some(waiting) => self.taken.push_back(waiting),
                None => std::future::pending().await,
            }
        }
    }
}

async fn write_batches<T, A, F>(
    name: &'static str,
    at_a_time: usize,
    mut queue: Queue<T, A>,
    write: Arc<impl Fn(Arc<[T]>) -> F + Send + Sync + 'static>,
) where
    T: BatchItem,
    A: Send + 'static,
    F: Future<Output = StoreResult<Vec<A>>> + Send + 'static,
{
    let mut under_way = JoinSet::new();
    loop {
        if under_way.len() >= at_a_time {
            under_way.join_next().await;
        }
        while !under_way.is_empty() {
            tokio::select! {
                _ended = under_way.join_next() => {}
                () = queue.wait_for_second_batch() => break,
            }
        }
        let batch = queue.next_batch().await;
        if batch.is_empty() {
            return;
        }
        under_way.spawn(write_batch(name, batch, write.clone()));
    }
}

/// Writes a batch and answers everybody in it.
async fn write_batch<T, A, F>(
    name: &'static str,
    batch: Vec<QueuedItem<T, A>>,
    write: Arc<impl Fn(Arc<[T]>) -> F + Send + Sync + 'static>,
) where
    T: BatchItem,
    A: Send + 'static,
    F: Future<Output = StoreResult<Vec<A>>> + Send + 'static,
{
    let (items, replies): (Vec<T>, Vec<_>) = batch
        .into_iter()
        .map(|QueuedItem { item, reply }| (item, reply))
        .unzip();
    let items: Arc<[T]> = items.into();
    match run_isolated(name, write(items.clone())).await {
        Ok(answers) => answer(name, replies, answers),
        Err(error) if items.len() > 1 && may_succeed_alone(&error) => {
            tracing::warn!(batches = name, %error, "a batch is written one by one");
            for (item, reply) in items.iter().zip(replies) {
                let outcome = run_isolated(name, write([item.clone()].into())).await;
                match outcome {
                    Ok(answers) => answer(name, vec![reply], answers),
                    Err(error) => send_error(name, vec![reply], error),
                }
            }
        }
        Err(error) => send_error(name, replies, error),
    }
}

/// Runs it apart: a panic is a bug in one batch, and the task goes on.
async fn run_isolated<A: Send + 'static>(
    name: &'static str,
    writing: impl Future<Output = StoreResult<Vec<A>>> + Send + 'static,
) -> StoreResult<Vec<A>> {
    let done = tokio::spawn(writing).await;
    done.unwrap_or_else(|_| Err(StoreError::unavailable(name, "a panic")))
}

/// Whether items may fare better alone: one is at fault, and not the database, or is decided about elsewhere.
fn may_succeed_alone(error: &StoreError) -> bool {
    match error {
        StoreError::Refused(_) | StoreError::Corrupt { .. } => true,
        StoreError::Unavailable { source, .. } => source
            .downcast_ref::<DatabaseError>()
            .is_some_and(|fault| fault.is_value_error() || fault.is_conflict()),
    }
}

type Replies<A> = Vec<oneshot::Sender<StoreResult<A>>>;

/// Answers each. Whoever asked may have gone away.
fn answer<A>(name: &'static str, replies: Replies<A>, answers: Vec<A>) {
    let missing = || Err(StoreError::unavailable(name, "an answer is missing: a bug"));
    let answers = answers.into_iter().map(Ok);
    for (reply, answer) in replies
        .into_iter()
        .zip(answers.chain(std::iter::repeat_with(missing)))
    {
        let _gone = reply.send(answer);
    }
}

/// Tells each that nothing was written.
fn send_error<A>(name: &'static str, mut replies: Replies<A>, error: StoreError) {
    let text = match &error {
        StoreError::Unavailable { source, .. } => source.to_string(),
        other => other.to_string(),
    };
    let last = replies.pop();
    for reply in replies {
        let fault = DatabaseError::new(text.clone());
        let _gone = reply.send(Err(StoreError::unavailable(name, fault)));
    }
    // One of them can have the error itself, and where there is only one, it is its own.
    if let Some(reply) = last {
        let _gone = reply.send(Err(error));
    }
}

#[cfg(test)]
mod tests;
