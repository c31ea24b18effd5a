//! Clicks, and link lookups for the public endpoints.

use crate::batch_writer::{BatchItem, BatchWriter, CONCURRENT_BATCHES, ShardKey};
use crate::devices::DeviceColumns;
use crate::links::LINK_COLUMNS;
use crate::params::{column, placeholders};
use crate::pool::Pool;
use crate::rows::{APP_COLUMNS, app_by_id, id, read_apps, read_row, read_row_at, uuid};
use crate::tx::{self, TransactionMode, Tx};
use crate::{Failure, PostgresStore, rollups};
use async_trait::async_trait;
use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tributary_domain::app::App;
use tributary_domain::click::{Click, PageHints};
use tributary_domain::device::DeviceRef;
use tributary_domain::report::Increments;
use tributary_domain::vocabulary::id::{AppId, ClickId};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_domain::vocabulary::web_url::HostName;
use tributary_store::records::{ClickRow, Columns, LinkRow};
use tributary_store::{Clicks, LinkRef, StoreError, StoreResult, TrackedLink};
use uuid::Uuid;

/// The columns of `clicks`.
pub(crate) const CLICK_COLUMNS: &str = ClickRow::COLUMNS;
/// Number of columns in `clicks`.
pub(crate) const CLICK_COLUMNS_COUNT: usize = ClickRow::COUNT;

impl BatchItem for Click {
    fn shard_key(&self) -> ShardKey {
        ShardKey::App(self.app)
    }
}

/// Starts the batch writer for clicks.
pub(crate) fn batch_writer(pool: Arc<Pool>) -> BatchWriter<Click, ()> {
    let name = "record_click";
    BatchWriter::start_concurrent(name, CONCURRENT_BATCHES, move |clicks: Arc<[Click]>| {
        let pool = pool.clone();
        async move {
            tx::run(&pool, name, TransactionMode::Write, async move |tx| {
                let mut increments = Increments::default();
                record(tx, &clicks, &mut increments).await?;
                rollups::store_increments(tx, &increments).await?;
                Ok(vec![(); clicks.len()])
            })
            .await
        }
    })
}

/// Stores clicks and counts the new ones.
async fn record(tx: &Tx, clicks: &[Click], increments: &mut Increments) -> Result<(), Failure> {
    let mut new = insert(tx, clicks).await?;
    for click in clicks {
        if new.remove(&(click.app, click.id)) {
            increments.add_click(click);
        }
    }
    Ok(())
}

/// Inserts the clicks that are new and returns their keys.
pub(crate) async fn insert(
    tx: &Tx,
    clicks: &[impl Borrow<Click>],
) -> Result<BTreeSet<(AppId, ClickId)>, Failure> {
    if clicks.is_empty() {
        return Ok(BTreeSet::new());
    }
    let rows = clicks.iter().map(|click| ClickRow::write(click.borrow()));
    let mut rows: Vec<ClickRow> = rows.collect();
    // Sorted by key, so that two batches with the same clicks do not deadlock.
    rows.sort_by_key(|row| (row.app_id, row.click_id));
    let rows = rows.as_slice();
    let sql = format!(
        "insert into clicks ({CLICK_COLUMNS}) select * from unnest({})
         on conflict (app_id, click_id) do nothing returning app_id, click_id",
        placeholders(CLICK_COLUMNS_COUNT)
    );
    let new = tx
        .query(
            &sql,
            &[
                &column(rows, |row| uuid(&row.app_id)),
                &column(rows, |row| uuid(&row.click_id)),
                &column(rows, |row| uuid(&row.link_id)),
                &column(rows, |row| row.clicked_at),
                &column(rows, |row| row.network.as_deref()),
                &column(rows, |row| row.network_by.as_deref()),
                &column(rows, |row| row.bot.as_deref()),
                &column(rows, |row| row.platform.as_str()),
                &column(rows, |row| row.os_version.as_deref()),
                &column(rows, |row| row.model.as_deref()),
                &column(rows, |row| row.language.as_deref()),
                &column(rows, |row| row.timezone.as_deref()),
                &column(rows, |row| row.screen.as_deref()),
                &column(rows, |row| row.address.as_deref()),
                &column(rows, |row| row.address_hash.as_deref()),
                &column(rows, |row| row.advertising_hash.as_deref()),
                &column(rows, |row| row.country.as_deref()),
                &column(rows, |row| row.user_agent.as_deref()),
                &column(rows, |row| row.referer.as_deref()),
                &column(rows, |row| row.destination_origin.as_deref()),
                &column(rows, |row| row.captured.as_str()),
                &column(rows, |row| row.environment.as_deref()),
            ],
        )
        .await?;
    let key = |row| {
        Ok((
            AppId::from_bytes(id(row, 0)?),
            ClickId::from_bytes(id(row, 1)?),
        ))
    };
    new.iter().map(key).collect()
}

/// Clicks to protect from removal, with the devices whose installs they are assigned to.
pub(crate) type KeptClicks<'a> = BTreeMap<(AppId, ClickId), Option<&'a str>>;

/// Protects clicks from removal, and assigns them to installs. Reports a conflict when a click was
/// claimed by another install or deleted meanwhile. The clicks are locked in key order.
pub(crate) async fn keep(tx: &Tx, kept: &KeptClicks<'_>) -> Result<(), Failure> {
    if kept.is_empty() {
        return Ok(());
    }
    let kept: Vec<_> = kept.iter().collect();
    let rows = tx
        .query(
            "update clicks set taken_by = coalesce(new.device_id, clicks.taken_by), kept = true
             from unnest($1, $2, $3) as new (app_id, click_id, device_id)
             where clicks.app_id = new.app_id and clicks.click_id = new.click_id
               and (new.device_id is null or clicks.taken_by is null
                    or clicks.taken_by = new.device_id)
               /* distributed: and clicks.app_id = any($1) */
             returning clicks.click_id",
            &[
                &column(&kept, |((app, _), _)| uuid(app.as_bytes())),
                &column(&kept, |((_, click), _)| uuid(click.as_bytes())),
                &column(&kept, |(_, device)| **device),
            ],
        )
        .await?;
    if rows.len() == kept.len() {
        Ok(())
    } else {
        Err(Failure::Conflict)
    }
}

/// Releases clicks from installs.
pub(crate) async fn release(tx: &Tx, released: &[(DeviceRef<'_>, ClickId)]) -> Result<(), Failure> {
    if released.is_empty() {
        return Ok(());
    }
    let mut released = released.to_vec();
    // Sorted by key, so that two batches with the same clicks do not deadlock.
    released.sort_by_key(|(device, click)| (device.app, *click));
    tx.execute(
        "update clicks set taken_by = null
         from unnest($1, $2, $3) as old (app_id, click_id, device_id)
         where clicks.app_id = old.app_id and clicks.click_id = old.click_id
           and clicks.taken_by = old.device_id
           /* distributed: and clicks.app_id = any($1) */",
        &[
            &column(&released, |(device, _)| device.app()),
            &column(&released, |(_, click)| uuid(click.as_bytes())),
            &column(&released, |(device, _)| device.device()),
        ],
    )
    .await?;
    Ok(())
}

/// Finds a link and its app. The lookup table, which every shard has, contains the app id; then
/// only that app's shard is queried.
async fn find_tracked(tx: &Tx, link: &LinkRef) -> Result<Option<TrackedLink>, Failure> {
    let name = match link {
        LinkRef::Slug(slug) => {
            let sql = "select app_id, link_id from link_slugs where slug = $1";
            tx.query_opt(sql, &[&slug.as_str()]).await?
        }
        LinkRef::Id(link) => {
            let sql = "select app_id, link_id from link_slugs where link_id = $1 limit 1";
            tx.query_opt(sql, &[&uuid(link.as_bytes())]).await?
        }
    };
    let Some(name) = name else {
        return Ok(None);
    };
    let (app, link): (Uuid, Uuid) = (name.try_get(0)?, name.try_get(1)?);
    let sql = format!(
        "select {LINK_COLUMNS} from links
         where app_id = $1 and link_id = $2 and archived_at is null"
    );
    let Some(row) = tx.query_opt(&sql, &[&app, &link]).await? else {
        return Ok(None);
    };
    let link = read_row_at::<LinkRow>(&row, 0)?.read()?;
    let missing = || StoreError::corrupt("links", "app_id", link.id);
    let app = app_by_id(tx, app).await?.ok_or_else(missing)?;
    Ok(Some(TrackedLink { link, app }))
}

/// Finds old clicks on all shards. The caller then changes them by key.
async fn old_clicks(
    tx: &Tx,
    condition: &str,
    before: Timestamp,
    limit: u32,
) -> Result<(Vec<Uuid>, Vec<Uuid>), Failure> {
    let sql = format!(
        "select app_id, click_id from clicks where clicked_at < $1 and {condition}
         order by clicked_at limit $2"
    );
    let rows = tx
        .query(&sql, &[&before.as_millis(), &i64::from(limit)])
        .await?;
    let keys: Result<_, tokio_postgres::Error> = rows
        .iter()
        .map(|row| Ok((row.try_get::<_, Uuid>(0)?, row.try_get::<_, Uuid>(1)?)))
        .collect();
    Ok(keys?)
}

/// Clears the address hashes of devices first seen before a timestamp.
async fn forget_addresses_of_devices(
    tx: &Tx,
    before: Timestamp,
    limit: u32,
) -> Result<u64, Failure> {
    let rows = tx
        .query(
            "select app_id, environment, device_id from devices
             where first_seen_at < $1 and address_hash is not null
             order by first_seen_at limit $2",
            &[&before.as_millis(), &i64::from(limit)],
        )
        .await?;
    let (mut apps, mut environments, mut devices) = (Vec::new(), Vec::new(), Vec::new());
    for row in &rows {
        apps.push(row.try_get::<_, Uuid>(0)?);
        environments.push(row.try_get::<_, &str>(1)?);
        devices.push(row.try_get::<_, &str>(2)?);
    }
    tx.execute_counting(
        "update devices set address_hash = null
         from unnest($1, $2, $3) as old (app_id, environment, device_id)
         where devices.app_id = old.app_id and devices.environment = old.environment
           and devices.device_id = old.device_id
           /* distributed: and devices.app_id = any($1) */",
        &[&apps, &environments, &devices],
    )
    .await
}

/// Clears the address hashes of users that were first claimed before a timestamp.
async fn forget_addresses_of_claims(
    tx: &Tx,
    before: Timestamp,
    limit: u32,
) -> Result<u64, Failure> {
    tx.execute_counting(
        "update user_links set address_hash = null
         where (app_id, environment, user_id, device_id) in (
             select app_id, environment, user_id, device_id from user_links
             where first_linked_at < $1 and address_hash is not null
             order by first_linked_at limit $2)",
        &[&before.as_millis(), &i64::from(limit)],
    )
    .await
}

#[async_trait]
impl Clicks for PostgresStore {
    async fn tracking_link(&self, link: LinkRef) -> StoreResult<Option<TrackedLink>> {
        self.read("tracking_link", async move |tx| {
            find_tracked(tx, &link).await
        })
        .await
    }

    async fn apps_for_host(&self, host: Option<HostName>) -> StoreResult<Vec<App>> {
        self.read("apps_for_host", async move |tx| {
            let Some(host) = &host else {
                let sql = format!(
                    "select {APP_COLUMNS} from apps
                     where app_id not in (select app_id from link_domains) order by app_id"
                );
                return read_apps(tx, &tx.query(&sql, &[]).await?).await;
            };
            let sql = "select app_id from link_domains where link_domain = $1";
            let Some(row) = tx.query_opt(sql, &[&host.as_str()]).await? else {
                return Ok(Vec::new());
            };
            Ok(app_by_id(tx, row.try_get(0)?).await?.into_iter().collect())
        })
        .await
    }

    async fn record_click(&self, click: Click) -> StoreResult<()> {
        self.write_batched(&self.clicks, click).await
    }

    async fn add_page_hints(
        &self,
        app: AppId,
        click: ClickId,
        hints: PageHints,
        not_before: Timestamp,
    ) -> StoreResult<bool> {
        self.write("add_page_hints", async move |tx| {
            let (app, click) = (uuid(app.as_bytes()), uuid(click.as_bytes()));
            let sql = format!(
                "select {CLICK_COLUMNS} from clicks
                 where app_id = $1 and click_id = $2 and clicked_at >= $3 for no key update"
            );
            let found = tx
                .query_opt(&sql, &[&app, &click, &not_before.as_millis()])
                .await?;
            let Some(found) = found else {
                return Ok(false);
            };
            let stored = read_row::<ClickRow>(&found)?.read()?;
            let row = ClickRow::write(&stored.with_hints(hints.clone()));
            tx.execute(
                "update clicks set timezone = $3, screen = $4, model = $5, os_version = $6
                 where app_id = $1 and click_id = $2",
                &[
                    &app,
                    &click,
                    &row.timezone,
                    &row.screen,
                    &row.model,
                    &row.os_version,
                ],
            )
            .await?;
            Ok(true)
        })
        .await
    }

    async fn forget_addresses(
        &self,
        clicks_before: Timestamp,
        devices_before: Timestamp,
        limit: u32,
    ) -> StoreResult<u64> {
        self.write("forget_addresses", async move |tx| {
            let (apps, clicks) =
                old_clicks(tx, "address is not null", clicks_before, limit).await?;
            let of_clicks = tx
                .execute_counting(
                    "update clicks set address = null, address_hash = null, user_agent = null
                     from unnest($1, $2) as old (app_id, click_id)
                     where clicks.app_id = old.app_id and clicks.click_id = old.click_id
                       and clicks.address is not null
                       /* distributed: and clicks.app_id = any($1) */",
                    &[&apps, &clicks],
                )
                .await?;
            let of_devices = forget_addresses_of_devices(tx, devices_before, limit).await?;
            let of_claims = forget_addresses_of_claims(tx, devices_before, limit).await?;
            Ok(of_clicks + of_devices + of_claims)
        })
        .await
    }

    async fn remove_clicks(&self, before: Timestamp, limit: u32) -> StoreResult<u64> {
        self.write("remove_clicks", async move |tx| {
            let (apps, clicks) = old_clicks(tx, "not kept", before, limit).await?;
            // Checked again, because an install may have claimed the click meanwhile.
            tx.execute_counting(
                "delete from clicks using unnest($1, $2) as old (app_id, click_id)
                 where clicks.app_id = old.app_id and clicks.click_id = old.click_id
                   and not clicks.kept
                   /* distributed: and clicks.app_id = any($1) */",
                &[&apps, &clicks],
            )
            .await
        })
        .await
    }
}
