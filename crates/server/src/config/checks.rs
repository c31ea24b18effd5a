//! Checks settings against each other: contradictions and risky combinations.

use super::layers::Layers;
use super::problem::ConfigProblem;
use super::{Config, files};
use crate::public_address::is_public;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use tributary_domain::node_role::NodeRoles;
use url::{Host, Url};

/// How long proxies usually keep idle connections to backends.
const PROXY_KEEP_ALIVE: Duration = Duration::from_secs(75);

/// Returns the settings that name a key beside another one that does.
fn repeated_keys(config: &Config, layers: &Layers) -> Vec<ConfigProblem> {
    let given = [
        (
            "secret_key",
            config.secret_key.is_some(),
            config.secret_key_file.is_some(),
            !config.secret_key_command.is_empty(),
        ),
        (
            "next_secret_key",
            config.next_secret_key.is_some(),
            config.next_secret_key_file.is_some(),
            !config.next_secret_key_command.is_empty(),
        ),
    ];
    let mut problems = Vec::new();
    for (name, value, file, command) in given {
        if [value, file, command].into_iter().filter(|&it| it).count() > 1 {
            problems.push(ConfigProblem::new(
                layers.location(name),
                format!(
                    "is given more than once: set one of {name}, {name}_file and {name}_command"
                ),
            ));
        }
    }
    problems
}

/// Returns settings that contradict each other.
pub(super) fn contradictions(config: &Config, layers: &Layers) -> Vec<ConfigProblem> {
    let mut problems = Vec::new();
    let is_postgres = config.database().is_postgres();
    problems.extend(repeated_keys(config, layers));
    if is_postgres && !config.has_secret_key() {
        problems.push(ConfigProblem::new(
            layers.location("secret_key"),
            "is required with PostgreSQL, because all nodes share it: 64 hexadecimal digits, for \
             example from `openssl rand -hex 32`",
        ));
    }
    if !is_postgres && config.database_read_url.is_some() {
        problems.push(ConfigProblem::new(
            layers.location("database_read_url"),
            "needs PostgreSQL: SQLite has no standby, and its readers do not delay writes. Remove it, or \
             set database_url to postgres://…",
        ));
    }
    if is_postgres && config.postgres.statement_timeout >= config.http.request_timeout {
        problems.push(ConfigProblem::new(
            layers.location("postgres.statement_timeout_seconds"),
            "must be less than http.request_timeout_seconds, so that clients get an error response",
        ));
    }
    if !is_postgres && config.roles != NodeRoles::ALL {
        problems.push(ConfigProblem::new(
            layers.location("roles"),
            "must contain accept, forward and report with SQLite, because one process does all the \
             work; set `database_url` to a PostgreSQL database to divide it",
        ));
    }
    let (mail, tls) = (&config.mail, &config.tls);
    let pairs = [
        [
            ("mail.url", mail.url.is_some()),
            ("mail.from", mail.from.is_some()),
        ],
        [
            ("tls.certificate", tls.certificate.is_some()),
            ("tls.key", tls.key.is_some()),
        ],
    ];
    for pair in pairs {
        if let [(given, true), (missing, false)] | [(missing, false), (given, true)] = pair {
            problems.push(ConfigProblem::new(
                layers.location(missing),
                format!("is required, because {given} is set"),
            ));
        }
    }
    if tls.redirect_listen.is_some() && tls.files().is_none() {
        problems.push(ConfigProblem::new(
            layers.location("tls.redirect_listen"),
            "needs tls.certificate and tls.key: otherwise there is no https to redirect to",
        ));
    }
    if tls.files().is_some() && config.base_url().starts_with("http://") {
        problems.push(ConfigProblem::new(
            layers.location("base_url"),
            "must begin with https://, because tls.certificate is set",
        ));
    }
    let is_any_port = |address: SocketAddr| address.port() == 0;
    if config
        .metrics
        .listen
        .is_some_and(|own| own == config.listen && !is_any_port(own))
    {
        problems.push(ConfigProblem::new(
            layers.location("metrics.listen"),
            "must differ from `listen`; set metrics.on_public_port to serve /metrics on the main port",
        ));
    }
    problems
}

/// Returns warnings about a valid configuration.
pub(super) fn warnings(config: &Config, layers: &Layers) -> Vec<String> {
    [
        exposure(config),
        proxies(config),
        timeouts(config),
        outbound(config),
        files::folders(config, layers),
        files::secrets(layers),
    ]
    .concat()
}

fn exposure(config: &Config) -> Vec<String> {
    let mut warnings = Vec::new();
    let ip = config.listen.ip().to_canonical();
    if ip.is_loopback() {
        return warnings;
    }
    let base_url = config.base_url();
    if base_url.starts_with("http://") {
        warnings.push(format!(
            "`base_url` is {base_url} and `listen` is not a loopback address: keys and passwords \
             are sent unencrypted. Put a TLS proxy in front and set `base_url` to its https:// \
             address, or set `tls.certificate` and `tls.key`."
        ));
    }
    if config.base_url.is_none() && ip.is_unspecified() {
        warnings.push(format!(
            "`base_url` is not set, so links will point to {base_url}, which is not reachable. Set \
             it to the server's public address."
        ));
    }
    if config.metrics.on_public_port {
        warnings.push(
            "`metrics.on_public_port` is true and `listen` is not a loopback address: anyone who \
             can reach the server can read /metrics. Use `metrics.listen`, or block the path in \
             the proxy."
                .to_owned(),
        );
    }
    warnings
}

fn proxies(config: &Config) -> Vec<String> {
    let mut warnings = Vec::new();
    if config
        .trusted_proxies
        .iter()
        .any(super::AddressRange::is_too_wide)
    {
        warnings.push(
            "`trusted_proxies` covers a large part of the internet: clients could forge their IP \
             address. List only your own proxies."
                .to_owned(),
        );
    }
    if config.trusted_proxies.is_empty() && config.geo.country_header.is_some() {
        warnings.push(
            "`geo.country_header` is set, but `trusted_proxies` is empty: the header is ignored. \
             List your proxies in `trusted_proxies`."
                .to_owned(),
        );
    }
    let is_behind_proxy = config.tls.files().is_none();
    if config.trusted_proxies.is_empty()
        && is_behind_proxy
        && config.base_url().starts_with("https://")
    {
        warnings.push(
            "`base_url` is https, so there is a proxy in front, but `trusted_proxies` is empty: \
             all visitors appear to have the proxy's address. List the proxy in `trusted_proxies`."
                .to_owned(),
        );
    }
    warnings
}

fn timeouts(config: &Config) -> Vec<String> {
    let mut warnings = Vec::new();
    if config.http.body_timeout >= config.http.request_timeout {
        warnings.push(
            "`http.body_timeout_seconds` is not less than `http.request_timeout_seconds`: it has \
             no effect."
                .to_owned(),
        );
    }
    if !config.trusted_proxies.is_empty() && config.http.header_timeout <= PROXY_KEEP_ALIVE {
        warnings.push(
            "`http.header_timeout_seconds` is at most 75, the time that proxies usually keep idle \
             connections: a proxy that reuses a connection just closed by the server responds with \
             502."
                .to_owned(),
        );
    }
    if config.http.drain < config.http.request_timeout {
        warnings.push(
            "`http.drain_seconds` is less than `http.request_timeout_seconds`: a shutdown can cut \
             off requests before their timeout."
                .to_owned(),
        );
    }
    warnings
}

fn outbound(config: &Config) -> Vec<String> {
    let mut warnings = Vec::new();
    if config.webhooks.allow_private_addresses {
        warnings.push(
            "`webhooks.allow_private_addresses` is true: every member who may change an app can \
             send requests into your own network. Use it only if you trust all of them."
                .to_owned(),
        );
    }
    if config.single_sign_on.allow_private_addresses {
        warnings.push(
            "`single_sign_on.allow_private_addresses` is true: every owner of an organization can \
             send requests into your own network. Use it only if you trust all of them."
                .to_owned(),
        );
    }
    if config.networks.allow_private_addresses {
        warnings.push(
            "`networks.allow_private_addresses` is true: a wrong host name can send requests and \
             credentials into your own network. Use it only with a simulator."
                .to_owned(),
        );
        return warnings;
    }
    let blocked = config
        .services()
        .into_iter()
        .filter(|(_, url)| literal_address(url).is_some_and(|address| !is_public(address)))
        .map(|(setting, _)| {
            format!(
                "`{setting}` is a private address, and `networks.allow_private_addresses` is \
                 false: requests to it will be blocked."
            )
        });
    warnings.extend(blocked);
    warnings
}

fn literal_address(url: &Url) -> Option<IpAddr> {
    match url.host()? {
        Host::Ipv4(v4) => Some(v4.into()),
        Host::Ipv6(v6) => Some(v6.into()),
        Host::Domain(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn load(variables: &[(&str, &str)]) -> Result<Config, super::super::ConfigError> {
        let variables: Vec<(String, String)> = variables
            .iter()
            .map(|(name, text)| (format!("TRIBUTARY_{name}"), (*text).to_owned()))
            .collect();
        Config::load(None, variables.into_iter())
    }

    const KEY: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
    const POSTGRES: (&str, &str) = ("DATABASE_URL", "postgres://u:secret@h/d");

    #[rstest]
    #[case::postgres_without_key(&[POSTGRES], Some("secret_key"))]
    #[case::postgres_with_key(&[POSTGRES, ("SECRET_KEY", KEY)], None)]
    #[case::slow_statements(
        &[POSTGRES, ("SECRET_KEY", KEY), ("POSTGRES__STATEMENT_TIMEOUT_SECONDS", "30")],
        Some("TRIBUTARY_POSTGRES__STATEMENT_TIMEOUT_SECONDS")
    )]
    #[case::standby_of_sqlite(
        &[("DATABASE_READ_URL", "postgres://u:secret@h/d")],
        Some("TRIBUTARY_DATABASE_READ_URL")
    )]
    #[case::standby_of_postgres(
        &[POSTGRES, ("SECRET_KEY", KEY), ("DATABASE_READ_URL", "postgres://u:secret@h2/d")],
        None
    )]
    #[case::sqlite_has_no_statement_timeout(&[("HTTP__REQUEST_TIMEOUT_SECONDS", "5")], None)]
    #[case::sqlite_divided(&[("ROLES", "accept,forward")], Some("TRIBUTARY_ROLES"))]
    #[case::sqlite_whole(&[("ROLES", "report,forward,accept")], None)]
    #[case::postgres_divided(&[POSTGRES, ("SECRET_KEY", KEY), ("ROLES", "accept")], None)]
    #[case::metrics_on_the_main_port(
        &[("METRICS__LISTEN", "127.0.0.1:8080")],
        Some("TRIBUTARY_METRICS__LISTEN")
    )]
    #[case::two_free_ports(&[("LISTEN", "127.0.0.1:0"), ("METRICS__LISTEN", "127.0.0.1:0")], None)]
    fn rejects_contradictory_settings(
        #[case] variables: &[(&str, &str)],
        #[case] named: Option<&str>,
    ) {
        match (load(variables), named) {
            (Ok(_), None) => {}
            (Err(error), Some(named)) => {
                assert!(error.problems[0].location.contains(named), "{error}");
            }
            (other, _) => panic!("{:?}", other.err()),
        }
    }

    #[rstest]
    #[case::defaults(&[], &[])]
    #[case::open_to_all(
        &[("LISTEN", "0.0.0.0:8080")],
        &["unencrypted", "not reachable"]
    )]
    #[case::open_to_all_v6(
        &[("LISTEN", "[::]:8080"), ("BASE_URL", "http://links.example.com")],
        &["unencrypted"]
    )]
    #[case::metrics_open_to_all(
        &[("LISTEN", "10.0.0.1:8080"), ("METRICS__ON_PUBLIC_PORT", "true")],
        &["unencrypted", "read /metrics"]
    )]
    #[case::metrics_on_this_machine(&[("METRICS__ON_PUBLIC_PORT", "true")], &[])]
    #[case::webhooks_into_the_own_network(
        &[("WEBHOOKS__ALLOW_PRIVATE_ADDRESSES", "true")],
        &["every member who may change an app"]
    )]
    #[case::providers_in_the_own_network(
        &[("SINGLE_SIGN_ON__ALLOW_PRIVATE_ADDRESSES", "true")],
        &["every owner of an organization"]
    )]
    #[case::behind_a_proxy(
        &[
            ("LISTEN", "10.0.0.1:8080"),
            ("BASE_URL", "https://links.example.com"),
            ("METRICS__LISTEN", "127.0.0.1:9090"),
            ("TRUSTED_PROXIES", "10.0.0.2"),
        ],
        &[]
    )]
    #[case::behind_an_unnamed_proxy(
        &[("BASE_URL", "https://links.example.com")],
        &["the proxy's address"]
    )]
    #[case::country_header_without_proxies(
        &[("GEO__COUNTRY_HEADER", "CF-IPCountry")],
        &["the header is ignored"]
    )]
    #[case::country_header_with_proxies(
        &[("GEO__COUNTRY_HEADER", "CF-IPCountry"), ("TRUSTED_PROXIES", "10.0.0.2")],
        &[]
    )]
    #[case::proxies_too_wide(&[("TRUSTED_PROXIES", "0.0.0.0/0")], &["large part of the internet"])]
    #[case::simulator(
        &[
            ("NETWORKS__ALLOW_PRIVATE_ADDRESSES", "true"),
            ("NETWORKS__NETWORK_A__BASE_URL", "http://127.0.0.1:9000"),
        ],
        &["only with a simulator"]
    )]
    #[case::simulator_out_of_reach(
        &[("NETWORKS__NETWORK_A__BASE_URL", "http://127.0.0.1:9000")],
        &["`networks.network_a.base_url` is a private address"]
    )]
    #[case::body_slower_than_request(
        &[("HTTP__REQUEST_TIMEOUT_SECONDS", "20")],
        &["it has no effect"]
    )]
    #[case::stop_shorter_than_request(
        &[("HTTP__DRAIN_SECONDS", "29")],
        &["`http.drain_seconds` is less"]
    )]
    #[case::database_in_a_missing_folder(
        &[("DATABASE_URL", "sqlite:/nowhere/t.db")],
        &["TRIBUTARY_DATABASE_URL names a file in /nowhere, which does not exist"]
    )]
    #[case::database_in_the_data_folder(
        &[("DATA_DIR", "./no/data"), ("DATABASE_URL", "sqlite:no/data/other.db")],
        &[]
    )]
    #[case::database_below_the_data_folder(
        &[("DATA_DIR", "./no/data"), ("DATABASE_URL", "sqlite:no/data/sub/other.db")],
        &["names a file in no/data/sub"]
    )]
    #[case::database_here(&[("DATABASE_URL", "sqlite:t.db")], &[])]
    fn warns_about_risky_settings(#[case] variables: &[(&str, &str)], #[case] expected: &[&str]) {
        let config = load(variables).unwrap();
        let warnings = config.warnings();
        assert_eq!(warnings.len(), expected.len(), "{warnings:#?}");
        for (warning, part) in warnings.iter().zip(expected) {
            assert!(warning.contains(part), "{warning}");
        }
    }
}
