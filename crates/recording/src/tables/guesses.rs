//! Counters of password guesses.

use super::EngineTransaction;
use tributary_domain::access::sign_in::{GuessCounter, Guesses};
use tributary_domain::vocabulary::time::Timestamp;

/// Counters of password guesses.
pub trait GuessTable: EngineTransaction {
    /// Locks counters, in their order, against other guesses.
    async fn lock_guesses(&self, counters: &[GuessCounter]) -> Result<(), Self::Failure>;

    /// Returns the guesses of each counter, `None` if it has none.
    async fn guesses(
        &self,
        counters: &[GuessCounter],
    ) -> Result<Vec<Option<Guesses>>, Self::Failure>;

    /// Writes the guesses of a counter; `None` removes it.
    async fn write_guesses(
        &self,
        counter: GuessCounter,
        guesses: Option<Guesses>,
    ) -> Result<(), Self::Failure>;

    /// Removes at most `max` counters without a guess since a time.
    async fn remove_old_guesses(&self, since: Timestamp, max: u32) -> Result<(), Self::Failure>;
}
