//! Tracking links.

use crate::rows::{page_start, read_row, require_app};
use crate::tables::{SqliteTables, run};
use crate::{Failure, SqliteStore};
use async_trait::async_trait;
use rusqlite::{OptionalExtension, params};
use tributary_domain::access::{AppsRead, AppsWrite, Authorized};
use tributary_domain::audit::AuditContext;
use tributary_domain::link::{Link, LinkChange};
use tributary_domain::refusal::Refusal;
use tributary_domain::vocabulary::id::{AppId, LinkId};
use tributary_domain::vocabulary::page::{Page, PageRequest};
use tributary_domain::vocabulary::revision::Precondition;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_recording::TrackingLinkTable;
use tributary_recording::admin::{create_link, delete_link, update_link};
use tributary_store::records::{Columns, LinkRow};
use tributary_store::{Links, StoreResult};

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
             values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)"
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
            row.revision
        ])?;
        Ok(())
    }

    async fn write_link(&self, link: &Link) -> Result<(), Failure> {
        let row = LinkRow::write(link);
        self.0
            .prepare_cached(
                "update links set slug = ?3, name = ?4, kind = ?5, network = ?6, active = ?7,
                                  settings = ?8, updated_at = ?9, revision = ?10
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
                row.revision
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
        let organization = caller.organization();
        self.write("create_link", move |connection| {
            let tables = SqliteTables(connection);
            run(create_link(&tables, organization, &link, &origin))?;
            Ok(link)
        })
        .await
    }

    async fn link(
        &self,
        caller: &Authorized<AppsRead>,
        app: AppId,
        link: LinkId,
    ) -> StoreResult<Link> {
        let organization = caller.organization();
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
        page: PageRequest,
    ) -> StoreResult<Page<Link>> {
        let organization = caller.organization();
        self.read("links", move |connection| {
            require_app(connection, organization, app)?;
            let sql = format!(
                "select {LINK_COLUMNS} from links
                 where app_id = ?1 and link_id < ?2 and archived_at is null
                 order by link_id desc limit ?3"
            );
            let rows: Vec<LinkRow> = connection
                .prepare_cached(&sql)?
                .query_map(
                    params![app.as_bytes(), page_start(page.before), page.limit.rows()],
                    read_row::<LinkRow>,
                )?
                .collect::<Result<_, _>>()?;
            let links = rows
                .into_iter()
                .map(LinkRow::read)
                .collect::<Result<_, _>>()?;
            Ok(Page::from_rows(links, page.limit))
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
        let organization = caller.organization();
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
        let organization = caller.organization();
        self.write_invalidating("delete_link", move |connection| {
            let (tables, of) = (SqliteTables(connection), (organization, app, link));
            run(delete_link(&tables, of, &precondition, &origin))
        })
        .await
    }
}
