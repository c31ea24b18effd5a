//! Counts paused integrations.

use crate::Failure;
use crate::tx::Tx;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tributary_domain::integration::Network;
use tributary_store::records::count_to_u64;

/// How long counts are used on a distributed database, where counting queries every shard. Changes
/// by other nodes are seen after that.
const RECENT: Duration = Duration::from_mins(1);

/// Number of paused integrations of each network.
type NetworkCounts = Vec<(Network, u64)>;

/// The last counts.
#[derive(Debug, Default)]
pub(crate) struct PausedCounts(Mutex<Option<(Instant, NetworkCounts)>>);

impl PausedCounts {
    fn lock(&self) -> MutexGuard<'_, Option<(Instant, NetworkCounts)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the last counts if they are recent.
    pub(super) fn recent(&self) -> Option<NetworkCounts> {
        let kept = self.lock();
        let (_, counts) = kept.as_ref().filter(|(at, _)| at.elapsed() < RECENT)?;
        Some(counts.clone())
    }

    /// Keeps counts.
    pub(super) fn keep(&self, counts: NetworkCounts) {
        *self.lock() = Some((Instant::now(), counts));
    }

    /// Forgets the counts, because this node may have paused or resumed an integration.
    pub(crate) fn forget(&self) {
        *self.lock() = None;
    }
}

/// Counts paused integrations on all shards.
pub(super) async fn count(tx: &Tx) -> Result<NetworkCounts, Failure> {
    let sql = "select network, count(*) from queues where paused_at is not null group by network";
    let mut counts = BTreeMap::new();
    for row in &tx.query(sql, &[]).await? {
        let network: String = row.try_get(0)?;
        counts.insert(network, count_to_u64(row.try_get(1)?));
    }
    let count = |network: Network| counts.get(network.as_str()).copied().unwrap_or(0);
    Ok(Network::ALL
        .map(|network| (network, count(network)))
        .to_vec())
}
