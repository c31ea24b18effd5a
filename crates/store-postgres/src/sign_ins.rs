//! Counters of password guesses.

use crate::tx::Tx;
use crate::{Failure, PostgresStore};
use async_trait::async_trait;
use std::collections::HashMap;
use std::time::Duration;
use tributary_domain::access::person::User;
use tributary_domain::access::sign_in::{CountedGuess, GuessCounter, GuessDecision, Guesses};
use tributary_domain::audit::AuditContext;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_recording::{GuessTable, admin};
use tributary_store::{SignIns, StoreResult};

fn key(counter: &GuessCounter) -> &[u8] {
    counter.digest().as_bytes()
}

/// Returns the key of a counter's advisory lock.
fn lock_number(counter: &GuessCounter) -> i64 {
    let first = counter.digest().as_bytes().first_chunk();
    i64::from_be_bytes(*first.expect("a digest has 32 bytes"))
}

impl GuessTable for Tx {
    async fn lock_guesses(&self, counters: &[GuessCounter]) -> Result<(), Failure> {
        for counter in counters {
            // A counter without guesses has no row to lock.
            let sql = "select pg_advisory_xact_lock($1)";
            self.query(sql, &[&lock_number(counter)]).await?;
        }
        Ok(())
    }

    async fn guesses(&self, counters: &[GuessCounter]) -> Result<Vec<Option<Guesses>>, Failure> {
        let keys: Vec<&[u8]> = counters.iter().map(key).collect();
        let sql = "select counter, guesses, last_at from password_guesses where counter = any($1)";
        let mut found = HashMap::new();
        for row in self.query(sql, &[&keys]).await? {
            let guesses = Guesses {
                count: u32::try_from(row.try_get::<_, i64>(1)?).unwrap_or(u32::MAX),
                last_at: Timestamp::from_millis(row.try_get(2)?),
            };
            found.insert(row.try_get::<_, Vec<u8>>(0)?, guesses);
        }
        Ok(keys.iter().map(|key| found.get(*key).copied()).collect())
    }

    async fn write_guesses(
        &self,
        counter: GuessCounter,
        guesses: Option<Guesses>,
    ) -> Result<(), Failure> {
        let key = key(&counter);
        if let Some(guesses) = guesses {
            self.execute(
                "insert into password_guesses (counter, guesses, last_at) values ($1, $2, $3)
                 on conflict (counter) do update
                 set guesses = excluded.guesses, last_at = excluded.last_at",
                &[
                    &key,
                    &i64::from(guesses.count),
                    &guesses.last_at.as_millis(),
                ],
            )
            .await
        } else {
            let sql = "delete from password_guesses where counter = $1";
            self.execute(sql, &[&key]).await
        }
    }

    async fn remove_old_guesses(&self, since: Timestamp, max: u32) -> Result<(), Failure> {
        self.execute(
            "delete from password_guesses where counter in
                 (select counter from password_guesses where last_at <= $1
                  order by last_at limit $2 for update skip locked)",
            &[&since.as_millis(), &i64::from(max)],
        )
        .await
    }
}

#[async_trait]
impl SignIns for PostgresStore {
    async fn count_guess(
        &self,
        counters: Vec<GuessCounter>,
        now: Timestamp,
    ) -> StoreResult<GuessDecision> {
        self.write("count_guess", async move |tx| {
            admin::count_guess(tx, counters.clone(), now).await
        })
        .await
    }

    async fn guess_wait(
        &self,
        counter: GuessCounter,
        now: Timestamp,
    ) -> StoreResult<Option<Duration>> {
        self.read("guess_wait", async move |tx| {
            admin::guess_wait(tx, counter, now).await
        })
        .await
    }

    async fn take_back_guess(&self, guess: CountedGuess) -> StoreResult<()> {
        self.write("take_back_guess", async move |tx| {
            admin::take_back_guess(tx, &guess).await
        })
        .await
    }

    async fn add_guess(&self, counter: GuessCounter, now: Timestamp) -> StoreResult<()> {
        self.write("add_guess", async move |tx| {
            admin::add_guess(tx, counter, now).await
        })
        .await
    }

    async fn audit_failed_sign_in(&self, users: Vec<(User, AuditContext)>) -> StoreResult<()> {
        self.write("audit_failed_sign_in", async move |tx| {
            admin::audit_failed_sign_in(tx, &users).await
        })
        .await
    }
}
