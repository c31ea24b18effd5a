//! Subscriptions without a device.

use super::notifications::Chain;
use super::notifications::provider_of;
use crate::Failure;
use crate::params::column;
use crate::rows::uuid;
use crate::tx::Tx;
use tributary_domain::access::Environment;
use tributary_domain::billing::Notification;
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::time::Timestamp;

/// Lets a subscription wait for whoever shows up with one of its ids.
pub(super) async fn wait(tx: &Tx, one: &Notification) -> Result<(), Failure> {
    let mut keys: Vec<String> = one.waiting_keys().collect();
    keys.sort();
    keys.dedup();
    tx.execute(
        "insert into billing_waiting as stored (app_id, environment, person_key, provider, chain,
                                                received_at)
         select $1, $2, person_key, $4, $5, $6 from unnest($3) as own (person_key)
         on conflict (app_id, environment, person_key, provider, chain)
         do update set received_at = greatest(stored.received_at, excluded.received_at)",
        &[
            &uuid(one.app.as_bytes()),
            &one.said.environment.as_str(),
            &column(&keys, String::as_str),
            &one.provider.as_str(),
            &one.chain(),
            &one.received_at.as_millis(),
        ],
    )
    .await?;
    Ok(())
}

/// A subscription that was found waits no longer.
pub(super) async fn found(tx: &Tx, one: &Notification) -> Result<(), Failure> {
    let keys: Vec<String> = one.waiting_keys().collect();
    tx.execute(
        "delete from billing_waiting where app_id = $1 and environment = $2
           and person_key = any($3) and provider = $4 and chain = $5",
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

/// The subscriptions that wait for one of the keys, and have not waited too long.
pub(super) async fn find(
    tx: &Tx,
    app: AppId,
    environment: Environment,
    keys: &[String],
    since: Timestamp,
    limit: i64,
) -> Result<Vec<Chain>, Failure> {
    let rows = tx
        .query(
            "select distinct provider, chain from billing_waiting
             where app_id = $1 and environment = $2 and person_key = any($3) and received_at >= $4
             order by provider, chain limit $5",
            &[
                &uuid(app.as_bytes()),
                &environment.as_str(),
                &column(keys, String::as_str),
                &since.as_millis(),
                &limit,
            ],
        )
        .await?;
    rows.iter()
        .map(|row| {
            Ok(Chain {
                app,
                environment,
                provider: provider_of(app, row.try_get(0)?)?,
                name: row.try_get(1)?,
            })
        })
        .collect()
}
