//! Command-line values and the domain values that they map to.
//!
//! The domain crate does not depend on clap, so its choices are repeated here for the help texts.
//! The compiler checks that every domain value has its counterpart here.

use clap::ValueEnum;
use tributary_domain::access::key_limits::parse_address_range;
use tributary_domain::access::person::{Email, Role};
use tributary_domain::access::{Environment, Permission};
use tributary_domain::app::parse_app_store_id;
use tributary_domain::node_role::NodeRoles;
use tributary_domain::vocabulary::address_range::AddressRange;
use tributary_domain::vocabulary::fault::Problem;
use tributary_domain::vocabulary::id::{AppId, DeliveryId, KeyId, LinkId};
use tributary_domain::vocabulary::text::Name;
use tributary_domain::vocabulary::time::{Timestamp, parse_moment};
use tributary_domain::vocabulary::web_url::HostName;
use url::Url;

/// Command-line form of [`Permission`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PermissionArgument {
    /// Read and write everything.
    Full,
    /// Read everything.
    #[value(alias = "read_only")]
    ReadOnly,
    /// Read analytics and stats.
    Analytics,
}

impl From<PermissionArgument> for Permission {
    fn from(typed: PermissionArgument) -> Self {
        match typed {
            PermissionArgument::Full => Self::Full,
            PermissionArgument::ReadOnly => Self::ReadOnly,
            PermissionArgument::Analytics => Self::Analytics,
        }
    }
}

/// Command-line form of [`Environment`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum EnvironmentArgument {
    /// Live data.
    Live,
    /// Test data.
    Test,
}

impl From<EnvironmentArgument> for Environment {
    fn from(typed: EnvironmentArgument) -> Self {
        match typed {
            EnvironmentArgument::Live => Self::Live,
            EnvironmentArgument::Test => Self::Test,
        }
    }
}

/// Command-line form of [`Role`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RoleArgument {
    /// Manage everything, including members.
    Owner,
    /// Manage everything except members.
    Admin,
    /// View everything.
    Analyst,
    /// View reports.
    Viewer,
}

impl From<RoleArgument> for Role {
    fn from(typed: RoleArgument) -> Self {
        match typed {
            RoleArgument::Owner => Self::Owner,
            RoleArgument::Admin => Self::Admin,
            RoleArgument::Analyst => Self::Analyst,
            RoleArgument::Viewer => Self::Viewer,
        }
    }
}

pub(super) fn name(text: &str) -> Result<Name, String> {
    Name::parse(text).map_err(message_of)
}

pub(super) fn email(text: &str) -> Result<Email, String> {
    Email::parse(text).map_err(message_of)
}

pub(super) fn key_id(text: &str) -> Result<KeyId, String> {
    KeyId::parse(text)
        .map_err(|_| "a key id starts with key_; see `tributary admin key list`".into())
}

pub(super) fn address_range(text: &str) -> Result<AddressRange, String> {
    parse_address_range(text).map_err(message_of)
}

/// Parses a day, which stands for its begin in UTC, or a time.
pub(super) fn moment(text: &str) -> Result<Timestamp, String> {
    parse_moment(&format!("{text}T00:00:00Z"))
        .or_else(|_| parse_moment(text))
        .map_err(|_| "name a day such as 2027-01-31, or a time such as 2027-01-31T12:00:00Z".into())
}

pub(super) fn app_id(text: &str) -> Result<AppId, String> {
    AppId::parse(text).map_err(|_| "an app id starts with app_; see `tributary apps`".into())
}

pub(super) fn link_id(text: &str) -> Result<LinkId, String> {
    LinkId::parse(text).map_err(|_| "a link id starts with lnk_; see `tributary links`".into())
}

pub(super) fn delivery_id(text: &str) -> Result<DeliveryId, String> {
    DeliveryId::parse(text)
        .map_err(|_| "a delivery id starts with dlv_; see `tributary deliveries`".into())
}

/// Parses the address of a server. A key belongs in a variable or a file: other users can see the
/// arguments of a process.
pub(crate) fn server_url(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).ok();
    let url = url.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    let url = url.ok_or("name an address such as https://links.example.com")?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err("leave out the user name and password".into());
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err("leave out the part after `?` or `#`".into());
    }
    Ok(url)
}

pub(super) fn store_id(text: &str) -> Result<String, String> {
    parse_app_store_id(text).map_err(message_of)
}

pub(super) fn host_name(text: &str) -> Result<HostName, String> {
    HostName::parse(text).map_err(message_of)
}

pub(super) fn roles(text: &str) -> Result<NodeRoles, String> {
    NodeRoles::parse(text.split(','))
        .ok_or_else(|| "name one or more of the roles accept, forward and report".into())
}

fn message_of(problem: Problem) -> String {
    problem.message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_its_begin_in_utc() {
        assert_eq!(moment("2027-01-31"), moment("2027-01-31T01:00:00+01:00"));
        assert!(moment("31.1.2027").is_err());
    }

    #[test]
    fn a_server_is_an_address_without_secrets() {
        for text in [
            "https://links.example.com",
            "http://[::1]:8080",
            "https://example.com/t/",
        ] {
            assert!(server_url(text).is_ok(), "{text}");
        }
        for text in [
            "links.example.com",
            "localhost:8080",
            "ftp://example.com",
            "https://me:secret@example.com",
            "https://example.com/?key=secret",
            "https://example.com/#a",
        ] {
            let message = server_url(text).unwrap_err();
            assert!(!message.contains("secret"), "{message}");
        }
    }

    #[test]
    fn every_domain_value_has_an_argument() {
        let permissions: Vec<Permission> = PermissionArgument::value_variants()
            .iter()
            .map(|typed| (*typed).into())
            .collect();
        assert_eq!(permissions, Permission::ALL);
        let roles: Vec<Role> = RoleArgument::value_variants()
            .iter()
            .map(|typed| (*typed).into())
            .collect();
        assert_eq!(roles, Role::ALL);
    }

    #[test]
    fn arguments_use_the_domain_names() {
        for typed in PermissionArgument::value_variants() {
            let value = typed.to_possible_value().unwrap();
            assert_eq!(
                Permission::parse(value.get_name()),
                Some(Permission::from(*typed))
            );
        }
        for typed in EnvironmentArgument::value_variants() {
            let value = typed.to_possible_value().unwrap();
            assert_eq!(
                Environment::parse(value.get_name()),
                Some(Environment::from(*typed))
            );
        }
        for typed in RoleArgument::value_variants() {
            let value = typed.to_possible_value().unwrap();
            assert_eq!(Role::parse(value.get_name()), Some(Role::from(*typed)));
        }
    }
}
