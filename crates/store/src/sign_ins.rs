//! Password guesses, counted for all nodes together.

use crate::StoreResult;
use async_trait::async_trait;
use std::time::Duration;
use tributary_domain::access::person::User;
use tributary_domain::access::sign_in::{CountedGuess, GuessCounter, GuessDecision};
use tributary_domain::audit::AuditContext;
use tributary_domain::vocabulary::time::Timestamp;

/// Password guesses.
#[async_trait]
pub trait SignIns: Send + Sync {
    /// Decides about a guess and counts it if its password may be checked. Guesses at the same time
    /// are decided one after the other.
    async fn count_guess(
        &self,
        counters: Vec<GuessCounter>,
        now: Timestamp,
    ) -> StoreResult<GuessDecision>;

    /// Returns the wait before the next guess of a counter; `None` if a guess is allowed. Counts nothing.
    async fn guess_wait(
        &self,
        counter: GuessCounter,
        now: Timestamp,
    ) -> StoreResult<Option<Duration>>;

    /// Takes back a guess with the right password.
    async fn take_back_guess(&self, guess: CountedGuess) -> StoreResult<()>;

    /// Counts a guess that needs no decision, because its password is not checked now.
    async fn add_guess(&self, counter: GuessCounter, now: Timestamp) -> StoreResult<()>;

    /// Writes a sign-in with a wrong password to the audit log of each user with the email address.
    async fn audit_failed_sign_in(&self, users: Vec<(User, AuditContext)>) -> StoreResult<()>;
}
