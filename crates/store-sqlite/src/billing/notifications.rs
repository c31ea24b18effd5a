//! Notifications as they are kept, and the subscriptions that they are of.

use crate::Failure;
use rusqlite::{Connection, OptionalExtension, Row, params};
use tributary_domain::app::BillingProvider;
use tributary_domain::billing::{CHAIN_NOTIFICATIONS_MAX, Chain, Notification};
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::id::AppId;
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

/// Stores a notification that follows from others.
pub(super) fn insert_derived(connection: &Connection, one: &Notification) -> Result<(), Failure> {
    let digest = Digest::of(one.said.given_id.as_bytes());
    insert(connection, one, digest.as_bytes(), None)
}

/// Removes a notification that followed from others.
pub(super) fn remove(connection: &Connection, one: &Notification) -> Result<(), Failure> {
    connection
        .prepare_cached(
            "delete from notifications where app_id = ?1 and provider = ?2 and given_id = ?3",
        )?
        .execute(params![
            one.app.as_bytes(),
            one.provider.as_str(),
            one.said.given_id
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

pub(super) fn provider_of(app: AppId, text: &str) -> Result<BillingProvider, Failure> {
    BillingProvider::parse(text)
        .ok_or_else(|| StoreError::corrupt("billing", "provider", app).into())
}
