//! Trials on hold.

use super::notifications::provider_of;
use crate::Failure;
use rusqlite::{Connection, OptionalExtension, params};
use tributary_domain::access::Environment;
use tributary_domain::billing::Chain;
use tributary_domain::billing::hold::{Trial, TrialState};
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::StoreError;

/// The trial of a subscription that is, or was, on hold.
pub(super) fn find(connection: &Connection, chain: &Chain) -> Result<Option<Trial>, Failure> {
    let row: Option<(i64, String)> = connection
        .prepare_cached(
            "select due_at, state from trials where app_id = ?1 and provider = ?2 and chain = ?3",
        )?
        .query_row(
            params![chain.app.as_bytes(), chain.provider.as_str(), chain.name],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
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

/// Puts a trial on hold. Of several starts of one subscription the earliest decides when it is due.
pub(super) fn insert(
    connection: &Connection,
    chain: &Chain,
    due_at: Timestamp,
) -> Result<(), Failure> {
    connection
        .prepare_cached(
            "insert into trials (app_id, provider, chain, due_at, state) values (?1, ?2, ?3, ?4, ?5)
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

/// Writes how a trial stands.
pub(super) fn write_state(
    connection: &Connection,
    chain: &Chain,
    trial: Trial,
) -> Result<(), Failure> {
    connection
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

/// Trials on hold that are due, the longest ones first.
pub(super) fn due(
    connection: &Connection,
    now: Timestamp,
    limit: u32,
) -> Result<Vec<Chain>, Failure> {
    let rows: Vec<([u8; 16], String, String)> = connection
        .prepare_cached(
            "select app_id, provider, chain from trials where state = 'held' and due_at <= ?1
             order by due_at limit ?2",
        )?
        .query_map(params![now.as_millis(), limit], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })?
        .collect::<Result<_, _>>()?;
    rows.into_iter()
        .map(|(app, provider, name)| {
            let app = AppId::from_bytes(app);
            Ok(Chain {
                app,
                environment: Environment::Live,
                provider: provider_of(app, &provider)?,
                name,
            })
        })
        .collect()
}
