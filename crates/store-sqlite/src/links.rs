//! Tracking links.

use crate::rows::{page_start, read_row, require_app};
use crate::tables::{SqliteTables, run};
use crate::{Failure, SqliteStore};
use async_trait::async_trait;
use rusqlite::{OptionalExtension, params};
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
use tributary_store::{Links, StoreError, StoreResult};

pub(crate) const LINK_COLUMNS: &str = LinkRow::COLUMNS;

impl TrackingLinkTable for SqliteTables<'_> {
    async fn tracking_link(&self, app: AppId, link: LinkId) -> Result<Option<Link>, Failure> {
        let sql = format!(
            "select {LINK_COLUMNS} from links
             where app_id = ?1 and link_id = ?2 and archived_at is null"
        );
        let row = self
            .0
            .prepare_cached(&sql)?
            .query_row((app.as_bytes(), link.as_bytes()), read_row::<LinkRow>)
            .optional()?;
        Ok(row.map(LinkRow::read).transpose()?)
    }

    async fn insert_link(&self, link: &Link) -> Result<(), Failure> {
        let row = LinkRow::write(link);
        let sql = format!(
            "insert into links ({LINK_COLUMNS})
             values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)"
        );
        self.0.prepare_cached(&sql)?.execute(params![
            row.app_id,
            row.link_id,
            row.slug,
            row.name,
            row.kind,
            row.network,
            row.active,
            row.settings,
            row.created_at,
            row.updated_at,
            row.revision,
            row.tags,
            row.folder
        ])?;
        Ok(())
    }

    async fn write_link(&self, link: &Link) -> Result<(), Failure> {
        let row = LinkRow::write(link);
        self.0
            .prepare_cached(
                "update links set slug = ?3, name = ?4, kind = ?5, network = ?6, active = ?7,
                                  settings = ?8, updated_at = ?9, revision = ?10,
                                  tags = ?11, folder = ?12
                 where app_id = ?1 and link_id = ?2",
            )?
            .execute(params![
                row.app_id,
                row.link_id,
                row.slug,
                row.name,
                row.kind,
                row.network,
                row.active,
                row.settings,
                row.updated_at,
                row.revision,
                row.tags,
                row.folder
            ])?;
        Ok(())
    }

    async fn archive_link(&self, app: AppId, link: LinkId, at: Timestamp) -> Result<(), Failure> {
        self.0.execute(
            "update links set archived_at = ?3 where app_id = ?1 and link_id = ?2",
            params![app.as_bytes(), link.as_bytes(), at.as_millis()],
        )?;
        Ok(())
    }

    async fn claim_slug(&self, link: &Link) -> Result<bool, Failure> {
        let claimed = self
            .0
            .prepare_cached(
                "insert into link_slugs (slug, app_id, link_id) values (?1, ?2, ?3)
                 on conflict (slug) do update set slug = slug where app_id = ?2 and link_id = ?3",
            )?
            .execute(params![
                link.slug.as_str(),
                link.app.as_bytes(),
                link.id.as_bytes()
            ])?;
        Ok(claimed == 1)
    }
}

#[async_trait]
impl Links for SqliteStore {
    async fn create_link(
        &self,
        caller: &Authorized<AppsWrite>,
        link: Link,
        origin: AuditContext,
    ) -> StoreResult<Link> {
        let organization = caller.organization_of(link.app)?;
        self.write("create_link", move |connection| {
            let tables = SqliteTables(connection);
            run(create_link(&tables, organization, &link, &origin))?;
            Ok(link)
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
        self.write("create_links", move |connection| {
            let (tables, of) = (SqliteTables(connection), (organization, app));
            run(create_links(&tables, of, &links))?;
            Ok(links.into_iter().map(|(link, _)| link).collect())
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
        self.read("link", move |connection| {
            require_app(connection, organization, app)?;
            let found = run(SqliteTables(connection).tracking_link(app, link))?;
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
        self.read("links", move |connection| {
            require_app(connection, organization, app)?;
            let sql = format!(
                "select {LINK_COLUMNS} from links
                 where app_id = ?1 and link_id < ?2 and archived_at is null
                 order by link_id desc"
            );
            let before = page_start(page.before);
            let mut statement = connection.prepare_cached(&sql)?;
            let mut rows = statement.query(params![app.as_bytes(), before])?;
            let mut links = Vec::new();
            // Stops at the page's last row, so that only a filter reads more rows than the page has.
            while links.len() <= page.limit.items()
                && let Some(row) = rows.next()?
            {
                let link = read_row::<LinkRow>(row)?.read()?;
                if filter.admits(&link) {
                    links.push(link);
                }
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
        self.read("link_labels", move |connection| {
            require_app(connection, organization, app)?;
            let rows: Vec<(Option<String>, Option<String>)> = connection
                .prepare_cached(
                    "select distinct folder, tags from links
                     where app_id = ?1 and archived_at is null
                       and (folder is not null or tags is not null)
                     limit ?2",
                )?
                .query_map(params![app.as_bytes(), LABELED_LINKS_MAX], |row| {
                    Ok((row.get(0)?, row.get(1)?))
                })?
                .collect::<Result<_, _>>()?;
            let labels = rows
                .into_iter()
                .map(|(folder, tags)| Ok((folder, link_tags(app, tags.as_deref())?)))
                .collect::<Result<Vec<_>, StoreError>>()?;
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
        self.write_invalidating("update_link", move |connection| {
            let (tables, of) = (SqliteTables(connection), (organization, app, link));
            run(update_link(&tables, of, &change, &precondition, &origin))
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
        self.write_invalidating("delete_link", move |connection| {
            let (tables, of) = (SqliteTables(connection), (organization, app, link));
            run(delete_link(&tables, of, &precondition, &origin))
        })
        .await
    }
}
