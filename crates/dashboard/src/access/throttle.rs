//! Slows down password guessing, by client address and by account.
//!
//! The state is in memory and therefore per node: an attacker gets a few free attempts on each
//! node and after a restart. That hardly helps, because argon2 makes every attempt slow.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tributary_domain::access::person::Email;
use tributary_domain::access::sign_in::SignInFailures;
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::time::Timestamp;

/// Maximum number of entries. At the limit, expired entries are dropped. If that is not enough, all
/// entries are dropped: a few extra attempts are better than unbounded memory.
const ENTRIES_MAX: usize = 10_000;

/// Recent failed sign-ins.
#[derive(Default)]
pub(crate) struct Throttle(Mutex<HashMap<Digest, SignInFailures>>);

/// Keys for one attempt: digests of the address and the account.
pub(crate) struct SignInAttempt([Option<Digest>; 2]);

impl SignInAttempt {
    /// Builds the keys for an address and an account.
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
    /// Returns how long this attempt has to wait.
    pub(crate) fn wait(&self, attempt: &SignInAttempt, now: Timestamp) -> Option<Duration> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let waits = attempt.keys().filter_map(|key| known.get(&key)?.wait(now));
        waits.max()
    }

    /// Records a failed attempt.
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

    /// Clears the failures after a correct password.
    pub(crate) fn clear_failures(&self, attempt: &SignInAttempt) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for key in attempt.keys() {
            known.remove(&key);
        }
    }
}

impl Throttle {
    /// Builds the keys for an attempt.
    pub(crate) fn attempt(address: Option<IpAddr>, email: &Email) -> SignInAttempt {
        SignInAttempt::new(address, email)
    }
}
