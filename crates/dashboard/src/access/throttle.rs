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

    /// Counts a new password like a failed attempt against the account. Someone with an account for
    /// another person's address could otherwise guess that person's password without failures: choose
    /// the guess as their own password, sign in, and see whether the page asks for the organization.
    pub(crate) fn record_new_password(&self, email: &Email, now: Timestamp) {
        self.record_failure(&Self::attempt(None, email), now);
    }

    /// Clears the failures of the client's address after a correct password. The failures of the
    /// account expire by themselves: several organizations may have an account with the same email
    /// address, and the password of one must not allow more guesses against the others.
    pub(crate) fn clear_failures(&self, attempt: &SignInAttempt) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let [address, _account] = attempt.0;
        if let Some(key) = address {
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

#[cfg(test)]
mod tests {
    use super::*;
    use tributary_domain::access::sign_in::FREE_FAILURES;

    #[test]
    fn a_correct_password_does_not_allow_more_guesses_against_the_address() {
        let (throttle, now) = (Throttle::default(), Timestamp::from_millis(0));
        let email = Email::parse("you@example.com").unwrap();
        let client = Some(IpAddr::from([192, 0, 2, 1]));
        let attempt = Throttle::attempt(client, &email);
        for _ in 0..FREE_FAILURES {
            throttle.record_failure(&attempt, now);
        }
        throttle.clear_failures(&attempt);
        assert!(throttle.wait(&attempt, now).is_some());
        let other = Email::parse("me@example.com").unwrap();
        let attempt = Throttle::attempt(client, &other);
        assert!(throttle.wait(&attempt, now).is_none());
    }

    #[test]
    fn new_passwords_count_as_guesses_against_the_address_only() {
        let (throttle, now) = (Throttle::default(), Timestamp::from_millis(0));
        let email = Email::parse("you@example.com").unwrap();
        let client = Some(IpAddr::from([192, 0, 2, 1]));
        for _ in 0..FREE_FAILURES {
            let attempt = Throttle::attempt(client, &email);
            assert!(throttle.wait(&attempt, now).is_none());
            throttle.record_new_password(&email, now);
        }
        let attempt = Throttle::attempt(client, &email);
        assert!(throttle.wait(&attempt, now).is_some());
        let other = Email::parse("me@example.com").unwrap();
        let attempt = Throttle::attempt(client, &other);
        assert!(throttle.wait(&attempt, now).is_none());
    }
}
