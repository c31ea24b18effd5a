//! The configuration's sections as types, with one field per setting in `config.default.toml`.
//!
//! # Adding a setting
//!
//! 1. Add it to `config.default.toml`, with a comment for operators and its default.
//! 2. Add its field here (or to `Config`, if it has no section). Do not use `serde(default)`: the
//!    default file is the only place for defaults.
//! 3. Add its rule to `rules.rs`. The tests report whichever of the three is missing.

use super::{AddressRange, SyslogTarget, mail, parse};
use axum::http::HeaderName;
use secrecy::SecretString;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tributary_domain::access::admission::AdmissionLimits;
use tributary_domain::node_role::NodeRoles;
use tributary_domain::notice::MailAddress;
use tributary_store::report_slots::ReportSlots;
use url::Url;

/// TLS without a proxy.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlsConfig {
    /// File with the certificate chain.
    #[serde(deserialize_with = "optional_path")]
    pub certificate: Option<PathBuf>,
    /// File with the private key.
    #[serde(deserialize_with = "optional_path")]
    pub key: Option<PathBuf>,
    /// Address that redirects http to https.
    #[serde(deserialize_with = "optional_socket_address")]
    pub redirect_listen: Option<SocketAddr>,
}

impl TlsConfig {
    /// Returns the files of certificate and key, if TLS is on.
    pub fn files(&self) -> Option<(&Path, &Path)> {
        Some((self.certificate.as_deref()?, self.key.as_deref()?))
    }
}

/// HTTP timeouts.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HttpConfig {
    /// Timeout for request headers; also the idle timeout of a connection.
    #[serde(rename = "header_timeout_seconds", deserialize_with = "seconds")]
    pub header_timeout: Duration,
    /// Timeout for a whole request.
    #[serde(rename = "request_timeout_seconds", deserialize_with = "seconds")]
    pub request_timeout: Duration,
    /// Timeout for a request body.
    #[serde(rename = "body_timeout_seconds", deserialize_with = "seconds")]
    pub body_timeout: Duration,
    /// Time that open requests get to finish at shutdown.
    #[serde(rename = "drain_seconds", deserialize_with = "seconds")]
    pub drain: Duration,
}

/// Rate and connection limits. A rate of 0 disables the limit.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LimitsConfig {
    /// Requests per second for each API key.
    pub requests_per_second_per_key: u32,
    /// Requests per second for each IP address.
    pub requests_per_second_per_address: u32,
    /// Wrong API keys per minute for each IP address.
    pub failed_authentications_per_minute_per_address: u32,
    /// Writes per day on behalf of unverified senders.
    pub unverified_writes_per_day: u32,
    /// Writes per day on behalf of unverified senders for each IP address.
    pub unverified_writes_per_day_per_address: u32,
    /// Concurrent connections; at least one.
    pub connections: u32,
    /// Concurrent connections from each address.
    pub connections_per_address: u32,
    /// Concurrent reports.
    pub reports: u32,
    /// Concurrent reports of each organization.
    pub reports_per_organization: u32,
    /// Concurrent reports of each key or user.
    pub reports_per_key: u32,
    /// Concurrent exports.
    pub exports: u32,
    /// Concurrent exports of each organization.
    pub exports_per_organization: u32,
    /// Timeout for one query of a report.
    #[serde(rename = "report_timeout_seconds", deserialize_with = "seconds")]
    pub report_timeout: Duration,
    /// How long the client of an export may take for one chunk.
    #[serde(rename = "export_idle_seconds", deserialize_with = "seconds")]
    pub export_idle: Duration,
}

/// Reports that may wait for a slot: a few seconds' worth of work.
const REPORTS_WAITING_MAX: usize = 64;
/// Waiting reports of one organization. A page with many charts sends about this many at once.
const REPORTS_WAITING_PER_ORGANIZATION_MAX: usize = 16;
/// Log pages of the dashboard that may run per slot for reports. Such a page reads one page of rows
/// through an index, in milliseconds, so four of them cost less than a report. A user can open
/// several tabs at once.
const LOG_PAGES_PER_REPORT: usize = 4;

impl LimitsConfig {
    /// Creates the slots for reports and exports. Exports do not wait, because they run for
    /// minutes.
    pub fn report_slots(&self) -> ReportSlots {
        let count = |setting: u32| usize::try_from(setting).unwrap_or(usize::MAX);
        let reports = AdmissionLimits {
            total: count(self.reports),
            per_organization: count(self.reports_per_organization),
            per_key: count(self.reports_per_key),
            waiting: REPORTS_WAITING_MAX,
            waiting_per_organization: REPORTS_WAITING_PER_ORGANIZATION_MAX,
        };
        let exports = AdmissionLimits {
            total: count(self.exports),
            per_organization: count(self.exports_per_organization),
            per_key: count(self.exports_per_organization),
            waiting: 0,
            waiting_per_organization: 0,
        };
        let times = |count: usize| count.saturating_mul(LOG_PAGES_PER_REPORT);
        let logs = AdmissionLimits {
            total: times(reports.total),
            per_organization: times(reports.per_organization),
            per_key: times(reports.per_key),
            ..reports
        };
        ReportSlots::new(reports, logs, exports)
    }
}

/// Format of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// Human-readable text.
    Text,
    /// One JSON object per line.
    Json,
}

/// Log settings.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogConfig {
    /// Text or JSON.
    pub format: LogFormat,
    /// Filter directives, already validated.
    pub level: String,
}

/// Metrics endpoint.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MetricsConfig {
    /// Separate address; `None` opens no separate port.
    #[serde(deserialize_with = "optional_socket_address")]
    pub listen: Option<SocketAddr>,
    /// Whether `/metrics` is also served on the main port.
    pub on_public_port: bool,
}

/// DNS settings.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DnsConfig {
    /// Name server for TXT records; `None` uses the system's name servers.
    #[serde(deserialize_with = "optional_socket_address")]
    pub server: Option<SocketAddr>,
}

/// `PostgreSQL` settings.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PostgresConfig {
    /// Maximum number of connections from this node.
    pub connections: u32,
    /// Connections that the forwarder and the other workers may use.
    pub worker_connections: u32,
    /// Connections that reports may use.
    pub report_connections: u32,
    /// Timeout for connecting.
    #[serde(rename = "connect_timeout_seconds", deserialize_with = "seconds")]
    pub connect_timeout: Duration,
    /// Timeout for one statement.
    #[serde(rename = "statement_timeout_seconds", deserialize_with = "seconds")]
    pub statement_timeout: Duration,
    /// Whether prepared statements are cached.
    pub statement_cache: bool,
    /// Lag of the standby beyond which the primary serves reports.
    #[serde(rename = "standby_lag_max_seconds", deserialize_with = "seconds")]
    pub standby_lag_max: Duration,
}

/// Endpoints of the ad networks.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworksConfig {
    /// Whether private addresses are allowed, for a simulator.
    pub allow_private_addresses: bool,
    /// Meta.
    pub network_a: ServiceConfig,
    /// Google Ads, which needs access tokens from another endpoint.
    pub network_b: TokenServiceConfig,
    /// TikTok.
    pub network_c: ServiceConfig,
    /// OpenAI Ads.
    pub network_d: ServiceConfig,
}

/// Webhooks to URLs that tenants choose.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WebhooksConfig {
    /// Whether private addresses are allowed.
    pub allow_private_addresses: bool,
}

/// Single sign-on at providers that tenants choose.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SingleSignOnConfig {
    /// Whether private addresses are allowed, and plain http on this machine.
    pub allow_private_addresses: bool,
}

/// The mail server that messages are sent through.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MailConfig {
    /// URL with the password; `None` sends no e-mail.
    #[serde(deserialize_with = "optional_secret")]
    pub url: Option<SecretString>,
    /// The sender's address.
    #[serde(deserialize_with = "optional_sender")]
    pub from: Option<MailAddress>,
}

/// Streams of the audit log.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuditConfig {
    /// File to which entries are appended; `None` writes no file.
    #[serde(deserialize_with = "optional_path")]
    pub file: Option<PathBuf>,
    /// Syslog server that gets the entries; `None` sends nothing.
    #[serde(deserialize_with = "optional_syslog")]
    pub syslog: Option<SyslogTarget>,
}

/// A service that the server calls.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServiceConfig {
    /// Base URL.
    #[serde(deserialize_with = "service_url")]
    pub base_url: Url,
}

/// A service that the server calls with access tokens.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenServiceConfig {
    /// Base URL.
    #[serde(deserialize_with = "service_url")]
    pub base_url: Url,
    /// Full URL of the token endpoint.
    #[serde(deserialize_with = "service_url")]
    pub token_url: Url,
    /// Base URL of the API for cost reports.
    #[serde(deserialize_with = "service_url")]
    pub reports_url: Url,
}

/// Exchange rate sources.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RatesConfig {
    /// URL of the daily file; `None` disables fetching.
    #[serde(deserialize_with = "optional_file_url")]
    pub url: Option<Url>,
    /// URL of the daily file for currencies that the first source lacks; `None` disables fetching.
    #[serde(deserialize_with = "optional_file_url")]
    pub second_url: Option<Url>,
}

/// GeoIP settings.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GeoConfig {
    /// Country database; `None` disables country lookup.
    #[serde(deserialize_with = "optional_path")]
    pub mmdb: Option<PathBuf>,
    /// File with relay ranges; `None` disables relay detection.
    #[serde(deserialize_with = "optional_path")]
    pub relay_ranges: Option<PathBuf>,
    /// Header in which a trusted proxy sends the client's country.
    #[serde(deserialize_with = "optional_header_name")]
    pub country_header: Option<HeaderName>,
}

/// Retention periods.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RetentionConfig {
    /// How long a click's address and user agent are kept.
    #[serde(rename = "click_address_days", deserialize_with = "days")]
    pub click_addresses: Duration,
    /// How long a click without an install is kept.
    #[serde(rename = "click_days", deserialize_with = "days")]
    pub clicks: Duration,
    /// How long a finished delivery is kept.
    #[serde(rename = "delivery_days", deserialize_with = "days")]
    pub deliveries: Duration,
    /// How long a postback is kept.
    #[serde(rename = "postback_days", deserialize_with = "days")]
    pub postbacks: Duration,
    /// How long a postback is kept that no app has claimed.
    #[serde(rename = "unclaimed_postback_days", deserialize_with = "days")]
    pub unclaimed_postbacks: Duration,
    /// How long a billing notification's body is kept. The notification's result is not removed.
    #[serde(rename = "notification_days", deserialize_with = "days")]
    pub notifications: Duration,
    /// How long an audit log entry is kept.
    #[serde(rename = "audit_days", deserialize_with = "days")]
    pub audit: Duration,
    /// How long a device's attribution data is kept after the device's last activity.
    #[serde(rename = "attribution_days", deserialize_with = "days")]
    pub attributions: Duration,
}

// The functions below cannot fail on values that `rules.rs` accepted.

fn seconds<'de, D: Deserializer<'de>>(input: D) -> Result<Duration, D::Error> {
    u64::deserialize(input).map(Duration::from_secs)
}

fn days<'de, D: Deserializer<'de>>(input: D) -> Result<Duration, D::Error> {
    u32::deserialize(input).map(|days| Duration::from_hours(u64::from(days) * 24))
}

fn parsed<'de, D: Deserializer<'de>, T>(
    input: D,
    read: fn(&str) -> parse::ParseResult<T>,
) -> Result<T, D::Error> {
    read(&String::deserialize(input)?).map_err(D::Error::custom)
}

fn unless_empty<'de, D: Deserializer<'de>, T>(
    input: D,
    read: fn(&str) -> parse::ParseResult<T>,
) -> Result<Option<T>, D::Error> {
    let text = String::deserialize(input)?;
    if text.is_empty() {
        Ok(None)
    } else {
        read(&text).map(Some).map_err(D::Error::custom)
    }
}

pub(super) fn socket_address<'de, D: Deserializer<'de>>(input: D) -> Result<SocketAddr, D::Error> {
    parsed(input, parse::socket_address)
}

fn optional_socket_address<'de, D: Deserializer<'de>>(
    input: D,
) -> Result<Option<SocketAddr>, D::Error> {
    unless_empty(input, parse::socket_address)
}

pub(super) fn optional_origin<'de, D: Deserializer<'de>>(
    input: D,
) -> Result<Option<Url>, D::Error> {
    unless_empty(input, parse::origin)
}

fn service_url<'de, D: Deserializer<'de>>(input: D) -> Result<Url, D::Error> {
    parsed(input, parse::service_url)
}

fn optional_file_url<'de, D: Deserializer<'de>>(input: D) -> Result<Option<Url>, D::Error> {
    unless_empty(input, parse::file_url)
}

fn optional_sender<'de, D: Deserializer<'de>>(input: D) -> Result<Option<MailAddress>, D::Error> {
    unless_empty(input, mail::sender)
}

fn optional_syslog<'de, D: Deserializer<'de>>(input: D) -> Result<Option<SyslogTarget>, D::Error> {
    unless_empty(input, SyslogTarget::parse)
}

pub(super) fn optional_path<'de, D: Deserializer<'de>>(
    input: D,
) -> Result<Option<PathBuf>, D::Error> {
    unless_empty(input, |text| Ok(PathBuf::from(text)))
}

fn optional_header_name<'de, D: Deserializer<'de>>(
    input: D,
) -> Result<Option<HeaderName>, D::Error> {
    unless_empty(input, parse::header_name)
}

pub(super) fn secret<'de, D: Deserializer<'de>>(input: D) -> Result<SecretString, D::Error> {
    String::deserialize(input).map(SecretString::from)
}

pub(super) fn optional_secret<'de, D: Deserializer<'de>>(
    input: D,
) -> Result<Option<SecretString>, D::Error> {
    unless_empty(input, |text| Ok(SecretString::from(text)))
}

pub(super) fn roles<'de, D: Deserializer<'de>>(input: D) -> Result<NodeRoles, D::Error> {
    let texts = Vec::<String>::deserialize(input)?;
    let names: Vec<&str> = texts.iter().map(String::as_str).collect();
    parse::roles(&names).map_err(D::Error::custom)
}

pub(super) fn address_ranges<'de, D: Deserializer<'de>>(
    input: D,
) -> Result<Vec<AddressRange>, D::Error> {
    let texts = Vec::<String>::deserialize(input)?;
    texts
        .iter()
        .map(|text| AddressRange::parse(text).map_err(D::Error::custom))
        .collect()
}
