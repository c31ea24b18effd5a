//! Clicks, and link lookups for the public endpoints.

use crate::links::LINK_COLUMNS;
use crate::rows::{APP_COLUMNS, app_secrets, read_row};
use crate::{Failure, SqliteStore};
use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, Statement, params};
use std::sync::LazyLock;
use tributary_domain::app::App;
use tributary_domain::click::{Click, PageHints};
use tributary_domain::vocabulary::id::{AppId, ClickId, LinkId};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_domain::vocabulary::web_url::HostName;
use tributary_store::records::{AppRow, ClickRow, Columns, LinkRow};
use tributary_store::{Clicks, LinkRef, StoreResult, TrackedLink};

/// The columns of `clicks`.
pub(crate) const CLICK_COLUMNS: &str = ClickRow::COLUMNS;

static INSERT: LazyLock<String> = LazyLock::new(|| {
    format!(
        "insert into clicks ({CLICK_COLUMNS})
         values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19,
                 ?20, ?21, ?22)
         on conflict (app_id, click_id) do nothing"
    )
});

/// Inserts a click. Returns true if the click is new.
pub(crate) fn insert_click(connection: &Connection, click: &Click) -> Result<bool, Failure> {
    let mut statement = connection.prepare_cached(&INSERT)?;
    insert(&mut statement, &ClickRow::write(click))
}

fn insert(statement: &mut Statement<'_>, row: &ClickRow) -> Result<bool, Failure> {
    let stored = statement.execute(params![
        row.app_id,
        row.click_id,
        row.link_id,
        row.clicked_at,
        row.network,
        row.network_by,
        row.bot,
        row.platform,
        row.os_version,
        row.model,
        row.language,
        row.timezone,
        row.screen,
        row.address,
        row.address_hash,
        row.advertising_hash,
        row.country,
        row.user_agent,
        row.referer,
        row.destination_origin,
        row.captured,
        row.environment
    ])?;
    Ok(stored == 1)
}

fn find_link(connection: &Connection, link: &LinkRef) -> Result<Option<LinkRow>, Failure> {
    let qualified: Vec<String> = LINK_COLUMNS
        .split(", ")
        .map(|column| format!("links.{column}"))
        .collect();
    let columns = qualified.join(", ");
    let row = match link {
        LinkRef::Slug(slug) => connection
            .prepare_cached(&format!(
                "select {columns} from link_slugs
                 join links on links.app_id = link_slugs.app_id and links.link_id = link_slugs.link_id
                 where link_slugs.slug = ?1 and links.archived_at is null"
            ))?
            .query_row([slug.as_str()], read_row::<LinkRow>)
            .optional()?,
        LinkRef::Id(id) => link_by_id(connection, *id, &columns)?,
    };
    Ok(row)
}

/// Finds a link by its id alone, without knowing the app.
fn link_by_id(
    connection: &Connection,
    id: LinkId,
    columns: &str,
) -> Result<Option<LinkRow>, Failure> {
    let sql = format!("select {columns} from links where link_id = ?1 and archived_at is null");
    let row = connection
        .prepare_cached(&sql)?
        .query_row([id.as_bytes()], read_row::<LinkRow>)
        .optional()?;
    Ok(row)
}

fn apps(connection: &Connection, rows: Vec<AppRow>) -> Result<Vec<App>, Failure> {
    rows.into_iter()
        .map(|row| {
            let secrets = app_secrets(connection, AppId::from_bytes(row.app_id))?;
            Ok(row.read(secrets)?)
        })
        .collect()
}

#[async_trait]
impl Clicks for SqliteStore {
    async fn tracking_link(&self, link: LinkRef) -> StoreResult<Option<TrackedLink>> {
        self.read("tracking_link", move |connection| {
            let Some(row) = find_link(connection, &link)? else {
                return Ok(None);
            };
            let sql = format!("select {APP_COLUMNS} from apps where app_id = ?1");
            let app = connection
                .prepare_cached(&sql)?
                .query_row([row.app_id], read_row::<AppRow>)?;
            let secrets = app_secrets(connection, AppId::from_bytes(row.app_id))?;
            Ok(Some(TrackedLink {
                link: row.read()?,
                app: app.read(secrets)?,
            }))
        })
        .await
    }

    async fn apps_for_host(&self, host: Option<HostName>) -> StoreResult<Vec<App>> {
        self.read("apps_for_host", move |connection| {
            let condition = match &host {
                Some(_) => "app_id in (select app_id from link_domains where link_domain = ?1)",
                None => "?1 is null and app_id not in (select app_id from link_domains)",
            };
            let sql = format!("select {APP_COLUMNS} from apps where {condition} order by app_id");
            let rows = connection
                .prepare_cached(&sql)?
                .query_map([host.as_ref().map(HostName::as_str)], read_row::<AppRow>)?
                .collect::<Result<_, _>>()?;
            apps(connection, rows)
        })
        .await
    }

    async fn record_click(&self, click: Click) -> StoreResult<()> {
        // Built here, because the writer thread is the bottleneck.
        let row = ClickRow::write(&click);
        self.write_decided("record_click", move |batch| {
            let statement = &batch.statements.new_click;
            let is_new = statement.with(batch.connection, &INSERT, |insert_click| {
                insert(insert_click, &row)
            })?;
            if is_new {
                batch.count(|increments| increments.add_click(&click));
            }
            Ok(())
        })
        .await
    }

    async fn add_page_hints(
        &self,
        app: AppId,
        click: ClickId,
        hints: PageHints,
        not_before: Timestamp,
    ) -> StoreResult<bool> {
        self.write("add_page_hints", move |connection| {
            let sql = format!(
                "select {CLICK_COLUMNS} from clicks
                 where app_id = ?1 and click_id = ?2 and clicked_at >= ?3"
            );
            let key = params![app.as_bytes(), click.as_bytes(), not_before.as_millis()];
            let found = connection
                .prepare_cached(&sql)?
                .query_row(key, read_row::<ClickRow>)
                .optional()?;
            let Some(row) = found else {
                return Ok(false);
            };
            let row = ClickRow::write(&row.read()?.with_hints(hints));
            connection
                .prepare_cached(
                    "update clicks set timezone = ?3, screen = ?4, model = ?5, os_version = ?6
                     where app_id = ?1 and click_id = ?2",
                )?
                .execute(params![
                    row.app_id,
                    row.click_id,
                    row.timezone,
                    row.screen,
                    row.model,
                    row.os_version
                ])?;
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
        self.write("forget_addresses", move |connection| {
            let forgotten = connection
                .prepare_cached(
                    "update clicks set address = null, address_hash = null, user_agent = null
                     where (app_id, click_id) in (
                         select app_id, click_id from clicks
                         where clicked_at < ?1 and address is not null
                         order by clicked_at limit ?2)",
                )?
                .execute(params![clicks_before.as_millis(), limit])?;
            let of_devices = connection
                .prepare_cached(
                    "update devices set address_hash = null
                     where (app_id, environment, device_id) in (
                         select app_id, environment, device_id from devices
                         where first_seen_at < ?1 and address_hash is not null
                         order by first_seen_at limit ?2)",
                )?
                .execute(params![devices_before.as_millis(), limit])?;
            let of_claims = connection
                .prepare_cached(
                    "update user_links set address_hash = null
                     where (app_id, environment, user_id, device_id) in (
                         select app_id, environment, user_id, device_id from user_links
                         where first_linked_at < ?1 and address_hash is not null
                         order by first_linked_at limit ?2)",
                )?
                .execute(params![devices_before.as_millis(), limit])?;
            Ok((forgotten + of_devices + of_claims) as u64)
        })
        .await
    }

    async fn remove_clicks(&self, before: Timestamp, limit: u32) -> StoreResult<u64> {
        self.write("remove_clicks", move |connection| {
            let removed = connection
                .prepare_cached(
                    "delete from clicks where (app_id, click_id) in (
                         select app_id, click_id from clicks
                         where clicked_at < ?1 and kept = 0
                         order by clicked_at limit ?2)",
                )?
                .execute(params![before.as_millis(), limit])?;
            Ok(removed as u64)
        })
        .await
    }
}
