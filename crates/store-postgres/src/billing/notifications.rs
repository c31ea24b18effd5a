//! Notifications as they are kept, and the subscriptions that they are of.

use crate::Failure;
use crate::params::column;
use crate::rows::{id, qualified, uuid};
use crate::tx::Tx;
use tokio_postgres::Row;
use tributary_domain::app::BillingProvider;
use tributary_domain::billing::{CHAIN_NOTIFICATIONS_MAX, Chain, Notification};
use tributary_domain::vocabulary::digest::Digest;
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

/// Stores a notification that follows from others.
pub(super) async fn insert_derived(tx: &Tx, one: &Notification) -> Result<(), Failure> {
    let digest = Digest::of(one.said.given_id.as_bytes());
    insert(tx, one, digest.as_bytes(), None).await
}

/// Removes a notification that followed from others.
pub(super) async fn remove(tx: &Tx, one: &Notification) -> Result<(), Failure> {
    tx.execute(
        "delete from notifications where app_id = $1 and provider = $2 and given_id = $3",
        &[
            &uuid(one.app.as_bytes()),
            &one.provider.as_str(),
            &one.said.given_id,
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

/// Everything that is kept of subscriptions, as far as it is settled together.
pub(super) async fn chains<'a>(
    tx: &Tx,
    chains: impl Iterator<Item = &'a Chain>,
) -> Result<Vec<Notification>, Failure> {
    let chains: Vec<&Chain> = chains.collect();
    if chains.is_empty() {
        return Ok(Vec::new());
    }
    // One lookup per subscription, whatever the planner thinks of the table.
    let sql = format!(
        "select {} from unnest($1, $2, $3, $4) as wanted (app_id, environment, provider, chain)
         cross join lateral
              (select * from notifications
               where app_id = wanted.app_id and environment = wanted.environment
                 and provider = wanted.provider and chain = wanted.chain
               order by happened_at desc limit $5) as stored",
        qualified("stored", COLUMNS)
    );
    let limit = i64::try_from(CHAIN_NOTIFICATIONS_MAX).unwrap_or(i64::MAX);
    let rows = tx
        .query(
            &sql,
            &[
                &column(&chains, |chain| uuid(chain.app.as_bytes())),
                &column(&chains, |chain| chain.environment.as_str()),
                &column(&chains, |chain| chain.provider.as_str()),
                &column(&chains, |chain| chain.name.as_str()),
                &limit,
            ],
        )
        .await?;
    rows.iter().map(notification).collect()
}

/// Everything that is kept of a subscription, as far as it is settled together.
pub(super) async fn chain(tx: &Tx, chain: &Chain) -> Result<Vec<Notification>, Failure> {
    chains(tx, std::iter::once(chain)).await
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

pub(super) fn provider_of(app: AppId, text: &str) -> Result<BillingProvider, Failure> {
    BillingProvider::parse(text)
        .ok_or_else(|| StoreError::corrupt("billing", "provider", app).into())
}
