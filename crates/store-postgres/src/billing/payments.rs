//! Payments of subscriptions, by who paid them.

use super::notifications::provider_of;
use crate::Failure;
use crate::params::column;
use crate::rows::uuid;
use crate::tx::Tx;
use tributary_domain::access::Environment;
use tributary_domain::app::BillingProvider;
use tributary_domain::billing::{Notification, PaidBefore};
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::time::Timestamp;

/// The latest payment before one, of the same person by one of the keys.
pub(super) async fn paid_before(
    tx: &Tx,
    one: &Notification,
    keys: &[String],
) -> Result<Option<PaidBefore>, Failure> {
    let row = tx
        .query_opt(
            "select found.product
             from unnest($3) as wanted (person_key)
             cross join lateral
                  (select happened_at, given_id, product from billing_payments
                   where app_id = $1 and environment = $2 and person_key = wanted.person_key
                     and (happened_at, given_id) < ($4, $5)
                   order by happened_at desc, given_id desc limit 1) as found
             order by found.happened_at desc, found.given_id desc limit 1",
            &[
                &uuid(one.app.as_bytes()),
                &one.said.environment.as_str(),
                &column(keys, String::as_str),
                &one.happened_at.as_millis(),
                &one.said.given_id,
            ],
        )
        .await?;
    row.map(|row| {
        Ok(PaidBefore {
            product: row.try_get(0)?,
        })
    })
    .transpose()
}

/// The payments right after a moment, of the same person by each of the keys.
pub(super) async fn paid_after(
    tx: &Tx,
    app: AppId,
    environment: Environment,
    (at, given_id): (Timestamp, &str),
    keys: &[String],
) -> Result<Vec<(BillingProvider, String)>, Failure> {
    let rows = tx
        .query(
            "select distinct found.provider, found.given_id
             from unnest($3) as wanted (person_key)
             cross join lateral
                  (select provider, given_id from billing_payments
                   where app_id = $1 and environment = $2 and person_key = wanted.person_key
                     and (happened_at, given_id) > ($4, $5)
                   order by happened_at, given_id limit 1) as found",
            &[
                &uuid(app.as_bytes()),
                &environment.as_str(),
                &column(keys, String::as_str),
                &at.as_millis(),
                &given_id,
            ],
        )
        .await?;
    rows.iter()
        .map(|row| Ok((provider_of(app, row.try_get(0)?)?, row.try_get(1)?)))
        .collect()
}

/// The first payment that a key has.
pub(super) async fn first_paid(
    tx: &Tx,
    app: AppId,
    environment: Environment,
    key: &str,
) -> Result<Option<(Timestamp, String, Option<String>)>, Failure> {
    let row = tx
        .query_opt(
            "select happened_at, given_id, product from billing_payments
             where app_id = $1 and environment = $2 and person_key = $3
             order by happened_at, given_id limit 1",
            &[&uuid(app.as_bytes()), &environment.as_str(), &key],
        )
        .await?;
    row.map(|row| {
        let at = Timestamp::from_millis(row.try_get(0)?);
        Ok((at, row.try_get(1)?, row.try_get(2)?))
    })
    .transpose()
}

/// Lets a payment be found by its person.
pub(super) async fn insert(tx: &Tx, one: &Notification) -> Result<(), Failure> {
    tx.execute(
        "insert into billing_payments (app_id, environment, person_key, happened_at, given_id,
                                       provider, product)
         select $1, $2, person_key, $4, $5, $6, $7 from unnest($3) as own (person_key)
         on conflict (app_id, environment, person_key, happened_at, given_id, provider) do nothing",
        &[
            &uuid(one.app.as_bytes()),
            &one.said.environment.as_str(),
            &column(&one.person_keys(), String::as_str),
            &one.happened_at.as_millis(),
            &one.said.given_id,
            &one.provider.as_str(),
            &one.said.product,
        ],
    )
    .await?;
    Ok(())
}
