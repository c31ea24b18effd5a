//! The tables of billing: notifications, whose payments they are, who waits for whom.

use crate::Failure;
use crate::params::column;
use crate::rows::{id, uuid};
use crate::tx::Tx;
use tokio_postgres::Row;
use tributary_domain::access::Environment;
use tributary_domain::app::BillingProvider;
use tributary_domain::billing::hold::{Trial, TrialState};
use tributary_domain::billing::join::Link;
use tributary_domain::billing::{
    CHAIN_NOTIFICATIONS_MAX, Notification, PERSON_IDS_MAX, PaidBefore, Subscriber, person_key,
};
use tributary_domain::device::{AdvertisingId, DeviceKey, UserKey};
use tributary_domain::exchange::Day;
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::StoreError;
use tributary_store::records::NotificationRow;

const COLUMNS: &str = "app_id, provider, given_id, environment, chain, happened_at, received_at, \
     event_id, facts";

fn notification(row: &Row) -> Result<Notification, Failure> {
    let row = NotificationRow {
        app_id: id(row, 0)?,
        provider: row.try_get(1)?,
        given_id: row.try_get(2)?,
        environment: row.try_get(3)?,
        chain: row.try_get(4)?,
        happened_at: row.try_get(5)?,
        received_at: row.try_get(6)?,
        event_id: id(row, 7)?,
        facts: row.try_get(8)?,
    };
    Ok(row.read()?)
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
pub(super) async fn digest_of(
    tx: &Tx,
    app: AppId,
    provider: BillingProvider,
    given_id: &str,
) -> Result<Option<Vec<u8>>, Failure> {
    let row = tx
        .query_opt(
            "select digest from notifications
             where app_id = $1 and provider = $2 and given_id = $3",
            &[&uuid(app.as_bytes()), &provider.as_str(), &given_id],
        )
        .await?;
    Ok(row.map(|row| row.try_get(0)).transpose()?)
}

pub(super) async fn insert(
    tx: &Tx,
    one: &Notification,
    digest: &[u8],
    body: Option<&str>,
) -> Result<(), Failure> {
    let row = NotificationRow::write(one);
    tx.execute(
        "insert into notifications (app_id, provider, given_id, environment, chain, happened_at,
                                    received_at, event_id, digest, facts, body)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
         on conflict (app_id, provider, given_id) do nothing",
        &[
            &uuid(&row.app_id),
            &row.provider,
            &row.given_id,
            &row.environment,
            &row.chain,
            &row.happened_at,
            &row.received_at,
            &uuid(&row.event_id),
            &digest,
            &row.facts,
            &body,
        ],
    )
    .await?;
    Ok(())
}

pub(super) async fn update(tx: &Tx, one: &Notification) -> Result<(), Failure> {
    let row = NotificationRow::write(one);
    tx.execute(
        "update notifications set facts = $4
         where app_id = $1 and provider = $2 and given_id = $3",
        &[&uuid(&row.app_id), &row.provider, &row.given_id, &row.facts],
    )
    .await?;
    Ok(())
}

/// Everything that is kept of a subscription, as far as it is settled together.
pub(super) async fn chain(tx: &Tx, chain: &Chain) -> Result<Vec<Notification>, Failure> {
    let sql = format!(
        "select {COLUMNS} from notifications
         where app_id = $1 and environment = $2 and provider = $3 and chain = $4
         order by happened_at desc limit $5"
    );
    let limit = i64::try_from(CHAIN_NOTIFICATIONS_MAX).unwrap_or(i64::MAX);
    let rows = tx
        .query(
            &sql,
            &[
                &uuid(chain.app.as_bytes()),
                &chain.environment.as_str(),
                &chain.provider.as_str(),
                &chain.name,
                &limit,
            ],
        )
        .await?;
    rows.iter().map(notification).collect()
}

/// Everything that is kept of a subscription.
pub(super) async fn whole_chain(tx: &Tx, chain: &Chain) -> Result<Vec<Notification>, Failure> {
    let sql = format!(
        "select {COLUMNS} from notifications
         where app_id = $1 and environment = $2 and provider = $3 and chain = $4"
    );
    let rows = tx
        .query(
            &sql,
            &[
                &uuid(chain.app.as_bytes()),
                &chain.environment.as_str(),
                &chain.provider.as_str(),
                &chain.name,
            ],
        )
        .await?;
    rows.iter().map(notification).collect()
}

/// The subscription of a notification.
pub(super) async fn chain_of(
    tx: &Tx,
    app: AppId,
    provider: BillingProvider,
    given_id: &str,
) -> Result<Option<Chain>, Failure> {
    let sql = format!(
        "select {COLUMNS} from notifications
         where app_id = $1 and provider = $2 and given_id = $3"
    );
    let key: [&dyn crate::params::Param; 3] =
        [&uuid(app.as_bytes()), &provider.as_str(), &given_id];
    let row = tx.query_opt(&sql, &key).await?;
    let found = row.as_ref().map(notification).transpose()?;
    Ok(found.as_ref().map(Chain::of))
}

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
pub(super) async fn insert_payment(tx: &Tx, one: &Notification) -> Result<(), Failure> {
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

/// Lets a subscription wait for whoever shows up with one of its ids.
pub(super) async fn wait(tx: &Tx, one: &Notification) -> Result<(), Failure> {
    let mut keys: Vec<String> = one.waiting_keys().collect();
    keys.sort();
    keys.dedup();
    tx.execute(
        "insert into billing_waiting as stored (app_id, environment, person_key, provider, chain,
                                                received_at)
         select $1, $2, person_key, $4, $5, $6 from unnest($3) as own (person_key)
         on conflict (app_id, environment, person_key, provider, chain)
         do update set received_at = greatest(stored.received_at, excluded.received_at)",
        &[
            &uuid(one.app.as_bytes()),
            &one.said.environment.as_str(),
            &column(&keys, String::as_str),
            &one.provider.as_str(),
            &one.chain(),
            &one.received_at.as_millis(),
        ],
    )
    .await?;
    Ok(())
}

/// A subscription that was found waits no longer.
pub(super) async fn found(tx: &Tx, one: &Notification) -> Result<(), Failure> {
    let keys: Vec<String> = one.waiting_keys().collect();
    tx.execute(
        "delete from billing_waiting where app_id = $1 and environment = $2
           and person_key = any($3) and provider = $4 and chain = $5",
        &[
            &uuid(one.app.as_bytes()),
            &one.said.environment.as_str(),
            &column(&keys, String::as_str),
            &one.provider.as_str(),
            &one.chain(),
        ],
    )
    .await?;
    Ok(())
}

/// The subscriptions that wait for one of the keys, and have not waited too long.
pub(super) async fn waiting(
    tx: &Tx,
    app: AppId,
    environment: Environment,
    keys: &[String],
    since: Timestamp,
    limit: i64,
) -> Result<Vec<Chain>, Failure> {
    let rows = tx
        .query(
            "select distinct provider, chain from billing_waiting
             where app_id = $1 and environment = $2 and person_key = any($3) and received_at >= $4
             order by provider, chain limit $5",
            &[
                &uuid(app.as_bytes()),
                &environment.as_str(),
                &column(keys, String::as_str),
                &since.as_millis(),
                &limit,
            ],
        )
        .await?;
    rows.iter()
        .map(|row| {
            Ok(Chain {
                app,
                environment,
                provider: provider_of(app, row.try_get(0)?)?,
                name: row.try_get(1)?,
            })
        })
        .collect()
}

/// The trial of a subscription that is, or was, on hold.
pub(super) async fn trial(tx: &Tx, chain: &Chain) -> Result<Option<Trial>, Failure> {
    let row = tx
        .query_opt(
            "select due_at, state from trials where app_id = $1 and provider = $2 and chain = $3",
            &[
                &uuid(chain.app.as_bytes()),
                &chain.provider.as_str(),
                &chain.name,
            ],
        )
        .await?;
    row.map(|row| {
        Ok(Trial {
            due_at: Timestamp::from_millis(row.try_get(0)?),
            state: TrialState::parse(row.try_get(1)?)
                .ok_or_else(|| StoreError::corrupt("trials", "state", chain.app))?,
        })
    })
    .transpose()
}

pub(super) async fn write_trial(tx: &Tx, chain: &Chain, trial: Trial) -> Result<(), Failure> {
    tx.execute(
        "insert into trials (app_id, provider, chain, due_at, state) values ($1, $2, $3, $4, $5)
         on conflict (app_id, provider, chain) do update set state = excluded.state",
        &[
            &uuid(chain.app.as_bytes()),
            &chain.provider.as_str(),
            &chain.name,
            &trial.due_at.as_millis(),
            &trial.state.as_str(),
        ],
    )
    .await?;
    Ok(())
}

/// Trials on hold that are due, the longest ones first.
pub(super) async fn due_trials(tx: &Tx, now: Timestamp, limit: u32) -> Result<Vec<Chain>, Failure> {
    let rows = tx
        .query(
            "select app_id, provider, chain from trials where state = 'held' and due_at <= $1
             order by due_at limit $2",
            &[&now.as_millis(), &i64::from(limit)],
        )
        .await?;
    rows.iter()
        .map(|row| {
            let app = AppId::from_bytes(id(row, 0)?);
            Ok(Chain {
                app,
                environment: Environment::Live,
                provider: provider_of(app, row.try_get(1)?)?,
                name: row.try_get(2)?,
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

pub(super) async fn count(
    tx: &Tx,
    app: AppId,
    provider: BillingProvider,
    environment: Environment,
    at: Timestamp,
    count: Count,
) -> Result<(), Failure> {
    tx.execute(
        "insert into billing_days as stored (app_id, provider, environment, day, notifications, events,
                                             matched, unauthorized, reused)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
         on conflict (app_id, provider, environment, day) do update
         set notifications = stored.notifications + excluded.notifications,
             events = stored.events + excluded.events, matched = stored.matched + excluded.matched,
             unauthorized = stored.unauthorized + excluded.unauthorized,
             reused = stored.reused + excluded.reused",
        &[
            &uuid(app.as_bytes()),
            &provider.as_str(),
            &environment.as_str(),
            &i64::from(Day::of(at).as_days()),
            &count.notifications,
            &count.events,
            &count.matched,
            &count.unauthorized,
            &count.reused,
        ],
    )
    .await?;
    Ok(())
}

pub(super) fn provider_of(app: AppId, text: &str) -> Result<BillingProvider, Failure> {
    BillingProvider::parse(text)
        .ok_or_else(|| StoreError::corrupt("billing", "provider", app).into())
}
