//! Payments of subscriptions, by who paid them.

use super::notifications::provider_of;
use crate::Failure;
use rusqlite::{Connection, OptionalExtension, params};
use tributary_domain::access::Environment;
use tributary_domain::app::BillingProvider;
use tributary_domain::billing::{Notification, PaidBefore};
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::time::Timestamp;

/// The payments right before and right after one, of the same person by one of the keys.
pub(super) fn paid_before(
    connection: &Connection,
    one: &Notification,
    keys: &[String],
) -> Result<Option<PaidBefore>, Failure> {
    let mut latest: Option<(i64, String, Option<String>)> = None;
    for key in keys {
        let found: Option<(i64, String, Option<String>)> = connection
            .prepare_cached(
                "select happened_at, given_id, product from billing_payments
                 where app_id = ?1 and environment = ?2 and person_key = ?3
                   and (happened_at, given_id) < (?4, ?5)
                 order by happened_at desc, given_id desc limit 1",
            )?
            .query_row(
                params![
                    one.app.as_bytes(),
                    one.said.environment.as_str(),
                    key,
                    one.happened_at.as_millis(),
                    one.said.given_id
                ],
                |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
            )
            .optional()?;
        latest = latest.max(found);
    }
    Ok(latest.map(|(_, _, product)| PaidBefore { product }))
}

/// The payments right after a moment, of the same person by each of the keys.
pub(super) fn paid_after(
    connection: &Connection,
    app: AppId,
    environment: Environment,
    (at, given_id): (Timestamp, &str),
    keys: &[String],
) -> Result<Vec<(BillingProvider, String)>, Failure> {
    let mut after = Vec::new();
    for key in keys {
        let found: Option<(String, String)> = connection
            .prepare_cached(
                "select provider, given_id from billing_payments
                 where app_id = ?1 and environment = ?2 and person_key = ?3
                   and (happened_at, given_id) > (?4, ?5)
                 order by happened_at, given_id limit 1",
            )?
            .query_row(
                params![
                    app.as_bytes(),
                    environment.as_str(),
                    key,
                    at.as_millis(),
                    given_id
                ],
                |row| Ok((row.get(0)?, row.get(1)?)),
            )
            .optional()?;
        if let Some((provider, given_id)) = found {
            after.push((provider_of(app, &provider)?, given_id));
        }
    }
    Ok(after)
}

/// The first payment that a key has.
pub(super) fn first_paid(
    connection: &Connection,
    app: AppId,
    environment: Environment,
    key: &str,
) -> Result<Option<(Timestamp, String, Option<String>)>, Failure> {
    let found = connection
        .prepare_cached(
            "select happened_at, given_id, product from billing_payments
             where app_id = ?1 and environment = ?2 and person_key = ?3
             order by happened_at, given_id limit 1",
        )?
        .query_row(params![app.as_bytes(), environment.as_str(), key], |row| {
            Ok((
                Timestamp::from_millis(row.get(0)?),
                row.get(1)?,
                row.get(2)?,
            ))
        })
        .optional()?;
    Ok(found)
}

/// Lets a payment be found by its person.
pub(super) fn insert(connection: &Connection, one: &Notification) -> Result<(), Failure> {
    for key in one.person_keys() {
        connection
            .prepare_cached(
                "insert into billing_payments (app_id, environment, person_key, happened_at,
                                               given_id, provider, product)
                 values (?1, ?2, ?3, ?4, ?5, ?6, ?7) on conflict do nothing",
            )?
            .execute(params![
                one.app.as_bytes(),
                one.said.environment.as_str(),
                key,
                one.happened_at.as_millis(),
                one.said.given_id,
                one.provider.as_str(),
                one.said.product
            ])?;
    }
    Ok(())
}
