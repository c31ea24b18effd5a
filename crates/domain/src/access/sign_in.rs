//! Throttling of password guesses: the first few guesses cause no wait; after that, each guess
//! doubles the wait.
//!
//! A guess is counted before its password is checked, and taken back if the password was right.
//! Guesses at the same time are therefore limited like guesses one after the other.

use super::person::Email;
use crate::vocabulary::digest::Digest;
use crate::vocabulary::id::{OrganizationId, UserId};
use crate::vocabulary::time::Timestamp;
use std::net::IpAddr;
use std::time::Duration;

/// Number of guesses without a wait.
pub const FREE_GUESSES: u32 = 5;
/// Wait after the first throttled guess. Each further guess doubles it.
pub const FIRST_WAIT: Duration = Duration::from_secs(10);
/// Maximum wait.
pub const WAIT_MAX: Duration = Duration::from_mins(15);
/// How long after the last guess the count resets.
pub const GUESSES_EXPIRE_AFTER: Duration = Duration::from_hours(1);

/// Groups the guesses that are counted together. It is a digest, so the database contains no
/// addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct GuessCounter(Digest);

impl GuessCounter {
    /// Counts the guesses from a network.
    pub fn of_network(network: IpAddr) -> Self {
        Self(Digest::of(format!("network {network}").as_bytes()))
    }

    /// Counts the guesses for an email address.
    pub fn of_account(email: &Email) -> Self {
        Self(Digest::of(format!("account {}", email.as_str()).as_bytes()))
    }

    /// Counts the guesses of a user who is signed in and proves it again. Strangers cannot use them
    /// up.
    pub fn of_session_user(user: UserId) -> Self {
        let bytes = [b"session user ".as_slice(), user.as_bytes()];
        Self(Digest::of(&bytes.concat()))
    }

    /// Counts the guesses of a user's second factor at sign-in: codes after the password, and passkeys,
    /// for which the id of the passkey is enough.
    pub fn of_second_factor(user: UserId) -> Self {
        let bytes = [b"second factor ".as_slice(), user.as_bytes()];
        Self(Digest::of(&bytes.concat()))
    }

    /// Counts the guesses for a user from a browser that the user has signed in with.
    pub fn of_browser(user: UserId, browser: &[u8]) -> Self {
        let bytes = [b"browser ".as_slice(), user.as_bytes(), browser];
        Self(Digest::of(&bytes.concat()))
    }

    /// Counts the requests for a new password for an email address, whether or not it has an account.
    pub fn of_reset_requests(email: &Email) -> Self {
        Self(Digest::of(
            format!("reset requests {}", email.as_str()).as_bytes(),
        ))
    }

    /// Counts the requests for a new password from a network. They do not use up the guesses of those
    /// who know their password.
    pub fn of_reset_network(network: IpAddr) -> Self {
        Self(Digest::of(format!("reset network {network}").as_bytes()))
    }

    /// Counts the invitations that an organization sends by e-mail.
    pub fn of_mailed_invitations(organization: OrganizationId) -> Self {
        let bytes = [b"mailed invitations ".as_slice(), organization.as_bytes()];
        Self(Digest::of(&bytes.concat()))
    }

    /// Counts the invitations that an email address gets from all organizations.
    pub fn of_invited_address(email: &Email) -> Self {
        Self(Digest::of(format!("invited {}", email.as_str()).as_bytes()))
    }

    /// Counts the sign-ins that fail at an organization's provider without being guesses, from a
    /// network. They are limited in the audit log only.
    pub fn of_provider_faults(organization: OrganizationId, network: IpAddr) -> Self {
        Self(Digest::of(
            format!("provider faults {organization} {network}").as_bytes(),
        ))
    }

    /// Returns the stored form.
    pub const fn digest(&self) -> &Digest {
        &self.0
    }
}

/// Recent guesses of a counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Guesses {
    /// Number of guesses.
    pub count: u32,
    /// Time of the last one.
    pub last_at: Timestamp,
}

impl Guesses {
    /// Adds a guess at `now` to the earlier guesses.
    pub fn with_another(before: Option<Self>, now: Timestamp) -> Self {
        let count = before
            .filter(|one| !one.is_expired(now))
            .map_or(0, |one| one.count);
        Self {
            count: count.saturating_add(1),
            last_at: now,
        }
    }

    /// Returns whether the guesses have expired. Those from the future have: the clock was ahead.
    pub fn is_expired(&self, now: Timestamp) -> bool {
        now.since(self.last_at) >= GUESSES_EXPIRE_AFTER || self.last_at.since(now) > WAIT_MAX
    }

    /// Returns the wait before the next guess; `None` if a guess is allowed now.
    pub fn wait(&self, now: Timestamp) -> Option<Duration> {
        if self.is_expired(now) {
            return None;
        }
        let throttled = self.count.checked_sub(FREE_GUESSES)?;
        let doubled = FIRST_WAIT.saturating_mul(2_u32.saturating_pow(throttled.min(16)));
        let wait = doubled.min(WAIT_MAX);
        let waited = now.since(self.last_at);
        wait.checked_sub(waited).filter(|left| !left.is_zero())
    }
}

/// A counted guess, with what its counters were before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CountedGuess {
    /// Time of the guess.
    pub at: Timestamp,
    /// The counters.
    pub counters: Vec<(GuessCounter, Option<Guesses>)>,
}

/// Whether a password may be checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GuessDecision {
    /// The password may be checked. The guess is counted.
    Allowed(CountedGuess),
    /// No password may be checked for this long. Nothing is counted.
    Wait(Duration),
}

impl GuessDecision {
    /// Decides about a guess at `now`: it waits as long as any of its counters asks for.
    pub fn of(counters: Vec<(GuessCounter, Option<Guesses>)>, now: Timestamp) -> Self {
        let waits = counters.iter().filter_map(|(_, before)| before.as_ref());
        match waits.filter_map(|before| before.wait(now)).max() {
            Some(wait) => Self::Wait(wait),
            None => Self::Allowed(CountedGuess { at: now, counters }),
        }
    }
}

impl CountedGuess {
    /// Returns the counters with this guess.
    pub fn counted(&self) -> impl Iterator<Item = (GuessCounter, Guesses)> {
        let counted = |(counter, before): &_| (*counter, Guesses::with_another(*before, self.at));
        self.counters.iter().map(counted)
    }

    /// Takes the guess back from one of its counters, whose guesses are now `stored`. Guesses since
    /// then stay counted. Returns `None` if none is left.
    pub fn taken_back(&self, counter: GuessCounter, stored: Guesses) -> Option<Guesses> {
        let found = self.counters.iter().find(|(one, _)| *one == counter);
        let Some((_, before)) = found else {
            return Some(stored);
        };
        let last_at = match before {
            Some(before) if stored.last_at == self.at => before.last_at,
            Some(_) | None => stored.last_at,
        };
        let count = stored.count.saturating_sub(1);
        (count > 0).then_some(Guesses { count, last_at })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    const fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1_000)
    }

    fn guesses(count: u32) -> Guesses {
        let mut guesses = None;
        for _ in 0..count {
            guesses = Some(Guesses::with_another(guesses, at(0)));
        }
        guesses.unwrap()
    }

    fn counter(name: &str) -> GuessCounter {
        GuessCounter::of_account(&Email::parse(&format!("{name}@example.com")).unwrap())
    }

    #[rstest]
    #[case::one(1, 0, None)]
    #[case::four(4, 0, None)]
    #[case::five(5, 0, Some(10))]
    #[case::six(6, 0, Some(20))]
    #[case::six_some_time_later(6, 15, Some(5))]
    #[case::six_after_the_wait(6, 20, None)]
    #[case::very_many(1_000, 0, Some(900))]
    #[case::the_clock_was_slightly_ahead(6, -60, Some(20))]
    #[case::the_clock_was_a_day_ahead(1_000, -86_400, None)]
    fn waits_double_up_to_the_maximum(
        #[case] count: u32,
        #[case] seconds: i64,
        #[case] expected: Option<u64>,
    ) {
        let wait = guesses(count).wait(at(seconds)).map(|wait| wait.as_secs());
        assert_eq!(wait, expected);
    }

    #[test]
    fn old_guesses_expire() {
        let later = at(60 * 60);
        assert!(guesses(9).is_expired(later));
        assert_eq!(Guesses::with_another(Some(guesses(9)), later).count, 1);
    }

    #[test]
    fn the_longest_wait_of_all_counters_counts() {
        let (one, two) = (counter("one"), counter("two"));
        let decide = |first, second| {
            let counters = vec![(one, first), (two, second)];
            GuessDecision::of(counters, at(0))
        };
        let (five, six) = (Some(guesses(5)), Some(guesses(6)));
        let wait = |seconds| GuessDecision::Wait(Duration::from_secs(seconds));
        assert_eq!(decide(five, None), wait(10));
        assert_eq!(decide(five, six), wait(20));
        let GuessDecision::Allowed(counted) = decide(Some(guesses(4)), None) else {
            panic!("four guesses are free");
        };
        let counts: Vec<u32> = counted
            .counted()
            .map(|(_, guesses)| guesses.count)
            .collect();
        assert_eq!(counts, [5, 1]);
    }

    #[rstest]
    #[case::the_first(None, 1, 10, None)]
    #[case::another(Some(guesses(3)), 4, 10, Some((3, 0)))]
    #[case::one_since_then(Some(guesses(3)), 5, 12, Some((4, 12)))]
    #[case::the_first_and_one_since_then(None, 2, 12, Some((1, 12)))]
    fn a_right_password_is_not_a_guess(
        #[case] before: Option<Guesses>,
        #[case] count: u32,
        #[case] last: i64,
        #[case] expected: Option<(u32, i64)>,
    ) {
        let one = counter("one");
        let counted = CountedGuess {
            at: at(10),
            counters: vec![(one, before)],
        };
        let stored = Guesses {
            count,
            last_at: at(last),
        };
        let expected = expected.map(|(count, last)| Guesses {
            count,
            last_at: at(last),
        });
        assert_eq!(counted.taken_back(one, stored), expected);
        let other = counter("other");
        assert_eq!(counted.taken_back(other, stored), Some(stored));
    }

    #[test]
    fn counters_differ() {
        let (a, b) = (UserId::from_bytes([1; 16]), UserId::from_bytes([2; 16]));
        let counters = [
            counter("one"),
            counter("two"),
            GuessCounter::of_network(IpAddr::from([192, 0, 2, 1])),
            GuessCounter::of_reset_requests(&Email::parse("one@example.com").unwrap()),
            GuessCounter::of_reset_network(IpAddr::from([192, 0, 2, 1])),
            GuessCounter::of_invited_address(&Email::parse("one@example.com").unwrap()),
            GuessCounter::of_mailed_invitations(OrganizationId::from_bytes([1; 16])),
            GuessCounter::of_mailed_invitations(OrganizationId::from_bytes([2; 16])),
            GuessCounter::of_provider_faults(
                OrganizationId::from_bytes([1; 16]),
                IpAddr::from([192, 0, 2, 1]),
            ),
            GuessCounter::of_provider_faults(
                OrganizationId::from_bytes([2; 16]),
                IpAddr::from([192, 0, 2, 1]),
            ),
            GuessCounter::of_provider_faults(
                OrganizationId::from_bytes([1; 16]),
                IpAddr::from([192, 0, 2, 2]),
            ),
            GuessCounter::of_second_factor(a),
            GuessCounter::of_second_factor(b),
            GuessCounter::of_session_user(a),
            GuessCounter::of_session_user(b),
            GuessCounter::of_browser(a, &[1]),
            GuessCounter::of_browser(a, &[2]),
            GuessCounter::of_browser(b, &[1]),
        ];
        let distinct: std::collections::BTreeSet<_> = counters.iter().collect();
        assert_eq!(distinct.len(), counters.len());
    }
}
