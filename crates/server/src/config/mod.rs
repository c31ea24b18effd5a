//! The configuration: `config.default.toml`, under a file, under `TRIBUTARY_*` variables.
//!
//! The one place that knows the environment. Everything is read once, at start, into [`Config`]; whatever
//! is wrong is said at once, with the place to change it. The order of events is [`Config::load`]: lay the
//! layers over each other, hold each setting against its rule, read them into types, hold them against each
//! other. No message and no `Debug` shows a secret.

mod address_range;
mod checks;
mod database;
mod files;
mod layers;
mod nearest;
mod parse;
mod print;
mod problem;
mod rules;
mod sections;

pub use address_range::AddressRange;
pub use database::{DatabaseConfig, SQLITE_FILE};
pub use parse::SECRET_KEY_BYTES;
pub use problem::{ConfigError, ConfigProblem};
pub use sections::{
    GeoConfig, HttpConfig, LimitsConfig, LogConfig, LogFormat, MetricsConfig, NetworksConfig,
    PostgresConfig, RatesConfig, RetentionConfig, ServiceConfig, TokenServiceConfig,
};

pub(crate) use parse::{log_filter, secret_key};

use layers::{Layers, VARIABLE_PREFIX};
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use toml::Table;
use url::Url;

/// Every setting with its default and its explanation.
pub const DEFAULT_FILE: &str = include_str!("../../config.default.toml");

/// The configuration in force. No derived `Debug`: it holds secrets.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Where requests are taken.
    #[serde(deserialize_with = "sections::socket_address")]
    pub listen: SocketAddr,
    #[serde(deserialize_with = "sections::optional_origin")]
    base_url: Option<Url>,
    /// The folder for everything that is kept.
    pub data_dir: PathBuf,
    #[serde(deserialize_with = "sections::secret")]
    database_url: SecretString,
    /// 64 hexadecimal digits; none: the one in the data folder.
    #[serde(deserialize_with = "sections::optional_secret")]
    pub secret_key: Option<SecretString>,
    /// The proxies whose word on a client's address is believed.
    #[serde(deserialize_with = "sections::address_ranges")]
    pub trusted_proxies: Vec<AddressRange>,
    /// How long clients may take.
    pub http: HttpConfig,
    /// How much of everything.
    pub limits: LimitsConfig,
    /// What is logged, and how.
    pub log: LogConfig,
    /// Where metrics are served.
    pub metrics: MetricsConfig,
    /// How `PostgreSQL` is used.
    pub postgres: PostgresConfig,
    /// Where the networks are reached.
    pub networks: NetworksConfig,
    /// Where `AdServices` tokens are redeemed.
    pub adservices: ServiceConfig,
    /// Exchange rates.
    pub rates: RatesConfig,
    /// Countries of addresses.
    pub geo: GeoConfig,
    /// How long things are kept.
    pub retention: RetentionConfig,
    /// What is legal but risky.
    #[serde(skip)]
    warnings: Vec<String>,
    /// All of the above as TOML, without the secrets.
    #[serde(skip)]
    redacted_toml: String,
}

impl Config {
    /// Reads the configuration, or says everything that is wrong with it.
    pub fn load(
        file: Option<&Path>,
        environment: impl Iterator<Item = (String, String)>,
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
        problems.extend(rules::check(&layers));
        if !problems.is_empty() {
            return Err(ConfigError { problems });
        }
        let mut config = Self::from_table(layers.table()).map_err(|path| ConfigError {
            // The rules and the types disagree. What serde says may repeat the value, so it is not shown.
            problems: vec![ConfigProblem::new(
                layers.location(&path),
                "has a value that cannot be used",
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

    /// From a table, or the path of the setting that cannot be read.
    fn from_table(table: Table) -> Result<Self, String> {
        serde_path_to_error::deserialize(table).map_err(|error| error.path().to_string())
    }

    /// Where the data is.
    pub fn database(&self) -> DatabaseConfig {
        DatabaseConfig::parse(self.database_url.expose_secret(), &self.data_dir)
            .expect("`rules` let nothing else through")
    }

    /// The folder of the database, where it is neither there nor made with the data folder. It is not made
    /// for itself: a folder that is missing is more likely a typing error, or a disk that is not mounted.
    pub fn missing_database_folder(&self) -> Option<PathBuf> {
        let DatabaseConfig::Sqlite(file) = self.database() else {
            return None;
        };
        let folder = file.parent().filter(|path| !path.as_os_str().is_empty())?;
        // Only to compare: `./data` and `data` are the same folder.
        let whole = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let is_made = whole(&self.data_dir).starts_with(whole(folder));
        (!is_made && !folder.exists()).then(|| folder.to_owned())
    }

    /// The address that was set, where one was.
    pub fn configured_base_url(&self) -> Option<&Url> {
        self.base_url.as_ref()
    }

    /// As [`Self::base_url`], unless the port is only known to a server that runs: nothing that is reached
    /// by it can be said then.
    pub fn stable_base_url(&self) -> Option<String> {
        (self.base_url.is_some() || self.listen.port() != 0).then(|| self.base_url())
    }

    /// How the outside reaches this server, without a slash at the end.
    pub fn base_url(&self) -> String {
        self.base_url_at(self.listen)
    }

    /// As [`Self::base_url`], for a server that was told to listen on port 0 and knows its port by now.
    pub fn base_url_at(&self, bound: SocketAddr) -> String {
        self.base_url.as_ref().map_or_else(
            || format!("http://{bound}"),
            |url| url.origin().ascii_serialization(),
        )
    }

    /// Whether an address is that of a proxy whose word on a client's address is believed.
    pub fn is_trusted_proxy(&self, peer: std::net::IpAddr) -> bool {
        self.trusted_proxies
            .iter()
            .any(|range| range.contains(peer))
    }

    /// What is legal but risky about this configuration, for the operator.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// The settings in force as TOML, with their origins and without their secrets.
    pub fn to_toml(&self) -> String {
        self.redacted_toml.clone()
    }

    /// Every service that credentials or tokens are sent to, by its setting.
    pub fn services(&self) -> [(&'static str, &Url); 6] {
        let networks = &self.networks;
        [
            ("networks.network_a.base_url", &networks.network_a.base_url),
            ("networks.network_b.base_url", &networks.network_b.base_url),
            (
                "networks.network_b.token_url",
                &networks.network_b.token_url,
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

/// The `TRIBUTARY_*` variables of this process, for [`Config::load`].
///
/// Not `std::env::vars`, which panics when anybody's variable is not UTF-8.
#[expect(
    clippy::disallowed_methods,
    reason = "the one place that reads the environment"
)]
pub fn environment() -> impl Iterator<Item = (String, String)> {
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
    toml::from_str(DEFAULT_FILE).expect("the default file is TOML; a test reads it")
}

fn read_file(file: &Path) -> Result<Table, ConfigProblem> {
    let place = file.display().to_string();
    let text = std::fs::read_to_string(file)
        .map_err(|error| ConfigProblem::new(&place, format!("cannot be read: {error}")))?;
    toml::from_str(&text).map_err(|error| {
        // `Display` quotes the line, which may hold a secret; `message` does not.
        let before = error
            .span()
            .and_then(|span| text.get(..span.start))
            .unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let message = error.message().replace('\n', ", ");
        ConfigProblem::new(
            format!("{place}, line {line},"),
            format!("is not TOML: {message}"),
        )
    })
}

#[cfg(test)]
mod tests;
