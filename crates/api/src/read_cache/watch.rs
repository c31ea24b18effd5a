//! Tells whether cached configuration is still current.
//!
//! A change made by this process increases the store's change count at once. A change made by
//! another process gives the configuration a new version in the database. While requests arrive,
//! the watch polls that version in the background. See
//! `docs/adr/0035-configuration-is-cached-until-it-changes.md`.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;
use tributary_domain::vocabulary::id::AuditId;
use tributary_store::{Store, StoreError, StoreResult};

/// Interval between polls: twice per [`CONFIRMED_MAX`], so that one slow poll does not stop the use
/// of cached values.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// How long a poll confirms cached values, from its start. A revoked key stops on every node within
/// this time.
pub(crate) const CONFIRMED_MAX: Duration = Duration::from_secs(1);

/// A state of the keys, apps and links. A value that was read in an earlier state may be outdated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ConfigurationState {
    /// Changes made by this process.
    local_changes: u64,
    /// Changes of the polled version.
    version_changes: u64,
}

#[cfg(test)]
impl ConfigurationState {
    /// Returns the state after this number of changes.
    pub(crate) const fn after_changes(local_changes: u64) -> Self {
        Self {
            local_changes,
            version_changes: 0,
        }
    }
}

/// Watches the keys, apps and links for changes.
#[derive(Debug, Clone, Default)]
pub(crate) struct ConfigurationWatch(Arc<WatchState>);

/// Times are in milliseconds since `created_at`.
#[derive(Debug)]
struct WatchState {
    created_at: Instant,
    /// The latest polled version; `None` before the first change of the configuration.
    version: Mutex<Option<AuditId>>,
    /// Number of polls that found another version than the poll before.
    version_changes: AtomicU64,
    /// End of the time that the latest successful poll confirms. It is written after
    /// `version_changes` and read before.
    confirmed_until: AtomicU64,
    /// Time of the next poll.
    next_poll_at: AtomicU64,
}

impl Default for WatchState {
    fn default() -> Self {
        Self {
            created_at: Instant::now(),
            version: Mutex::default(),
            version_changes: AtomicU64::new(0),
            confirmed_until: AtomicU64::new(0),
            next_poll_at: AtomicU64::new(0),
        }
    }
}

impl ConfigurationWatch {
    /// Returns the current state, as far as this node knows. Call this before a read, and store the
    /// value with the result.
    pub(crate) fn state(&self, store: &Arc<dyn Store>) -> ConfigurationState {
        ConfigurationState {
            local_changes: store.change_count(),
            version_changes: self.0.version_changes.load(Ordering::Acquire),
        }
    }

    /// Returns the state in which cached values are current. Returns `None` if too much time has
    /// passed since the latest successful poll. Starts the next poll if it is due; never waits.
    pub(crate) fn confirmed_state(&self, store: &Arc<dyn Store>) -> Option<ConfigurationState> {
        let now = self.0.now();
        if self.0.begin_poll(now) {
            let (watch, store) = (self.clone(), store.clone());
            tokio::spawn(async move { watch.poll(&store, now).await });
        }
        let is_confirmed = now < self.0.confirmed_until.load(Ordering::Acquire);
        is_confirmed.then(|| self.state(store))
    }

    /// Polls the version. A poll that takes longer than [`CONFIRMED_MAX`] would confirm nothing.
    async fn poll(&self, store: &Arc<dyn Store>, begun_at: u64) {
        let version = store.configuration_version();
        let polled = tokio::time::timeout(CONFIRMED_MAX, version).await;
        let late = |_| {
            Err(StoreError::unavailable(
                "configuration_version",
                "timed out",
            ))
        };
        self.0.record_poll(polled.unwrap_or_else(late), begun_at);
    }
}

impl WatchState {
    fn now(&self) -> u64 {
        millis(self.created_at.elapsed())
    }

    /// Returns whether the caller has to poll now. Of several callers, one has to.
    fn begin_poll(&self, now: u64) -> bool {
        let due_at = self.next_poll_at.load(Ordering::Relaxed);
        let next = now + millis(POLL_INTERVAL);
        let begin = || {
            let (ok, failed) = (Ordering::Relaxed, Ordering::Relaxed);
            self.next_poll_at.compare_exchange(due_at, next, ok, failed)
        };
        now >= due_at && begin().is_ok()
    }

    /// Records the result of a poll that began at `begun_at`. It contains every change that was
    /// committed before then.
    fn record_poll(&self, polled: StoreResult<Option<AuditId>>, begun_at: u64) {
        let polled = match polled {
            Ok(polled) => polled,
            Err(error) => {
                tracing::warn!(%error, "failed to poll the configuration version");
                return;
            }
        };
        let mut version = self.version.lock().unwrap_or_else(PoisonError::into_inner);
        if *version != polled {
            *version = polled;
            self.version_changes.fetch_add(1, Ordering::AcqRel);
        }
        drop(version);
        let until = begun_at + millis(CONFIRMED_MAX);
        self.confirmed_until.fetch_max(until, Ordering::AcqRel);
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: AuditId = AuditId::from_bytes([1; 16]);
    const TWO: AuditId = AuditId::from_bytes([2; 16]);

    /// Returns the number of version changes if `now` is confirmed.
    fn confirmed(state: &WatchState, now: u64) -> Option<u64> {
        let is_confirmed = now < state.confirmed_until.load(Ordering::Acquire);
        is_confirmed.then(|| state.version_changes.load(Ordering::Acquire))
    }

    #[test]
    fn a_poll_confirms_a_second_from_its_start() {
        let state = WatchState::default();
        assert_eq!(confirmed(&state, 0), None, "nothing is confirmed at first");
        state.record_poll(Ok(None), 300);
        assert_eq!(confirmed(&state, 1_299), Some(0));
        assert_eq!(confirmed(&state, 1_300), None);
        state.record_poll(Ok(None), 800);
        assert_eq!(confirmed(&state, 1_799), Some(0), "the version is the same");
    }

    #[test]
    fn a_failed_poll_confirms_nothing() {
        let state = WatchState::default();
        state.record_poll(Ok(None), 0);
        let failed = StoreError::unavailable("configuration_version", "no connection");
        state.record_poll(Err(failed), 500);
        assert_eq!(confirmed(&state, 999), Some(0));
        assert_eq!(confirmed(&state, 1_000), None);
    }

    #[test]
    fn another_version_is_another_state() {
        let state = WatchState::default();
        for (polled, expected) in [(None, 0), (Some(ONE), 1), (Some(ONE), 1), (Some(TWO), 2)] {
            state.record_poll(Ok(polled), 0);
            assert_eq!(confirmed(&state, 0), Some(expected), "{polled:?}");
        }
    }

    /// A late result of an older poll must not make values current that were read before a change.
    #[test]
    fn a_late_poll_never_returns_to_an_earlier_state() {
        let state = WatchState::default();
        state.record_poll(Ok(Some(ONE)), 0);
        state.record_poll(Ok(Some(TWO)), 500);
        state.record_poll(Ok(Some(ONE)), 400);
        assert_eq!(confirmed(&state, 1_499), Some(3));
        assert_eq!(confirmed(&state, 1_500), None);
    }

    #[test]
    fn one_caller_polls_per_interval() {
        let state = WatchState::default();
        assert!(state.begin_poll(0));
        assert!(!state.begin_poll(0) && !state.begin_poll(499));
        assert!(state.begin_poll(500));
        assert!(state.begin_poll(90_000), "nothing polls without requests");
        assert!(!state.begin_poll(90_499));
    }
}
