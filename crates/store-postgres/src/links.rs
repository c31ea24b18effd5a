//! Tracking links.

use crate::rows::{Conditions, Purpose, insert_audit, read_row_at, require_app, uuid};
use crate::tx::Tx;
use crate::{Failure, PostgresStore};
use async_trait::async_trait;
use tributary_domain::access::{AppsRead, AppsWrite, Authorized};
use tributary_domain::audit::{Action, Origin};
use tributary_domain::link::{Link, LinkChange};
use tributary_domain::refusal::Refusal;
use tributary_domain::vocabulary::id::{AppId, LinkId};
use tributary_domain::vocabulary::page::{Page, PageRequest};
use tributary_domain::vocabulary::revision::Precondition;
use tributary_store::records::{Columns, LinkRow, audit_row};
use tributary_store::{Links, StoreResult};

/// The columns of `links`.
pub(crate) const LINK_COLUMNS: &str = LinkRow::COLUMNS;

async fn find_link(tx: &Tx, app: AppId, link: LinkId) -> Result<Link, Failure> {
    let sql = format!(
        "select {LINK_COLUMNS} from links
         where app_id = $1 and link_id = $2 and archived_at is null"
    );
    let row = tx
        .query_opt(&sql, &[&uuid(app.as_bytes()), &uuid(link.as_bytes())])
        .await?
        .ok_or(Refusal::LinkNotFound)?;
    Ok(read_row_at::<LinkRow>(&row, 0)?.read()?)
}

/// Takes the slug; one that the link had before is its own still. Always after the app was locked and the
/// link written, so that nobody who has a slug waits for anything else.
async fn claim_slug(tx: &Tx, link: &Link) -> Result<(), Failure> {
    let (app, id) = (uuid(link.app.as_bytes()), uuid(link.id.as_bytes()));
    let slug = link.slug.as_str();
    let claimed = tx
        .execute(
            "insert into link_slugs (slug, app_id, link_id) values ($1, $2, $3)
             on conflict (slug) do nothing",
            &[&slug, &app, &id],
        )
        .await?;
    if claimed == 1 {
        return Ok(());
    }
    let own = tx
        .query_opt(
            "select 1 from link_slugs where slug = $1 and app_id = $2 and link_id = $3",
            &[&slug, &app, &id],
        )
        .await?;
    match own {
        Some(_) => Ok(()),
        None => Err(Refusal::SlugTaken.into()),
    }
}

#[async_trait]
impl Links for PostgresStore {
    async fn create_link(
        &self,
        caller: &Authorized<AppsWrite>,
        link: Link,
        origin: Origin,
    ) -> StoreResult<Link> {
        let organization = caller.organization();
        self.write("create_link", async move |tx| {
            require_app(tx, organization, link.app, Purpose::Changing).await?;
            let row = LinkRow::write(&link);
            tx.execute(
                "insert into links (app_id, link_id, slug, name, kind, network, active, settings,
                                    created_at, updated_at, revision)
                 values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
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
                ],
            )
            .await?;
            claim_slug(tx, &link).await?;
            let (action, app) = (Action::LinkCreated, Some(link.app));
            let row = audit_row(
                organization,
                &origin,
                action,
                app,
                link.id,
                &link.described(),
            );
            insert_audit(tx, &row).await?;
            Ok(link.clone())
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
        self.read("link", async move |tx| {
            require_app(tx, organization, app, Purpose::Reading).await?;
            find_link(tx, app, link).await
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
        let before = page.before.as_ref().map(uuid);
        self.read("links", async move |tx| {
            require_app(tx, organization, app, Purpose::Reading).await?;
            let (app, rows) = (uuid(app.as_bytes()), page.limit.rows());
            let (conditions, params) = Conditions::new("archived_at is null and app_id", &app)
                .and("link_id <", before.as_ref())
                .newest("link_id", &rows);
            let sql = format!("select {LINK_COLUMNS} from links where {conditions}");
            let rows = tx.query(&sql, &params).await?;
            let links = rows
                .iter()
                .map(|row| Ok(read_row_at::<LinkRow>(row, 0)?.read()?))
                .collect::<Result<_, Failure>>()?;
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
        self.write("update_link", async move |tx| {
            require_app(tx, organization, app, Purpose::Changing).await?;
            let current = find_link(tx, app, link).await?;
            let changed = current.changed(change.clone(), &precondition, origin.at)?;
            if changed.changes.is_empty() {
                return Ok(changed.after);
            }
            let row = LinkRow::write(&changed.after);
            tx.execute(
                "update links set slug = $3, name = $4, kind = $5, network = $6, active = $7,
                                  settings = $8, updated_at = $9, revision = $10
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
                ],
            )
            .await?;
            claim_slug(tx, &changed.after).await?;
            let action = Action::LinkUpdated;
            let row = audit_row(
                organization,
                &origin,
                action,
                Some(app),
                link,
                &changed.changes,
            );
            insert_audit(tx, &row).await?;
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
        self.write("delete_link", async move |tx| {
            require_app(tx, organization, app, Purpose::Changing).await?;
            let current = find_link(tx, app, link).await?;
            if !precondition.admits(&current.tag()) {
                return Err(Refusal::VersionConflict.into());
            }
            tx.execute(
                "update links set archived_at = $3 where app_id = $1 and link_id = $2",
                &[
                    &uuid(app.as_bytes()),
                    &uuid(link.as_bytes()),
                    &origin.at.as_millis(),
                ],
            )
            .await?;
            let action = Action::LinkDeleted;
            let row = audit_row(organization, &origin, action, Some(app), link, &[]);
            insert_audit(tx, &row).await
        })
        .await
    }
}
