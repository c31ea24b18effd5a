//! Who is who: the devices that go by a person's id, and whose memory a person has.

use crate::Failure;
use crate::params::column;
use crate::rows::uuid;
use crate::tx::Tx;
use tributary_domain::access::Environment;
use tributary_domain::billing::join::Link;
use tributary_domain::billing::{PERSON_IDS_MAX, Subscriber, person_key};
use tributary_domain::device::{AdvertisingId, DeviceKey, UserKey};
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::time::Timestamp;

/// Which way what one person had went to another.
#[derive(Clone, Copy)]
pub(super) enum Way {
    /// Whose it was before.
    From,
    /// Whose it became.
    To,
}

/// The keys of some people, and of those whose memory they have, or who have theirs.
pub(super) async fn person_keys(
    tx: &Tx,
    app: AppId,
    environment: Environment,
    people: &[UserKey],
    way: Way,
) -> Result<Vec<String>, Failure> {
    let sql = match way {
        Way::From => {
            "select from_user from user_transfers
             where app_id = $1 and environment = $2 and to_user = any($3) limit $4"
        }
        Way::To => {
            "select to_user from user_transfers
             where app_id = $1 and environment = $2 and from_user = any($3) limit $4"
        }
    };
    let limit = i64::try_from(PERSON_IDS_MAX).unwrap_or(i64::MAX);
    let mut keys: Vec<String> = people.iter().map(person_key).collect();
    if people.is_empty() {
        return Ok(keys);
    }
    let ids = column(people, UserKey::as_str);
    let environment = environment.as_str();
    let rows = tx
        .query(sql, &[&uuid(app.as_bytes()), &environment, &ids, &limit])
        .await?;
    for row in &rows {
        keys.push(person_key(&UserKey::stored(row.try_get(0)?)));
    }
    Ok(keys)
}

/// Remembers that what one person had is another's, too, and whatever was given on before and since.
pub(super) async fn insert_transfer(
    tx: &Tx,
    app: AppId,
    environment: Environment,
    from: &UserKey,
    to: &UserKey,
) -> Result<(), Failure> {
    tx.execute(
        "insert into user_transfers (app_id, environment, to_user, from_user)
         select distinct $1::uuid, $2::text, receivers.receiver, givers.giver from
           (select $4::text collate \"C\" as receiver union
            select to_user from user_transfers
            where app_id = $1 and environment = $2 and from_user = $4) as receivers,
           (select $3::text collate \"C\" as giver union
            select from_user from user_transfers
            where app_id = $1 and environment = $2 and to_user = $3) as givers
         where receivers.receiver <> givers.giver
         on conflict (app_id, environment, to_user, from_user) do nothing",
        &[
            &uuid(app.as_bytes()),
            &environment.as_str(),
            &from.as_str(),
            &to.as_str(),
        ],
    )
    .await?;
    Ok(())
}

/// The devices that some people's ids go by.
pub(super) async fn people_links(
    tx: &Tx,
    app: AppId,
    environment: Environment,
    subscriber: &Subscriber,
) -> Result<Vec<Link>, Failure> {
    let people = &subscriber.people;
    let keys = person_keys(tx, app, environment, people, Way::From).await?;
    let users = column(&keys, |key| key.strip_prefix("person:").unwrap_or(key));
    links(
        tx,
        "select device_id, linked_at from user_links
         where app_id = $1 and environment = $2 and user_id = any($3) limit $4",
        (app, environment),
        users,
    )
    .await
}

/// The devices that have one of the advertising ids.
pub(super) async fn advertising_links(
    tx: &Tx,
    app: AppId,
    environment: Environment,
    subscriber: &Subscriber,
) -> Result<Vec<Link>, Failure> {
    links(
        tx,
        "select device_id, first_seen_at from devices
         where app_id = $1 and environment = $2 and advertising_id = any($3) limit $4",
        (app, environment),
        column(&subscriber.advertising, AdvertisingId::as_str),
    )
    .await
}

async fn links(
    tx: &Tx,
    sql: &str,
    (app, environment): (AppId, Environment),
    ids: Vec<&str>,
) -> Result<Vec<Link>, Failure> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let limit = i64::try_from(PERSON_IDS_MAX).unwrap_or(i64::MAX);
    let environment = environment.as_str();
    let rows = tx
        .query(sql, &[&uuid(app.as_bytes()), &environment, &ids, &limit])
        .await?;
    rows.iter()
        .map(|row| {
            Ok(Link {
                device: DeviceKey::stored(row.try_get(0)?),
                since: Timestamp::from_millis(row.try_get(1)?),
            })
        })
        .collect()
}

/// Remembers that a device goes by a person's id.
pub(super) async fn insert_link(
    tx: &Tx,
    app: AppId,
    environment: Environment,
    user: &UserKey,
    device: &DeviceKey,
    at: Timestamp,
) -> Result<(), Failure> {
    tx.execute(
        "insert into user_links (app_id, environment, user_id, device_id, linked_at)
         values ($1, $2, $3, $4, $5)
         on conflict (app_id, environment, user_id, device_id)
         do update set linked_at = excluded.linked_at",
        &[
            &uuid(app.as_bytes()),
            &environment.as_str(),
            &user.as_str(),
            &device.as_str(),
            &at.as_millis(),
        ],
    )
    .await?;
    Ok(())
}
