//! A few connections that only read, each on a snapshot of its own. In WAL mode they never wait for the
//! writer, nor it for them.

use crate::Failure;
use crate::connection::{self, OpenError};

use rusqlite::Connection;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Semaphore;
use tributary_store::StoreError;

/// Connections that read. More than the cores would only wait for each other.
const READERS: usize = 4;
/// How long to wait for a free one.
const READER_WAIT_MAX: Duration = Duration::from_secs(5);

pub(crate) struct Readers {
    /// As many permits as there are connections in `idle` or in use.
    permits: Arc<Semaphore>,
    /// A std mutex: nothing is awaited while it is held.
    idle: Arc<Mutex<Vec<Connection>>>,
}

impl Readers {
    pub(crate) fn open(path: &Path) -> Result<Self, OpenError> {
        let idle: Vec<Connection> = (0..READERS)
            .map(|_| connection::open_for_reading(path))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            permits: Arc::new(Semaphore::new(READERS)),
            idle: Arc::new(Mutex::new(idle)),
        })
    }

    pub(crate) async fn run<T: Send + 'static>(
        &self,
        name: &'static str,
        work: impl FnOnce(&Connection) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, StoreError> {
        let permit =
            tokio::time::timeout(READER_WAIT_MAX, self.permits.clone().acquire_owned()).await;
        let Ok(Ok(permit)) = permit else {
            return Err(StoreError::unavailable(name, "no reader is free"));
        };
        let idle = self.idle.clone();
        let done = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            let lock = || {
                idle.lock()
                    .unwrap_or_else(std::sync::PoisonError::into_inner)
            };
            let Some(connection) = lock().pop() else {
                return Err(StoreError::unavailable(name, "the store is closed"));
            };
            // A panic is a bug in one question; the connection goes back all the same.
            let attempt = || snapshot(&connection, work);
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(attempt));
            lock().push(connection);
            let bug = |_| Err(StoreError::unavailable(name, "a panic").into());
            outcome
                .unwrap_or_else(bug)
                .map_err(|failure| failure.into_store_error(name))
        });
        done.await
            .unwrap_or_else(|_| Err(StoreError::unavailable(name, "a panic")))
    }

    /// Lets go of the connections; readers that are under way finish first.
    pub(crate) async fn close(&self) {
        let readers = u32::try_from(READERS).unwrap_or(u32::MAX);
        if let Ok(all) = self.permits.acquire_many(readers).await {
            self.permits.close();
            drop(all);
        }
        self.idle
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .clear();
    }
}

/// Several statements of one read see one state. The statements around them are kept prepared: to parse them anew
/// takes as long as a short read.
fn snapshot<T>(
    connection: &Connection,
    work: impl FnOnce(&Connection) -> Result<T, Failure>,
) -> Result<T, Failure> {
    connection.prepare_cached("begin deferred")?.execute(())?;
    let _ended = End(connection);
    work(connection)
}

/// Ends the snapshot, whatever became of the work. There is nothing to be undone in it.
struct End<'a>(&'a Connection);

impl Drop for End<'_> {
    fn drop(&mut self) {
        let ended = self
            .0
            .prepare_cached("rollback")
            .and_then(|mut statement| statement.execute(()));
        if let Err(error) = ended {
            tracing::error!(%error, "a snapshot could not be ended");
        }
    }
}
