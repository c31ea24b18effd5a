//! `tributary admin …`: organizations, people and keys, from the machine itself. Works beside a running
//! server, since the database sorts out who writes when.

use super::print_line;
use crate::cli::{
    AdminCommand, CreateKey, CreateUser, KeyCommand, OrganizationCommand, UserCommand,
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

/// Carries a command out.
pub async fn run(config: &Config, command: AdminCommand) -> anyhow::Result<()> {
    let (store, _keyring) = wiring::open_existing(config).await?;
    let source = system::runtime();
    let done = execute(
        &*store,
        &source,
        config.stable_base_url().as_deref(),
        command,
    )
    .await;
    store.close().await;
    done
}

async fn execute(
    store: &dyn Store,
    source: &Runtime,
    base_url: Option<&str>,
    command: AdminCommand,
) -> anyhow::Result<()> {
    match command {
        AdminCommand::Organization(OrganizationCommand::Create { name }) => {
            create_organization(store, source, name).await
        }
        AdminCommand::Organization(OrganizationCommand::List) => list_organizations(store).await,
        AdminCommand::User(UserCommand::Create(user)) => {
            create_user(store, source, base_url, user).await
        }
        AdminCommand::Key(KeyCommand::Create(key)) => create_key(store, source, key).await,
        AdminCommand::Key(KeyCommand::List { organization }) => {
            list_keys(store, source, organization.as_deref()).await
        }
        AdminCommand::Key(KeyCommand::Revoke { id }) => revoke_key(store, source, id).await,
    }
}

async fn create_organization(
    store: &dyn Store,
    source: &Runtime,
    name: Name,
) -> anyhow::Result<()> {
    let taken = store
        .organizations()
        .await?
        .into_iter()
        .any(|one| one.name == name);
    if taken {
        anyhow::bail!("there is an organization of this name already; choose another one");
    }
    let at = source.now();
    let id = OrganizationId::new(at, source.random_bytes());
    let organization = Organization {
        id,
        name,
        created_at: at,
    };
    let origin = source.origin(Actor::Operator, None, None);
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

/// As [`choose`], for what is made: in an empty database the first organization is made for it. Not when
/// one is named, since that would be another.
async fn find_or_create_organization(
    store: &dyn Store,
    source: &Runtime,
    name: Option<&str>,
) -> anyhow::Result<OrganizationId> {
    if name.is_none() {
        first_run::create_first_organization(store, source).await?;
    }
    find_organization(store, name).await
}

/// The organization that is meant: the one named, or the only one.
async fn find_organization(
    store: &dyn Store,
    name: Option<&str>,
) -> anyhow::Result<OrganizationId> {
    let organizations = store.organizations().await?;
    match (name, organizations.as_slice()) {
        (None, [only]) => Ok(only.id),
        (None, []) => anyhow::bail!(
            "there is no organization yet; the first start of the server makes one, and so does \
             `tributary admin organization create NAME`"
        ),
        (None, _) => anyhow::bail!(
            "there are several organizations; say which one with --organization NAME \
             (`tributary admin organization list` shows them)"
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
    source: &Runtime,
    base_url: Option<&str>,
    user: CreateUser,
) -> anyhow::Result<()> {
    let base_url = base_url.context(
        "the link would lead nowhere, since `listen` leaves the port open: set base_url \
         (TRIBUTARY_BASE_URL) to the address of the server",
    )?;
    if store.user_by_email(&user.email).await?.is_some() {
        return Err(Refusal::EmailTaken.into());
    }
    let organization =
        find_or_create_organization(store, source, user.organization.as_deref()).await?;
    let (role, email, actor) = (user.role.into(), Some(user.email), Actor::Operator);
    let link =
        first_run::issue_setup_link(store, source, base_url, organization, role, email, actor)
            .await?;
    print_line(link);
    Ok(())
}

async fn create_key(store: &dyn Store, source: &Runtime, key: CreateKey) -> anyhow::Result<()> {
    let organization =
        find_or_create_organization(store, source, key.organization.as_deref()).await?;
    let environment = key.environment.into();
    let text = source.new_key(KeyKind::Private, environment);
    let at = source.now();
    let days = |days: u32| Duration::from_hours(u64::from(days) * 24);
    let record = ApiKey {
        id: KeyId::new(at, source.random_bytes()),
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
        .create_key(new, source.origin(Actor::Operator, None, None))
        .await?;
    print_line(text.reveal());
    Ok(())
}

async fn list_keys(
    store: &dyn Store,
    source: &Runtime,
    organization: Option<&str>,
) -> anyhow::Result<()> {
    let organization = find_organization(store, organization).await?;
    let now = source.now();
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

async fn revoke_key(store: &dyn Store, source: &Runtime, id: KeyId) -> anyhow::Result<()> {
    let key = store
        .revoke_key(id, source.origin(Actor::Operator, None, None))
        .await?;
    let since = key.revoked_at.map_or_else(String::new, format_time);
    print_line(format!("{id} is revoked since {since}."));
    Ok(())
}

/// A time for people.
fn format_time(at: Timestamp) -> String {
    jiff::Timestamp::from_millisecond(at.as_millis())
        .map_or_else(|_| "an unknown time".to_owned(), |at| format!("{at:.0}"))
}
