//! Statements that are sent without waiting for the results of earlier ones.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use tokio::sync::MutexGuard;

/// Waits for a statement. Releases the turn once the first poll has sent it.
pub(crate) async fn send_in_turn<T, F>(
    mut turn: MutexGuard<'_, u64>,
    mut statement: Pin<Box<F>>,
) -> T
where
    F: Future<Output = T>,
{
    let first = poll_fn(|context| Poll::Ready(statement.as_mut().poll(context))).await;
    *turn += 1;
    drop(turn);
    match first {
        Poll::Ready(outcome) => outcome,
        Poll::Pending => statement.await,
    }
}

/// Sends all statements with the first poll, in order, and waits for all of them. Returns the first
/// error.
pub(crate) async fn send_all<T, E, F>(statements: Vec<Pin<Box<F>>>) -> Result<Vec<T>, E>
where
    F: Future<Output = Result<T, E>> + ?Sized,
{
    let mut outcomes: Vec<Option<Result<T, E>>> = statements.iter().map(|_| None).collect();
    let mut running: Vec<_> = statements.into_iter().enumerate().collect();
    poll_fn(|context| {
        running.retain_mut(|(index, statement)| {
            let Poll::Ready(outcome) = statement.as_mut().poll(context) else {
                return true;
            };
            outcomes[*index] = Some(outcome);
            false
        });
        if running.is_empty() {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
    outcomes.into_iter().flatten().collect()
}
