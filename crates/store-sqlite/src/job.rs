//! What the writer is handed: something to be done in a transaction, and answered once it lasts.

use crate::Failure;
use crate::write_batch::WriteBatch;
use tokio::sync::oneshot;
use tracing::Span;
use tributary_store::StoreError;

/// How a job that fails is undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JobIsolation {
    /// Alone, whatever it has written by then.
    Savepoint,
    /// As alone, by work that adds what was counted: what the jobs before it counted is stored first.
    SavepointAfterIncrements,
    /// There is nothing to undo: what can be refused is refused before anything is written.
    NoSavepoint,
}

/// Something to be done in a transaction and answered after its commit.
pub(crate) trait Job: Send {
    /// How it is undone.
    fn isolation(&self) -> JobIsolation;
    /// Does it; false when its part must be undone.
    fn run(&mut self, batch: &WriteBatch<'_>) -> bool;
    /// Answers. `committed` false: whatever was done is gone.
    fn answer(self: Box<Self>, committed: bool);
}

/// A job and whoever waits for it.
struct QueuedJob<T, F> {
    name: &'static str,
    isolation: JobIsolation,
    work: Option<F>,
    outcome: Option<Result<T, StoreError>>,
    reply: oneshot::Sender<Result<T, StoreError>>,
    /// The request or worker that handed it over, for log lines of the work.
    span: Span,
}

/// A job, and where its answer will be.
pub(crate) fn new_job<T: Send + 'static>(
    name: &'static str,
    undo: JobIsolation,
    work: impl FnOnce(&WriteBatch<'_>) -> Result<T, Failure> + Send + 'static,
) -> (Box<dyn Job>, oneshot::Receiver<Result<T, StoreError>>) {
    let (reply, answer) = oneshot::channel();
    let task = QueuedJob {
        name,
        isolation: undo,
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

    fn run(&mut self, batch: &WriteBatch<'_>) -> bool {
        let Some(work) = self.work.take() else {
            return false;
        };
        let name = self.name;
        let _entered = self.span.enter();
        // A panic is a bug in one job; the others, and the thread, go on.
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| work(batch)))
            .unwrap_or_else(|_| Err(StoreError::unavailable(name, "a panic").into()));
        let done = outcome.is_ok();
        self.outcome = Some(outcome.map_err(|failure| failure.into_store_error(name)));
        done
    }

    fn answer(self: Box<Self>, committed: bool) {
        let outcome = match self.outcome {
            Some(outcome) if committed => outcome,
            // Refusals, too: what this job was compared with may be another job of the batch, which is gone.
            _ => Err(StoreError::unavailable(
                self.name,
                "the batch could not be committed",
            )),
        };
        // Whoever asked may have gone away.
        let _gone = self.reply.send(outcome);
    }
}
