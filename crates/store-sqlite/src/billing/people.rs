//! Links between devices and the user ids and advertising ids used on them.

use crate::Failure;
use crate::rows::read_row;
use crate::tables::SqliteTables;
use rusqlite::{Connection, params};
use std::collections::BTreeSet;
use tributary_domain::access::Environment;
use tributary_domain::billing::PERSON_IDS_MAX;
use tributary_domain::billing::join::{AdvertisingLink, DeviceLink, PersonLink};
use tributary_domain::device::{
    ADDRESS_CLAIMS_MAX, AdvertisingId, ClaimFacts, DeviceKey, DeviceRef, SIGNED_USER_LINKS_MAX,
    UserClaim, UserKey,
};
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_recording::UserLinkTable;
use tributary_store::records::{
    ADVERTISING_LINK_ORDER, DeviceLinkRow, SELECT_ADVERTISING_LINKS, SELECT_USER_LINKS,
    USER_LINK_ORDER,
};

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
    let column = match by {
        LinkSearch::Id(_) => "user_id",
        LinkSearch::Device(_) => "device_id",
    };
    let sql = format!(
        "{SELECT_USER_LINKS}
         where links.app_id = ?1 and links.environment = ?2 and links.{column} = ?3
         order by {USER_LINK_ORDER} limit ?4"
    );
    links(connection, &sql, of, by, UserKey::stored)
}

/// Finds links between advertising ids and devices.
pub(super) fn find_advertising_links(
    connection: &Connection,
    of: (AppId, Environment),
    by: &LinkSearch<'_>,
) -> Result<Vec<AdvertisingLink>, Failure> {
    let column = match by {
        LinkSearch::Id(_) => "advertising_id",
        LinkSearch::Device(_) => "device_id",
    };
    let sql = format!(
        "{SELECT_ADVERTISING_LINKS}
         where app_id = ?1 and environment = ?2 and {column} = ?3 and advertising_id is not null
         order by {ADVERTISING_LINK_ORDER} limit ?4"
    );
    links(connection, &sql, of, by, AdvertisingId::stored)
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
    let rows: Vec<DeviceLinkRow> = connection
        .prepare_cached(sql)?
        .query_map(
            params![app.as_bytes(), environment.as_str(), key, limit],
            read_row::<DeviceLinkRow>,
        )?
        .collect::<Result<_, _>>()?;
    let links = rows.into_iter().map(|row| row.read(id));
    Ok(links.collect::<Result<_, _>>()?)
}

impl UserLinkTable for SqliteTables<'_> {
    async fn link_user(
        &self,
        device: DeviceRef<'_>,
        claim: &UserClaim,
        at: Timestamp,
    ) -> Result<(), Failure> {
        self.0
            .prepare_cached(
                "insert into user_links as stored (app_id, environment, user_id, device_id, linked_at,
                                                   first_linked_at, is_used, is_signed, address_hash)
                 values (?1, ?2, ?3, ?4, ?5, ?5, ?6, ?7, ?8)
                 on conflict (app_id, environment, user_id, device_id) do update
                 set linked_at = excluded.linked_at, is_used = stored.is_used or excluded.is_used,
                     is_signed = stored.is_signed or excluded.is_signed",
            )?
            .execute(params![
                device.app.as_bytes(),
                device.environment.as_str(),
                claim.user.as_str(),
                device.key.as_str(),
                at.as_millis(),
                claim.is_used,
                claim.is_signed,
                claim.address_hash.as_ref().map(Digest::as_bytes)
            ])?;
        Ok(())
    }

    async fn revoke_unsigned(&self, device: DeviceRef<'_>) -> Result<(), Failure> {
        let (app, environment) = (device.app.as_bytes(), device.environment.as_str());
        self.0
            .prepare_cached(
                "update user_links set is_used = 0
                 where app_id = ?1 and environment = ?2 and device_id = ?3 and is_signed = 0",
            )?
            .execute(params![app, environment, device.key.as_str()])?;
        Ok(())
    }

    async fn claimed_users(&self, device: DeviceRef<'_>) -> Result<ClaimFacts, Failure> {
        let (app, environment) = (device.app.as_bytes(), device.environment.as_str());
        let mut find = self.0.prepare_cached(
            "select user_id, is_signed from user_links
             where app_id = ?1 and environment = ?2 and device_id = ?3",
        )?;
        let mut rows = find.query(params![app, environment, device.key.as_str()])?;
        let mut facts = ClaimFacts::default();
        while let Some(row) = rows.next()? {
            let user = UserKey::stored(row.get(0)?);
            if row.get(1)? {
                facts.signed.insert(user.clone());
            }
            facts.users.insert(user);
        }
        Ok(facts)
    }

    async fn claims_from_address(
        &self,
        device: DeviceRef<'_>,
        address: Digest,
        since: Timestamp,
    ) -> Result<usize, Failure> {
        let limit = i64::try_from(ADDRESS_CLAIMS_MAX).unwrap_or(i64::MAX);
        let (app, environment) = (device.app.as_bytes(), device.environment.as_str());
        let (address, since) = (address.as_bytes(), since.as_millis());
        let count: i64 = self
            .0
            .prepare_cached(
                "select count(*) from (
                     select 1 from user_links
                     where app_id = ?1 and environment = ?2 and address_hash = ?3
                       and first_linked_at >= ?4 limit ?5)",
            )?
            .query_row(params![app, environment, address, since, limit], |row| {
                row.get(0)
            })?;
        Ok(usize::try_from(count).unwrap_or(ADDRESS_CLAIMS_MAX))
    }

    async fn count_links(&self, device: DeviceRef<'_>, user: &UserKey) -> Result<usize, Failure> {
        let limit = i64::try_from(SIGNED_USER_LINKS_MAX).unwrap_or(i64::MAX);
        let (app, environment) = (device.app.as_bytes(), device.environment.as_str());
        let count: i64 = self
            .0
            .prepare_cached(
                "select count(*) from (
                     select 1 from user_links
                     where app_id = ?1 and environment = ?2 and user_id = ?3 limit ?4)",
            )?
            .query_row(params![app, environment, user.as_str(), limit], |row| {
                row.get(0)
            })?;
        Ok(usize::try_from(count).unwrap_or(SIGNED_USER_LINKS_MAX))
    }

    async fn linked_people(&self, device: DeviceRef<'_>) -> Result<BTreeSet<UserKey>, Failure> {
        let (app, environment) = (device.app.as_bytes(), device.environment.as_str());
        let people = self
            .0
            .prepare_cached(
                "select user_id from user_links
                 where app_id = ?1 and environment = ?2 and device_id = ?3 and is_used = 1",
            )?
            .query_map(params![app, environment, device.key.as_str()], |row| {
                Ok(UserKey::stored(row.get(0)?))
            })?
            .collect::<Result<_, _>>()?;
        Ok(people)
    }

    async fn signed_people(&self, device: DeviceRef<'_>) -> Result<BTreeSet<UserKey>, Failure> {
        let (app, environment) = (device.app.as_bytes(), device.environment.as_str());
        let people = self
            .0
            .prepare_cached(
                "select user_id from user_links
                 where app_id = ?1 and environment = ?2 and device_id = ?3 and is_used = 1
                     and is_signed = 1",
            )?
            .query_map(params![app, environment, device.key.as_str()], |row| {
                Ok(UserKey::stored(row.get(0)?))
            })?
            .collect::<Result<_, _>>()?;
        Ok(people)
    }

    async fn shared_people(
        &self,
        (app, environment): (AppId, Environment),
        devices: &BTreeSet<DeviceKey>,
        people: &BTreeSet<UserKey>,
    ) -> Result<BTreeSet<UserKey>, Failure> {
        let mut find = self.0.prepare_cached(
            "select device_id from user_links
             where app_id = ?1 and environment = ?2 and user_id = ?3 and is_used = 1",
        )?;
        let mut shared = BTreeSet::new();
        for person in people {
            let mut rows = find.query(params![
                app.as_bytes(),
                environment.as_str(),
                person.as_str()
            ])?;
            while let Some(row) = rows.next()? {
                if !devices.contains(&DeviceKey::stored(row.get(0)?)) {
                    shared.insert(person.clone());
                    break;
                }
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

    async fn forget_users_elsewhere(
        &self,
        device: DeviceRef<'_>,
        users: &[UserKey],
    ) -> Result<(), Failure> {
        let (app, environment) = (device.app.as_bytes(), device.environment.as_str());
        for statement in [
            "delete from user_links where app_id = ?1 and environment = ?2 and user_id = ?3",
            "update identities set user_id = null
             where app_id = ?1 and environment = ?2 and user_id = ?3",
            "update events set user_id = null
             where app_id = ?1 and environment = ?2 and user_id = ?3",
        ] {
            let mut forget = self.0.prepare_cached(statement)?;
            for user in users {
                forget.execute(params![app, environment, user.as_str()])?;
            }
        }
        Ok(())
    }
}
