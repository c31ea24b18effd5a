//! What the writer is handed: something to be done in a transaction, and answered once it lasts.

use crate::Failure;
use crate::batch::Batch;
use tokio::sync::oneshot;
use tracing::Span;
use tributary_store::StoreError;

/// How a job that fails is undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Undo {
    /// Alone, whatever it has written by then.
    Alone,
    /// As alone, by work that adds what was counted: what the jobs before it counted is stored first.
    AloneAfterCounts,
    /// There is nothing to undo: what can be refused is refused before anything is written.
    Nothing,
}

/// Something to be done in a transaction and answered after its commit.
pub(crate) trait Job: Send {
    /// How it is undone.
    fn undo(&self) -> Undo;
    /// Does it; false when its part must be undone.
    fn run(&mut self, batch: &Batch<'_>) -> bool;
    /// Answers. `committed` false: whatever was done is gone.
    fn answer(self: Box<Self>, committed: bool);
}

/// A job and whoever waits for it.
struct Task<T, F> {
    name: &'static str,
    undo: Undo,
    work: Option<F>,
    outcome: Option<Result<T, StoreError>>,
    reply: oneshot::Sender<Result<T, StoreError>>,
    /// The request or worker that handed it over, for log lines of the work.
    span: Span,
}

/// A job, and where its answer will be.
pub(crate) fn task<T: Send + 'static>(
    name: &'static str,
    undo: Undo,
    work: impl FnOnce(&Batch<'_>) -> Result<T, Failure> + Send + 'static,
) -> (Box<dyn Job>, oneshot::Receiver<Result<T, StoreError>>) {
    let (reply, answer) = oneshot::channel();
    let task = Task {
        name,
        undo,
        work: Some(work),
        outcome: None,
        reply,
        span: Span::current(),
    };
    (Box::new(task), answer)
}

impl<T, F> Job for Task<T, F>
where
    T: Send,
    F: FnOnce(&Batch<'_>) -> Result<T, Failure> + Send,
{
    fn undo(&self) -> Undo {
        self.undo
    }

    fn run(&mut self, batch: &Batch<'_>) -> bool {
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
