//! The first start on an empty database: an organization, and a way in for its owner.

use tributary_domain::access::Actor;
use tributary_domain::access::Environment;
use tributary_domain::access::key::KeyKind;
use tributary_domain::access::person::{Email, Role, SETUP_LINK_LIFETIME, SetupLink, setup_url};
use tributary_domain::runtime::Runtime;
use tributary_domain::vocabulary::id::OrganizationId;
use tributary_domain::vocabulary::text::Name;
use tributary_store::{NewSetupLink, Organization, Store, StoreResult};

/// What the first organization is called until somebody renames it.
const FIRST_ORGANIZATION: &str = "My organization";

/// Makes the first organization where there is none.
pub async fn create_first_organization(store: &dyn Store, source: &Runtime) -> StoreResult<()> {
    let at = source.now();
    let organization = Organization {
        id: OrganizationId::new(at, source.random_bytes()),
        name: Name::parse(FIRST_ORGANIZATION).expect("a constant that is a name"),
        created_at: at,
    };
    let founded = store
        .create_first_organization(organization, source.origin(Actor::Service, None, None))
        .await?;
    if founded {
        tracing::info!("made the first organization");
    }
    Ok(())
}

/// As long as nobody has an account, every start gives a new link for the owner: whoever can read what the
/// server prints owns the machine.
pub async fn prepare_setup_link(
    store: &dyn Store,
    source: &Runtime,
    base_url: &str,
) -> StoreResult<Option<String>> {
    create_first_organization(store, source).await?;
    let Some(organization) = store.organization_awaiting_its_owner().await? else {
        return Ok(None);
    };
    let link = issue_setup_link(
        store,
        source,
        base_url,
        organization.id,
        Role::Owner,
        None,
        Actor::Service,
    );
    link.await.map(Some)
}

/// Makes a one-time link by which a person sets up an account.
pub async fn issue_setup_link(
    store: &dyn Store,
    source: &Runtime,
    base_url: &str,
    organization: OrganizationId,
    role: Role,
    email: Option<Email>,
    actor: Actor,
) -> StoreResult<String> {
    let token = source.new_key(KeyKind::Setup, Environment::Live);
    let expires_at = source.now().plus(SETUP_LINK_LIFETIME);
    let link = SetupLink {
        organization,
        role,
        email,
        expires_at,
        used_at: None,
    };
    let new = NewSetupLink {
        link,
        digest: token.digest(),
    };
    store
        .create_setup_link(new, source.origin(actor, None, None))
        .await?;
    Ok(setup_url(base_url, &token))
}
