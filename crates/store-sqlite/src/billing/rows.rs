//! The tables of billing: notifications, whose payments they are, who waits for whom.

use crate::Failure;
use rusqlite::{Connection, OptionalExtension, Row, params};
use tributary_domain::access::Environment;
use tributary_domain::app::BillingProvider;
use tributary_domain::billing::hold::{Trial, TrialState};
use tributary_domain::billing::join::Link;
use tributary_domain::billing::{
    CHAIN_NOTIFICATIONS_MAX, Notification, PERSON_IDS_MAX, PaidBefore, Subscriber, person_key,
};
use tributary_domain::device::{DeviceKey, UserKey};
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::StoreError;
use tributary_store::records::NotificationRow;

const COLUMNS: &str = "app_id, provider, given_id, environment, chain, happened_at, received_at, \
     event_id, facts";

fn notification_row(row: &Row<'_>) -> rusqlite::Result<NotificationRow> {
    Ok(NotificationRow {
        app_id: row.get(0)?,
        provider: row.get(1)?,
        given_id: row.get(2)?,
        environment: row.get(3)?,
        chain: row.get(4)?,
        happened_at: row.get(5)?,
        received_at: row.get(6)?,
        event_id: row.get(7)?,
        facts: row.get(8)?,
    })
}

/// A subscription.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Chain {
    pub(super) app: AppId,
    pub(super) environment: Environment,
    pub(super) provider: BillingProvider,
    pub(super) name: String,
}

impl Chain {
    pub(super) fn of(one: &Notification) -> Self {
        Self {
            app: one.app,
            environment: one.said.environment,
            provider: one.provider,
            name: one.chain(),
        }
    }
}

/// The digest of the body that a provider's id was used for; nothing when it was not.
pub(super) fn digest_of(
    connection: &Connection,
    app: AppId,
    provider: BillingProvider,
    given_id: &str,
) -> Result<Option<Vec<u8>>, Failure> {
    let digest = connection
        .prepare_cached(
            "select digest from notifications
             where app_id = ?1 and provider = ?2 and given_id = ?3",
        )?
        .query_row(
            params![app.as_bytes(), provider.as_str(), given_id],
            |row| row.get(0),
        )
        .optional()?;
    Ok(digest)
}

pub(super) fn insert(
    connection: &Connection,
    one: &Notification,
    digest: &[u8],
    body: Option<&str>,
) -> Result<(), Failure> {
    let row = NotificationRow::write(one);
    connection
        .prepare_cached(
            "insert into notifications (app_id, provider, given_id, environment, chain, happened_at,
                                        received_at, event_id, digest, facts, body)
             values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11) on conflict do nothing",
        )?
        .execute(params![
            row.app_id,
            row.provider,
            row.given_id,
            row.environment,
            row.chain,
            row.happened_at,
            row.received_at,
            row.event_id,
            digest,
            row.facts,
            body
        ])?;
    Ok(())
}

pub(super) fn update(connection: &Connection, one: &Notification) -> Result<(), Failure> {
    let row = NotificationRow::write(one);
    connection
        .prepare_cached(
            "update notifications set facts = ?4
             where app_id = ?1 and provider = ?2 and given_id = ?3",
        )?
        .execute(params![row.app_id, row.provider, row.given_id, row.facts])?;
    Ok(())
}

/// Everything that is kept of a subscription, as far as it is settled together.
pub(super) fn chain(connection: &Connection, chain: &Chain) -> Result<Vec<Notification>, Failure> {
    let sql = format!(
        "select {COLUMNS} from notifications
         where app_id = ?1 and environment = ?2 and provider = ?3 and chain = ?4
         order by happened_at desc limit ?5"
    );
    let limit = i64::try_from(CHAIN_NOTIFICATIONS_MAX).unwrap_or(i64::MAX);
    let rows: Vec<NotificationRow> = connection
        .prepare_cached(&sql)?
        .query_map(
            params![
                chain.app.as_bytes(),
                chain.environment.as_str(),
                chain.provider.as_str(),
                chain.name,
                limit
            ],
            notification_row,
        )?
        .collect::<Result<_, _>>()?;
    let read = rows.into_iter().map(NotificationRow::read);
    Ok(read.collect::<Result<_, _>>()?)
}

/// Everything that is kept of a subscription.
pub(super) fn whole_chain(
    connection: &Connection,
    chain: &Chain,
) -> Result<Vec<Notification>, Failure> {
    let sql = format!(
        "select {COLUMNS} from notifications
         where app_id = ?1 and environment = ?2 and provider = ?3 and chain = ?4"
    );
    let (app, environment) = (chain.app.as_bytes(), chain.environment.as_str());
    let key = params![app, environment, chain.provider.as_str(), chain.name];
    let rows: Vec<NotificationRow> = connection
        .prepare_cached(&sql)?
        .query_map(key, notification_row)?
        .collect::<Result<_, _>>()?;
    let read = rows.into_iter().map(NotificationRow::read);
    Ok(read.collect::<Result<_, _>>()?)
}

/// The subscription of a notification.
pub(super) fn chain_of(
    connection: &Connection,
    app: AppId,
    provider: BillingProvider,
    given_id: &str,
) -> Result<Option<Chain>, Failure> {
    let sql = format!(
        "select {COLUMNS} from notifications
         where app_id = ?1 and provider = ?2 and given_id = ?3"
    );
    let row = connection
        .prepare_cached(&sql)?
        .query_row(
            params![app.as_bytes(), provider.as_str(), given_id],
            notification_row,
        )
        .optional()?;
    Ok(row
        .map(NotificationRow::read)
        .transpose()?
        .as_ref()
        .map(Chain::of))
}

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
pub(super) fn insert_payment(connection: &Connection, one: &Notification) -> Result<(), Failure> {
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

/// Lets a subscription wait for whoever shows up with one of its ids.
pub(super) fn wait(connection: &Connection, one: &Notification) -> Result<(), Failure> {
    for key in one.waiting_keys() {
        connection
            .prepare_cached(
                "insert into billing_waiting (app_id, environment, person_key, provider, chain,
                                              received_at)
                 values (?1, ?2, ?3, ?4, ?5, ?6)
                 on conflict do update set received_at = max(received_at, excluded.received_at)",
            )?
            .execute(params![
                one.app.as_bytes(),
                one.said.environment.as_str(),
                key,
                one.provider.as_str(),
                one.chain(),
                one.received_at.as_millis()
            ])?;
    }
    Ok(())
}

/// A subscription that was found waits no longer.
pub(super) fn found(connection: &Connection, one: &Notification) -> Result<(), Failure> {
    for key in one.waiting_keys() {
        connection
            .prepare_cached(
                "delete from billing_waiting where app_id = ?1 and environment = ?2
                   and person_key = ?3 and provider = ?4 and chain = ?5",
            )?
            .execute(params![
                one.app.as_bytes(),
                one.said.environment.as_str(),
                key,
                one.provider.as_str(),
                one.chain()
            ])?;
    }
    Ok(())
}

/// The subscriptions that wait for a key, and have not waited too long.
pub(super) fn waiting(
    connection: &Connection,
    app: AppId,
    environment: Environment,
    key: &str,
    since: Timestamp,
    limit: i64,
) -> Result<Vec<Chain>, Failure> {
    let rows: Vec<(String, String)> = connection
        .prepare_cached(
            "select provider, chain from billing_waiting
             where app_id = ?1 and environment = ?2 and person_key = ?3 and received_at >= ?4
             limit ?5",
        )?
        .query_map(
            params![
                app.as_bytes(),
                environment.as_str(),
                key,
                since.as_millis(),
                limit
            ],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )?
        .collect::<Result<_, _>>()?;
    rows.into_iter()
        .map(|(provider, name)| {
            Ok(Chain {
                app,
                environment,
                provider: provider_of(app, &provider)?,
                name,
            })
        })
        .collect()
}

/// The trial of a subscription that is, or was, on hold.
pub(super) fn trial(connection: &Connection, chain: &Chain) -> Result<Option<Trial>, Failure> {
    let row: Option<(i64, String)> = connection
        .prepare_cached(
            "select due_at, state from trials where app_id = ?1 and provider = ?2 and chain = ?3",
        )?
        .query_row(
            params![chain.app.as_bytes(), chain.provider.as_str(), chain.name],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .optional()?;
    row.map(|(due_at, state)| {
        Ok(Trial {
            due_at: Timestamp::from_millis(due_at),
            state: TrialState::parse(&state)
                .ok_or_else(|| StoreError::corrupt("trials", "state", chain.app))?,
        })
    })
    .transpose()
}

pub(super) fn write_trial(
    connection: &Connection,
    chain: &Chain,
    trial: Trial,
) -> Result<(), Failure> {
    connection
        .prepare_cached(
            "insert into trials (app_id, provider, chain, due_at, state) values (?1, ?2, ?3, ?4, ?5)
             on conflict do update set state = excluded.state",
        )?
        .execute(params![
            chain.app.as_bytes(),
            chain.provider.as_str(),
            chain.name,
            trial.due_at.as_millis(),
            trial.state.as_str()
        ])?;
    Ok(())
}

/// Trials on hold that are due, the longest ones first.
pub(super) fn due_trials(
    connection: &Connection,
    now: Timestamp,
    limit: u32,
) -> Result<Vec<Chain>, Failure> {
    let rows: Vec<([u8; 16], String, String)> = connection
        .prepare_cached(
            "select app_id, provider, chain from trials where state = 'held' and due_at <= ?1
             order by due_at limit ?2",
        )?
        .query_map(params![now.as_millis(), limit], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })?
        .collect::<Result<_, _>>()?;
    rows.into_iter()
        .map(|(app, provider, name)| {
            let app = AppId::from_bytes(app);
            Ok(Chain {
                app,
                environment: Environment::Live,
                provider: provider_of(app, &provider)?,
                name,
            })
        })
        .collect()
}

/// What a day's notifications add up to.
#[derive(Clone, Copy, Default)]
pub(super) struct Count {
    pub(super) notifications: i64,
    pub(super) events: i64,
    pub(super) matched: i64,
    pub(super) unauthorized: i64,
    pub(super) reused: i64,
}

pub(super) fn count(
    connection: &Connection,
    app: AppId,
    provider: BillingProvider,
    environment: Environment,
    at: Timestamp,
    count: Count,
) -> Result<(), Failure> {
    let day = tributary_domain::exchange::Day::of(at).as_days();
    connection
        .prepare_cached(
            "insert into billing_days (app_id, provider, environment, day, notifications, events,
                                       matched, unauthorized, reused)
             values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
             on conflict do update set notifications = notifications + excluded.notifications,
                 events = events + excluded.events, matched = matched + excluded.matched,
                 unauthorized = unauthorized + excluded.unauthorized,
                 reused = reused + excluded.reused",
        )?
        .execute(params![
            app.as_bytes(),
            provider.as_str(),
            environment.as_str(),
            day,
            count.notifications,
            count.events,
            count.matched,
            count.unauthorized,
            count.reused
        ])?;
    Ok(())
}

pub(super) fn provider_of(app: AppId, text: &str) -> Result<BillingProvider, Failure> {
    BillingProvider::parse(text)
        .ok_or_else(|| StoreError::corrupt("billing", "provider", app).into())
}
