//! Password guesses.

use crate::tables::Tables;
use std::time::Duration;
use tributary_domain::access::person::User;
use tributary_domain::access::sign_in::{
    CountedGuess, GUESSES_EXPIRE_AFTER, GuessCounter, GuessDecision, Guesses,
};
use tributary_domain::audit::{Action, AuditContext};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::records::audit_row;

/// Number of expired counters that a guess removes: more than it adds, and few enough to be quick.
const OLD_GUESSES_REMOVED_MAX: u32 = 100;

/// Sorts counters. All transactions lock them in this order, so that none waits for another in a
/// circle.
fn sorted(mut counters: Vec<GuessCounter>) -> Vec<GuessCounter> {
    counters.sort_unstable();
    counters.dedup();
    counters
}

async fn find<T: Tables>(
    tables: &T,
    counters: &[GuessCounter],
) -> Result<Vec<(GuessCounter, Option<Guesses>)>, T::Failure> {
    let guesses = tables.guesses(counters).await?;
    Ok(counters.iter().copied().zip(guesses).collect())
}

async fn lock<T: Tables>(
    tables: &T,
    counters: Vec<GuessCounter>,
) -> Result<Vec<(GuessCounter, Option<Guesses>)>, T::Failure> {
    let counters = sorted(counters);
    tables.lock_guesses(&counters).await?;
    find(tables, &counters).await
}

/// Decides about a guess and counts it if its password may be checked.
pub async fn count_guess<T: Tables>(
    tables: &T,
    counters: Vec<GuessCounter>,
    now: Timestamp,
) -> Result<GuessDecision, T::Failure> {
    // A guess that has to wait takes no lock, so that a flood of them does not queue up.
    let unlocked = GuessDecision::of(find(tables, &counters).await?, now);
    if matches!(unlocked, GuessDecision::Wait(_)) {
        return Ok(unlocked);
    }
    let decision = GuessDecision::of(lock(tables, counters).await?, now);
    if let GuessDecision::Allowed(guess) = &decision {
        let expired = now.minus(GUESSES_EXPIRE_AFTER);
        tables
            .remove_old_guesses(expired, OLD_GUESSES_REMOVED_MAX)
            .await?;
        for (counter, guesses) in guess.counted() {
            tables.write_guesses(counter, Some(guesses)).await?;
        }
    }
    Ok(decision)
}

/// Returns the wait before the next guess of a counter.
pub async fn guess_wait<T: Tables>(
    tables: &T,
    counter: GuessCounter,
    now: Timestamp,
) -> Result<Option<Duration>, T::Failure> {
    let found = find(tables, &[counter]).await?;
    Ok(match GuessDecision::of(found, now) {
        GuessDecision::Allowed(_) => None,
        GuessDecision::Wait(wait) => Some(wait),
    })
}

/// Takes back a guess with the right password.
pub async fn take_back_guess<T: Tables>(
    tables: &T,
    guess: &CountedGuess,
) -> Result<(), T::Failure> {
    let counters = guess.counters.iter().map(|(counter, _)| *counter);
    for (counter, stored) in lock(tables, counters.collect()).await? {
        if let Some(stored) = stored {
            let left = guess.taken_back(counter, stored);
            tables.write_guesses(counter, left).await?;
        }
    }
    Ok(())
}

/// Counts a guess whose password is not checked now.
pub async fn add_guess<T: Tables>(
    tables: &T,
    counter: GuessCounter,
    now: Timestamp,
) -> Result<(), T::Failure> {
    for (counter, before) in lock(tables, vec![counter]).await? {
        let guesses = Guesses::with_another(before, now);
        tables.write_guesses(counter, Some(guesses)).await?;
    }
    Ok(())
}

/// Writes a sign-in with a wrong password to the audit log of each user with the email address.
/// The chains are locked in the order of the organizations.
pub async fn audit_failed_sign_in<T: Tables>(
    tables: &T,
    users: &[(User, AuditContext)],
) -> Result<(), T::Failure> {
    let mut users: Vec<&(User, AuditContext)> = users.iter().collect();
    users.sort_by_key(|(user, _)| user.organization);
    for (user, origin) in users {
        let action = Action::UserSignInFailed;
        let row = audit_row(user.organization, origin, action, None, user.id, &[]);
        tables.insert_audit(&row).await?;
    }
    Ok(())
}
