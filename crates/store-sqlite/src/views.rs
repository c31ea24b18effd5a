//! Saved views of reports, and links that share one.

use crate::rows::{read_row, require_app};
use crate::tables::{SqliteTables, run};
use crate::{Failure, SqliteStore};
use async_trait::async_trait;
use rusqlite::{OptionalExtension, params};
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

impl ViewTable for SqliteTables<'_> {
    async fn remove_view_named(&self, view: &SavedView) -> Result<(), Failure> {
        self.0.execute(
            "delete from saved_views where user_id = ?1 and app_id = ?2 and name = ?3",
            params![
                view.user.as_bytes(),
                view.app.as_bytes(),
                view.name.as_str()
            ],
        )?;
        Ok(())
    }

    async fn count_views(&self, app: AppId, user: UserId) -> Result<u64, Failure> {
        let sql = "select count(*) from saved_views where user_id = ?1 and app_id = ?2";
        let ids = (user.as_bytes(), app.as_bytes());
        Ok(count_to_u64(self.0.query_row(sql, ids, |row| row.get(0))?))
    }

    async fn insert_view(&self, view: &SavedView) -> Result<(), Failure> {
        let row = SavedViewRow::write(view);
        self.0.execute(
            &format!(
                "insert into saved_views ({VIEW_COLUMNS}) values (?1, ?2, ?3, ?4, ?5, ?6, ?7)"
            ),
            params![
                row.view_id,
                row.user_id,
                row.app_id,
                row.name,
                row.page,
                row.query,
                row.created_at
            ],
        )?;
        Ok(())
    }

    async fn count_open_shares(&self, app: AppId, at: Timestamp) -> Result<u64, Failure> {
        let sql = "select count(*) from share_links
                   where app_id = ?1 and revoked_at is null and expires_at > ?2";
        let key = (app.as_bytes(), at.as_millis());
        Ok(count_to_u64(self.0.query_row(sql, key, |row| row.get(0))?))
    }

    async fn insert_share(&self, new: &NewShareLink) -> Result<(), Failure> {
        let row = ShareLinkRow::write(&new.share);
        self.0.execute(
            &format!(
                "insert into share_links (digest, {SHARE_COLUMNS})
                 values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)"
            ),
            params![
                new.digest.as_bytes(),
                row.share_id,
                row.organization_id,
                row.app_id,
                row.environment,
                row.name,
                row.query,
                row.created_by,
                row.created_at,
                row.expires_at,
                row.revoked_at
            ],
        )?;
        Ok(())
    }

    async fn close_share(
        &self,
        app: AppId,
        share: ShareId,
        at: Timestamp,
    ) -> Result<bool, Failure> {
        let closed = self.0.execute(
            "update share_links set revoked_at = ?3
             where app_id = ?1 and share_id = ?2 and revoked_at is null",
            params![app.as_bytes(), share.as_bytes(), at.as_millis()],
        )?;
        Ok(closed > 0)
    }
}

#[async_trait]
impl Views for SqliteStore {
    async fn save_view(
        &self,
        caller: &Authorized<AnalyticsRead>,
        view: SavedView,
    ) -> StoreResult<()> {
        let organization = caller.organization_of(view.app)?;
        self.write("save_view", move |connection| {
            run(save_view(&SqliteTables(connection), organization, &view))
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
        self.read("views", move |connection| {
            require_app(connection, organization, app)?;
            let sql = format!(
                "select {VIEW_COLUMNS} from saved_views
                 where user_id = ?1 and app_id = ?2 order by name"
            );
            let mut found = connection.prepare_cached(&sql)?;
            let rows =
                found.query_map((user.as_bytes(), app.as_bytes()), read_row::<SavedViewRow>)?;
            rows.map(|row| Ok(row?.read()?)).collect()
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
        self.write("delete_view", move |connection| {
            require_app(connection, organization, app)?;
            connection.execute(
                "delete from saved_views where view_id = ?1 and user_id = ?2 and app_id = ?3",
                params![view.as_bytes(), user.as_bytes(), app.as_bytes()],
            )?;
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
        self.write("create_share", move |connection| {
            let tables = SqliteTables(connection);
            run(create_share(&tables, organization, &new, &origin))
        })
        .await
    }

    async fn shares(
        &self,
        caller: &Authorized<AppsRead>,
        app: AppId,
    ) -> StoreResult<Vec<ShareLink>> {
        let organization = caller.organization_of(app)?;
        self.read("shares", move |connection| {
            require_app(connection, organization, app)?;
            let sql = format!(
                "select {SHARE_COLUMNS} from share_links
                 where app_id = ?1 and revoked_at is null order by share_id desc"
            );
            let mut found = connection.prepare_cached(&sql)?;
            let rows = found.query_map([app.as_bytes()], read_row::<ShareLinkRow>)?;
            rows.map(|row| Ok(row?.read()?)).collect()
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
        self.write("revoke_share", move |connection| {
            let (tables, of) = (SqliteTables(connection), (organization, app));
            run(revoke_share(&tables, of, share, &origin))
        })
        .await
    }

    async fn share(&self, digest: Digest) -> StoreResult<Option<ShareLink>> {
        self.read("share", move |connection| {
            let sql = format!("select {SHARE_COLUMNS} from share_links where digest = ?1");
            let row = connection
                .prepare_cached(&sql)?
                .query_row([digest.as_bytes()], read_row::<ShareLinkRow>)
                .optional()?;
            Ok(row.map(ShareLinkRow::read).transpose()?)
        })
        .await
    }
}
