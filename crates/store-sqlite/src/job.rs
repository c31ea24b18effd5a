//! Jobs for the writer: work in a transaction, with a reply to the caller after the commit.

use crate::Failure;
use crate::write_batch::WriteBatch;
use tokio::sync::oneshot;
use tracing::Span;
use tributary_store::StoreError;

/// How a job is isolated from the others in its batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JobIsolation {
    /// In a savepoint, which is rolled back if the job fails.
    Savepoint,
    /// In a savepoint, after storing the increments from earlier jobs. For work that merges
    /// increments.
    SavepointAfterIncrements,
    /// Without a savepoint. The job must not fail after writing.
    NoSavepoint,
}

/// What a job may do to the rows that the batch has cached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CacheEffect {
    /// May change apps, links, integrations or stored clicks, so the cache is cleared.
    Clears,
    /// Changes none of them, except that it may claim or keep a click.
    Keeps,
}

/// Work in a transaction, with a reply to the caller after the commit.
pub(crate) trait Job: Send {
    /// How the job is isolated.
    fn isolation(&self) -> JobIsolation;
    /// What the job may do to the cache.
    fn cache_effect(&self) -> CacheEffect;
    /// Runs the job. Returns false if the job failed.
    fn run(&mut self, batch: &WriteBatch<'_>) -> bool;
    /// Replies to the caller. If `committed` is false, nothing was stored.
    fn answer(self: Box<Self>, committed: bool);
}

/// A job and its waiting caller.
struct QueuedJob<T, F> {
    name: &'static str,
    isolation: JobIsolation,
    cache_effect: CacheEffect,
    work: Option<F>,
    outcome: Option<Result<T, StoreError>>,
    reply: oneshot::Sender<Result<T, StoreError>>,
    /// The caller's tracing span, so that the job's log lines are assigned to the caller's request.
    span: Span,
}

/// Creates a job. The receiver gets the reply.
pub(crate) fn new_job<T: Send + 'static>(
    name: &'static str,
    (isolation, cache_effect): (JobIsolation, CacheEffect),
    work: impl FnOnce(&WriteBatch<'_>) -> Result<T, Failure> + Send + 'static,
) -> (Box<dyn Job>, oneshot::Receiver<Result<T, StoreError>>) {
    let (reply, answer) = oneshot::channel();
    let task = QueuedJob {
        name,
        isolation,
        cache_effect,
        work: Some(work),
        outcome: None,
        reply,
        span: Span::current(),
    };
    (Box::new(task), answer)
}

impl<T, F> Job for QueuedJob<T, F>
where
    T: Send,
    F: FnOnce(&WriteBatch<'_>) -> Result<T, Failure> + Send,
{
    fn isolation(&self) -> JobIsolation {
        self.isolation
    }

    fn cache_effect(&self) -> CacheEffect {
        self.cache_effect
    }

    fn run(&mut self, batch: &WriteBatch<'_>) -> bool {
        let Some(work) = self.work.take() else {
            return false;
        };
        let name = self.name;
        let _entered = self.span.enter();
        // A panic is a bug in one job; the other jobs and the thread continue.
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| work(batch)))
            .unwrap_or_else(|_| Err(StoreError::unavailable(name, "bug: the job panicked").into()));
        let done = outcome.is_ok();
        self.outcome = Some(outcome.map_err(|failure| failure.into_store_error(name)));
        done
    }

    fn answer(self: Box<Self>, committed: bool) {
        let outcome = match self.outcome {
            Some(outcome) if committed => outcome,
            // Refusals become unavailable, too: they may depend on another job in the batch, which
            // was rolled back.
            _ => Err(StoreError::unavailable(
                self.name,
                "failed to commit the batch",
            )),
        };
        // The caller may have stopped waiting.
        let _gone = self.reply.send(outcome);
    }
}
