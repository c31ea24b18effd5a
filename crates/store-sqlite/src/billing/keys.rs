//! The keys that lead to subscriptions.

use super::notifications::provider_of;
use crate::Failure;
use rusqlite::{Connection, params};
use tributary_domain::access::Environment;
use tributary_domain::billing::{Chain, Notification, transaction_key};
use tributary_domain::vocabulary::id::AppId;

/// Lets the subscription of a notification be found by the notification's keys.
pub(super) fn insert(connection: &Connection, one: &Notification) -> Result<(), Failure> {
    let transaction = one.said.transaction.as_deref().map(transaction_key);
    for key in one.keys().into_iter().chain(transaction) {
        connection
            .prepare_cached(
                "insert into billing_keys (app_id, environment, lookup_key, provider, chain)
                 values (?1, ?2, ?3, ?4, ?5) on conflict do nothing",
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

/// Removes a key of a subscription.
pub(super) fn remove(connection: &Connection, chain: &Chain, key: &str) -> Result<(), Failure> {
    connection
        .prepare_cached(
            "delete from billing_keys where app_id = ?1 and environment = ?2 and lookup_key = ?3
               and provider = ?4 and chain = ?5",
        )?
        .execute(params![
            chain.app.as_bytes(),
            chain.environment.as_str(),
            key,
            chain.provider.as_str(),
            chain.name
        ])?;
    Ok(())
}

/// Returns the subscriptions of a key, in a fixed order.
pub(super) fn find(
    connection: &Connection,
    (app, environment): (AppId, Environment),
    key: &str,
    limit: i64,
) -> Result<Vec<Chain>, Failure> {
    let rows: Vec<(String, String)> = connection
        .prepare_cached(
            "select provider, chain from billing_keys
             where app_id = ?1 and environment = ?2 and lookup_key = ?3
             order by provider, chain limit ?4",
        )?
        .query_map(
            params![app.as_bytes(), environment.as_str(), key, limit],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )?
        .collect::<Result<_, _>>()?;
    let chain = |(provider, name): (String, String)| {
        Ok(Chain {
            app,
            environment,
            provider: provider_of(app, &provider)?,
            name,
        })
    };
    rows.into_iter().map(chain).collect()
}
