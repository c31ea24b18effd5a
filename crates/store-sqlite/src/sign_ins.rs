//! Counters of password guesses.

use crate::tables::{SqliteTables, run};
use crate::{Failure, SqliteStore};
use async_trait::async_trait;
use rusqlite::{OptionalExtension, params};
use std::time::Duration;
use tributary_domain::access::person::User;
use tributary_domain::access::sign_in::{CountedGuess, GuessCounter, GuessDecision, Guesses};
use tributary_domain::audit::AuditContext;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_recording::{GuessTable, admin};
use tributary_store::{SignIns, StoreResult};

impl GuessTable for SqliteTables<'_> {
    async fn lock_guesses(&self, _: &[GuessCounter]) -> Result<(), Failure> {
        Ok(())
    }

    async fn guesses(&self, counters: &[GuessCounter]) -> Result<Vec<Option<Guesses>>, Failure> {
        let sql = "select guesses, last_at from password_guesses where counter = ?1";
        let mut find = self.0.prepare_cached(sql)?;
        let mut found = |counter: &GuessCounter| {
            let guesses = find.query_row([counter.digest().as_bytes()], |row| {
                Ok(Guesses {
                    count: row.get(0)?,
                    last_at: Timestamp::from_millis(row.get(1)?),
                })
            });
            Ok(guesses.optional()?)
        };
        counters.iter().map(&mut found).collect()
    }

    async fn write_guesses(
        &self,
        counter: GuessCounter,
        guesses: Option<Guesses>,
    ) -> Result<(), Failure> {
        let key = counter.digest().as_bytes();
        if let Some(guesses) = guesses {
            self.0.execute(
                "insert into password_guesses (counter, guesses, last_at) values (?1, ?2, ?3)
                 on conflict (counter) do update
                 set guesses = excluded.guesses, last_at = excluded.last_at",
                params![key, guesses.count, guesses.last_at.as_millis()],
            )?;
        } else {
            let sql = "delete from password_guesses where counter = ?1";
            self.0.execute(sql, [key])?;
        }
        Ok(())
    }

    async fn remove_old_guesses(&self, since: Timestamp, max: u32) -> Result<(), Failure> {
        self.0.execute(
            "delete from password_guesses where counter in
                 (select counter from password_guesses where last_at <= ?1
                  order by last_at limit ?2)",
            params![since.as_millis(), max],
        )?;
        Ok(())
    }
}

#[async_trait]
impl SignIns for SqliteStore {
    async fn count_guess(
        &self,
        counters: Vec<GuessCounter>,
        now: Timestamp,
    ) -> StoreResult<GuessDecision> {
        self.write("count_guess", move |connection| {
            run(admin::count_guess(&SqliteTables(connection), counters, now))
        })
        .await
    }

    async fn guess_wait(
        &self,
        counter: GuessCounter,
        now: Timestamp,
    ) -> StoreResult<Option<Duration>> {
        self.read("guess_wait", move |connection| {
            run(admin::guess_wait(&SqliteTables(connection), counter, now))
        })
        .await
    }

    async fn take_back_guess(&self, guess: CountedGuess) -> StoreResult<()> {
        self.write("take_back_guess", move |connection| {
            run(admin::take_back_guess(&SqliteTables(connection), &guess))
        })
        .await
    }

    async fn add_guess(&self, counter: GuessCounter, now: Timestamp) -> StoreResult<()> {
        self.write("add_guess", move |connection| {
            run(admin::add_guess(&SqliteTables(connection), counter, now))
        })
        .await
    }

    async fn audit_failed_sign_in(&self, users: Vec<(User, AuditContext)>) -> StoreResult<()> {
        self.write("audit_failed_sign_in", move |connection| {
            run(admin::audit_failed_sign_in(
                &SqliteTables(connection),
                &users,
            ))
        })
        .await
    }
}
