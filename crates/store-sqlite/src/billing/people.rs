//! Links between devices and the user ids and advertising ids used on them.

use crate::Failure;
use crate::tables::SqliteTables;
use rusqlite::{Connection, Row, params};
use std::collections::BTreeSet;
use tributary_domain::access::Environment;
use tributary_domain::billing::PERSON_IDS_MAX;
use tributary_domain::billing::join::{AdvertisingLink, DeviceLink, PersonLink};
use tributary_domain::device::{AdvertisingId, DeviceKey, DeviceRef, UserKey};
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_recording::UserLinkTable;

/// What to find links by.
pub(super) enum LinkSearch<'a> {
    /// By user id or advertising id.
    Id(&'a str),
    /// By device.
    Device(&'a DeviceKey),
}

/// Finds links between users and devices.
pub(super) fn find_person_links(
    connection: &Connection,
    of: (AppId, Environment),
    by: &LinkSearch<'_>,
) -> Result<Vec<PersonLink>, Failure> {
    let sql = match by {
        LinkSearch::Id(_) => {
            "select user_id as id, device_id, linked_at as since from user_links
             where app_id = ?1 and environment = ?2 and user_id = ?3 limit ?4"
        }
        LinkSearch::Device(_) => {
            "select user_id as id, device_id, linked_at as since from user_links
             where app_id = ?1 and environment = ?2 and device_id = ?3 limit ?4"
        }
    };
    links(connection, sql, of, by, UserKey::stored)
}

/// Finds links between advertising ids and devices.
pub(super) fn find_advertising_links(
    connection: &Connection,
    of: (AppId, Environment),
    by: &LinkSearch<'_>,
) -> Result<Vec<AdvertisingLink>, Failure> {
    let sql = match by {
        LinkSearch::Id(_) => {
            "select advertising_id as id, device_id, first_seen_at as since from devices
             where app_id = ?1 and environment = ?2 and advertising_id = ?3 limit ?4"
        }
        LinkSearch::Device(_) => {
            "select advertising_id as id, device_id, first_seen_at as since from devices
             where app_id = ?1 and environment = ?2 and device_id = ?3
               and advertising_id is not null limit ?4"
        }
    };
    links(connection, sql, of, by, AdvertisingId::stored)
}

fn links<Id>(
    connection: &Connection,
    sql: &str,
    (app, environment): (AppId, Environment),
    by: &LinkSearch<'_>,
    id: fn(String) -> Id,
) -> Result<Vec<DeviceLink<Id>>, Failure> {
    let key = match by {
        LinkSearch::Id(id) => id,
        LinkSearch::Device(device) => device.as_str(),
    };
    let limit = i64::try_from(PERSON_IDS_MAX).unwrap_or(i64::MAX);
    let link = |row: &Row<'_>| {
        Ok(DeviceLink {
            id: id(row.get("id")?),
            device: DeviceKey::stored(row.get("device_id")?),
            since: Timestamp::from_millis(row.get("since")?),
        })
    };
    let found = connection
        .prepare_cached(sql)?
        .query_map(
            params![app.as_bytes(), environment.as_str(), key, limit],
            link,
        )?
        .collect::<Result<_, _>>()?;
    Ok(found)
}

impl UserLinkTable for SqliteTables<'_> {
    async fn link_user(
        &self,
        device: DeviceRef<'_>,
        user: &UserKey,
        at: Timestamp,
    ) -> Result<(), Failure> {
        self.0
            .prepare_cached(
                "insert into user_links (app_id, environment, user_id, device_id, linked_at)
                 values (?1, ?2, ?3, ?4, ?5)
                 on conflict do update set linked_at = excluded.linked_at",
            )?
            .execute(params![
                device.app.as_bytes(),
                device.environment.as_str(),
                user.as_str(),
                device.key.as_str(),
                at.as_millis()
            ])?;
        Ok(())
    }

    async fn linked_people(&self, device: DeviceRef<'_>) -> Result<BTreeSet<UserKey>, Failure> {
        let (app, environment) = (device.app.as_bytes(), device.environment.as_str());
        let people = self
            .0
            .prepare_cached(
                "select user_id from user_links
                 where app_id = ?1 and environment = ?2 and device_id = ?3",
            )?
            .query_map(params![app, environment, device.key.as_str()], |row| {
                Ok(UserKey::stored(row.get(0)?))
            })?
            .collect::<Result<_, _>>()?;
        Ok(people)
    }

    async fn shared_people(
        &self,
        device: DeviceRef<'_>,
        people: &BTreeSet<UserKey>,
    ) -> Result<BTreeSet<UserKey>, Failure> {
        let (app, environment) = (device.app.as_bytes(), device.environment.as_str());
        let key = device.key.as_str();
        let mut find = self.0.prepare_cached(
            "select 1 from user_links
             where app_id = ?1 and environment = ?2 and user_id = ?3 and device_id <> ?4",
        )?;
        let mut shared = BTreeSet::new();
        for person in people {
            if find.exists(params![app, environment, person.as_str(), key])? {
                shared.insert(person.clone());
            }
        }
        Ok(shared)
    }

    async fn unlink_device(&self, device: DeviceRef<'_>) -> Result<(), Failure> {
        let (app, environment) = (device.app.as_bytes(), device.environment.as_str());
        self.0
            .prepare_cached(
                "delete from user_links
                 where app_id = ?1 and environment = ?2 and device_id = ?3",
            )?
            .execute(params![app, environment, device.key.as_str()])?;
        Ok(())
    }
}
