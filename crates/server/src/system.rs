//! The system clock and random number generator. All other code receives them as a `Runtime`.

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

/// Random bytes from the operating system.
pub(crate) struct OsRandom;

impl Random for OsRandom {
    fn fill(&self, bytes: &mut [u8]) {
        // Without random bytes no key would be secure, so there is nothing to fall back to.
        rand::rngs::SysRng
            .try_fill_bytes(bytes)
            .expect("the operating system provides random bytes");
    }
}

/// Returns a runtime with the system clock and the operating system's random bytes.
pub fn runtime() -> Runtime {
    Runtime::new(Arc::new(SystemClock), Arc::new(OsRandom))
}
