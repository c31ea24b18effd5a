//! Follows the secret key that the database names, and tells which keys this node knows.
//!
//! A node that does not know the new key cannot read what the others store, so it stops.

use crate::config::Config;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tributary_domain::keyring::Keyring;
use tributary_domain::keyring::rotation::{KeyHolder, KeyMismatch, NODE_LIFETIME};
use tributary_domain::runtime::Runtime;
use tributary_store::{Store, StoreResult};

/// How often a node looks which key is in use. Until it has looked, it cannot store credentials.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// How long nodes need to follow a new key: a look, and time for slow ones.
pub(crate) const KEYS_FOLLOWED_WITHIN: Duration = Duration::from_secs(3);
/// Looks between two notes of the keys that this node knows.
const LOOKS_PER_NOTE: u32 = 20;

/// Follows the key in use.
pub(crate) struct KeyWatch {
    store: Arc<dyn Store>,
    runtime: Runtime,
    keyring: Keyring,
    id: [u8; 16],
    name: String,
}

impl KeyWatch {
    /// Creates the watch.
    pub(crate) fn new(
        config: &Config,
        store: Arc<dyn Store>,
        runtime: Runtime,
        keyring: Keyring,
    ) -> Self {
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let host = match host.trim() {
            "" => "node",
            host => host,
        };
        Self {
            name: format!("{host}:{}", config.listen.port()),
            id: runtime.random_bytes(),
            store,
            runtime,
            keyring,
        }
    }

    /// Notes which keys this node knows. The node must not serve before, so that no rotation begins
    /// without it.
    pub(crate) async fn note(&self) -> StoreResult<()> {
        let holder = KeyHolder {
            id: self.id,
            name: self.name.clone(),
            keys: self.keyring.known().ids(),
            seen_at: self.runtime.now(),
        };
        self.store.note_key_holder(holder).await
    }

    /// Looks until `stop` completes. Sends the reason through `failed` and ends if the node does not
    /// know the key in use.
    pub(crate) async fn run(
        self,
        failed: watch::Sender<Option<KeyMismatch>>,
        stop: impl Future<Output = ()>,
    ) {
        let mut stop = std::pin::pin!(stop);
        let mut looks: u32 = 0;
        loop {
            tokio::select! {
                () = &mut stop => break,
                () = tokio::time::sleep(LOOK_INTERVAL) => {}
            }
            match self.look().await {
                Ok(Ok(true)) => tracing::info!("a rotation of the secret key: using the new key"),
                Ok(Ok(false)) => {}
                Ok(Err(mismatch)) => {
                    failed.send_replace(Some(mismatch));
                    break;
                }
                // The database is away; then nothing is stored either.
                Err(error) => tracing::debug!(%error, "failed to look which secret key is in use"),
            }
            looks += 1;
            if looks.is_multiple_of(LOOKS_PER_NOTE)
                && let Err(error) = self.note().await
            {
                tracing::debug!(%error, "failed to note the known secret keys");
            }
        }
        // Otherwise the node counts for a while.
        if let Err(error) = self.store.forget_key_holder(self.id).await {
            let seconds = NODE_LIFETIME.as_secs();
            tracing::debug!(%error, seconds, "failed to leave the list of nodes");
        }
    }

    async fn look(&self) -> StoreResult<Result<bool, KeyMismatch>> {
        let stored = self.store.stored_keys().await?;
        Ok(self.keyring.follow(&stored))
    }
}
