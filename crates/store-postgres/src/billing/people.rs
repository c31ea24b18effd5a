//! Links between devices and the user ids and advertising ids used on them.

use crate::Failure;
use crate::devices::DeviceColumns;
use crate::rows::uuid;
use crate::tx::Tx;
use std::collections::BTreeSet;
use tokio_postgres::Row;
use tributary_domain::access::Environment;
use tributary_domain::billing::PERSON_IDS_MAX;
use tributary_domain::billing::join::{AdvertisingLink, DeviceLink, PersonLink};
use tributary_domain::device::{AdvertisingId, DeviceKey, DeviceRef, UserKey};
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_recording::UserLinkTable;

/// Finds the links between devices and users, by user id and by device.
pub(super) async fn find_person_links(
    tx: &Tx,
    of: (AppId, Environment),
    people: Vec<&str>,
    devices: Vec<&str>,
) -> Result<Vec<PersonLink>, Failure> {
    let by_person = "select stored.* from unnest($3) as wanted (id) cross join lateral
         (select user_id as id, device_id, linked_at as since from user_links
          where app_id = $1 and environment = $2 and user_id = wanted.id limit $4) as stored";
    let by_device = "select stored.* from unnest($3) as wanted (id) cross join lateral
         (select user_id as id, device_id, linked_at as since from user_links
          where app_id = $1 and environment = $2 and device_id = wanted.id limit $4) as stored";
    let (mut found, of_devices) = tokio::try_join!(
        links(tx, by_person, of, people, UserKey::stored),
        links(tx, by_device, of, devices, UserKey::stored)
    )?;
    found.extend(of_devices);
    Ok(found)
}

/// Finds the links between devices and advertising ids, by advertising id and by device.
pub(super) async fn find_advertising_links(
    tx: &Tx,
    of: (AppId, Environment),
    ids: Vec<&str>,
    devices: Vec<&str>,
) -> Result<Vec<AdvertisingLink>, Failure> {
    let by_id = "select stored.* from unnest($3) as wanted (id) cross join lateral
         (select advertising_id as id, device_id, first_seen_at as since from devices
          where app_id = $1 and environment = $2 and advertising_id = wanted.id limit $4) as stored";
    let by_device = "select stored.* from unnest($3) as wanted (id) cross join lateral
         (select advertising_id as id, device_id, first_seen_at as since from devices
          where app_id = $1 and environment = $2 and device_id = wanted.id
            and advertising_id is not null limit $4) as stored";
    let (mut found, of_devices) = tokio::try_join!(
        links(tx, by_id, of, ids, AdvertisingId::stored),
        links(tx, by_device, of, devices, AdvertisingId::stored)
    )?;
    found.extend(of_devices);
    Ok(found)
}

async fn links<Id>(
    tx: &Tx,
    sql: &str,
    (app, environment): (AppId, Environment),
    ids: Vec<&str>,
    id: fn(String) -> Id,
) -> Result<Vec<DeviceLink<Id>>, Failure> {
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
            Ok(DeviceLink {
                id: id(row.try_get("id")?),
                device: DeviceKey::stored(row.try_get("device_id")?),
                since: Timestamp::from_millis(row.try_get("since")?),
            })
        })
        .collect()
}

impl UserLinkTable for Tx {
    async fn link_user(
        &self,
        device: DeviceRef<'_>,
        user: &UserKey,
        at: Timestamp,
    ) -> Result<(), Failure> {
        let (app, environment, key) = device.columns();
        self.execute(
            "insert into user_links (app_id, environment, user_id, device_id, linked_at)
             values ($1, $2, $3, $4, $5)
             on conflict (app_id, environment, user_id, device_id)
             do update set linked_at = excluded.linked_at",
            &[&app, &environment, &user.as_str(), &key, &at.as_millis()],
        )
        .await?;
        Ok(())
    }

    async fn linked_people(&self, device: DeviceRef<'_>) -> Result<BTreeSet<UserKey>, Failure> {
        let (app, environment, key) = device.columns();
        let rows = self
            .query(
                "select user_id from user_links
                 where app_id = $1 and environment = $2 and device_id = $3",
                &[&app, &environment, &key],
            )
            .await?;
        rows.iter().map(person).collect()
    }

    async fn shared_people(
        &self,
        device: DeviceRef<'_>,
        people: &BTreeSet<UserKey>,
    ) -> Result<BTreeSet<UserKey>, Failure> {
        let (app, environment, key) = device.columns();
        let people: Vec<&str> = people.iter().map(UserKey::as_str).collect();
        let rows = self
            .query(
                "select distinct user_id from user_links
                 where app_id = $1 and environment = $2 and user_id = any($3) and device_id <> $4",
                &[&app, &environment, &people, &key],
            )
            .await?;
        rows.iter().map(person).collect()
    }

    async fn unlink_device(&self, device: DeviceRef<'_>) -> Result<(), Failure> {
        let (app, environment, key) = device.columns();
        self.execute(
            "delete from user_links where app_id = $1 and environment = $2 and device_id = $3",
            &[&app, &environment, &key],
        )
        .await?;
        Ok(())
    }
}

fn person(row: &Row) -> Result<UserKey, Failure> {
    Ok(UserKey::stored(row.try_get("user_id")?))
}
