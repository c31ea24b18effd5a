//! Configuration: `config.default.toml`, overridden by a file, overridden by `TRIBUTARY_*`
//! variables.
//!
//! This is the only module that reads the environment. Everything is read once, at startup, into
//! [`Config`]. All errors are reported at once, each with the place to change. [`Config::load`]
//! overlays the layers, checks each setting against its rule, converts the settings to types, and
//! checks them against each other. No message and no `Debug` output shows a secret.

mod checks;
mod database;
mod files;
mod layers;
mod mail;
mod nearest;
mod parse;
mod print;
mod problem;
mod rules;
mod sections;
mod syslog;

pub use database::{DatabaseConfig, SQLITE_FILE};
pub use mail::{MailEncryption, MailServer};
pub use parse::SECRET_KEY_BYTES;
pub use problem::{ConfigError, ConfigProblem};
pub use sections::{
    AuditConfig, DnsConfig, GeoConfig, HttpConfig, LimitsConfig, LogConfig, LogFormat, MailConfig,
    MetricsConfig, NetworksConfig, PostgresConfig, RatesConfig, RetentionConfig, ServiceConfig,
    SingleSignOnConfig, TlsConfig, TokenServiceConfig, WebhooksConfig,
};
pub use syslog::SyslogTarget;
pub use tributary_domain::vocabulary::address_range::AddressRange;

pub(crate) use parse::{log_filter, secret_key};

use layers::{Layers, VARIABLE_PREFIX};
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use toml::Table;
use tributary_domain::node_role::NodeRoles;
use url::Url;

/// Every setting with its default and description.
pub const DEFAULT_FILE: &str = include_str!("../../config.default.toml");

/// The effective configuration. It has no derived `Debug`, because it contains secrets.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Address to listen on.
    #[serde(deserialize_with = "sections::socket_address")]
    pub listen: SocketAddr,
    #[serde(deserialize_with = "sections::optional_origin")]
    base_url: Option<Url>,
    /// Folder for all persistent data.
    pub data_dir: PathBuf,
    #[serde(deserialize_with = "sections::secret")]
    database_url: SecretString,
    /// URL of a `PostgreSQL` standby that serves reports.
    #[serde(deserialize_with = "sections::optional_secret")]
    pub database_read_url: Option<SecretString>,
    /// 64 hexadecimal digits; `None` means that the key is in the data folder's file.
    #[serde(deserialize_with = "sections::optional_secret")]
    pub secret_key: Option<SecretString>,
    /// File with the digits.
    #[serde(deserialize_with = "sections::optional_path")]
    pub secret_key_file: Option<PathBuf>,
    /// Command that prints the digits; empty if there is none.
    pub secret_key_command: Vec<String>,
    /// The next key, during a rotation.
    #[serde(deserialize_with = "sections::optional_secret")]
    pub next_secret_key: Option<SecretString>,
    /// File with the digits of the next key.
    #[serde(deserialize_with = "sections::optional_path")]
    pub next_secret_key_file: Option<PathBuf>,
    /// Command that prints the digits of the next key; empty if there is none.
    pub next_secret_key_command: Vec<String>,
    /// Proxies whose `X-Forwarded-For` is trusted.
    #[serde(deserialize_with = "sections::address_ranges")]
    pub trusted_proxies: Vec<AddressRange>,
    /// Roles of this node.
    #[serde(deserialize_with = "sections::roles")]
    pub roles: NodeRoles,
    /// TLS without a proxy.
    pub tls: TlsConfig,
    /// HTTP timeouts.
    pub http: HttpConfig,
    /// Rate and connection limits.
    pub limits: LimitsConfig,
    /// Log settings.
    pub log: LogConfig,
    /// Metrics endpoint.
    pub metrics: MetricsConfig,
    /// DNS settings.
    pub dns: DnsConfig,
    /// `PostgreSQL` settings.
    pub postgres: PostgresConfig,
    /// Endpoints of the ad networks.
    pub networks: NetworksConfig,
    /// Webhooks to URLs that tenants choose.
    pub webhooks: WebhooksConfig,
    /// Single sign-on at providers that tenants choose.
    pub single_sign_on: SingleSignOnConfig,
    /// The mail server.
    pub mail: MailConfig,
    /// Endpoint for redeeming AdServices tokens.
    pub adservices: ServiceConfig,
    /// Exchange rate sources.
    pub rates: RatesConfig,
    /// GeoIP settings.
    pub geo: GeoConfig,
    /// Streams of the audit log.
    pub audit: AuditConfig,
    /// Retention periods.
    pub retention: RetentionConfig,
    /// Warnings about valid but risky settings.
    #[serde(skip)]
    warnings: Vec<String>,
    /// All settings as TOML, without secrets.
    #[serde(skip)]
    redacted_toml: String,
}

impl Config {
    /// Loads the configuration, or returns everything that is wrong with it.
    pub fn load(
        file: Option<&Path>,
        environment: impl Iterator<Item = (String, String)>,
    ) -> Result<Self, ConfigError> {
        Self::load_with(file, environment, None)
    }

    /// Same as [`Self::load`], with the roles from the command line, which override the setting.
    pub fn load_with(
        file: Option<&Path>,
        environment: impl Iterator<Item = (String, String)>,
        roles: Option<NodeRoles>,
    ) -> Result<Self, ConfigError> {
        let mut problems = Vec::new();
        let mut layers = Layers::defaults(defaults());
        if let Some(file) = file {
            match read_file(file) {
                Ok(table) => layers.overlay_file(file, table, &mut problems),
                Err(problem) => problems.push(problem),
            }
        }
        layers.overlay_environment(environment, &mut problems);
        if let Some(roles) = roles {
            layers.overlay_roles(roles);
        }
        problems.extend(rules::check(&layers));
        if !problems.is_empty() {
            return Err(ConfigError { problems });
        }
        let mut config = Self::from_table(layers.table()).map_err(|path| ConfigError {
            // The rules and the types disagree. serde's message may repeat the value, so it is not
            // shown.
            problems: vec![ConfigProblem::new(
                layers.location(&path),
                "has an invalid value",
            )],
        })?;
        let problems = checks::contradictions(&config, &layers);
        if !problems.is_empty() {
            return Err(ConfigError { problems });
        }
        config.warnings = checks::warnings(&config, &layers);
        config.redacted_toml = print::redacted_toml(&layers);
        Ok(config)
    }

    /// Converts a table, or returns the path of the setting that failed.
    fn from_table(table: Table) -> Result<Self, String> {
        serde_path_to_error::deserialize(table).map_err(|error| error.path().to_string())
    }

    /// Returns whether the settings say where the secret key comes from. If not, it is in the data
    /// folder.
    pub fn has_secret_key(&self) -> bool {
        self.secret_key.is_some()
            || self.secret_key_file.is_some()
            || !self.secret_key_command.is_empty()
    }

    /// Returns the location of the data.
    pub fn database(&self) -> DatabaseConfig {
        DatabaseConfig::parse(self.database_url.expose_secret(), &self.data_dir)
            .expect("`rules` rejects invalid values")
    }

    /// Returns the database's folder if it does not exist and is not created together with the data
    /// folder. It is not created automatically, because a missing folder is more likely a typo or
    /// an unmounted disk.
    pub fn missing_database_folder(&self) -> Option<PathBuf> {
        let DatabaseConfig::Sqlite(file) = self.database() else {
            return None;
        };
        let folder = file.parent().filter(|path| !path.as_os_str().is_empty())?;
        // Compare absolute paths: `./data` and `data` are the same folder.
        let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let is_made = absolute(&self.data_dir).starts_with(absolute(folder));
        (!is_made && !folder.exists()).then(|| folder.to_owned())
    }

    /// Returns the configured base URL, if set.
    pub fn configured_base_url(&self) -> Option<&Url> {
        self.base_url.as_ref()
    }

    /// Same as [`Self::base_url`], but `None` if `listen` uses port 0, because only a running
    /// server knows the real port.
    pub fn stable_base_url(&self) -> Option<String> {
        (self.base_url.is_some() || self.listen.port() != 0).then(|| self.base_url())
    }

    /// Returns the public base URL, without a trailing slash.
    pub fn base_url(&self) -> String {
        self.base_url_at(self.listen)
    }

    /// Same as [`Self::base_url`], for a server whose `listen` has port 0 and that now knows its
    /// port.
    pub fn base_url_at(&self, bound: SocketAddr) -> String {
        self.base_url.as_ref().map_or_else(
            || {
                let scheme = self.tls.files().map_or("http", |_| "https");
                format!("{scheme}://{bound}")
            },
            |url| url.origin().ascii_serialization(),
        )
    }

    /// Returns whether an address belongs to a trusted proxy.
    pub fn is_trusted_proxy(&self, peer: std::net::IpAddr) -> bool {
        self.trusted_proxies
            .iter()
            .any(|range| range.contains(peer))
    }

    /// Returns warnings about valid but risky settings.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Returns the effective settings as TOML, with their sources and without secrets.
    pub fn to_toml(&self) -> String {
        self.redacted_toml.clone()
    }

    /// Returns every service that receives credentials or tokens, with its setting.
    pub fn services(&self) -> [(&'static str, &Url); 7] {
        let networks = &self.networks;
        [
            ("networks.network_a.base_url", &networks.network_a.base_url),
            ("networks.network_b.base_url", &networks.network_b.base_url),
            (
                "networks.network_b.token_url",
                &networks.network_b.token_url,
            ),
            (
                "networks.network_b.reports_url",
                &networks.network_b.reports_url,
            ),
            ("networks.network_c.base_url", &networks.network_c.base_url),
            ("networks.network_d.base_url", &networks.network_d.base_url),
            ("adservices.base_url", &self.adservices.base_url),
        ]
    }
}

impl std::fmt::Debug for Config {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.redacted_toml)
    }
}

/// Variables of the commands that read from a running server. They are not settings: a shell that
/// exports them can also start a server.
const CLIENT_VARIABLES: [&str; 2] = [SERVER_VARIABLE, API_KEY_VARIABLE];
/// Address of the server that commands read from.
pub const SERVER_VARIABLE: &str = "TRIBUTARY_SERVER";
/// Key for the API of that server.
pub const API_KEY_VARIABLE: &str = "TRIBUTARY_API_KEY";

/// Returns this process's `TRIBUTARY_*` variables, for [`Config::load`].
pub fn environment() -> impl Iterator<Item = (String, String)> {
    variables().filter(|(name, _)| !CLIENT_VARIABLES.contains(&name.as_str()))
}

/// Returns a variable of the commands that read from a running server, unless it is empty.
pub fn client_variable(name: &str) -> Option<String> {
    let found = variables().find(|(found, text)| found == name && !text.trim().is_empty());
    found.map(|(_, text)| text)
}

/// Returns this process's `TRIBUTARY_*` variables.
///
/// Does not use `std::env::vars`, which panics if any variable is not UTF-8.
#[expect(
    clippy::disallowed_methods,
    reason = "only this function reads the environment"
)]
fn variables() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os()
        .map(|(name, text)| {
            (
                name.to_string_lossy().into_owned(),
                text.to_string_lossy().into_owned(),
            )
        })
        .filter(|(name, _)| name.starts_with(VARIABLE_PREFIX))
}

fn defaults() -> Table {
    toml::from_str(DEFAULT_FILE).expect("the default file is valid TOML; a test checks it")
}

fn read_file(file: &Path) -> Result<Table, ConfigProblem> {
    let location = file.display().to_string();
    let text = std::fs::read_to_string(file)
        .map_err(|error| ConfigProblem::new(&location, format!("cannot be read: {error}")))?;
    toml::from_str(&text).map_err(|error| {
        // `Display` quotes the line, which may contain a secret; `message` does not.
        let before = error
            .span()
            .and_then(|span| text.get(..span.start))
            .unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let message = error.message().replace('\n', ", ");
        ConfigProblem::new(
            format!("{location}, line {line},"),
            format!("is not TOML: {message}"),
        )
    })
}

#[cfg(test)]
mod tests;
