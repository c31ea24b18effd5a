//! The keys that lead to subscriptions.

use super::notifications::provider_of;
use crate::Failure;
use crate::params::column;
use crate::rows::uuid;
use crate::tx::Tx;
use tributary_domain::access::Environment;
use tributary_domain::billing::{Chain, Notification, transaction_key};
use tributary_domain::vocabulary::id::AppId;

/// Lets the subscription of a notification be found by the notification's keys.
pub(super) async fn insert(tx: &Tx, one: &Notification) -> Result<(), Failure> {
    let transaction = one.said.transaction.as_deref().map(transaction_key);
    let keys: Vec<String> = one.keys().into_iter().chain(transaction).collect();
    if keys.is_empty() {
        return Ok(());
    }
    tx.execute(
        "insert into billing_keys (app_id, environment, lookup_key, provider, chain)
         select $1, $2, lookup_key, $4, $5 from unnest($3) as new (lookup_key)
         on conflict (app_id, environment, lookup_key, provider, chain) do nothing",
        &[
            &uuid(one.app.as_bytes()),
            &one.said.environment.as_str(),
            &column(&keys, String::as_str),
            &one.provider.as_str(),
            &one.chain(),
        ],
    )
    .await?;
    Ok(())
}

/// Removes keys of a subscription.
pub(super) async fn remove(tx: &Tx, chain: &Chain, keys: &[&str]) -> Result<(), Failure> {
    tx.execute(
        "delete from billing_keys where app_id = $1 and environment = $2 and lookup_key = any($3)
           and provider = $4 and chain = $5",
        &[
            &uuid(chain.app.as_bytes()),
            &chain.environment.as_str(),
            &keys.to_vec(),
            &chain.provider.as_str(),
            &chain.name,
        ],
    )
    .await?;
    Ok(())
}

/// Returns the subscriptions of keys, each at most so many in a fixed order.
pub(super) async fn find(
    tx: &Tx,
    (app, environment): (AppId, Environment),
    keys: &[&str],
    limit: i64,
) -> Result<Vec<(String, Chain)>, Failure> {
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    let rows = tx
        .query(
            "select wanted.lookup_key, found.provider, found.chain
             from unnest($3) as wanted (lookup_key)
             cross join lateral
                  (select provider, chain from billing_keys
                   where app_id = $1 and environment = $2 and lookup_key = wanted.lookup_key
                   order by provider, chain limit $4) as found
             order by wanted.lookup_key, found.provider, found.chain",
            &[
                &uuid(app.as_bytes()),
                &environment.as_str(),
                &keys.to_vec(),
                &limit,
            ],
        )
        .await?;
    rows.iter()
        .map(|row| {
            let chain = Chain {
                app,
                environment,
                provider: provider_of(app, row.try_get(1)?)?,
                name: row.try_get(2)?,
            };
            Ok((row.try_get(0)?, chain))
        })
        .collect()
}
