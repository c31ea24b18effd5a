//! The system clock and random number generator. All other code receives them as a `Runtime`.

use rand::{Rng as _, TryRng as _};
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

/// Random bytes from the operating system. Ids come from a generator of each thread, because a
/// system call per id is slow. The operating system seeds that generator, again after every 64 KiB.
pub(crate) struct OsRandom;

impl Random for OsRandom {
    fn fill(&self, bytes: &mut [u8]) {
        // Without random bytes no key would be secure, so there is nothing to fall back to.
        rand::rngs::SysRng
            .try_fill_bytes(bytes)
            .expect("the operating system provides random bytes");
    }

    #[expect(clippy::disallowed_methods, reason = "this is the Random")]
    fn fill_id(&self, bytes: &mut [u8]) {
        rand::rng().fill_bytes(bytes);
    }
}

/// Returns a runtime with the system clock and the operating system's random bytes.
pub fn runtime() -> Runtime {
    Runtime::new(Arc::new(SystemClock), Arc::new(OsRandom))
}
