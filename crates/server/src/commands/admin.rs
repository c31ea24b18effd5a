//! `tributary admin …`: manages organizations, users, API keys and domains on the server's machine.
//! The server may be running, because the database serialises the writes.

use super::ownership::{assign_store_id, release_domain, verify_domain};
use super::print_line;
use crate::cli::{
    AdminCommand, CreateKey, CreateUser, DomainCommand, KeyCommand, OrganizationCommand,
    StoreIdCommand, UserCommand,
};
use crate::config::Config;
use crate::{first_run, system, wiring};
use anyhow::Context as _;
use std::time::Duration;
use tributary_domain::access::Actor;
use tributary_domain::access::key::{ApiKey, KeyKind};
use tributary_domain::refusal::Refusal;
use tributary_domain::runtime::Runtime;
use tributary_domain::vocabulary::id::{KeyId, OrganizationId};
use tributary_domain::vocabulary::text::Name;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::{NewKey, Organization, Store};

/// Runs an `admin` command.
pub async fn run(config: &Config, command: AdminCommand) -> anyhow::Result<()> {
    let (store, _keyring) = wiring::open_existing(config).await?;
    let runtime = system::runtime();
    let done = execute(
        &*store,
        &runtime,
        config.stable_base_url().as_deref(),
        command,
    )
    .await;
    store.close().await;
    done
}

async fn execute(
    store: &dyn Store,
    runtime: &Runtime,
    base_url: Option<&str>,
    command: AdminCommand,
) -> anyhow::Result<()> {
    match command {
        AdminCommand::Organization(OrganizationCommand::Create { name }) => {
            create_organization(store, runtime, name).await
        }
        AdminCommand::Organization(OrganizationCommand::List) => list_organizations(store).await,
        AdminCommand::User(UserCommand::Create(user)) => {
            create_user(store, runtime, base_url, user).await
        }
        AdminCommand::Key(KeyCommand::Create(key)) => create_key(store, runtime, key).await,
        AdminCommand::Key(KeyCommand::List { organization }) => {
            list_keys(store, runtime, organization.as_deref()).await
        }
        AdminCommand::Key(KeyCommand::Revoke { id }) => revoke_key(store, runtime, id).await,
        AdminCommand::Domain(DomainCommand::Verify {
            domain,
            organization,
        }) => verify_domain(store, runtime, domain, organization.as_deref()).await,
        AdminCommand::Domain(DomainCommand::Release { domain }) => {
            release_domain(store, runtime, domain).await
        }
        AdminCommand::StoreId(StoreIdCommand::Assign { id, organization }) => {
            assign_store_id(store, runtime, &id, organization.as_deref()).await
        }
    }
}

async fn create_organization(
    store: &dyn Store,
    runtime: &Runtime,
    name: Name,
) -> anyhow::Result<()> {
    let taken = store
        .organizations()
        .await?
        .into_iter()
        .any(|one| one.name == name);
    if taken {
        anyhow::bail!("an organization with this name already exists; choose another name");
    }
    let at = runtime.now();
    let id = OrganizationId::new(at, runtime.random_bytes());
    let organization = Organization {
        id,
        name,
        created_at: at,
    };
    let origin = runtime.origin(Actor::Operator, None, None);
    store.create_organization(organization, origin).await?;
    print_line(id.to_string());
    Ok(())
}

async fn list_organizations(store: &dyn Store) -> anyhow::Result<()> {
    for organization in store.organizations().await? {
        print_line(format!(
            "{}  {}",
            organization.id,
            organization.name.as_str()
        ));
    }
    Ok(())
}

/// Same as [`find_organization`], for commands that create something: an empty database gets its
/// first organization. If a name was given, nothing is created, because the first organization
/// would have a different name.
async fn find_or_create_organization(
    store: &dyn Store,
    runtime: &Runtime,
    name: Option<&str>,
) -> anyhow::Result<OrganizationId> {
    if name.is_none() {
        first_run::create_first_organization(store, runtime).await?;
    }
    find_organization(store, name).await
}

/// Returns the named organization, or the only organization if no name was given.
pub(super) async fn find_organization(
    store: &dyn Store,
    name: Option<&str>,
) -> anyhow::Result<OrganizationId> {
    let organizations = store.organizations().await?;
    match (name, organizations.as_slice()) {
        (None, [only]) => Ok(only.id),
        (None, []) => anyhow::bail!(
            "there is no organization yet; start the server once, or run `tributary admin \
             organization create NAME`"
        ),
        (None, _) => anyhow::bail!(
            "there are several organizations; choose one with --organization NAME (see `tributary \
             admin organization list`)"
        ),
        (Some(name), _) => {
            let is_meant =
                |one: &&Organization| one.name.as_str() == name || one.id.to_string() == name;
            let found = organizations.iter().find(is_meant);
            Ok(found.ok_or(Refusal::OrganizationNotFound)?.id)
        }
    }
}

async fn create_user(
    store: &dyn Store,
    runtime: &Runtime,
    base_url: Option<&str>,
    user: CreateUser,
) -> anyhow::Result<()> {
    let base_url = base_url.context(
        "cannot build the link, because `listen` uses port 0: set base_url (TRIBUTARY_BASE_URL) to \
         the address of the server",
    )?;
    let organization =
        find_or_create_organization(store, runtime, user.organization.as_deref()).await?;
    let accounts = store.users_by_email(&user.email).await?;
    if accounts
        .iter()
        .any(|(it, _)| it.organization == organization)
    {
        return Err(Refusal::EmailTaken.into());
    }
    let (role, email, actor) = (user.role.into(), Some(user.email), Actor::Operator);
    let link =
        first_run::issue_setup_link(store, runtime, base_url, organization, role, email, actor)
            .await?;
    print_line(link);
    Ok(())
}

async fn create_key(store: &dyn Store, runtime: &Runtime, key: CreateKey) -> anyhow::Result<()> {
    let organization =
        find_or_create_organization(store, runtime, key.organization.as_deref()).await?;
    let environment = key.environment.into();
    let text = runtime.new_key(KeyKind::Private, environment);
    let at = runtime.now();
    let days = |days: u32| Duration::from_hours(u64::from(days) * 24);
    let record = ApiKey {
        id: KeyId::new(at, runtime.random_bytes()),
        organization,
        name: key.name.map_or_else(
            || "Command line".to_owned(),
            |name| name.as_str().to_owned(),
        ),
        permission: key.permission.into(),
        environment,
        hint: text.hint().to_owned(),
        created_at: at,
        expires_at: key.expires_in_days.map(|count| at.plus(days(count))),
        revoked_at: None,
        last_used_at: None,
    };
    let new = NewKey {
        key: record,
        digest: text.digest(),
    };
    store
        .create_key(new, runtime.origin(Actor::Operator, None, None))
        .await?;
    print_line(text.reveal());
    Ok(())
}

async fn list_keys(
    store: &dyn Store,
    runtime: &Runtime,
    organization: Option<&str>,
) -> anyhow::Result<()> {
    let organization = find_organization(store, organization).await?;
    let now = runtime.now();
    for key in store.keys(organization).await? {
        let state = match (key.revoked_at, key.is_valid(now)) {
            (Some(_), _) => "revoked",
            (None, true) => "valid",
            (None, false) => "expired",
        };
        print_line(format!(
            "{}  …{}  {:9}  {:4}  {:7}  last used {}  {}",
            key.id,
            key.hint,
            key.permission.as_str(),
            key.environment.as_str(),
            state,
            key.last_used_at
                .map_or_else(|| "never".to_owned(), format_time),
            key.name,
        ));
    }
    Ok(())
}

async fn revoke_key(store: &dyn Store, runtime: &Runtime, id: KeyId) -> anyhow::Result<()> {
    let key = store
        .revoke_key(id, runtime.origin(Actor::Operator, None, None))
        .await?;
    let since = key.revoked_at.map_or_else(String::new, format_time);
    print_line(format!("{id} was revoked at {since}."));
    Ok(())
}

/// Formats a time for the terminal.
fn format_time(at: Timestamp) -> String {
    jiff::Timestamp::from_millisecond(at.as_millis())
        .map_or_else(|_| "an unknown time".to_owned(), |at| format!("{at:.0}"))
}
