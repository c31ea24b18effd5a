//! A manual clock and reproducible random bytes.

use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha12Rng;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;
use tributary_domain::runtime::{Clock, Random};
use tributary_domain::vocabulary::time::Timestamp;

/// 2026-01-01T00:00:00Z.
const START_MILLIS: i64 = 1_767_225_600_000;

/// A manual clock. Each reading advances it by a millisecond so that ids stay ordered.
#[derive(Debug)]
pub struct TestClock(AtomicI64);

impl Default for TestClock {
    fn default() -> Self {
        Self(AtomicI64::new(START_MILLIS))
    }
}

impl TestClock {
    /// Advances the clock.
    pub fn advance(&self, by: Duration) {
        let millis = i64::try_from(by.as_millis()).expect("duration fits into i64");
        self.0.fetch_add(millis, Ordering::SeqCst);
    }
}

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.fetch_add(1, Ordering::SeqCst))
    }
}

/// Random bytes from a fixed seed.
#[derive(Debug)]
pub(crate) struct TestRandom(Mutex<ChaCha12Rng>);

impl Default for TestRandom {
    fn default() -> Self {
        Self(Mutex::new(ChaCha12Rng::seed_from_u64(1)))
    }
}

impl Random for TestRandom {
    fn fill(&self, bytes: &mut [u8]) {
        self.0
            .lock()
            .expect("lock is not poisoned")
            .fill_bytes(bytes);
    }
}
