//! Tracking links.

use crate::params::placeholders;
use crate::rows::{AppLockMode, Conditions, read_row, require_app, uuid};
use crate::tx::Tx;
use crate::{Failure, PostgresStore};
use async_trait::async_trait;
use tokio_postgres::Row;
use tributary_domain::access::{AppsRead, AppsWrite, Authorized};
use tributary_domain::audit::AuditContext;
use tributary_domain::link::{LABELED_LINKS_MAX, Link, LinkChange, LinkFilter, LinkLabels};
use tributary_domain::refusal::Refusal;
use tributary_domain::vocabulary::id::{AppId, LinkId};
use tributary_domain::vocabulary::page::{Page, PageRequest};
use tributary_domain::vocabulary::revision::Precondition;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_recording::TrackingLinkTable;
use tributary_recording::admin::{create_link, create_links, delete_link, update_link};
use tributary_store::records::{Columns, LinkRow, link_tags};
use tributary_store::{Links, StoreResult};

/// The columns of `links`.
pub(crate) const LINK_COLUMNS: &str = LinkRow::COLUMNS;
/// Links that a search reads at once.
const SEARCH_BATCH: i64 = 1_000;

impl TrackingLinkTable for Tx {
    async fn tracking_link(&self, app: AppId, link: LinkId) -> Result<Option<Link>, Failure> {
        let sql = format!(
            "select {LINK_COLUMNS} from links
             where app_id = $1 and link_id = $2 and archived_at is null"
        );
        let row = self
            .query_opt(&sql, &[&uuid(app.as_bytes()), &uuid(link.as_bytes())])
            .await?;
        let read = |row| Ok(read_row::<LinkRow>(&row)?.read()?);
        row.map(read).transpose()
    }

    async fn insert_link(&self, link: &Link) -> Result<(), Failure> {
        let row = LinkRow::write(link);
        let sql = format!(
            "insert into links ({LINK_COLUMNS}) values ({})",
            placeholders(13)
        );
        self.execute(
            &sql,
            &[
                &uuid(&row.app_id),
                &uuid(&row.link_id),
                &row.slug,
                &row.name,
                &row.kind,
                &row.network,
                &row.active,
                &row.settings,
                &row.created_at,
                &row.updated_at,
                &row.revision,
                &row.tags,
                &row.folder,
            ],
        )
        .await?;
        Ok(())
    }

    async fn write_link(&self, link: &Link) -> Result<(), Failure> {
        let row = LinkRow::write(link);
        self.execute(
            "update links set slug = $3, name = $4, kind = $5, network = $6, active = $7,
                              settings = $8, updated_at = $9, revision = $10,
                              tags = $11, folder = $12
             where app_id = $1 and link_id = $2",
            &[
                &uuid(&row.app_id),
                &uuid(&row.link_id),
                &row.slug,
                &row.name,
                &row.kind,
                &row.network,
                &row.active,
                &row.settings,
                &row.updated_at,
                &row.revision,
                &row.tags,
                &row.folder,
            ],
        )
        .await?;
        Ok(())
    }

    async fn archive_link(&self, app: AppId, link: LinkId, at: Timestamp) -> Result<(), Failure> {
        self.execute(
            "update links set archived_at = $3 where app_id = $1 and link_id = $2",
            &[
                &uuid(app.as_bytes()),
                &uuid(link.as_bytes()),
                &at.as_millis(),
            ],
        )
        .await?;
        Ok(())
    }

    async fn claim_slug(&self, link: &Link) -> Result<bool, Failure> {
        let (app, id) = (uuid(link.app.as_bytes()), uuid(link.id.as_bytes()));
        let slug = link.slug.as_str();
        let claimed = self
            .query_opt(
                "insert into link_slugs (slug, app_id, link_id) values ($1, $2, $3)
                 on conflict (slug) do nothing returning slug",
                &[&slug, &app, &id],
            )
            .await?;
        if claimed.is_some() {
            return Ok(true);
        }
        let own = self
            .query_opt(
                "select 1 from link_slugs where slug = $1 and app_id = $2 and link_id = $3",
                &[&slug, &app, &id],
            )
            .await?;
        Ok(own.is_some())
    }
}

/// Reads an app's links, newest first.
async fn newest_links(
    tx: &Tx,
    app: AppId,
    before: Option<[u8; 16]>,
    rows: i64,
) -> Result<Vec<Link>, Failure> {
    let (app, before) = (uuid(app.as_bytes()), before.as_ref().map(uuid));
    let (conditions, params) = Conditions::new("archived_at is null and app_id", &app)
        .and("link_id <", before.as_ref())
        .newest("link_id", &rows);
    let sql = format!("select {LINK_COLUMNS} from links where {conditions}");
    let rows = tx.query(&sql, &params).await?;
    let links = rows.iter().map(|row| Ok(read_row::<LinkRow>(row)?.read()?));
    links.collect()
}

#[async_trait]
impl Links for PostgresStore {
    async fn create_link(
        &self,
        caller: &Authorized<AppsWrite>,
        link: Link,
        origin: AuditContext,
    ) -> StoreResult<Link> {
        let organization = caller.organization_of(link.app)?;
        self.write("create_link", async move |tx| {
            create_link(tx, organization, &link, &origin).await?;
            Ok(link.clone())
        })
        .await
    }

    async fn create_links(
        &self,
        caller: &Authorized<AppsWrite>,
        app: AppId,
        links: Vec<(Link, AuditContext)>,
    ) -> StoreResult<Vec<Link>> {
        let organization = caller.organization_of(app)?;
        self.write("create_links", async move |tx| {
            create_links(tx, (organization, app), &links).await?;
            Ok(links.iter().map(|(link, _)| link.clone()).collect())
        })
        .await
    }

    async fn link(
        &self,
        caller: &Authorized<AppsRead>,
        app: AppId,
        link: LinkId,
    ) -> StoreResult<Link> {
        let organization = caller.organization_of(app)?;
        self.read("link", async move |tx| {
            require_app(tx, organization, app, AppLockMode::Reading).await?;
            let found = tx.tracking_link(app, link).await?;
            Ok(found.ok_or(Refusal::LinkNotFound)?)
        })
        .await
    }

    async fn links(
        &self,
        caller: &Authorized<AppsRead>,
        app: AppId,
        filter: LinkFilter,
        page: PageRequest,
    ) -> StoreResult<Page<Link>> {
        let organization = caller.organization_of(app)?;
        self.read("links", async move |tx| {
            require_app(tx, organization, app, AppLockMode::Reading).await?;
            if filter.is_empty() {
                let links = newest_links(tx, app, page.before, page.limit.rows()).await?;
                return Ok(Page::from_rows(links, page.limit));
            }
            let (mut links, mut before) = (Vec::new(), page.before);
            while links.len() <= page.limit.items() {
                let found = newest_links(tx, app, before, SEARCH_BATCH).await?;
                let Some(last) = found.last() else { break };
                before = Some(*last.id.as_bytes());
                links.extend(found.into_iter().filter(|link| filter.admits(link)));
            }
            Ok(Page::from_rows(links, page.limit))
        })
        .await
    }

    async fn link_labels(
        &self,
        caller: &Authorized<AppsRead>,
        app: AppId,
    ) -> StoreResult<LinkLabels> {
        let organization = caller.organization_of(app)?;
        self.read("link_labels", async move |tx| {
            require_app(tx, organization, app, AppLockMode::Reading).await?;
            let rows = tx
                .query(
                    "select distinct folder, tags from links
                     where app_id = $1 and archived_at is null
                       and (folder is not null or tags is not null)
                     limit $2",
                    &[&uuid(app.as_bytes()), &i64::from(LABELED_LINKS_MAX)],
                )
                .await?;
            let label = |row: &Row| {
                let (folder, tags): (_, Option<&str>) = (row.try_get(0)?, row.try_get(1)?);
                Ok((folder, link_tags(app, tags)?))
            };
            let labels = rows
                .iter()
                .map(label)
                .collect::<Result<Vec<_>, Failure>>()?;
            Ok(LinkLabels::of(labels))
        })
        .await
    }

    async fn update_link(
        &self,
        caller: &Authorized<AppsWrite>,
        app: AppId,
        link: LinkId,
        change: LinkChange,
        precondition: Precondition,
        origin: AuditContext,
    ) -> StoreResult<Link> {
        let organization = caller.organization_of(app)?;
        self.write_invalidating("update_link", async move |tx| {
            let of = (organization, app, link);
            update_link(tx, of, &change, &precondition, &origin).await
        })
        .await
    }

    async fn delete_link(
        &self,
        caller: &Authorized<AppsWrite>,
        app: AppId,
        link: LinkId,
        precondition: Precondition,
        origin: AuditContext,
    ) -> StoreResult<()> {
        let organization = caller.organization_of(app)?;
        self.write_invalidating("delete_link", async move |tx| {
            let of = (organization, app, link);
            delete_link(tx, of, &precondition, &origin).await
        })
        .await
    }
}
