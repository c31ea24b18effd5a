//! `tributary admin …`: manages organizations, users, API keys, domains and test data on the server's
//! machine. The server may be running, because the database serialises the writes.

use super::ownership::{assign_store_id, release_domain, verify_domain};
use super::{print_line, users, wipe};
use crate::cli::{
    AdminCommand, CreateKey, DomainCommand, KeyCommand, OrganizationCommand, StoreIdCommand,
    TestDataCommand,
};
use crate::config::Config;
use crate::{first_run, system, wiring};
use std::time::Duration;
use tributary_domain::access::key::ApiKey;
use tributary_domain::access::key_limits::{
    AddressLimit, AppLimit, KEY_ADDRESSES_MAX, KEY_APPS_MAX, KeyLimits,
};
use tributary_domain::access::person::User;
use tributary_domain::access::{Actor, Authorized};
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
    let done = execute(&*store, &runtime, config, command).await;
    store.close().await;
    done
}

async fn execute(
    store: &dyn Store,
    runtime: &Runtime,
    config: &Config,
    command: AdminCommand,
) -> anyhow::Result<()> {
    match command {
        AdminCommand::Organization(OrganizationCommand::Create { name }) => {
            create_organization(store, runtime, name).await
        }
        AdminCommand::Organization(OrganizationCommand::List) => list_organizations(store).await,
        AdminCommand::User(command) => users::execute(store, runtime, config, command).await,
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
        AdminCommand::TestData(TestDataCommand::Wipe { app, yes }) => {
            wipe::wipe(store, runtime, app, yes).await
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
pub(super) async fn find_or_create_organization(
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

async fn create_key(store: &dyn Store, runtime: &Runtime, key: CreateKey) -> anyhow::Result<()> {
    let organization =
        find_or_create_organization(store, runtime, key.organization.as_deref()).await?;
    if key.apps.len() > KEY_APPS_MAX || key.addresses.len() > KEY_ADDRESSES_MAX {
        anyhow::bail!(
            "a key can be limited to at most {KEY_APPS_MAX} apps and {KEY_ADDRESSES_MAX} addresses"
        );
    }
    let name = match key.name {
        Some(name) => name.as_str().to_owned(),
        None => "Command line".to_owned(),
    };
    let (permission, environment) = (key.permission.into(), key.environment.into());
    let (record, text) = runtime.new_private_key(organization, name, permission, environment);
    let days = key.expires_in_days.map(|days| {
        let life = Duration::from_hours(u64::from(days) * 24);
        record.created_at.plus(life)
    });
    let limits = KeyLimits {
        apps: match key.apps.as_slice() {
            [] => AppLimit::All,
            apps => AppLimit::only(apps.iter().copied()),
        },
        addresses: match key.addresses.as_slice() {
            [] => AddressLimit::All,
            ranges => AddressLimit::only(ranges.iter().copied()),
        },
    };
    let record = ApiKey {
        limits,
        expires_at: days.or(key.expires),
        ..record
    };
    let new = NewKey {
        key: record,
        digest: text.digest(),
    };
    let origin = runtime.origin(Actor::Operator, None, None);
    store.create_key(new, origin).await?;
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
    let members = store.members(&Authorized::operator(organization)).await?;
    for key in store.keys(organization).await? {
        print_line(key_line(&key, &members, now));
    }
    Ok(())
}

/// Describes a key in one line. The name comes last, because it may contain spaces.
fn key_line(key: &ApiKey, members: &[User], now: Timestamp) -> String {
    let time = |at: Option<Timestamp>| at.map_or_else(|| "never".to_owned(), format_time);
    let mut words = vec![
        key.id.to_string(),
        format!("…{}", key.hint),
        format!("{:9}", key.permission.as_str()),
        format!("{:4}", key.environment.as_str()),
        format!("{:7}", key.state(now).as_str()),
        format!("owner {}", owner_of(key, members)),
        format!("last used {}", time(key.last_used_at)),
    ];
    words.extend(
        key.last_used_from
            .as_ref()
            .map(|range| format!("from {range}")),
    );
    words.extend(
        key.expires_at
            .map(|end| format!("expires {}", format_time(end))),
    );
    let apps = key.limits.apps.apps();
    words.extend(apps.map(|apps| {
        let apps: Vec<String> = apps.iter().map(ToString::to_string).collect();
        format!("apps {}", apps.join(","))
    }));
    let addresses = key.limits.addresses.ranges();
    words.extend(addresses.map(|ranges| format!("addresses {}", ranges.join(","))));
    words.push(key.name.clone());
    words.join("  ")
}

/// Returns who answers for a key: a member, or how it was created.
fn owner_of(key: &ApiKey, members: &[User]) -> String {
    let owner = key
        .owner
        .and_then(|id| members.iter().find(|one| one.id == id));
    if let Some(owner) = owner {
        return owner.email.as_str().to_owned();
    }
    match &key.created_by {
        Some(Actor::Operator) => "command line".to_owned(),
        Some(Actor::Key(id)) => id.to_string(),
        Some(Actor::User(_) | Actor::DeviceUser | Actor::Service) => "removed member".to_owned(),
        None => "unknown".to_owned(),
    }
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
pub(super) fn format_time(at: Timestamp) -> String {
    jiff::Timestamp::from_millisecond(at.as_millis())
        .map_or_else(|_| "an unknown time".to_owned(), |at| format!("{at:.0}"))
}
