//! Who is who: the devices that go by a person's id, and whose memory a person has.

use crate::Failure;
use rusqlite::{Connection, Row, params};
use tributary_domain::access::Environment;
use tributary_domain::billing::join::Link;
use tributary_domain::billing::{PERSON_IDS_MAX, Subscriber, person_key};
use tributary_domain::device::{DeviceKey, UserKey};
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
pub(super) fn person_keys(
    connection: &Connection,
    app: AppId,
    environment: Environment,
    people: &[UserKey],
    way: Way,
) -> Result<Vec<String>, Failure> {
    let sql = match way {
        Way::From => {
            "select from_user from user_transfers
             where app_id = ?1 and environment = ?2 and to_user = ?3 limit ?4"
        }
        Way::To => {
            "select to_user from user_transfers
             where app_id = ?1 and environment = ?2 and from_user = ?3 limit ?4"
        }
    };
    let limit = i64::try_from(PERSON_IDS_MAX).unwrap_or(i64::MAX);
    let mut keys = Vec::new();
    for person in people {
        keys.push(person_key(person));
        let mut statement = connection.prepare_cached(sql)?;
        let key = params![app.as_bytes(), environment.as_str(), person.as_str(), limit];
        for other in statement.query_map(key, |row| row.get::<_, String>(0))? {
            keys.push(person_key(&UserKey::stored(other?)));
        }
    }
    Ok(keys)
}

/// Remembers that what one person had is another's, too, and whatever was given on before and since.
pub(super) fn insert_transfer(
    connection: &Connection,
    app: AppId,
    environment: Environment,
    from: &UserKey,
    to: &UserKey,
) -> Result<(), Failure> {
    connection
        .prepare_cached(
            "insert into user_transfers (app_id, environment, to_user, from_user)
             select distinct ?1, ?2, receiver, giver from
               (select ?4 as receiver union
                select to_user from user_transfers
                where app_id = ?1 and environment = ?2 and from_user = ?4),
               (select ?3 as giver union
                select from_user from user_transfers
                where app_id = ?1 and environment = ?2 and to_user = ?3)
             where receiver <> giver
             on conflict do nothing",
        )?
        .execute(params![
            app.as_bytes(),
            environment.as_str(),
            from.as_str(),
            to.as_str()
        ])?;
    Ok(())
}

/// The devices that some people's ids go by.
pub(super) fn people_links(
    connection: &Connection,
    app: AppId,
    environment: Environment,
    subscriber: &Subscriber,
) -> Result<Vec<Link>, Failure> {
    let people = &subscriber.people;
    let keys = person_keys(connection, app, environment, people, Way::From)?;
    let mut links = Vec::new();
    for key in keys {
        let user = key.strip_prefix("person:").unwrap_or(&key);
        let mut statement = connection.prepare_cached(
            "select device_id, linked_at from user_links
             where app_id = ?1 and environment = ?2 and user_id = ?3 limit ?4",
        )?;
        let limit = i64::try_from(PERSON_IDS_MAX).unwrap_or(i64::MAX);
        let key = params![app.as_bytes(), environment.as_str(), user, limit];
        for link in statement.query_map(key, link)? {
            links.push(link?);
        }
    }
    Ok(links)
}

/// The devices that have one of the advertising ids.
pub(super) fn advertising_links(
    connection: &Connection,
    app: AppId,
    environment: Environment,
    subscriber: &Subscriber,
) -> Result<Vec<Link>, Failure> {
    let mut links = Vec::new();
    for id in &subscriber.advertising {
        let mut statement = connection.prepare_cached(
            "select device_id, first_seen_at from devices
             where app_id = ?1 and environment = ?2 and advertising_id = ?3 limit ?4",
        )?;
        let limit = i64::try_from(PERSON_IDS_MAX).unwrap_or(i64::MAX);
        let key = params![app.as_bytes(), environment.as_str(), id.as_str(), limit];
        for link in statement.query_map(key, link)? {
            links.push(link?);
        }
    }
    Ok(links)
}

fn link(row: &Row<'_>) -> rusqlite::Result<Link> {
    Ok(Link {
        device: DeviceKey::stored(row.get(0)?),
        since: Timestamp::from_millis(row.get(1)?),
    })
}

/// Remembers that a device goes by a person's id.
pub(super) fn insert_link(
    connection: &Connection,
    app: AppId,
    environment: Environment,
    user: &UserKey,
    device: &DeviceKey,
    at: Timestamp,
) -> Result<(), Failure> {
    connection
        .prepare_cached(
            "insert into user_links (app_id, environment, user_id, device_id, linked_at)
             values (?1, ?2, ?3, ?4, ?5)
             on conflict do update set linked_at = excluded.linked_at",
        )?
        .execute(params![
            app.as_bytes(),
            environment.as_str(),
            user.as_str(),
            device.as_str(),
            at.as_millis()
        ])?;
    Ok(())
}
