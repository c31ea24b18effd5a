//! Saved views of reports, and links that share one.

use crate::tables::Tables;
use tributary_domain::audit::{Action, AuditContext};
use tributary_domain::report::view::{SavedView, admit_share, admit_view};
use tributary_domain::vocabulary::id::{AppId, OrganizationId, ShareId};
use tributary_store::NewShareLink;
use tributary_store::records::audit_row;

/// Saves a view. Replaces the user's view with the same name.
pub async fn save_view<T: Tables>(
    tables: &T,
    organization: OrganizationId,
    view: &SavedView,
) -> Result<(), T::Failure> {
    tables.require_app(organization, view.app).await?;
    tables.remove_view_named(view).await?;
    admit_view(tables.count_views(view.app, view.user).await?)?;
    tables.insert_view(view).await
}

/// Creates a link.
pub async fn create_share<T: Tables>(
    tables: &T,
    organization: OrganizationId,
    new: &NewShareLink,
    origin: &AuditContext,
) -> Result<(), T::Failure> {
    let app = new.share.app;
    tables.require_app(organization, app).await?;
    admit_share(tables.count_open_shares(app, origin.at).await?)?;
    tables.insert_share(new).await?;
    let action = Action::ShareLinkCreated;
    let row = audit_row(organization, origin, action, Some(app), new.share.id, &[]);
    tables.insert_audit(&row).await
}

/// Revokes a link.
pub async fn revoke_share<T: Tables>(
    tables: &T,
    (organization, app): (OrganizationId, AppId),
    share: ShareId,
    origin: &AuditContext,
) -> Result<(), T::Failure> {
    tables.require_app(organization, app).await?;
    if !tables.close_share(app, share, origin.at).await? {
        return Ok(());
    }
    let action = Action::ShareLinkRevoked;
    let row = audit_row(organization, origin, action, Some(app), share, &[]);
    tables.insert_audit(&row).await
}
