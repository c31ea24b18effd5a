//! `tributary admin domain …` and `tributary admin store-id …`: the operator decides which app owns a
//! name.

use super::admin::find_organization;
use super::print_line;
use tributary_domain::access::{Actor, Authorized};
use tributary_domain::app::App;
use tributary_domain::ownership::store_id::StoreIdProof;
use tributary_domain::runtime::Runtime;
use tributary_domain::vocabulary::id::{AppId, OrganizationId};
use tributary_domain::vocabulary::page::{Limit, PageRequest};
use tributary_domain::vocabulary::web_url::HostName;
use tributary_store::Store;

/// Decides that an App Store id belongs to an organization's app.
pub(super) async fn assign_store_id(
    store: &dyn Store,
    runtime: &Runtime,
    id: &str,
    organization: Option<&str>,
) -> anyhow::Result<()> {
    let organization = find_organization(store, organization).await?;
    let is_claim = |app: &&App| app.ios.app_store_id.as_deref() == Some(id);
    let claims = find_apps(store, organization, is_claim).await?;
    let Some(app) = claims.first() else {
        anyhow::bail!(
            "no app of this organization has this App Store id; set ios.appStoreId of the app first"
        );
    };
    let origin = runtime.origin(Actor::Operator, None, None);
    let proof = StoreIdProof::Operator;
    store.prove_store_id(*app, id, proof, origin).await?;
    print_line(format!("{app} now gets the postbacks of this id."));
    Ok(())
}

/// Marks the link domain of an organization's app as verified.
pub(super) async fn verify_domain(
    store: &dyn Store,
    runtime: &Runtime,
    domain: HostName,
    organization: Option<&str>,
) -> anyhow::Result<()> {
    let organization = find_organization(store, organization).await?;
    let is_claim = |app: &&App| app.claimed_link_domain().ok() == Some(&domain);
    let claims = find_apps(store, organization, is_claim).await?;
    let app = match claims.as_slice() {
        [only] => *only,
        [] => anyhow::bail!(
            "no app of this organization has this link domain; set linkDomain of the app first"
        ),
        _ => anyhow::bail!(
            "several apps of this organization have this link domain; remove it from all but one"
        ),
    };
    set_verified(store, runtime, (organization, app), domain, true).await?;
    print_line(format!("{app} now owns the domain."));
    Ok(())
}

/// Returns the organization's apps that fulfil a condition.
async fn find_apps(
    store: &dyn Store,
    organization: OrganizationId,
    is_wanted: impl Fn(&&App) -> bool,
) -> anyhow::Result<Vec<AppId>> {
    let caller = Authorized::operator(organization);
    let (mut claims, mut before) = (Vec::new(), None);
    loop {
        let limit = Limit::DEFAULT;
        let page = store.apps(&caller, true, PageRequest { limit, before });
        let page = page.await?;
        before = page.items.last().map(|app| *app.id.as_bytes());
        claims.extend(page.items.iter().filter(&is_wanted).map(|app| app.id));
        if !page.has_more {
            return Ok(claims);
        }
    }
}

/// Takes a verified domain from its app.
pub(super) async fn release_domain(
    store: &dyn Store,
    runtime: &Runtime,
    domain: HostName,
) -> anyhow::Result<()> {
    let owners = store.apps_for_host(Some(domain.clone())).await?;
    let Some(owner) = owners.first() else {
        anyhow::bail!("no app has verified this domain");
    };
    let of = (owner.organization, owner.id);
    set_verified(store, runtime, of, domain, false).await?;
    print_line(format!("{} no longer owns the domain.", owner.id));
    Ok(())
}

async fn set_verified(
    store: &dyn Store,
    runtime: &Runtime,
    (organization, app): (OrganizationId, AppId),
    domain: HostName,
    is_verified: bool,
) -> anyhow::Result<()> {
    let (caller, origin) = (
        Authorized::operator(organization),
        runtime.origin(Actor::Operator, None, None),
    );
    store
        .set_link_domain_verified(&caller, app, domain, is_verified, origin)
        .await?;
    Ok(())
}
