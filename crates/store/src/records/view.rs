//! Rows of saved views and of links that share one.

use super::columns::row;
use crate::StoreError;
use tributary_domain::access::Environment;
use tributary_domain::report::view::{ReportPage, SavedView, ShareLink};
use tributary_domain::vocabulary::id::{AppId, OrganizationId, ShareId, UserId, ViewId};
use tributary_domain::vocabulary::text::Name;
use tributary_domain::vocabulary::time::Timestamp;

row! {
    /// A row of `saved_views`.
    #[derive(Debug, Clone)]
    #[expect(missing_docs, reason = "columns")]
    pub struct SavedViewRow {
        pub view_id: [u8; 16],
        pub user_id: [u8; 16],
        pub app_id: [u8; 16],
        pub name: String,
        pub page: String,
        pub query: String,
        pub created_at: i64,
    }
}

impl SavedViewRow {
    /// Converts a view to columns.
    pub fn write(view: &SavedView) -> Self {
        Self {
            view_id: *view.id.as_bytes(),
            user_id: *view.user.as_bytes(),
            app_id: *view.app.as_bytes(),
            name: view.name.as_str().to_owned(),
            page: view.page.as_str().to_owned(),
            query: view.query.clone(),
            created_at: view.created_at.as_millis(),
        }
    }

    /// Reads the view.
    pub fn read(self) -> Result<SavedView, StoreError> {
        let id = ViewId::from_bytes(self.view_id);
        let corrupt = |column| StoreError::corrupt("saved_views", column, id);
        Ok(SavedView {
            id,
            app: AppId::from_bytes(self.app_id),
            user: UserId::from_bytes(self.user_id),
            name: Name::parse(&self.name).map_err(|_| corrupt("name"))?,
            page: ReportPage::parse(&self.page).ok_or_else(|| corrupt("page"))?,
            query: self.query,
            created_at: Timestamp::from_millis(self.created_at),
        })
    }
}

row! {
    /// A row of `share_links`, without the digest.
    #[derive(Debug, Clone)]
    #[expect(missing_docs, reason = "columns")]
    pub struct ShareLinkRow {
        pub share_id: [u8; 16],
        pub organization_id: [u8; 16],
        pub app_id: [u8; 16],
        pub environment: String,
        pub name: String,
        pub query: String,
        pub created_by: [u8; 16],
        pub created_at: i64,
        pub expires_at: i64,
        pub revoked_at: Option<i64>,
    }
}

impl ShareLinkRow {
    /// Converts a link to columns.
    pub fn write(share: &ShareLink) -> Self {
        Self {
            share_id: *share.id.as_bytes(),
            organization_id: *share.organization.as_bytes(),
            app_id: *share.app.as_bytes(),
            environment: share.environment.as_str().to_owned(),
            name: share.name.as_str().to_owned(),
            query: share.query.clone(),
            created_by: *share.created_by.as_bytes(),
            created_at: share.created_at.as_millis(),
            expires_at: share.expires_at.as_millis(),
            revoked_at: share.revoked_at.map(Timestamp::as_millis),
        }
    }

    /// Reads the link.
    pub fn read(self) -> Result<ShareLink, StoreError> {
        let id = ShareId::from_bytes(self.share_id);
        let corrupt = |column| StoreError::corrupt("share_links", column, id);
        Ok(ShareLink {
            id,
            organization: OrganizationId::from_bytes(self.organization_id),
            app: AppId::from_bytes(self.app_id),
            environment: Environment::parse(&self.environment)
                .ok_or_else(|| corrupt("environment"))?,
            name: Name::parse(&self.name).map_err(|_| corrupt("name"))?,
            query: self.query,
            created_by: UserId::from_bytes(self.created_by),
            created_at: Timestamp::from_millis(self.created_at),
            expires_at: Timestamp::from_millis(self.expires_at),
            revoked_at: self.revoked_at.map(Timestamp::from_millis),
        })
    }
}
