//! Erasing whose subscriptions were whose. They go on under the device's pseudonym; what comes of them later is kept
//! without who it is about.
//!
//! Nobody settles the app's subscriptions or links its devices meanwhile: whoever erases holds the app's row.

use super::{keys, notifications};
use crate::Failure;
use crate::devices::AsColumns;
use crate::params::column;
use crate::tx::Tx;
use std::collections::BTreeSet;
use tributary_domain::app::BillingProvider;
use tributary_domain::billing::{Chain, advertising_key, device_key, person_key};
use tributary_domain::device::{DeviceRef, UserKey};
use tributary_domain::erasure::Erasure;
use tributary_recording::KeyTable;
use tributary_store::records::{NotificationRow, within_json};

/// Erases who subscriptions belong to. `billed` are the providers' ids of the events that are erased.
pub(crate) async fn erase(
    tx: &Tx,
    of: DeviceRef<'_>,
    erasure: &Erasure,
    billed: &BTreeSet<&str>,
) -> Result<(), Failure> {
    for chain in chains(tx, of, erasure, billed).await? {
        let (mut before, mut after) = (BTreeSet::new(), BTreeSet::new());
        let mut remains = Vec::new();
        for one in notifications::whole_chain(tx, &chain).await? {
            before.extend(one.keys());
            let one = erasure.notification(one);
            after.extend(one.keys());
            tx.insert_keys(&chain, &one.lookup_keys()).await?;
            remains.push(NotificationRow::write(&one));
        }
        let gone: Vec<&str> = before.difference(&after).map(String::as_str).collect();
        keys::remove(tx, &chain, &gone).await?;
        tx.execute(
            "update notifications set facts = new.facts, body = null
             from unnest($3, $4) as new (given_id, facts)
             where notifications.app_id = $1 and notifications.provider = $2
               and notifications.given_id = new.given_id",
            &[
                &of.app(),
                &chain.provider.as_str(),
                &column(&remains, |row| row.given_id.as_str()),
                &column(&remains, |row| row.facts.as_str()),
            ],
        )
        .await?;
    }
    forget_people(tx, of).await
}

/// The keys that go beside the device's.
fn erased_keys(erasure: &Erasure) -> Vec<String> {
    let people = erasure.people.iter().map(person_key);
    let advertising = erasure.advertising.iter().map(advertising_key);
    people.chain(advertising).collect()
}

/// The subscriptions that may say whose they are.
async fn chains(
    tx: &Tx,
    of: DeviceRef<'_>,
    erasure: &Erasure,
    billed: &BTreeSet<&str>,
) -> Result<BTreeSet<Chain>, Failure> {
    let (app, environment, device) = of.columns();
    let mut searched = erased_keys(erasure);
    searched.push(device_key(of.key));
    let searched = column(&searched, String::as_str);
    let given: Vec<&str> = billed.iter().copied().collect();
    let providers = column(BillingProvider::ALL, |provider| provider.as_str());
    let reported = tx
        .query(
            "select distinct provider, chain from notifications
             where app_id = $1 and provider = any($2) and given_id = any($3) and environment = $4",
            &[&app, &providers, &given, &environment],
        )
        .await?;
    let keyed = tx
        .query(
            "select distinct provider, chain from billing_keys
             where app_id = $1 and environment = $2 and lookup_key = any($3)",
            &[&app, &environment, &searched],
        )
        .await?;
    // Those that belong to no subscription, transfers above all: no key leads to them, and there are few. Some say who
    // they are about in what was received alone.
    let people = erasure.people.iter().map(UserKey::as_str);
    let texts: Vec<String> = people.chain([device]).map(within_json).collect();
    let lone = tx
        .query(
            "select distinct provider, chain from notifications
             where app_id = $1 and environment = $2 and provider = any($3)
               and chain >= 'alone:' and chain < 'alone;'
               and exists (select 1 from unnest($4) as erased (text)
                           where strpos(facts || coalesce(body, ''), erased.text) > 0)",
            &[
                &app,
                &environment,
                &providers,
                &column(&texts, String::as_str),
            ],
        )
        .await?;
    let chain = |row: &tokio_postgres::Row| {
        Ok(Chain {
            app: of.app,
            environment: of.environment,
            provider: notifications::provider_of(of.app, row.try_get(0)?)?,
            name: row.try_get(1)?,
        })
    };
    let found = reported.iter().chain(&keyed).chain(&lone);
    found.map(chain).collect()
}

async fn forget_people(tx: &Tx, of: DeviceRef<'_>) -> Result<(), Failure> {
    let (app, environment, device) = of.columns();
    tx.execute(
        "delete from user_links where app_id = $1 and environment = $2 and device_id = $3",
        &[&app, &environment, &device],
    )
    .await?;
    Ok(())
}
