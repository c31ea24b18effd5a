//! Ends transactions whose caller stopped waiting, for example because its client disconnected.
//!
//! The connection is busy until the server has ended the transaction, so its permit is held until
//! then. Otherwise abandoned reports would use up the connections of the public endpoints. The query
//! of an abandoned report or single read is cancelled, so that this takes milliseconds.

use deadpool_postgres::Object;
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;
use tokio_postgres_rustls::MakeRustlsConnect;

/// How long the rollback of an abandoned transaction may take before its connection is dropped.
/// This is long, because a dropped session may survive on the server, for example while its commit
/// waits for a missing standby. Replacement connections would then use up the server's connections.
/// A connection to a dead peer fails much earlier.
const ROLLBACK_WAIT_MAX: Duration = Duration::from_mins(5);
/// How long the server may take to accept a cancellation. Without it, the query of a report runs until
/// its timeout.
const CANCEL_WAIT_MAX: Duration = Duration::from_secs(5);

/// A pooled connection with the permit to use it.
pub(crate) struct UsedConnection {
    connection: Object,
    permit: OwnedSemaphorePermit,
    /// Set for reports and single reads, whose query is cancelled when they are abandoned. Other reads
    /// have a time limit on the server, and a cancelled write might have been committed.
    cancels: Option<MakeRustlsConnect>,
}

impl UsedConnection {
    pub(crate) const fn new(
        connection: Object,
        permit: OwnedSemaphorePermit,
        cancels: Option<MakeRustlsConnect>,
    ) -> Self {
        Self {
            connection,
            permit,
            cancels,
        }
    }

    pub(crate) const fn object(&self) -> &Object {
        &self.connection
    }

    /// Closes the connection instead of returning it to the pool.
    pub(crate) fn close(self) {
        drop(Object::take(self.connection));
    }

    /// Rolls back in the background. Returns the connection to the pool only if the rollback
    /// succeeds and nothing was cancelled. A cancellation may reach the server late, and would then
    /// stop the query of the connection's next user.
    pub(crate) fn abandon(self) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return self.close();
        };
        runtime.spawn(async move {
            self.cancel_query().await;
            let rollback = self.connection.batch_execute("rollback");
            let undone = tokio::time::timeout(ROLLBACK_WAIT_MAX, rollback).await;
            if self.cancels.is_none() && matches!(undone, Ok(Ok(()))) {
                // The connection is back in the pool before another transaction may use it.
                drop(self.connection);
                drop(self.permit);
            } else {
                self.close();
            }
        });
    }

    async fn cancel_query(&self) {
        let Some(tls) = self.cancels.clone() else {
            return;
        };
        let token = self.connection.cancel_token();
        let cancelled = tokio::time::timeout(CANCEL_WAIT_MAX, token.cancel_query(tls)).await;
        if !matches!(cancelled, Ok(Ok(()))) {
            tracing::debug!("failed to cancel an abandoned query");
        }
    }
}
