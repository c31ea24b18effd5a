//! The tables as `recording` reads and writes them.
//!
//! The writer is alone, so what is found is as it is until the batch is committed: nothing has to be locked.

use crate::Failure;
use rusqlite::Connection;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use tributary_recording::{Conflict, EngineTransaction};
use tributary_store::StoreError;

/// An open transaction.
pub(crate) struct SqliteTables<'a>(pub(crate) &'a Connection);

impl EngineTransaction for SqliteTables<'_> {
    type Failure = Failure;
}

impl tributary_recording::Tables for SqliteTables<'_> {}

impl From<Conflict> for Failure {
    fn from(_: Conflict) -> Self {
        Self::Store(StoreError::unavailable(
            "recording",
            "another writer was first: a bug",
        ))
    }
}

/// Runs a function of `recording`. Its statements are done when they are asked for, so it never waits.
pub(crate) fn run<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let work = pin!(work);
    match work.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(outcome) => outcome,
        Poll::Pending => Err(StoreError::unavailable("recording", "it waits: a bug").into()),
    }
}
