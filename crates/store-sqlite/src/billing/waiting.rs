//! Subscriptions without a device.

use super::notifications::Chain;
use super::notifications::provider_of;
use crate::Failure;
use rusqlite::{Connection, params};
use tributary_domain::access::Environment;
use tributary_domain::billing::Notification;
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::time::Timestamp;

/// Lets a subscription wait for whoever shows up with one of its ids.
pub(super) fn wait(connection: &Connection, one: &Notification) -> Result<(), Failure> {
    for key in one.waiting_keys() {
        connection
            .prepare_cached(
                "insert into billing_waiting (app_id, environment, person_key, provider, chain,
                                              received_at)
                 values (?1, ?2, ?3, ?4, ?5, ?6)
                 on conflict do update set received_at = max(received_at, excluded.received_at)",
            )?
            .execute(params![
                one.app.as_bytes(),
                one.said.environment.as_str(),
                key,
                one.provider.as_str(),
                one.chain(),
                one.received_at.as_millis()
            ])?;
    }
    Ok(())
}

/// A subscription that was found waits no longer.
pub(super) fn found(connection: &Connection, one: &Notification) -> Result<(), Failure> {
    for key in one.waiting_keys() {
        connection
            .prepare_cached(
                "delete from billing_waiting where app_id = ?1 and environment = ?2
                   and person_key = ?3 and provider = ?4 and chain = ?5",
            )?
            .execute(params![
                one.app.as_bytes(),
                one.said.environment.as_str(),
                key,
                one.provider.as_str(),
                one.chain()
            ])?;
    }
    Ok(())
}

/// The subscriptions that wait for a key, and have not waited too long.
pub(super) fn find(
    connection: &Connection,
    app: AppId,
    environment: Environment,
    key: &str,
    since: Timestamp,
    limit: i64,
) -> Result<Vec<Chain>, Failure> {
    let rows: Vec<(String, String)> = connection
        .prepare_cached(
            "select provider, chain from billing_waiting
             where app_id = ?1 and environment = ?2 and person_key = ?3 and received_at >= ?4
             limit ?5",
        )?
        .query_map(
            params![
                app.as_bytes(),
                environment.as_str(),
                key,
                since.as_millis(),
                limit
            ],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )?
        .collect::<Result<_, _>>()?;
    rows.into_iter()
        .map(|(provider, name)| {
            Ok(Chain {
                app,
                environment,
                provider: provider_of(app, &provider)?,
                name,
            })
        })
        .collect()
}
