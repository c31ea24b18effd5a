//! Trials on hold.

use crate::Failure;
use crate::rows::read_row;
use crate::tables::SqliteTables;
use rusqlite::{Connection, OptionalExtension, params};
use tributary_domain::access::Environment;
use tributary_domain::billing::Chain;
use tributary_domain::billing::hold::{Trial, TrialState};
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_recording::TrialTable;
use tributary_store::StoreError;
use tributary_store::records::ChainRow;

impl TrialTable for SqliteTables<'_> {
    async fn trial(&self, chain: &Chain) -> Result<Option<Trial>, Failure> {
        let key = params![chain.app.as_bytes(), chain.provider.as_str(), chain.name];
        let row: Option<(i64, String)> = self
            .0
            .prepare_cached(
                "select due_at, state from trials
                 where app_id = ?1 and provider = ?2 and chain = ?3",
            )?
            .query_row(key, |row| Ok((row.get("due_at")?, row.get("state")?)))
            .optional()?;
        row.map(|(due_at, state)| {
            Ok(Trial {
                due_at: Timestamp::from_millis(due_at),
                state: TrialState::parse(&state)
                    .ok_or_else(|| StoreError::corrupt("trials", "state", chain.app))?,
            })
        })
        .transpose()
    }

    async fn hold_trial(&self, chain: &Chain, due_at: Timestamp) -> Result<(), Failure> {
        self.0
            .prepare_cached(
                "insert into trials (app_id, provider, chain, due_at, state)
                 values (?1, ?2, ?3, ?4, ?5)
                 on conflict do update set due_at = min(due_at, excluded.due_at)",
            )?
            .execute(params![
                chain.app.as_bytes(),
                chain.provider.as_str(),
                chain.name,
                due_at.as_millis(),
                TrialState::Held.as_str()
            ])?;
        Ok(())
    }

    async fn write_trial(&self, chain: &Chain, trial: Trial) -> Result<(), Failure> {
        self.0
            .prepare_cached(
                "update trials set state = ?4 where app_id = ?1 and provider = ?2 and chain = ?3",
            )?
            .execute(params![
                chain.app.as_bytes(),
                chain.provider.as_str(),
                chain.name,
                trial.state.as_str()
            ])?;
        Ok(())
    }
}

/// Finds due trials on hold, oldest first.
pub(super) fn find_due(
    connection: &Connection,
    now: Timestamp,
    limit: u32,
) -> Result<Vec<Chain>, Failure> {
    let mut find = connection.prepare_cached(
        "select provider, chain, app_id from trials where state = 'held' and due_at <= ?1
         order by due_at limit ?2",
    )?;
    let rows = find.query_map(params![now.as_millis(), limit], |row| {
        Ok((read_row::<ChainRow>(row)?, row.get("app_id")?))
    })?;
    rows.map(|row| {
        let (chain, app) = row?;
        Ok(chain.read((AppId::from_bytes(app), Environment::Live))?)
    })
    .collect()
}
