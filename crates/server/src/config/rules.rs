//! Rules for single settings. `checks.rs` contains the rules for combinations.

use super::layers::{Layers, Setting};
use super::problem::ConfigProblem;
use super::{AddressRange, DatabaseConfig, SyslogTarget};
use super::{mail, parse};
use std::path::Path;
use toml::Value;
use tributary_domain::app::{CLICK_WINDOW_HOURS, PROBABILISTIC_WINDOW_HOURS};

/// One hour. Longer timeouts are almost certainly a mistake.
const SECONDS_MAX: i64 = 3_600;
/// More requests than any machine can serve. 0 disables the limit.
const RATE_MAX: i64 = 1_000_000;
/// More than a kernel allows for one process.
const CONNECTIONS_MAX: i64 = 1_000_000;
/// More reports than any machine can run at once.
const SLOTS_MAX: i64 = 1_000;
/// Far more connections than a `PostgreSQL` server handles well.
const POSTGRES_CONNECTIONS_MAX: i64 = 1_000;

/// Deliveries must be kept for as long as a network accepts their events.
const DELIVERY_DAYS_MIN: i64 = 7;
/// Postbacks must be kept for as long as their conversion value may be ambiguous.
const POSTBACK_DAYS_MIN: i64 = 48;
/// The body of a notification must be kept for as long as the notification waits for its device.
const NOTIFICATION_DAYS_MIN: i64 = 30;
/// Clicks must be kept for as long as an install can be attributed to them.
const CLICK_DAYS_MIN: i64 = *CLICK_WINDOW_HOURS.end() / HOURS_PER_DAY;
/// Click addresses must be kept for as long as probabilistic matching uses them.
const CLICK_ADDRESS_DAYS_MIN: i64 = *PROBABILISTIC_WINDOW_HOURS.end() / HOURS_PER_DAY;
/// The same as the default retention for attribution data.
const CLICK_DAYS_MAX: i64 = 400;
/// Keeps at least a month of changes.
const AUDIT_DAYS_MIN: i64 = 30;
/// Ten years, a usual retention period for accounting records.
const AUDIT_DAYS_MAX: i64 = 3_650;
/// The longest time for which a network accepts conversions for a click. Until then, the device's
/// ids are needed.
const ATTRIBUTION_DAYS_MIN: i64 = 90;
/// Ten years.
const ATTRIBUTION_DAYS_MAX: i64 = 3_650;
const HOURS_PER_DAY: i64 = 24;

/// Allowed values for a setting.
enum Rule {
    Any,
    NotEmpty,
    Integer(i64, i64),
    OneOf(&'static [&'static str]),
    Text(fn(&str) -> Result<(), &'static str>),
    /// Same as `Text`, but empty means "not set".
    TextOrEmpty(fn(&str) -> Result<(), &'static str>),
    Each(fn(&str) -> Result<(), &'static str>),
    List(fn(&[&str]) -> Result<(), &'static str>),
}

const SECONDS: Rule = Rule::Integer(1, SECONDS_MAX);
/// 0 allows no lag at all.
const STANDBY_LAG: Rule = Rule::Integer(0, SECONDS_MAX);
const RATE: Rule = Rule::Integer(0, RATE_MAX);
const SLOTS: Rule = Rule::Integer(1, SLOTS_MAX);
const SERVICE_URL: Rule = Rule::Text(|text| parse::service_url(text).map(drop));

/// Rules for all settings.
const RULES: &[(&str, Rule)] = &[
    (
        "listen",
        Rule::Text(|text| parse::socket_address(text).map(drop)),
    ),
    (
        "base_url",
        Rule::TextOrEmpty(|text| parse::origin(text).map(drop)),
    ),
    ("data_dir", Rule::NotEmpty),
    (
        "database_url",
        Rule::Text(|text| DatabaseConfig::parse(text, Path::new("")).map(drop)),
    ),
    (
        "database_read_url",
        Rule::TextOrEmpty(DatabaseConfig::check_read_url),
    ),
    (
        "secret_key",
        Rule::TextOrEmpty(|text| parse::secret_key(text).map(drop)),
    ),
    ("secret_key_file", Rule::Any),
    ("secret_key_command", Rule::List(parse::command)),
    (
        "next_secret_key",
        Rule::TextOrEmpty(|text| parse::secret_key(text).map(drop)),
    ),
    ("next_secret_key_file", Rule::Any),
    ("next_secret_key_command", Rule::List(parse::command)),
    (
        "trusted_proxies",
        Rule::Each(|text| AddressRange::parse(text).map(drop)),
    ),
    ("roles", Rule::List(|names| parse::roles(names).map(drop))),
    ("tls.certificate", Rule::Any),
    ("tls.key", Rule::Any),
    (
        "tls.redirect_listen",
        Rule::TextOrEmpty(|text| parse::socket_address(text).map(drop)),
    ),
    ("http.header_timeout_seconds", SECONDS),
    ("http.request_timeout_seconds", SECONDS),
    ("http.body_timeout_seconds", SECONDS),
    ("http.drain_seconds", SECONDS),
    ("limits.requests_per_second_per_key", RATE),
    ("limits.requests_per_second_per_address", RATE),
    ("limits.failed_authentications_per_minute_per_address", RATE),
    ("limits.unverified_writes_per_day", RATE),
    ("limits.unverified_writes_per_day_per_address", RATE),
    ("limits.connections", Rule::Integer(1, CONNECTIONS_MAX)),
    (
        "limits.connections_per_address",
        Rule::Integer(0, CONNECTIONS_MAX),
    ),
    ("limits.reports", SLOTS),
    ("limits.reports_per_organization", SLOTS),
    ("limits.reports_per_key", SLOTS),
    ("limits.exports", SLOTS),
    ("limits.exports_per_organization", SLOTS),
    ("limits.report_timeout_seconds", SECONDS),
    ("limits.export_idle_seconds", SECONDS),
    ("log.format", Rule::OneOf(&["text", "json"])),
    (
        "log.level",
        Rule::Text(|text| parse::log_filter(text).map(drop)),
    ),
    (
        "metrics.listen",
        Rule::TextOrEmpty(|text| parse::socket_address(text).map(drop)),
    ),
    ("metrics.on_public_port", Rule::Any),
    (
        "dns.server",
        Rule::TextOrEmpty(|text| parse::socket_address(text).map(drop)),
    ),
    (
        "postgres.connections",
        Rule::Integer(1, POSTGRES_CONNECTIONS_MAX),
    ),
    (
        "postgres.worker_connections",
        Rule::Integer(1, POSTGRES_CONNECTIONS_MAX),
    ),
    (
        "postgres.report_connections",
        Rule::Integer(1, POSTGRES_CONNECTIONS_MAX),
    ),
    ("postgres.connect_timeout_seconds", SECONDS),
    ("postgres.statement_timeout_seconds", SECONDS),
    ("postgres.statement_cache", Rule::Any),
    ("postgres.standby_lag_max_seconds", STANDBY_LAG),
    ("networks.allow_private_addresses", Rule::Any),
    ("networks.network_a.base_url", SERVICE_URL),
    ("networks.network_b.base_url", SERVICE_URL),
    ("networks.network_b.token_url", SERVICE_URL),
    ("networks.network_b.reports_url", SERVICE_URL),
    ("networks.network_c.base_url", SERVICE_URL),
    ("networks.network_d.base_url", SERVICE_URL),
    ("webhooks.allow_private_addresses", Rule::Any),
    ("single_sign_on.allow_private_addresses", Rule::Any),
    (
        "mail.url",
        Rule::TextOrEmpty(|text| mail::MailServer::parse(text).map(drop)),
    ),
    (
        "mail.from",
        Rule::TextOrEmpty(|text| mail::sender(text).map(drop)),
    ),
    ("audit.file", Rule::Any),
    (
        "audit.syslog",
        Rule::TextOrEmpty(|text| SyslogTarget::parse(text).map(drop)),
    ),
    ("adservices.base_url", SERVICE_URL),
    (
        "rates.url",
        Rule::TextOrEmpty(|text| parse::file_url(text).map(drop)),
    ),
    (
        "rates.second_url",
        Rule::TextOrEmpty(|text| parse::file_url(text).map(drop)),
    ),
    ("geo.mmdb", Rule::Any),
    ("geo.relay_ranges", Rule::Any),
    (
        "geo.country_header",
        Rule::TextOrEmpty(|text| parse::header_name(text).map(drop)),
    ),
    (
        "retention.click_address_days",
        Rule::Integer(CLICK_ADDRESS_DAYS_MIN, CLICK_DAYS_MAX),
    ),
    (
        "retention.click_days",
        Rule::Integer(CLICK_DAYS_MIN, CLICK_DAYS_MAX),
    ),
    (
        "retention.delivery_days",
        Rule::Integer(DELIVERY_DAYS_MIN, CLICK_DAYS_MAX),
    ),
    (
        "retention.postback_days",
        Rule::Integer(POSTBACK_DAYS_MIN, CLICK_DAYS_MAX),
    ),
    (
        "retention.unclaimed_postback_days",
        Rule::Integer(1, CLICK_DAYS_MAX),
    ),
    (
        "retention.notification_days",
        Rule::Integer(NOTIFICATION_DAYS_MIN, CLICK_DAYS_MAX),
    ),
    (
        "retention.audit_days",
        Rule::Integer(AUDIT_DAYS_MIN, AUDIT_DAYS_MAX),
    ),
    (
        "retention.attribution_days",
        Rule::Integer(ATTRIBUTION_DAYS_MIN, ATTRIBUTION_DAYS_MAX),
    ),
];

impl Rule {
    fn check(&self, value: &Value) -> Result<(), String> {
        match (self, value) {
            (Self::NotEmpty, Value::String(text)) if text.is_empty() => {
                Err("must not be empty".to_owned())
            }
            (Self::Integer(least, most), Value::Integer(number))
                if !(*least..=*most).contains(number) =>
            {
                Err(format!("must be between {least} and {most}"))
            }
            (Self::OneOf(words), Value::String(text)) if !words.contains(&text.as_str()) => {
                Err(format!("must be one of: {}", words.join(", ")))
            }
            (Self::TextOrEmpty(_), Value::String(text)) if text.is_empty() => Ok(()),
            (Self::Text(read) | Self::TextOrEmpty(read), Value::String(text)) => {
                read(text).map_err(str::to_owned)
            }
            (Self::Each(read), Value::Array(items)) => {
                items.iter().enumerate().try_for_each(|(index, item)| {
                    read(item.as_str().unwrap_or_default())
                        .map_err(|expected| format!("(entry {}) {expected}", index + 1))
                })
            }
            (Self::List(read), Value::Array(items)) => {
                let texts: Vec<&str> = items.iter().filter_map(Value::as_str).collect();
                read(&texts).map_err(str::to_owned)
            }
            _ => Ok(()),
        }
    }
}

/// Returns all errors in single settings.
pub(super) fn check(layers: &Layers) -> Vec<ConfigProblem> {
    layers.settings.iter().filter_map(check_one).collect()
}

fn check_one(setting: &Setting) -> Option<ConfigProblem> {
    let (_, rule) = RULES.iter().find(|(path, _)| *path == setting.path)?;
    let message = rule.check(&setting.value).err()?;
    Some(ConfigProblem::new(setting.location(), message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, defaults};
    use rstest::rstest;

    #[test]
    fn every_setting_has_a_rule_in_the_order_of_the_default_file() {
        let layers = Layers::defaults(defaults());
        let settings: Vec<&str> = layers
            .settings
            .iter()
            .map(|setting| setting.path.as_str())
            .collect();
        let ruled: Vec<&str> = RULES.iter().map(|(path, _)| *path).collect();
        assert_eq!(settings, ruled);
    }

    #[rstest]
    #[case::rate_may_be_off("TRIBUTARY_LIMITS__REQUESTS_PER_SECOND_PER_KEY", "0", true)]
    #[case::rate_below("TRIBUTARY_LIMITS__REQUESTS_PER_SECOND_PER_KEY", "-1", false)]
    #[case::rate_at_the_limit("TRIBUTARY_LIMITS__REQUESTS_PER_SECOND_PER_KEY", "1000000", true)]
    #[case::rate_past_the_limit("TRIBUTARY_LIMITS__REQUESTS_PER_SECOND_PER_KEY", "1000001", false)]
    #[case::connections_cannot_be_off("TRIBUTARY_LIMITS__CONNECTIONS", "0", false)]
    #[case::an_address_may_open_any_number("TRIBUTARY_LIMITS__CONNECTIONS_PER_ADDRESS", "0", true)]
    #[case::reports_cannot_be_off("TRIBUTARY_LIMITS__REPORTS", "0", false)]
    #[case::exports_cannot_be_off("TRIBUTARY_LIMITS__EXPORTS_PER_ORGANIZATION", "0", false)]
    #[case::no_timeout_of_zero("TRIBUTARY_HTTP__HEADER_TIMEOUT_SECONDS", "0", false)]
    #[case::an_hour("TRIBUTARY_HTTP__HEADER_TIMEOUT_SECONDS", "3600", true)]
    #[case::more_than_an_hour("TRIBUTARY_HTTP__HEADER_TIMEOUT_SECONDS", "3601", false)]
    #[case::json("TRIBUTARY_LOG__FORMAT", "json", true)]
    #[case::xml("TRIBUTARY_LOG__FORMAT", "xml", false)]
    #[case::rates_off("TRIBUTARY_RATES__URL", "", true)]
    #[case::no_network("TRIBUTARY_NETWORKS__NETWORK_A__BASE_URL", "", false)]
    #[case::no_data_folder("TRIBUTARY_DATA_DIR", "", false)]
    #[case::no_country_header("TRIBUTARY_GEO__COUNTRY_HEADER", "", true)]
    #[case::country_header("TRIBUTARY_GEO__COUNTRY_HEADER", "CF-IPCountry", true)]
    #[case::no_header_name("TRIBUTARY_GEO__COUNTRY_HEADER", "CF IPCountry", false)]
    #[case::addresses_for_a_day("TRIBUTARY_RETENTION__CLICK_ADDRESS_DAYS", "1", true)]
    #[case::no_addresses("TRIBUTARY_RETENTION__CLICK_ADDRESS_DAYS", "0", false)]
    #[case::clicks_as_long_as_they_claim("TRIBUTARY_RETENTION__CLICK_DAYS", "30", true)]
    #[case::clicks_gone_too_soon("TRIBUTARY_RETENTION__CLICK_DAYS", "29", false)]
    #[case::clicks_as_long_as_attributions("TRIBUTARY_RETENTION__CLICK_DAYS", "400", true)]
    #[case::clicks_for_longer("TRIBUTARY_RETENTION__CLICK_DAYS", "401", false)]
    #[case::two_proxies("TRIBUTARY_TRUSTED_PROXIES", "10.0.0.5, fd00::/8", true)]
    #[case::one_of_two_proxies("TRIBUTARY_TRUSTED_PROXIES", "10.0.0.5,proxy", false)]
    #[case::every_role("TRIBUTARY_ROLES", "report, accept,forward", true)]
    #[case::no_role("TRIBUTARY_ROLES", "", false)]
    #[case::unknown_role("TRIBUTARY_ROLES", "accept,forward,report,reports", false)]
    fn checks_allowed_values(#[case] name: &str, #[case] text: &str, #[case] accepted: bool) {
        let environment = [(name.to_owned(), text.to_owned())];
        let loaded = Config::load(None, environment.into_iter());
        assert_eq!(loaded.is_ok(), accepted, "{:?}", loaded.err());
    }
}
