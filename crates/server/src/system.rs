//! The real clock and the real random source. Everything else is handed these.

use rand::TryRng as _;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use tributary_domain::runtime::{Clock, Random, Runtime};
use tributary_domain::vocabulary::time::Timestamp;

struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the Clock")]
    fn now(&self) -> Timestamp {
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }
}

/// The random source of this machine.
pub(crate) struct OsRandom;

impl Random for OsRandom {
    fn fill(&self, bytes: &mut [u8]) {
        // A system that cannot give random bytes can make no key that is worth anything.
        rand::rngs::SysRng
            .try_fill_bytes(bytes)
            .expect("the operating system gives random bytes");
    }
}

/// The clock and random source of this machine.
pub fn runtime() -> Runtime {
    Runtime::new(Arc::new(SystemClock), Arc::new(OsRandom))
}
