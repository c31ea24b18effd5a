//! Apps, their instance-wide unique names, and their secrets.

use crate::day_values::learn;
use crate::tables::{Tables, UniqueName};
use tributary_domain::app::{App, AppChange, AppSecret, SecretStep};
use tributary_domain::audit::{Action, AuditContext};
use tributary_domain::keyring::seal::SealedSecret;
use tributary_domain::refusal::Refusal;
use tributary_domain::report::cardinality_cap::ValueKind;
use tributary_domain::vocabulary::id::{AppId, OrganizationId};
use tributary_domain::vocabulary::revision::Precondition;
use tributary_domain::vocabulary::web_url::HostName;
use tributary_store::CLAIMED_AT_ONCE_MAX;
use tributary_store::records::audit_row;

/// Stores a new app.
pub async fn create_app<T: Tables>(
    tables: &T,
    organization: OrganizationId,
    app: &App,
    secrets: &[(AppSecret, SealedSecret)],
    origin: &AuditContext,
) -> Result<(), T::Failure> {
    tables.insert_app(app).await?;
    claim_names(tables, app).await?;
    learn_names(tables, app).await?;
    for (secret, sealed) in secrets {
        tables
            .write_secret(app.id, *secret, sealed, origin.at)
            .await?;
    }
    let (action, changes) = (Action::AppCreated, app.creation_changes());
    let row = audit_row(organization, origin, action, Some(app.id), app.id, &changes);
    tables.insert_audit(&row).await
}

/// Changes an app. Returns the updated app.
pub async fn update_app<T: Tables>(
    tables: &T,
    (organization, app): (OrganizationId, AppId),
    change: &AppChange,
    precondition: &Precondition,
    origin: &AuditContext,
) -> Result<App, T::Failure> {
    let current = tables.lock_managed_app(organization, app).await?;
    let changed = current.changed(change.clone(), precondition, origin.at)?;
    if changed.changes.is_empty() {
        return Ok(changed.after);
    }
    tables.write_app(&changed.after).await?;
    claim_names(tables, &changed.after).await?;
    learn_names(tables, &changed.after).await?;
    for step in change.secret_steps() {
        match step {
            SecretStep::Copy { from, to } => tables.copy_secret(app, from, to, origin.at).await?,
            SecretStep::Remove(secret) => tables.remove_secret(app, secret).await?,
            SecretStep::Set(secret, sealed) => {
                tables.write_secret(app, secret, sealed, origin.at).await?;
            }
        }
    }
    let (action, changes) = (Action::AppUpdated, &changed.changes);
    let row = audit_row(organization, origin, action, Some(app), app, changes);
    tables.insert_audit(&row).await?;
    Ok(changed.after)
}

/// Marks an app's link domain as verified and claims it, or releases it to other claims. Refused if
/// another app owns the domain, or if the app's domain is no longer `host`.
pub async fn set_link_domain_verified<T: Tables>(
    tables: &T,
    (organization, app): (OrganizationId, AppId),
    host: &HostName,
    is_verified: bool,
    origin: &AuditContext,
) -> Result<App, T::Failure> {
    let current = tables.lock_managed_app(organization, app).await?;
    let changed = current.with_link_domain_verified(host, is_verified, origin.at)?;
    if changed.changes.is_empty() {
        return Ok(changed.after);
    }
    tables.write_app(&changed.after).await?;
    claim_names(tables, &changed.after).await?;
    let (action, changes) = (Action::AppUpdated, &changed.changes);
    let row = audit_row(organization, origin, action, Some(app), app, changes);
    tables.insert_audit(&row).await?;
    Ok(changed.after)
}

/// Makes the names of the app's revenue events known.
async fn learn_names<T: Tables>(tables: &T, app: &App) -> Result<(), T::Failure> {
    let names = app.revenue_events.iter().cloned();
    learn(tables, app.id, ValueKind::Name, names).await
}

/// Claims the app's unique names and releases the names it no longer uses. All names are claimed
/// first and in a fixed order, so two apps that swap names are both refused instead of deadlocking.
/// An app that claims an App Store id also gets the postbacks waiting for that id.
async fn claim_names<T: Tables>(tables: &T, app: &App) -> Result<(), T::Failure> {
    let store_id = app.ios.app_store_id.as_deref();
    let domain = app.verified_link_domain().map(HostName::as_str);
    let names = [
        (UniqueName::AppStoreId, store_id, Refusal::StoreIdTaken),
        (UniqueName::LinkDomain, domain, Refusal::DomainTaken),
    ];
    for (kind, name, taken) in &names {
        if let Some(name) = name
            && !tables.claim_name(*kind, app.id, name).await?
        {
            return Err(taken.clone().into());
        }
    }
    for (kind, name, _) in names {
        tables.release_names(kind, app.id, name).await?;
    }
    if let Some(store_id) = store_id {
        tables
            .claim_postbacks(app.id, store_id, CLAIMED_AT_ONCE_MAX)
            .await?;
    }
    Ok(())
}
