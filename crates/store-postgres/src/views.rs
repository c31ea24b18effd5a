//! Saved views of reports, and links that share one.

use crate::params::placeholders;
use crate::rows::{AppLockMode, read_row, require_app, uuid};
use crate::tx::Tx;
use crate::{Failure, PostgresStore};
use async_trait::async_trait;
use tributary_domain::access::{AnalyticsRead, AppsRead, AppsWrite, Authorized};
use tributary_domain::audit::AuditContext;
use tributary_domain::report::view::{SavedView, ShareLink};
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::id::{AppId, ShareId, UserId, ViewId};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_recording::ViewTable;
use tributary_recording::admin::{create_share, revoke_share, save_view};
use tributary_store::records::{Columns, SavedViewRow, ShareLinkRow, count_to_u64};
use tributary_store::{NewShareLink, StoreResult, Views};

const VIEW_COLUMNS: &str = SavedViewRow::COLUMNS;
const SHARE_COLUMNS: &str = ShareLinkRow::COLUMNS;

impl ViewTable for Tx {
    async fn remove_view_named(&self, view: &SavedView) -> Result<(), Failure> {
        self.execute(
            "delete from saved_views where user_id = $1 and app_id = $2 and name = $3",
            &[
                &uuid(view.user.as_bytes()),
                &uuid(view.app.as_bytes()),
                &view.name.as_str(),
            ],
        )
        .await?;
        Ok(())
    }

    async fn count_views(&self, app: AppId, user: UserId) -> Result<u64, Failure> {
        let row = self
            .query_one(
                "select count(*) from saved_views where user_id = $1 and app_id = $2",
                &[&uuid(user.as_bytes()), &uuid(app.as_bytes())],
            )
            .await?;
        Ok(count_to_u64(row.try_get(0)?))
    }

    async fn insert_view(&self, view: &SavedView) -> Result<(), Failure> {
        let row = SavedViewRow::write(view);
        let values = placeholders(7);
        self.execute(
            &format!("insert into saved_views ({VIEW_COLUMNS}) values ({values})"),
            &[
                &uuid(&row.view_id),
                &uuid(&row.user_id),
                &uuid(&row.app_id),
                &row.name,
                &row.page,
                &row.query,
                &row.created_at,
            ],
        )
        .await?;
        Ok(())
    }

    async fn count_open_shares(&self, app: AppId, at: Timestamp) -> Result<u64, Failure> {
        let row = self
            .query_one(
                "select count(*) from share_links
                 where app_id = $1 and revoked_at is null and expires_at > $2",
                &[&uuid(app.as_bytes()), &at.as_millis()],
            )
            .await?;
        Ok(count_to_u64(row.try_get(0)?))
    }

    async fn insert_share(&self, new: &NewShareLink) -> Result<(), Failure> {
        let row = ShareLinkRow::write(&new.share);
        let values = placeholders(11);
        self.execute(
            &format!("insert into share_links (digest, {SHARE_COLUMNS}) values ({values})"),
            &[
                &new.digest.as_bytes().as_slice(),
                &uuid(&row.share_id),
                &uuid(&row.organization_id),
                &uuid(&row.app_id),
                &row.environment,
                &row.name,
                &row.query,
                &uuid(&row.created_by),
                &row.created_at,
                &row.expires_at,
                &row.revoked_at,
            ],
        )
        .await?;
        Ok(())
    }

    async fn close_share(
        &self,
        app: AppId,
        share: ShareId,
        at: Timestamp,
    ) -> Result<bool, Failure> {
        let closed = self
            .execute_counting(
                "update share_links set revoked_at = $3
                 where app_id = $1 and share_id = $2 and revoked_at is null",
                &[
                    &uuid(app.as_bytes()),
                    &uuid(share.as_bytes()),
                    &at.as_millis(),
                ],
            )
            .await?;
        Ok(closed > 0)
    }
}

#[async_trait]
impl Views for PostgresStore {
    async fn save_view(
        &self,
        caller: &Authorized<AnalyticsRead>,
        view: SavedView,
    ) -> StoreResult<()> {
        let organization = caller.organization_of(view.app)?;
        self.write("save_view", async move |tx| {
            save_view(tx, organization, &view).await
        })
        .await
    }

    async fn views(
        &self,
        caller: &Authorized<AnalyticsRead>,
        app: AppId,
        user: UserId,
    ) -> StoreResult<Vec<SavedView>> {
        let organization = caller.organization_of(app)?;
        self.read("views", async move |tx| {
            require_app(tx, organization, app, AppLockMode::Reading).await?;
            let sql = format!(
                "select {VIEW_COLUMNS} from saved_views
                 where user_id = $1 and app_id = $2 order by name"
            );
            let ids = [&uuid(user.as_bytes()) as _, &uuid(app.as_bytes()) as _];
            let rows = tx.query(&sql, &ids).await?;
            let read = |row| Ok(read_row::<SavedViewRow>(row)?.read()?);
            rows.iter().map(read).collect()
        })
        .await
    }

    async fn delete_view(
        &self,
        caller: &Authorized<AnalyticsRead>,
        app: AppId,
        user: UserId,
        view: ViewId,
    ) -> StoreResult<()> {
        let organization = caller.organization_of(app)?;
        self.write("delete_view", async move |tx| {
            require_app(tx, organization, app, AppLockMode::Reading).await?;
            tx.execute(
                "delete from saved_views where view_id = $1 and user_id = $2 and app_id = $3",
                &[
                    &uuid(view.as_bytes()),
                    &uuid(user.as_bytes()),
                    &uuid(app.as_bytes()),
                ],
            )
            .await?;
            Ok(())
        })
        .await
    }

    async fn create_share(
        &self,
        caller: &Authorized<AppsWrite>,
        new: NewShareLink,
        origin: AuditContext,
    ) -> StoreResult<()> {
        let organization = caller.organization_of(new.share.app)?;
        self.write("create_share", async move |tx| {
            create_share(tx, organization, &new, &origin).await
        })
        .await
    }

    async fn shares(
        &self,
        caller: &Authorized<AppsRead>,
        app: AppId,
    ) -> StoreResult<Vec<ShareLink>> {
        let organization = caller.organization_of(app)?;
        self.read("shares", async move |tx| {
            require_app(tx, organization, app, AppLockMode::Reading).await?;
            let sql = format!(
                "select {SHARE_COLUMNS} from share_links
                 where app_id = $1 and revoked_at is null order by share_id desc"
            );
            let rows = tx.query(&sql, &[&uuid(app.as_bytes())]).await?;
            let read = |row| Ok(read_row::<ShareLinkRow>(row)?.read()?);
            rows.iter().map(read).collect()
        })
        .await
    }

    async fn revoke_share(
        &self,
        caller: &Authorized<AppsWrite>,
        app: AppId,
        share: ShareId,
        origin: AuditContext,
    ) -> StoreResult<()> {
        let organization = caller.organization_of(app)?;
        self.write("revoke_share", async move |tx| {
            revoke_share(tx, (organization, app), share, &origin).await
        })
        .await
    }

    async fn share(&self, digest: Digest) -> StoreResult<Option<ShareLink>> {
        self.read("share", async move |tx| {
            let sql = format!("select {SHARE_COLUMNS} from share_links where digest = $1");
            let found = tx.query_opt(&sql, &[&digest.as_bytes().as_slice()]).await?;
            let read = |row| Ok(read_row::<ShareLinkRow>(&row)?.read()?);
            found.map(read).transpose()
        })
        .await
    }
}
