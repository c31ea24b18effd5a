//! The tables as `recording` uses them.
//!
//! There is only one writer, so facts that were read stay valid until the commit, and nothing needs
//! locking.

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
    const IS_SOLE_WRITER: bool = true;
}

impl tributary_recording::Tables for SqliteTables<'_> {}

impl From<Conflict> for Failure {
    fn from(_: Conflict) -> Self {
        Self::Store(StoreError::unavailable(
            "recording",
            "bug: conflict with another writer",
        ))
    }
}

/// Runs a function from `recording`. Its statements are synchronous, so the future never waits.
pub(crate) fn run<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let work = pin!(work);
    match work.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(outcome) => outcome,
        Poll::Pending => {
            Err(StoreError::unavailable("recording", "bug: the future is pending").into())
        }
    }
}
