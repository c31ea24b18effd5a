use super::*;
use std::sync::atomic::{AtomicU32, Ordering};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tributary_domain::refusal::Refusal;

/// How many changes there were, in every test but one.
const CHANGES: u64 = 7;

/// A database of one number: each read takes a permit and says which read it was.
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
        let asked = FakeStore {
            reads: AtomicU32::new(0),
            gate: Semaphore::new(0),
        };
        Self {
            reads: Arc::default(),
            store: Arc::new(asked),
        }
    }

    /// Key 1 is a bug, key 2 is refused, key 3 is not to be kept.
    fn read(&self, key: u8) -> JoinHandle<StoreResult<u32>> {
        let (reads, asked) = (self.reads.clone(), self.store.clone());
        let ask = move || {
            let asked = asked.clone();
            async move {
                let value = asked.reads.fetch_add(1, Ordering::SeqCst);
                asked.gate.acquire().await.unwrap().forget();
                assert_ne!(key, 1, "a bug");
                if key == 2 {
                    return Err(Refusal::AppNotFound.into());
                }
                let kept_at = (key != 3).then_some(CHANGES);
                Ok(ReadResult {
                    value,
                    cache_version: kept_at,
                })
            }
        };
        tokio::spawn(async move { reads.read("test", key, ask).await })
    }
}

async fn settled() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn who_asks_during_a_read_shares_the_next_one() {
    let asking = Fixture::new();
    let first = asking.read(0);
    settled().await;
    let later: Vec<_> = (0..10).map(|_| asking.read(0)).collect();
    settled().await;
    asking.store.gate.add_permits(10);
    assert_eq!(first.await.unwrap().unwrap(), 0);
    for read in later {
        let read = read.await.unwrap().unwrap();
        assert_eq!(read, 1, "never what was asked for before");
    }
    assert_eq!(asking.store.reads.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn what_was_read_is_kept_for_a_moment_and_not_past_a_change() {
    let asking = Fixture::new();
    asking.store.gate.add_permits(10);
    assert_eq!(asking.reads.cached(&0, CHANGES), None);
    assert_eq!(asking.read(0).await.unwrap().unwrap(), 0);
    let begun = Instant::now();
    if begun.elapsed() < CACHE_TTL / 2 {
        assert_eq!(asking.reads.cached(&0, CHANGES), Some(0));
    }
    assert_eq!(asking.reads.cached(&0, CHANGES + 1), None);
    tokio::time::sleep(CACHE_TTL).await;
    assert_eq!(asking.reads.cached(&0, CHANGES), None);
    assert_eq!(asking.read(3).await.unwrap().unwrap(), 1);
    assert_eq!(asking.reads.cached(&3, CHANGES), None);
}

#[tokio::test]
async fn what_is_old_is_dropped_when_there_is_much() {
    let reads: SharedReads<usize, u32> = SharedReads::default();
    let long_ago = Instant::now().checked_sub(CACHE_TTL * 2).unwrap();
    for key in 0..ENTRIES_MAX {
        let kept = CachedValue {
            value: 0,
            read_at: long_ago,
            changes: CHANGES,
        };
        let entry = CacheEntry {
            cached: Some(kept),
            waiters: None,
        };
        reads.lock().insert(key, entry);
    }
    assert!(reads.enqueue_waiter(ENTRIES_MAX, oneshot::channel().0));
    assert_eq!(reads.lock().len(), 1);
}

#[tokio::test]
async fn who_goes_away_takes_nobody_along() {
    let asking = Fixture::new();
    let first = asking.read(0);
    settled().await;
    let second = asking.read(0);
    settled().await;
    first.abort();
    asking.store.gate.add_permits(2);
    assert_eq!(second.await.unwrap().unwrap(), 1);
}

#[tokio::test]
async fn a_refusal_is_everybodys_and_a_panic_is_an_end() {
    let asking = Fixture::new();
    asking.store.gate.add_permits(10);
    for read in [asking.read(2), asking.read(2)] {
        let refused = read.await.unwrap().unwrap_err();
        assert!(matches!(refused, StoreError::Refused(Refusal::AppNotFound)));
    }
    let broken = asking.read(1).await.unwrap().unwrap_err();
    assert!(matches!(broken, StoreError::Unavailable { .. }));
    settled().await;
    assert!(asking.reads.lock().is_empty(), "neither is kept");
}
