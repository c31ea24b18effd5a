//! First start on an empty database: creates an organization and a setup link for its owner.

use tributary_domain::access::Actor;
use tributary_domain::access::Environment;
use tributary_domain::access::key::KeyKind;
use tributary_domain::access::person::{Email, Role, SETUP_LINK_LIFETIME, SetupLink, setup_url};
use tributary_domain::runtime::Runtime;
use tributary_domain::vocabulary::id::OrganizationId;
use tributary_domain::vocabulary::text::Name;
use tributary_store::{NewSetupLink, Organization, Store, StoreResult};

/// Name of the first organization, until an owner renames it.
const FIRST_ORGANIZATION: &str = "My organization";

/// Creates the first organization if there is none.
pub async fn create_first_organization(store: &dyn Store, runtime: &Runtime) -> StoreResult<()> {
    let at = runtime.now();
    let organization = Organization {
        id: OrganizationId::new(at, runtime.random_bytes()),
        name: Name::parse(FIRST_ORGANIZATION).expect("a valid constant"),
        created_at: at,
    };
    let is_new = store
        .create_first_organization(organization, runtime.origin(Actor::Service, None, None))
        .await?;
    if is_new {
        tracing::info!("created the first organization");
    }
    Ok(())
}

/// Returns a new setup link for the owner on every start until an account exists. Only the
/// machine's owner can read the server's output, so printing the link is safe.
pub async fn prepare_setup_link(
    store: &dyn Store,
    runtime: &Runtime,
    base_url: &str,
) -> StoreResult<Option<String>> {
    create_first_organization(store, runtime).await?;
    let Some(organization) = store.organization_awaiting_its_owner().await? else {
        return Ok(None);
    };
    let link = issue_setup_link(
        store,
        runtime,
        base_url,
        organization.id,
        Role::Owner,
        None,
        Actor::Service,
    );
    link.await.map(Some)
}

/// Creates a one-time link for setting up an account.
pub async fn issue_setup_link(
    store: &dyn Store,
    runtime: &Runtime,
    base_url: &str,
    organization: OrganizationId,
    role: Role,
    email: Option<Email>,
    actor: Actor,
) -> StoreResult<String> {
    let token = runtime.new_key(KeyKind::Setup, Environment::Live);
    let expires_at = runtime.now().plus(SETUP_LINK_LIFETIME);
    let link = SetupLink {
        organization,
        role,
        email,
        expires_at,
        used_at: None,
        created_by: None,
    };
    let new = NewSetupLink {
        link,
        digest: token.digest(),
    };
    store
        .create_setup_link(new, runtime.origin(actor, None, None))
        .await?;
    Ok(setup_url(base_url, &token))
}
