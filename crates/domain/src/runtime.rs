//! What comes from outside: the time and randomness. The rules take both as arguments; whoever calls the
//! rules takes them from a [`Source`], and only `server` and the tests make one.

use crate::access::key::{KEY_RANDOM_BYTES, KeyKind, KeyText};
use crate::access::{Actor, Environment};
use crate::audit::AuditContext;
use crate::vocabulary::id::AuditId;
use crate::vocabulary::time::Timestamp;
use std::net::IpAddr;
use std::sync::Arc;

/// Tells the time.
pub trait Clock: Send + Sync {
    /// Now.
    fn now(&self) -> Timestamp;
}

/// Gives random bytes.
pub trait Random: Send + Sync {
    /// Fills a slice with bytes that nobody can guess.
    fn fill(&self, bytes: &mut [u8]);
}

/// The clock and the random source of this process.
#[derive(Clone)]
pub struct Runtime {
    clock: Arc<dyn Clock>,
    rng: Arc<dyn Random>,
}

impl Runtime {
    /// From its two parts.
    pub fn new(clock: Arc<dyn Clock>, random: Arc<dyn Random>) -> Self {
        Self { clock, rng: random }
    }

    /// Now.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Random bytes, as many as the caller's type says.
    pub fn random_bytes<const N: usize>(&self) -> [u8; N] {
        let mut bytes = [0; N];
        self.rng.fill(&mut bytes);
        bytes
    }

    /// A new key.
    pub fn new_key(&self, kind: KeyKind, environment: Environment) -> KeyText {
        KeyText::generate(kind, environment, self.random_bytes::<KEY_RANDOM_BYTES>())
    }

    /// From where a change comes that is made now.
    pub fn origin(
        &self,
        actor: Actor,
        address: Option<IpAddr>,
        request_id: Option<String>,
    ) -> AuditContext {
        let at = self.now();
        let audit_id = AuditId::new(at, self.random_bytes());
        AuditContext {
            actor,
            address,
            request_id,
            at,
            audit_id,
        }
    }
}
