//! Links between devices and the user ids and advertising ids used on them.

use crate::Failure;
use crate::devices::DeviceColumns;
use crate::params::column;
use crate::rows::{read_row, uuid};
use crate::tx::Tx;
use std::collections::BTreeSet;
use tokio_postgres::Row;
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

/// Finds the links between devices and users, by user id and by device.
pub(super) async fn find_person_links(
    tx: &Tx,
    of: (AppId, Environment),
    people: Vec<&str>,
    devices: Vec<&str>,
) -> Result<Vec<PersonLink>, Failure> {
    let sql = |column| {
        format!(
            "select stored.* from unnest($3) as wanted (id) cross join lateral
             ({SELECT_USER_LINKS}
              where links.app_id = $1 and links.environment = $2 and links.{column} = wanted.id
              order by {USER_LINK_ORDER} limit $4)
             as stored (id, device_id, since, latest, is_used, is_signed, decision, hold)"
        )
    };
    let (by_person, by_device) = (sql("user_id"), sql("device_id"));
    let (mut found, of_devices) = tokio::try_join!(
        links(tx, &by_person, of, people, UserKey::stored),
        links(tx, &by_device, of, devices, UserKey::stored)
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
    let sql = |column| {
        format!(
            "select stored.* from unnest($3) as wanted (id) cross join lateral
             ({SELECT_ADVERTISING_LINKS}
              where app_id = $1 and environment = $2 and {column} = wanted.id
                and advertising_id is not null
              order by {ADVERTISING_LINK_ORDER} limit $4)
             as stored (id, device_id, since, latest, is_used, is_signed, decision, hold)"
        )
    };
    let (by_id, by_device) = (sql("advertising_id"), sql("device_id"));
    let (mut found, of_devices) = tokio::try_join!(
        links(tx, &by_id, of, ids, AdvertisingId::stored),
        links(tx, &by_device, of, devices, AdvertisingId::stored)
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
    let link = |row| Ok(read_row::<DeviceLinkRow>(row)?.read(id)?);
    rows.iter().map(link).collect()
}

/// Links devices to users, with the times of the claims.
pub(crate) async fn link_users(
    tx: &Tx,
    claims: &[(DeviceRef<'_>, &UserClaim, Timestamp)],
) -> Result<(), Failure> {
    if claims.is_empty() {
        return Ok(());
    }
    tx.execute(
        "insert into user_links as stored (app_id, environment, user_id, device_id, linked_at,
                                           first_linked_at, is_used, is_signed, address_hash)
         select app_id, environment, user_id, device_id, linked_at, linked_at, is_used, is_signed,
                address_hash
         from unnest($1, $2, $3, $4, $5, $6, $7, $8)
              as new (app_id, environment, user_id, device_id, linked_at, is_used, is_signed,
                      address_hash)
         on conflict (app_id, environment, user_id, device_id) do update
         set linked_at = excluded.linked_at, is_used = stored.is_used or excluded.is_used,
             is_signed = stored.is_signed or excluded.is_signed",
        &[
            &column(claims, |(device, ..)| device.app()),
            &column(claims, |(device, ..)| device.environment.as_str()),
            &column(claims, |(_, claim, _)| claim.user.as_str()),
            &column(claims, |(device, ..)| device.device()),
            &column(claims, |(.., at)| at.as_millis()),
            &column(claims, |(_, claim, _)| claim.is_used),
            &column(claims, |(_, claim, _)| claim.is_signed),
            &column(claims, |(_, claim, _)| {
                let hash = claim.address_hash.as_ref();
                hash.map(|hash| hash.as_bytes().as_slice())
            }),
        ],
    )
    .await?;
    Ok(())
}

/// Marks the unsigned links of devices as not used.
pub(crate) async fn revoke_unsigned(tx: &Tx, devices: &[DeviceRef<'_>]) -> Result<(), Failure> {
    if devices.is_empty() {
        return Ok(());
    }
    tx.execute(
        "update user_links as stored set is_used = false
         from unnest($1, $2, $3) as revoked (app_id, environment, device_id)
         where stored.app_id = revoked.app_id and stored.environment = revoked.environment
           and stored.device_id = revoked.device_id and not stored.is_signed
           /* distributed: and stored.app_id = any($1) */",
        &[
            &column(devices, |device| device.app()),
            &column(devices, |device| device.environment.as_str()),
            &column(devices, |device| device.device()),
        ],
    )
    .await?;
    Ok(())
}

impl UserLinkTable for Tx {
    async fn link_user(
        &self,
        device: DeviceRef<'_>,
        claim: &UserClaim,
        at: Timestamp,
    ) -> Result<(), Failure> {
        link_users(self, &[(device, claim, at)]).await
    }

    async fn revoke_unsigned(&self, device: DeviceRef<'_>) -> Result<(), Failure> {
        revoke_unsigned(self, &[device]).await
    }

    async fn claimed_users(&self, device: DeviceRef<'_>) -> Result<ClaimFacts, Failure> {
        let (app, environment, key) = device.columns();
        let rows = self
            .query(
                "select user_id, is_signed from user_links
                 where app_id = $1 and environment = $2 and device_id = $3",
                &[&app, &environment, &key],
            )
            .await?;
        let mut facts = ClaimFacts::default();
        for row in &rows {
            let user = person(row)?;
            if row.try_get("is_signed")? {
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
        let (app, environment, _) = device.columns();
        let rows = self
            .query(
                "select 1 from user_links
                 where app_id = $1 and environment = $2 and address_hash = $3
                   and first_linked_at >= $4 limit $5",
                &[
                    &app,
                    &environment,
                    &address.as_bytes().as_slice(),
                    &since.as_millis(),
                    &limit,
                ],
            )
            .await?;
        Ok(rows.len())
    }

    async fn count_links(&self, device: DeviceRef<'_>, user: &UserKey) -> Result<usize, Failure> {
        let limit = i64::try_from(SIGNED_USER_LINKS_MAX).unwrap_or(i64::MAX);
        let (app, environment, _) = device.columns();
        let rows = self
            .query(
                "select 1 from user_links
                 where app_id = $1 and environment = $2 and user_id = $3 limit $4",
                &[&app, &environment, &user.as_str(), &limit],
            )
            .await?;
        Ok(rows.len())
    }

    async fn linked_people(&self, device: DeviceRef<'_>) -> Result<BTreeSet<UserKey>, Failure> {
        let (app, environment, key) = device.columns();
        let rows = self
            .query(
                "select user_id from user_links
                 where app_id = $1 and environment = $2 and device_id = $3 and is_used",
                &[&app, &environment, &key],
            )
            .await?;
        rows.iter().map(person).collect()
    }

    async fn signed_people(&self, device: DeviceRef<'_>) -> Result<BTreeSet<UserKey>, Failure> {
        let (app, environment, key) = device.columns();
        let rows = self
            .query(
                "select user_id from user_links
                 where app_id = $1 and environment = $2 and device_id = $3 and is_used and is_signed",
                &[&app, &environment, &key],
            )
            .await?;
        rows.iter().map(person).collect()
    }

    async fn shared_people(
        &self,
        (app, environment): (AppId, Environment),
        devices: &BTreeSet<DeviceKey>,
        people: &BTreeSet<UserKey>,
    ) -> Result<BTreeSet<UserKey>, Failure> {
        let devices: Vec<&str> = devices.iter().map(DeviceKey::as_str).collect();
        let people: Vec<&str> = people.iter().map(UserKey::as_str).collect();
        let (app, environment) = (uuid(app.as_bytes()), environment.as_str());
        let rows = self
            .query(
                "select distinct user_id from user_links
                 where app_id = $1 and environment = $2 and user_id = any($3)
                   and device_id <> all($4) and is_used",
                &[&app, &environment, &people, &devices],
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

    async fn forget_users_elsewhere(
        &self,
        device: DeviceRef<'_>,
        users: &[UserKey],
    ) -> Result<(), Failure> {
        if users.is_empty() {
            return Ok(());
        }
        let (app, environment, _) = device.columns();
        let users: Vec<&str> = users.iter().map(UserKey::as_str).collect();
        for statement in [
            "delete from user_links where app_id = $1 and environment = $2 and user_id = any($3)",
            "update identities set user_id = null
             where app_id = $1 and environment = $2 and user_id = any($3)",
            "update events set user_id = null
             where app_id = $1 and environment = $2 and user_id = any($3)",
        ] {
            self.execute(statement, &[&app, &environment, &users])
                .await?;
        }
        Ok(())
    }
}

fn person(row: &Row) -> Result<UserKey, Failure> {
    Ok(UserKey::stored(row.try_get("user_id")?))
}
