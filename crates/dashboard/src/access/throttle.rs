//! Remembers wrong passwords for a while: by the address they came from, and by the account they were for.
//!
//! In memory, and so per node: whoever guesses gets the few free tries once a node, and again after a restart. That
//! is little beside what argon2 costs them.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tributary_domain::access::person::Email;
use tributary_domain::access::sign_in::SignInFailures;
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::time::Timestamp;

/// Entries from which on forgotten ones are dropped. Where that makes no room, all are: better a few more guesses for
/// everybody than memory without end.
const ENTRIES_MAX: usize = 10_000;

/// Wrong passwords of late.
#[derive(Default)]
pub(crate) struct Throttle(Mutex<HashMap<Digest, SignInFailures>>);

/// What one attempt is known by.
pub(crate) struct SignInAttempt([Option<Digest>; 2]);

impl SignInAttempt {
    /// Of somebody at an address, for an account.
    pub(crate) fn new(address: Option<IpAddr>, email: &Email) -> Self {
        let address = address.map(|address| format!("address {address}"));
        let account = format!("account {}", email.as_str());
        let digest = |text: String| Digest::of(text.as_bytes());
        Self([address.map(digest), Some(digest(account))])
    }

    fn keys(&self) -> impl Iterator<Item = Digest> {
        self.0.iter().flatten().copied()
    }
}

impl Throttle {
    /// How long this attempt has to wait.
    pub(crate) fn wait(&self, attempt: &SignInAttempt, now: Timestamp) -> Option<Duration> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let waits = attempt.keys().filter_map(|key| known.get(&key)?.wait(now));
        waits.max()
    }

    /// Notes that it failed.
    pub(crate) fn record_failure(&self, attempt: &SignInAttempt, now: Timestamp) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= ENTRIES_MAX {
            known.retain(|_, failures| !failures.is_expired(now));
            if known.len() >= ENTRIES_MAX {
                known.clear();
            }
        }
        for key in attempt.keys() {
            let failures = SignInFailures::with_failure(known.get(&key).copied(), now);
            known.insert(key, failures);
        }
    }

    /// Forgets what failed before: the person knows the password.
    pub(crate) fn clear_failures(&self, attempt: &SignInAttempt) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for key in attempt.keys() {
            known.remove(&key);
        }
    }
}

impl Throttle {
    /// What an attempt is known by.
    pub(crate) fn attempt(address: Option<IpAddr>, email: &Email) -> SignInAttempt {
        SignInAttempt::new(address, email)
    }
}
