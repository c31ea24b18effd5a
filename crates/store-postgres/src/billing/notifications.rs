//! Notifications as they are kept, and the subscriptions that they are of.

use crate::Failure;
use crate::rows::{id, uuid};
use crate::tx::Tx;
use tokio_postgres::Row;
use tributary_domain::access::Environment;
use tributary_domain::app::BillingProvider;
use tributary_domain::billing::{CHAIN_NOTIFICATIONS_MAX, Notification};
use tributary_domain::vocabulary::id::AppId;
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

pub(super) fn provider_of(app: AppId, text: &str) -> Result<BillingProvider, Failure> {
    BillingProvider::parse(text)
        .ok_or_else(|| StoreError::corrupt("billing", "provider", app).into())
}
