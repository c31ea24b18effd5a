use super::*;
use std::sync::atomic::{AtomicU32, Ordering};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tributary_domain::refusal::Refusal;

const STATE: ConfigurationState = ConfigurationState::after_changes(7);
const LATER: ConfigurationState = ConfigurationState::after_changes(8);
/// Size of the caches in these tests.
const ENTRIES_MAX: usize = 10;

/// Fake database: each read takes a permit and returns its sequence number.
struct FakeStore {
    reads: AtomicU32,
    gate: Semaphore,
}

struct Fixture {
    reads: Arc<SharedReads<u8, u32>>,
    store: Arc<FakeStore>,
}

impl Fixture {
    fn new() -> Self {
        let store = FakeStore {
            reads: AtomicU32::new(0),
            gate: Semaphore::new(0),
        };
        Self {
            reads: SharedReads::new("test", ENTRIES_MAX),
            store: Arc::new(store),
        }
    }

    /// Reads a key: key 1 panics, key 2 is refused, and key 3 does not exist.
    fn read(&self, key: u8) -> JoinHandle<StoreResult<Option<u32>>> {
        let (reads, store) = (self.reads.clone(), self.store.clone());
        let load = move || {
            let store = store.clone();
            async move {
                let value = store.reads.fetch_add(1, Ordering::SeqCst);
                store.gate.acquire().await.unwrap().forget();
                assert_ne!(key, 1, "a bug");
                if key == 2 {
                    return Err(Refusal::AppNotFound.into());
                }
                Ok(ReadResult {
                    value: (key != 3).then_some(value),
                    state: STATE,
                })
            }
        };
        tokio::spawn(async move { reads.read(key, load).await })
    }
}

async fn yield_many() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn callers_during_a_read_share_the_next_one() {
    let fixture = Fixture::new();
    let first = fixture.read(0);
    yield_many().await;
    let later: Vec<_> = (0..10).map(|_| fixture.read(0)).collect();
    yield_many().await;
    fixture.store.gate.add_permits(10);
    assert_eq!(first.await.unwrap().unwrap(), Some(0));
    for read in later {
        let read = read.await.unwrap().unwrap();
        assert_eq!(read, Some(1), "a later caller never gets an earlier read");
    }
    assert_eq!(fixture.store.reads.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn values_are_cached_until_a_change_or_their_maximum_age() {
    let fixture = Fixture::new();
    fixture.store.gate.add_permits(10);
    assert_eq!(fixture.reads.cached(&0, STATE), None);
    assert_eq!(fixture.read(0).await.unwrap().unwrap(), Some(0));
    assert_eq!(fixture.reads.cached(&0, STATE), Some(0));
    assert_eq!(fixture.reads.cached(&0, LATER), None);
    tokio::time::advance(AGE_MAX).await;
    assert_eq!(fixture.reads.cached(&0, STATE), None);
    assert_eq!(fixture.reads.possibly_outdated(&0), Some(0));
}

#[tokio::test]
async fn unknown_keys_are_not_cached() {
    let fixture = Fixture::new();
    fixture.store.gate.add_permits(10);
    assert_eq!(fixture.read(3).await.unwrap().unwrap(), None);
    yield_many().await;
    let entries = fixture.reads.lock();
    assert!(entries.cached.young.is_empty() && entries.waiting.is_empty());
}

#[tokio::test]
async fn a_value_that_no_longer_exists_is_removed() {
    let reads: Arc<SharedReads<u8, u32>> = SharedReads::new("test", ENTRIES_MAX);
    for (value, expected) in [(Some(5), Some(5)), (None, None)] {
        let found = ReadResult {
            value,
            state: STATE,
        };
        reads.store(&0, &found, Instant::now());
        assert_eq!(reads.possibly_outdated(&0), expected);
    }
}

#[tokio::test]
async fn keeps_values_that_are_used_again_and_drops_the_rest() {
    let reads: Arc<SharedReads<usize, usize>> = SharedReads::new("test", ENTRIES_MAX);
    let store = |key| {
        let found = ReadResult {
            value: Some(key),
            state: STATE,
        };
        reads.store(&key, &found, Instant::now());
    };
    store(0);
    for key in 1..100 {
        store(key);
        assert_eq!(reads.cached(&0, STATE), Some(0), "used again");
        let entries = reads.lock();
        assert!(entries.cached.young.len() + entries.cached.old.len() <= ENTRIES_MAX);
    }
    assert_eq!(reads.cached(&1, STATE), None, "not used again");
    assert_eq!(reads.cached(&99, STATE), Some(99));
}

#[tokio::test]
async fn a_cancelled_caller_does_not_cancel_other_waiters() {
    let fixture = Fixture::new();
    let first = fixture.read(0);
    yield_many().await;
    let second = fixture.read(0);
    yield_many().await;
    first.abort();
    fixture.store.gate.add_permits(2);
    assert_eq!(second.await.unwrap().unwrap(), Some(1));
}

#[tokio::test]
async fn all_waiters_get_a_refusal_and_a_panic_ends_the_read() {
    let fixture = Fixture::new();
    fixture.store.gate.add_permits(10);
    for read in [fixture.read(2), fixture.read(2)] {
        let refused = read.await.unwrap().unwrap_err();
        assert!(matches!(refused, StoreError::Refused(Refusal::AppNotFound)));
    }
    let broken = fixture.read(1).await.unwrap().unwrap_err();
    assert!(matches!(broken, StoreError::Unavailable { .. }));
    yield_many().await;
    let entries = fixture.reads.lock();
    assert!(entries.cached.young.is_empty(), "neither is cached");
    assert!(entries.waiting.is_empty());
}
