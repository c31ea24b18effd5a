//! Tracking links.

use crate::day_values::learn;
use crate::tables::Tables;
use tributary_domain::audit::{Action, AuditContext};
use tributary_domain::link::{
    Link, LinkChange, check_deep_link, check_deep_links, check_slugs_claimed,
};
use tributary_domain::refusal::Refusal;
use tributary_domain::report::cardinality_cap::ValueKind;
use tributary_domain::vocabulary::id::{AppId, LinkId, OrganizationId};
use tributary_domain::vocabulary::revision::Precondition;
use tributary_domain::vocabulary::web_url::DeepLink;
use tributary_store::records::audit_row;

/// Stores a new link.
pub async fn create_link<T: Tables>(
    tables: &T,
    organization: OrganizationId,
    link: &Link,
    origin: &AuditContext,
) -> Result<(), T::Failure> {
    tables.require_app(organization, link.app).await?;
    check_scheme(tables, link, None).await?;
    tables.insert_link(link).await?;
    claim_slug(tables, link).await?;
    learn_campaign(tables, link).await?;
    let (action, changes) = (Action::LinkCreated, link.creation_changes());
    let row = audit_row(
        organization,
        origin,
        action,
        Some(link.app),
        link.id,
        &changes,
    );
    tables.insert_audit(&row).await
}

/// Stores new links. Claims the slugs last and in order, so that two such transactions cannot wait for
/// each other.
pub async fn create_links<T: Tables>(
    tables: &T,
    (organization, app): (OrganizationId, AppId),
    links: &[(Link, AuditContext)],
) -> Result<(), T::Failure> {
    tables.require_app(organization, app).await?;
    let stored = tables.app(app).await?.ok_or(Refusal::AppNotFound)?;
    let new = links.iter().map(|(link, _)| link);
    check_deep_links(new.clone(), &stored.deep_link_schemes).map_err(Refusal::Invalid)?;
    for (link, origin) in links {
        tables.insert_link(link).await?;
        learn_campaign(tables, link).await?;
        let (action, changes) = (Action::LinkCreated, link.creation_changes());
        let row = audit_row(organization, origin, action, Some(app), link.id, &changes);
        tables.insert_audit(&row).await?;
    }
    let mut by_slug: Vec<(usize, &Link)> = new.enumerate().collect();
    by_slug.sort_by_key(|(_, link)| link.slug.as_str());
    let mut taken = Vec::new();
    for (index, link) in by_slug {
        if !tables.claim_slug(link).await? {
            taken.push(index);
        }
    }
    taken.sort_unstable();
    Ok(check_slugs_claimed(&taken).map_err(Refusal::Invalid)?)
}

/// Changes a link. Returns the updated link.
pub async fn update_link<T: Tables>(
    tables: &T,
    (organization, app, link): (OrganizationId, AppId, LinkId),
    change: &LinkChange,
    precondition: &Precondition,
    origin: &AuditContext,
) -> Result<Link, T::Failure> {
    tables.require_app(organization, app).await?;
    let current = find(tables, app, link).await?;
    let changed = current.changed(change.clone(), precondition, origin.at)?;
    if changed.changes.is_empty() {
        return Ok(changed.after);
    }
    check_scheme(tables, &changed.after, current.deep_link.as_ref()).await?;
    tables.write_link(&changed.after).await?;
    claim_slug(tables, &changed.after).await?;
    learn_campaign(tables, &changed.after).await?;
    let (action, changes) = (Action::LinkUpdated, &changed.changes);
    let row = audit_row(organization, origin, action, Some(app), link, changes);
    tables.insert_audit(&row).await?;
    Ok(changed.after)
}

/// Archives a link.
pub async fn delete_link<T: Tables>(
    tables: &T,
    (organization, app, link): (OrganizationId, AppId, LinkId),
    precondition: &Precondition,
    origin: &AuditContext,
) -> Result<(), T::Failure> {
    tables.require_app(organization, app).await?;
    find(tables, app, link).await?.admit(precondition)?;
    tables.archive_link(app, link, origin.at).await?;
    let action = Action::LinkDeleted;
    let row = audit_row(organization, origin, action, Some(app), link, &[]);
    tables.insert_audit(&row).await
}

/// Refuses a new deep link whose scheme the app does not list.
async fn check_scheme<T: Tables>(
    tables: &T,
    link: &Link,
    before: Option<&DeepLink>,
) -> Result<(), T::Failure> {
    let app = tables.app(link.app).await?.ok_or(Refusal::AppNotFound)?;
    let checked = check_deep_link(link.deep_link.as_ref(), before, &app.deep_link_schemes);
    Ok(checked.map_err(Refusal::Invalid)?)
}

async fn find<T: Tables>(tables: &T, app: AppId, link: LinkId) -> Result<Link, T::Failure> {
    let found = tables.tracking_link(app, link).await?;
    Ok(found.ok_or(Refusal::LinkNotFound)?)
}

/// Makes the link's campaign known.
async fn learn_campaign<T: Tables>(tables: &T, link: &Link) -> Result<(), T::Failure> {
    let campaign = link.campaign.id.clone();
    learn(tables, link.app, ValueKind::Campaign, campaign).await
}

/// Claims the slug. A link keeps its former slugs. The app is locked and the link written first, so
/// that a transaction that holds a slug never waits for another transaction.
async fn claim_slug<T: Tables>(tables: &T, link: &Link) -> Result<(), T::Failure> {
    if tables.claim_slug(link).await? {
        Ok(())
    } else {
        Err(Refusal::SlugTaken.into())
    }
}
