//! The process's clock and random source. The rules take time and random bytes as arguments;
//! callers get them from a [`Runtime`], which only `server` and the tests create.

use crate::access::key::{ApiKey, KEY_RANDOM_BYTES, KeyCreation, KeyDraft, KeyKind, KeyText};
use crate::access::{Actor, Environment, Permission};
use crate::audit::{AuditContext, RequestId};
use crate::vocabulary::id::{AuditId, KeyId, OrganizationId};
use crate::vocabulary::time::Timestamp;
use std::net::IpAddr;
use std::sync::Arc;

/// A clock.
pub trait Clock: Send + Sync {
    /// Returns the current time.
    fn now(&self) -> Timestamp;
}

/// A cryptographically secure random source.
pub trait Random: Send + Sync {
    /// Fills a slice with unpredictable bytes.
    fn fill(&self, bytes: &mut [u8]);

    /// Fills a slice with unpredictable bytes for an id, which is not a secret. May be faster than
    /// [`Self::fill`].
    fn fill_id(&self, bytes: &mut [u8]) {
        self.fill(bytes);
    }
}

/// The clock and the random source of this process.
#[derive(Clone)]
pub struct Runtime {
    clock: Arc<dyn Clock>,
    rng: Arc<dyn Random>,
}

impl Runtime {
    /// Creates a runtime from a clock and a random source.
    pub fn new(clock: Arc<dyn Clock>, random: Arc<dyn Random>) -> Self {
        Self { clock, rng: random }
    }

    /// Returns the current time.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Returns random bytes; the caller's array type sets the length.
    pub fn random_bytes<const N: usize>(&self) -> [u8; N] {
        let mut bytes = [0; N];
        self.rng.fill(&mut bytes);
        bytes
    }

    /// Returns random bytes for an id. Use [`Self::random_bytes`] for keys, tokens and nonces.
    pub fn id_bytes<const N: usize>(&self) -> [u8; N] {
        let mut bytes = [0; N];
        self.rng.fill_id(&mut bytes);
        bytes
    }

    /// Generates a request id.
    pub fn request_id(&self) -> RequestId {
        RequestId::new(self.id_bytes())
    }

    /// Generates an API key.
    pub fn new_key(&self, kind: KeyKind, environment: Environment) -> KeyText {
        KeyText::generate(kind, environment, self.random_bytes::<KEY_RANDOM_BYTES>())
    }

    /// Generates a private key as drafted, and its record, which is not stored yet.
    pub fn drafted_key(&self, organization: OrganizationId, draft: KeyDraft) -> (ApiKey, KeyText) {
        let name = draft.name.as_str();
        let (key, text) =
            self.new_private_key(organization, name, draft.permission, draft.environment);
        let key = ApiKey {
            limits: draft.limits,
            expires_at: draft.expires_at,
            ..key
        };
        (key, text)
    }

    /// Generates a private key without limits, and its record, which is not stored yet.
    pub fn new_private_key(
        &self,
        organization: OrganizationId,
        name: impl Into<String>,
        permission: Permission,
        environment: Environment,
    ) -> (ApiKey, KeyText) {
        let text = self.new_key(KeyKind::Private, environment);
        let at = self.now();
        let creation = KeyCreation {
            id: KeyId::new(at, self.random_bytes()),
            organization,
            hint: text.hint().to_owned(),
            at,
        };
        let key = ApiKey {
            environment,
            ..ApiKey::new(creation, name.into(), permission)
        };
        (key, text)
    }

    /// Describes who makes a change to live data or settings now, for the audit log.
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
            environment: Environment::Live,
            at,
            audit_id,
        }
    }
}
