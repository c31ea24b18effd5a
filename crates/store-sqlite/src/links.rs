//! Tracking links.

use crate::rows::{insert_audit, page_start, read_row, require_app};
use crate::{Failure, SqliteStore};
use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, params};
use tributary_domain::access::{AppsRead, AppsWrite, Authorized};
use tributary_domain::audit::{Action, Origin};
use tributary_domain::link::{Link, LinkChange};
use tributary_domain::refusal::Refusal;
use tributary_domain::vocabulary::id::{AppId, LinkId};
use tributary_domain::vocabulary::page::{Page, PageRequest};
use tributary_domain::vocabulary::revision::Precondition;
use tributary_store::records::{Columns, LinkRow, audit_row};
use tributary_store::{Links, StoreResult};

pub(crate) const LINK_COLUMNS: &str = LinkRow::COLUMNS;

fn find_link(connection: &Connection, app: AppId, link: LinkId) -> Result<Link, Failure> {
    let sql = format!(
        "select {LINK_COLUMNS} from links
         where app_id = ?1 and link_id = ?2 and archived_at is null"
    );
    let row = connection
        .prepare_cached(&sql)?
        .query_row((app.as_bytes(), link.as_bytes()), read_row::<LinkRow>)
        .optional()?
        .ok_or(Refusal::LinkNotFound)?;
    Ok(row.read()?)
}

/// Takes the slug; one that the link had before is its own still.
fn claim_slug(connection: &Connection, link: &Link) -> Result<(), Failure> {
    let claimed = connection
        .prepare_cached(
            "insert into link_slugs (slug, app_id, link_id) values (?1, ?2, ?3)
             on conflict (slug) do update set slug = slug where app_id = ?2 and link_id = ?3",
        )?
        .execute(params![
            link.slug.as_str(),
            link.app.as_bytes(),
            link.id.as_bytes()
        ])?;
    if claimed == 0 {
        Err(Refusal::SlugTaken.into())
    } else {
        Ok(())
    }
}

#[async_trait]
impl Links for SqliteStore {
    async fn create_link(
        &self,
        caller: &Authorized<AppsWrite>,
        link: Link,
        origin: Origin,
    ) -> StoreResult<Link> {
        let organization = caller.organization();
        self.write("create_link", move |connection| {
            require_app(connection, organization, link.app)?;
            let row = LinkRow::write(&link);
            connection
                .prepare_cached(
                    "insert into links (app_id, link_id, slug, name, kind, network, active,
                                        settings, created_at, updated_at, revision)
                     values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
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
                    row.created_at,
                    row.updated_at,
                    row.revision
                ])?;
            claim_slug(connection, &link)?;
            let (action, app) = (Action::LinkCreated, Some(link.app));
            insert_audit(
                connection,
                &audit_row(
                    organization,
                    &origin,
                    action,
                    app,
                    link.id,
                    &link.described(),
                ),
            )?;
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
            find_link(connection, app, link)
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
        origin: Origin,
    ) -> StoreResult<Link> {
        let organization = caller.organization();
        self.write("update_link", move |connection| {
            require_app(connection, organization, app)?;
            let current = find_link(connection, app, link)?;
            let changed = current.changed(change, &precondition, origin.at)?;
            if changed.changes.is_empty() {
                return Ok(changed.after);
            }
            let row = LinkRow::write(&changed.after);
            connection
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
            claim_slug(connection, &changed.after)?;
            let action = Action::LinkUpdated;
            let row = audit_row(
                organization,
                &origin,
                action,
                Some(app),
                link,
                &changed.changes,
            );
            insert_audit(connection, &row)?;
            Ok(changed.after)
        })
        .await
    }

    async fn delete_link(
        &self,
        caller: &Authorized<AppsWrite>,
        app: AppId,
        link: LinkId,
        precondition: Precondition,
        origin: Origin,
    ) -> StoreResult<()> {
        let organization = caller.organization();
        self.write("delete_link", move |connection| {
            require_app(connection, organization, app)?;
            let current = find_link(connection, app, link)?;
            if !precondition.admits(&current.tag()) {
                return Err(Refusal::VersionConflict.into());
            }
            connection.execute(
                "update links set archived_at = ?3 where app_id = ?1 and link_id = ?2",
                params![app.as_bytes(), link.as_bytes(), origin.at.as_millis()],
            )?;
            let action = Action::LinkDeleted;
            let row = audit_row(organization, &origin, action, Some(app), link, &[]);
            insert_audit(connection, &row)
        })
        .await
    }
}
