use super::*;
use std::sync::atomic::{AtomicU32, Ordering};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tributary_domain::refusal::Refusal;

/// Change count used in the tests.
const CHANGES: u64 = 7;

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
            reads: Arc::default(),
            store: Arc::new(store),
        }
    }

    /// Reads a key: key 1 panics, key 2 is refused, and key 3 must not be cached.
    fn read(&self, key: u8) -> JoinHandle<StoreResult<u32>> {
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
                let cache_version = (key != 3).then_some(CHANGES);
                Ok(ReadResult {
                    value,
                    cache_version,
                })
            }
        };
        tokio::spawn(async move { reads.read("test", key, load).await })
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
    assert_eq!(first.await.unwrap().unwrap(), 0);
    for read in later {
        let read = read.await.unwrap().unwrap();
        assert_eq!(read, 1, "a later caller never gets an earlier read");
    }
    assert_eq!(fixture.store.reads.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn values_are_cached_until_the_ttl_or_a_change() {
    let fixture = Fixture::new();
    fixture.store.gate.add_permits(10);
    assert_eq!(fixture.reads.cached(&0, CHANGES), None);
    assert_eq!(fixture.read(0).await.unwrap().unwrap(), 0);
    let begun = Instant::now();
    if begun.elapsed() < CACHE_TTL / 2 {
        assert_eq!(fixture.reads.cached(&0, CHANGES), Some(0));
    }
    assert_eq!(fixture.reads.cached(&0, CHANGES + 1), None);
    tokio::time::sleep(CACHE_TTL).await;
    assert_eq!(fixture.reads.cached(&0, CHANGES), None);
    assert_eq!(fixture.read(3).await.unwrap().unwrap(), 1);
    assert_eq!(fixture.reads.cached(&3, CHANGES), None);
}

#[tokio::test]
async fn stale_entries_are_evicted_when_the_cache_is_full() {
    let reads: SharedReads<usize, u32> = SharedReads::default();
    let long_ago = Instant::now().checked_sub(CACHE_TTL * 2).unwrap();
    for key in 0..ENTRIES_MAX {
        let cached = CachedValue {
            value: 0,
            read_at: long_ago,
            changes: CHANGES,
        };
        let entry = CacheEntry {
            cached: Some(cached),
            waiters: None,
        };
        reads.lock().insert(key, entry);
    }
    assert!(reads.enqueue_waiter(ENTRIES_MAX, oneshot::channel().0));
    assert_eq!(reads.lock().len(), 1);
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
    assert_eq!(second.await.unwrap().unwrap(), 1);
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
    assert!(fixture.reads.lock().is_empty(), "neither is cached");
}
