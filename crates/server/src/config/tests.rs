//! Tests for the whole configuration: default file, precedence and error messages.

use super::layers::variable;
use super::*;
use rstest::rstest;
use std::iter;
use std::time::Duration;
use toml::Value;

fn load(file: &str, variables: &[(&str, &str)]) -> Result<Config, ConfigError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tributary.toml");
    std::fs::write(&path, file).unwrap();
    let variables: Vec<(String, String)> = variables
        .iter()
        .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()))
        .collect();
    Config::load(Some(&path), variables.into_iter())
}

fn error_text(file: &str, variables: &[(&str, &str)]) -> String {
    load(file, variables).expect_err("an error").to_string()
}

fn without(table: &Table, path: &[&str]) -> Table {
    let mut table = table.clone();
    if let [key] = path {
        table.remove(*key);
    } else if let Some(Value::Table(section)) = table.get_mut(path[0]) {
        *section = without(section, &path[1..]);
    }
    table
}

#[test]
fn the_default_file_and_the_types_have_the_same_settings() {
    // Unknown keys are rejected, so every key in the file is read …
    assert!(Config::from_table(defaults()).is_ok());
    // … and every field must be in the file.
    for setting in Layers::defaults(defaults()).settings {
        let path: Vec<&str> = setting.path.split('.').collect();
        let incomplete = without(&defaults(), &path);
        assert!(
            Config::from_table(incomplete).is_err(),
            "{} is not read",
            setting.path
        );
    }
}

#[test]
fn the_types_reject_unknown_keys() {
    let mut sections: Vec<String> = vec![String::new()];
    for setting in Layers::defaults(defaults()).settings {
        sections.extend(
            setting
                .path
                .match_indices('.')
                .map(|(dot, _)| setting.path[..=dot].to_owned()),
        );
    }
    for section in sections {
        let mut layers = Layers::defaults(defaults());
        layers.settings.push(layers::Setting {
            path: format!("{section}surprise"),
            value: Value::Boolean(true),
            source: layers::SettingSource::Default,
        });
        assert!(
            Config::from_table(layers.table()).is_err(),
            "[{section}] accepts unknown keys"
        );
    }
}

#[test]
fn every_setting_has_a_comment_above_it() {
    let lines: Vec<&str> = DEFAULT_FILE.lines().collect();
    for (index, line) in lines.iter().enumerate() {
        let is_setting = line.contains(" = ") && !line.starts_with('#');
        assert!(
            !is_setting || lines[index - 1].starts_with("# "),
            "{line} has no comment"
        );
        assert!(line.chars().count() <= 110, "{line} is too wide");
    }
}

#[test]
fn the_handbook_lists_every_setting() {
    let handbook = include_str!("../../../../docs/OPERATIONS.md");
    for setting in Layers::defaults(defaults()).settings {
        let name = format!("`{}`", setting.path);
        assert!(handbook.contains(&name), "{name} is missing");
    }
}

#[test]
fn roles_from_the_command_line_override_the_setting() {
    let environment = [
        ("TRIBUTARY_DATABASE_URL", "postgres://h/d"),
        ("TRIBUTARY_SECRET_KEY", &"ab".repeat(32)),
        ("TRIBUTARY_ROLES", "accept"),
    ]
    .map(|(name, text)| (name.to_owned(), text.to_owned()));
    let roles = NodeRoles::parse(["report", "forward"]);
    let config = Config::load_with(None, environment.into_iter(), roles).unwrap();
    assert_eq!(config.roles.to_string(), "forward,report");
    let printed = config.to_toml();
    let line = printed.lines().find(|line| line.starts_with("roles = "));
    assert_eq!(line, Some("roles = [\"forward\", \"report\"]  # --roles"));
}

#[test]
fn the_defaults_are_as_documented() {
    let config = Config::load(None, iter::empty()).unwrap();
    assert_eq!(config.roles, NodeRoles::ALL);
    assert_eq!(config.listen.to_string(), "127.0.0.1:8080");
    assert_eq!(config.base_url(), "http://127.0.0.1:8080");
    assert!(
        matches!(config.database(), DatabaseConfig::Sqlite(path) if path == Path::new("./data/tributary.db"))
    );
    assert!(config.secret_key.is_none() && config.trusted_proxies.is_empty());
    assert_eq!(
        (
            config.http.header_timeout.as_secs(),
            config.http.request_timeout.as_secs()
        ),
        (90, 30)
    );
    assert_eq!(
        (
            config.http.body_timeout.as_secs(),
            config.http.drain.as_secs()
        ),
        (20, 30)
    );
    assert_eq!(config.limits.requests_per_second_per_key, 10_000);
    assert_eq!(config.limits.requests_per_second_per_address, 10_000);
    assert_eq!(
        config.limits.failed_authentications_per_minute_per_address,
        60
    );
    assert_eq!(config.limits.connections, 10_000);
    assert_eq!(config.limits.connections_per_address, 1_000);
    let limits = &config.limits;
    let reports = [
        limits.reports,
        limits.reports_per_organization,
        limits.reports_per_key,
    ];
    assert_eq!(reports, [4, 2, 1]);
    assert_eq!((limits.exports, limits.exports_per_organization), (8, 2));
    assert_eq!(limits.report_timeout.as_secs(), 10);
    assert_eq!(limits.export_idle.as_secs(), 30);
    assert_eq!(config.limits.unverified_writes_per_day, 2_000);
    assert_eq!(config.limits.unverified_writes_per_day_per_address, 200);
    assert_eq!(
        (config.log.format, config.log.level.as_str()),
        (LogFormat::Text, "info")
    );
    assert!(config.metrics.listen.is_none() && config.geo.mmdb.is_none());
    assert!(config.geo.relay_ranges.is_none() && config.geo.country_header.is_none());
    let month = Duration::from_hours(30 * 24);
    assert_eq!(config.retention.click_addresses, month);
    assert_eq!(config.retention.clicks, month);
    assert_eq!(
        (config.postgres.connections, config.postgres.statement_cache),
        (10, true)
    );
    assert_eq!(config.postgres.connect_timeout.as_secs(), 5);
    assert_eq!(config.postgres.statement_timeout.as_secs(), 10);
    assert!(!config.networks.allow_private_addresses && !config.webhooks.allow_private_addresses);
    assert!(!config.single_sign_on.allow_private_addresses);
    assert!(!config.metrics.on_public_port);
    assert_eq!(
        config.services().map(|(_, url)| url.as_str()),
        [
            "https://graph.facebook.com/",
            "https://datamanager.googleapis.com/",
            "https://oauth2.googleapis.com/token",
            "https://googleads.googleapis.com/",
            "https://business-api.tiktok.com/",
            "https://bzr.openai.com/",
            "https://api-adservices.apple.com/",
        ]
    );
    assert_eq!(
        config.rates.url.unwrap().as_str(),
        "https://www.ecb.europa.eu/stats/eurofxref/eurofxref-daily.xml"
    );
    assert_eq!(
        config.rates.second_url.unwrap().as_str(),
        "https://cdn.jsdelivr.net/npm/@fawazahmed0/currency-api@latest/v1/currencies/usd.json"
    );
}

#[test]
fn the_environment_overrides_the_file_which_overrides_the_defaults() {
    let file = "[limits]\nconnections = 7\nrequests_per_second_per_key = 8\n";
    let config = load(
        file,
        &[("TRIBUTARY_LIMITS__CONNECTIONS", " 9 "), ("OTHER", "x")],
    )
    .unwrap();
    assert_eq!(config.limits.connections, 9);
    assert_eq!(config.limits.requests_per_second_per_key, 8);
    assert_eq!(config.limits.requests_per_second_per_address, 10_000);
}

#[test]
fn variables_are_parsed_by_the_type_of_the_setting() {
    let config = load(
        "",
        &[
            (
                "TRIBUTARY_NETWORKS__NETWORK_A__BASE_URL",
                "http://127.0.0.1:9000/a",
            ),
            ("TRIBUTARY_NETWORKS__ALLOW_PRIVATE_ADDRESSES", "true"),
            ("TRIBUTARY_TRUSTED_PROXIES", "10.0.0.5, fd00::/8"),
            ("TRIBUTARY_BASE_URL", "https://Links.Example.com:443/"),
            ("TRIBUTARY_POSTGRES__STATEMENT_CACHE", "false"),
        ],
    )
    .unwrap();
    assert_eq!(
        config.networks.network_a.base_url.as_str(),
        "http://127.0.0.1:9000/a"
    );
    assert!(config.networks.allow_private_addresses && !config.postgres.statement_cache);
    assert!(
        config.is_trusted_proxy("10.0.0.5".parse().unwrap())
            && config.is_trusted_proxy("fd00::1".parse().unwrap())
    );
    assert!(!config.is_trusted_proxy("10.0.0.6".parse().unwrap()));
    assert_eq!(config.base_url(), "https://links.example.com");
}

#[rstest]
#[case::file_typo("[limit]\nconnections = 1", &[], "`limit` in ", "did you mean `limits`?")]
#[case::file_key(
    "[http]\ndrain_secs = 1", &[],
    "`http.drain_secs` in ", "mean `http.drain_seconds`?"
)]
#[case::file_kind("[limits]\nconnections = \"9\"", &[], "`limits.connections` in ", "an integer")]
#[case::file_float("[limits]\nconnections = 9.5", &[], "`limits.connections` in ", "an integer")]
#[case::file_list("trusted_proxies = [1]", &[], "`trusted_proxies` in ", "a list of strings")]
#[case::section_as_value("http = 3", &[], "`http` in ", "write [http]")]
#[case::value_as_section("[listen]\nport = 3", &[], "`listen` in ", "must be a string")]
#[case::not_toml("\nlisten = ", &[], "tributary.toml, line 2,", "is not TOML")]
#[case::variable_typo(
    "", &[("TRIBUTARY_LISTN", "x")],
    "TRIBUTARY_LISTN ", "mean TRIBUTARY_LISTEN?"
)]
#[case::one_underscore(
    "", &[("TRIBUTARY_LIMITS_CONNECTIONS", "1")],
    "TRIBUTARY_LIMITS_CONNECTIONS ", "mean TRIBUTARY_LIMITS__CONNECTIONS?"
)]
#[case::lower_case("", &[("TRIBUTARY_listen", "x")], "TRIBUTARY_listen ", "is not a known setting")]
#[case::variable_number(
    "", &[("TRIBUTARY_LIMITS__CONNECTIONS", "many")],
    "CONNECTIONS ", "an integer"
)]
#[case::variable_flag(
    "", &[("TRIBUTARY_NETWORKS__ALLOW_PRIVATE_ADDRESSES", "yes")], "ADDRESSES ", "true or false"
)]
#[case::second_proxy(
    "trusted_proxies = [\"::1\", \"x\"]", &[],
    "`trusted_proxies` in ", "(entry 2)"
)]
#[case::variable_that_spoils_the_file(
    "listen = \"127.0.0.1:1\"", &[("TRIBUTARY_LISTEN", "x")],
    "TRIBUTARY_LISTEN ", "an address and a port"
)]
fn errors_name_the_location_and_what_is_expected(
    #[case] file: &str,
    #[case] variables: &[(&str, &str)],
    #[case] location: &str,
    #[case] expected: &str,
) {
    let error = load(file, variables).expect_err("an error");
    assert_eq!(error.problems.len(), 1, "{error}");
    let text = error.to_string();
    assert!(text.contains(location) && text.contains(expected), "{text}");
}

#[test]
fn reports_all_errors_at_once() {
    let file = "listen = \"x\"\nbase_url = 3\nport = 1\n[log]\nformat = \"xml\"\n";
    let text = error_text(
        file,
        &[
            ("TRIBUTARY_LIMITS__CONNECTIONS", "0"),
            ("TRIBUTARY_PORT", "1"),
        ],
    );
    for part in [
        "`listen`",
        "`base_url`",
        "`port`",
        "`log.format`",
        "__CONNECTIONS",
        "TRIBUTARY_PORT",
    ] {
        assert!(text.contains(part), "{part} is missing in {text}");
    }
}

#[test]
fn names_a_missing_file() {
    let error =
        Config::load(Some(Path::new("/nowhere/t.toml")), iter::empty()).expect_err("an error");
    assert!(
        error.to_string().contains("/nowhere/t.toml cannot be read"),
        "{error}"
    );
}

#[test]
fn errors_never_repeat_a_value() {
    let canary = "canary-5f1d";
    for setting in Layers::defaults(defaults()).settings {
        for text in [
            canary.to_owned(),
            format!("https://me:{canary}@example.com/#"),
        ] {
            if let Err(error) = load("", &[(&variable(&setting.path), &text)]) {
                assert!(!error.to_string().contains(canary), "{error}");
            }
            let file = format!("{} = \"{text}\"", setting.path);
            if let Err(error) = load(&file, &[]) {
                assert!(!error.to_string().contains(canary), "{error}");
            }
            let unterminated = format!("{} = \"{text}", setting.path);
            assert!(!error_text(&unterminated, &[]).contains(canary));
        }
    }
}

#[rstest]
#[case("TRIBUTARY_SERVICE_HOST", "10.96.0.1", true)]
#[case("TRIBUTARY_SERVICE_PORT", "8080", true)]
#[case("TRIBUTARY_SERVICE_PORT_HTTP", "8080", true)]
#[case("TRIBUTARY_PORT", "tcp://10.96.0.1:8080", true)]
#[case("TRIBUTARY_PORT_8080_TCP", "tcp://10.96.0.1:8080", true)]
#[case("TRIBUTARY_PORT_8080_TCP_ADDR", "10.96.0.1", true)]
#[case("TRIBUTARY_METRICS_SERVICE_HOST", "10.96.0.1", true)]
#[case("TRIBUTARY_PORT", "8080", false)]
#[case("TRIBUTARY_PORT_8080", "x", false)]
#[case("TRIBUTARY_HTTP__SERVICE_PORT", "8080", false)]
fn ignores_kubernetes_service_links(#[case] name: &str, #[case] text: &str, #[case] ignored: bool) {
    assert_eq!(load("", &[(name, text)]).is_ok(), ignored);
}

#[test]
fn fills_in_the_bound_port() {
    let config = load("listen = \"127.0.0.1:0\"", &[]).unwrap();
    assert_eq!(
        config.base_url_at("127.0.0.1:4711".parse().unwrap()),
        "http://127.0.0.1:4711"
    );
}
