//! `tributary admin …`: organizations, users, API keys, domains and test data.

use super::{EnvironmentArgument, PermissionArgument, RoleArgument, arguments};
use clap::{Args, Subcommand};
use tributary_domain::access::key_management::KEY_DAYS_MAX;
use tributary_domain::access::person::Email;
use tributary_domain::vocabulary::address_range::AddressRange;
use tributary_domain::vocabulary::id::{AppId, KeyId};
use tributary_domain::vocabulary::text::Name;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_domain::vocabulary::web_url::HostName;

/// Longest life of a key, in the type that clap compares with.
const KEY_DAYS_RANGE_MAX: i64 = KEY_DAYS_MAX as i64;

/// Organizations, users, API keys, domains and test data.
#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum AdminCommand {
    /// Organizations: the tenants of this server.
    #[command(subcommand)]
    Organization(OrganizationCommand),
    /// Users who sign in to the dashboard.
    #[command(subcommand)]
    User(UserCommand),
    /// Private keys for the REST API.
    #[command(subcommand)]
    Key(KeyCommand),
    /// Link domains of apps.
    #[command(subcommand)]
    Domain(DomainCommand),
    /// App Store ids of apps.
    #[command(subcommand)]
    StoreId(StoreIdCommand),
    /// Test data of apps.
    #[command(subcommand)]
    TestData(TestDataCommand),
}

/// Test data commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Subcommand)]
pub enum TestDataCommand {
    /// Wipe the test data of an app for good.
    ///
    /// Removes everything that test keys and the test environments of billing providers recorded:
    /// devices, events, clicks, subscriptions and figures. Live data, links, keys and settings stay.
    /// Repeat it after an interruption.
    Wipe {
        /// App id (`app_…`), as the dashboard and `GET /api/v1/apps` show it.
        #[arg(long, value_name = "ID", value_parser = arguments::app_id)]
        app: AppId,
        /// Confirm that the data is removed. Without it, nothing is.
        #[arg(long)]
        yes: bool,
    },
}

/// Link domain commands.
#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum DomainCommand {
    /// Mark the link domain of an organization's app as verified, without a DNS record.
    ///
    /// For servers without DNS. Check first that the organization controls the domain: from then
    /// on, the app's links and association files are served there, and no other app can verify it.
    Verify {
        /// Domain, as set as the app's link domain.
        #[arg(value_parser = arguments::host_name)]
        domain: HostName,
        /// Organization name or id. Required if there are several.
        #[arg(long, value_name = "NAME")]
        organization: Option<String>,
    },
    /// Take a verified domain from its app, so that another app can verify it.
    Release {
        /// Domain.
        #[arg(value_parser = arguments::host_name)]
        domain: HostName,
    },
}

/// App Store id commands.
#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum StoreIdCommand {
    /// Decide that an App Store id belongs to an organization's app.
    ///
    /// For ids that several organizations claim. The app gets the postbacks of the id from then on,
    /// and those that wait for a decision. This overrides an earlier decision and Apple's
    /// notifications.
    Assign {
        /// App Store id, as set as the app's `ios.appStoreId`.
        #[arg(value_name = "ID", value_parser = arguments::store_id)]
        id: String,
        /// Organization name or id. Required if there are several.
        #[arg(long, value_name = "NAME")]
        organization: Option<String>,
    },
}

/// Organization commands.
#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum OrganizationCommand {
    /// Create an organization. Prints its id.
    Create {
        /// Display name.
        #[arg(value_parser = arguments::name)]
        name: Name,
    },
    /// List organizations.
    List,
}

/// User commands.
#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum UserCommand {
    /// Invite a user. Prints a one-time link.
    Create(CreateUser),
    /// List the people with accounts: organizations, roles, creation and last sign-in.
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Remove the passkeys, other second factors and recovery codes of a person who lost them.
    ///
    /// In all organizations. The password alone signs in again, until the person sets up another factor.
    /// An organization that requires one asks for that first. A person without a password needs a link
    /// for one: use `reset --remove-factors` instead.
    RemoveFactors {
        /// Email address of the person.
        #[arg(value_parser = arguments::email)]
        email: Email,
    },
    /// Lock a person out and print a one-time link for a new password.
    ///
    /// For people who lost their password, and for accounts that a stranger may have used. The old
    /// password, all sessions and all known browsers end at once, in all organizations. The link works
    /// once, for 24 hours, and replaces earlier ones. Passkeys and other second factors stay, because a
    /// stranger with the password does not have them.
    Reset {
        /// Email address of the person.
        #[arg(value_parser = arguments::email)]
        email: Email,
        /// Remove the passkeys and other second factors as well, for a lost or stolen device.
        #[arg(long)]
        remove_factors: bool,
        /// Send the link to the person by e-mail instead of printing it. Needs `mail.url`.
        #[arg(long)]
        mail: bool,
    },
    /// Remove a person from all organizations.
    ///
    /// Their sessions end, their API keys are revoked, their notices are paused, their open invitations
    /// are withdrawn, and links that share their reports stop working. Without `--yes`, a person who has
    /// keys, notices or invitations is not removed, and the command lists these. The audit log keeps the
    /// person's actions.
    Remove(RemoveUser),
}

/// Arguments for removing a person.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct RemoveUser {
    /// Email address of the person.
    #[arg(value_parser = arguments::email)]
    pub email: Email,
    /// Also remove the last owner of an organization. The organization and its data stay, and have no
    /// owner until you invite one.
    #[arg(long)]
    pub force: bool,
    /// Also remove a person whose keys, notices or invitations end.
    #[arg(long)]
    pub yes: bool,
}

/// Arguments for inviting a user.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct CreateUser {
    /// Email address to sign in with.
    #[arg(long, value_parser = arguments::email)]
    pub email: Email,
    /// The user's role.
    #[arg(long, value_enum, default_value_t = RoleArgument::Owner)]
    pub role: RoleArgument,
    /// Organization name or id. Required if there are several.
    #[arg(long, value_name = "NAME")]
    pub organization: Option<String>,
}

/// API key commands.
#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum KeyCommand {
    /// Create an API key. Prints only the key, which cannot be shown again.
    Create(CreateKey),
    /// List API keys with their owners, limits and last use, without the keys themselves.
    List {
        /// Organization name or id. Required if there are several.
        #[arg(long, value_name = "NAME")]
        organization: Option<String>,
    },
    /// Revoke an API key, effective immediately.
    Revoke {
        /// Key id, as shown by `admin key list`.
        #[arg(value_name = "KEY_ID", value_parser = arguments::key_id)]
        id: KeyId,
    },
}

/// Arguments for creating an API key.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct CreateKey {
    /// The key's permission.
    #[arg(long, value_enum)]
    pub permission: PermissionArgument,
    /// The key's environment: `test` keys see only test data.
    #[arg(long, value_enum, default_value_t = EnvironmentArgument::Live)]
    pub environment: EnvironmentArgument,
    /// Organization name or id. Required if there are several.
    #[arg(long, value_name = "NAME")]
    pub organization: Option<String>,
    /// The key's display name.
    #[arg(long, value_name = "TEXT", value_parser = arguments::name)]
    pub name: Option<Name>,
    /// Days until the key expires. Default: never.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=KEY_DAYS_RANGE_MAX))]
    pub expires_in_days: Option<u32>,
    /// Day (its begin in UTC) or time at which the key expires, at most ten years from now. Default:
    /// never.
    #[arg(long, value_name = "TIME", value_parser = arguments::moment,
          conflicts_with = "expires_in_days")]
    pub expires: Option<Timestamp>,
    /// App that the key may access (`app_…`); repeat it for several. Default: all apps.
    #[arg(long = "app", value_name = "ID", value_parser = arguments::app_id)]
    pub apps: Vec<AppId>,
    /// Address or range that may use the key, such as 192.0.2.0/24; repeat it for several. Default:
    /// all addresses.
    #[arg(long = "address", value_name = "RANGE", value_parser = arguments::address_range)]
    pub addresses: Vec<AddressRange>,
}
