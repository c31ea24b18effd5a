//! Apps, their link domains and their secrets.

use super::secret_keys::admit_sealed;
use super::store_ids::claim_store_id;
use crate::day_values::learn;
use crate::tables::Tables;
use tributary_domain::app::{
    App, AppChange, AppSecret, SdkKeyRotation, SecretStep, revoke_sdk_key,
};
use tributary_domain::audit::{Action, AuditContext};
use tributary_domain::keyring::seal::SealedSecret;
use tributary_domain::refusal::Refusal;
use tributary_domain::report::cardinality_cap::ValueKind;
use tributary_domain::vocabulary::id::{AppId, OrganizationId};
use tributary_domain::vocabulary::revision::Precondition;
use tributary_domain::vocabulary::web_url::HostName;
use tributary_store::records::audit_row;

/// Stores a new app.
pub async fn create_app<T: Tables>(
    tables: &T,
    organization: OrganizationId,
    app: &App,
    secrets: &[(AppSecret, SealedSecret)],
    origin: &AuditContext,
) -> Result<(), T::Failure> {
    admit_sealed(tables, secrets.iter().map(|(_, sealed)| sealed)).await?;
    tables.insert_app(app).await?;
    claim_store_id(tables, app, None, origin.at).await?;
    claim_link_domain(tables, app).await?;
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
    let new = change.secrets.iter().filter_map(|(_, new)| new.value());
    admit_sealed(tables, new).await?;
    let current = tables.lock_managed_app(organization, app).await?;
    let changed = current.changed(change.clone(), precondition, origin.at)?;
    if changed.changes.is_empty() {
        return Ok(changed.after);
    }
    tables.write_app(&changed.after).await?;
    let previous = current.ios.app_store_id.as_deref();
    claim_store_id(tables, &changed.after, previous, origin.at).await?;
    claim_link_domain(tables, &changed.after).await?;
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
    claim_link_domain(tables, &changed.after).await?;
    let (action, changes) = (Action::AppUpdated, &changed.changes);
    let row = audit_row(organization, origin, action, Some(app), app, changes);
    tables.insert_audit(&row).await?;
    Ok(changed.after)
}

/// Replaces the current SDK key of an environment. Returns the app.
pub async fn rotate_sdk_key<T: Tables>(
    tables: &T,
    (organization, app): (OrganizationId, AppId),
    rotation: &SdkKeyRotation,
    origin: &AuditContext,
) -> Result<App, T::Failure> {
    let current = tables.lock_managed_app(organization, app).await?;
    let keys = tables.sdk_keys_of(app).await?;
    let rotated = current.with_rotated_sdk_key(&keys, rotation, origin.at)?;
    tables.end_sdk_key(app, &rotated.replaced).await?;
    for key in &rotated.forgotten {
        tables.remove_sdk_key(app, key).await?;
    }
    let (successor, environment) = (&rotation.successor, rotation.environment);
    tables.insert_sdk_key(app, successor, environment).await?;
    tables.write_app(&rotated.app).await?;
    let (action, changes) = (Action::AppUpdated, &rotated.changes);
    let row = audit_row(organization, origin, action, Some(app), app, changes);
    tables.insert_audit(&row).await?;
    Ok(rotated.app)
}

/// Ends a replaced SDK key.
pub async fn end_replaced_sdk_key<T: Tables>(
    tables: &T,
    (organization, app): (OrganizationId, AppId),
    key: &str,
    origin: &AuditContext,
) -> Result<(), T::Failure> {
    tables.lock_managed_app(organization, app).await?;
    let keys = tables.sdk_keys_of(app).await?;
    if let Some((end, change)) = revoke_sdk_key(&keys, key, origin.at)? {
        tables.end_sdk_key(app, &end).await?;
        let action = Action::AppUpdated;
        let row = audit_row(organization, origin, action, Some(app), app, &[change]);
        tables.insert_audit(&row).await?;
    }
    Ok(())
}

/// Makes the names of the app's revenue events known.
async fn learn_names<T: Tables>(tables: &T, app: &App) -> Result<(), T::Failure> {
    let names = app.revenue_events.iter().cloned();
    learn(tables, app.id, ValueKind::Name, names).await
}

/// Stores the owner of the app's verified link domain, and releases domains that the app no longer
/// has. Refused when another app owns the domain.
async fn claim_link_domain<T: Tables>(tables: &T, app: &App) -> Result<(), T::Failure> {
    let domain = app.verified_link_domain().map(HostName::as_str);
    if let Some(host) = domain
        && !tables.claim_link_domain(app.id, host).await?
    {
        return Err(Refusal::DomainTaken.into());
    }
    tables.release_link_domains(app.id, domain).await
}
