//! The sections of the configuration, typed. One field per setting of `config.default.toml`.
//!
//! # Adding a setting
//!
//! 1. Write it into `config.default.toml`, with a comment for operators and its default.
//! 2. Add its field here (or to `Config`, when it belongs to no section). No `serde(default)`: the default
//!    file is the only place for defaults.
//! 3. Say in `rules.rs` what it may be. The tests name whichever of the three is missing.

use super::{AddressRange, parse};
use axum::http::HeaderName;
use secrecy::SecretString;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use url::Url;

/// How long clients may take.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HttpConfig {
    /// For the head of a request; also how long an idle connection stays open.
    #[serde(rename = "header_timeout_seconds", deserialize_with = "seconds")]
    pub header_timeout: Duration,
    /// For a whole request.
    #[serde(rename = "request_timeout_seconds", deserialize_with = "seconds")]
    pub request_timeout: Duration,
    /// For the body of a request.
    #[serde(rename = "body_timeout_seconds", deserialize_with = "seconds")]
    pub body_timeout: Duration,
    /// For requests under way when the server stops.
    #[serde(rename = "drain_seconds", deserialize_with = "seconds")]
    pub drain: Duration,
}

/// How much of everything. A rate of 0 is no limit.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LimitsConfig {
    /// Requests a second by one key.
    pub requests_per_second_per_key: u32,
    /// Requests a second from one address.
    pub requests_per_second_per_address: u32,
    /// Failed sign-ins and wrong API keys a minute from one address.
    pub failed_authentications_per_minute_per_address: u32,
    /// Connections open at the same time; at least one.
    pub connections: u32,
}

/// How records are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    Text,
    /// One object per line.
    Json,
}

/// What is logged, and how.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogConfig {
    /// For people or for programs.
    pub format: LogFormat,
    /// Filter directives; known to be good.
    pub level: String,
}

/// Where metrics are served.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MetricsConfig {
    /// An address of their own; none: the main port.
    #[serde(deserialize_with = "optional_socket_address")]
    pub listen: Option<SocketAddr>,
}

/// How `PostgreSQL` is used.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PostgresConfig {
    /// Connections of this node, at most.
    pub connections: u32,
    /// How many of them the forwarder and the other workers may use.
    pub worker_connections: u32,
    /// How many of them reports may use.
    pub report_connections: u32,
    /// For a connection to be made.
    #[serde(rename = "connect_timeout_seconds", deserialize_with = "seconds")]
    pub connect_timeout: Duration,
    /// For one statement.
    #[serde(rename = "statement_timeout_seconds", deserialize_with = "seconds")]
    pub statement_timeout: Duration,
    /// Whether prepared statements are kept.
    pub statement_cache: bool,
}

/// Where the networks are reached.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworksConfig {
    /// Whether they may have private addresses: for a simulator.
    pub allow_private_addresses: bool,
    /// One of the four.
    pub network_a: ServiceConfig,
    /// One of the four; it wants access tokens from elsewhere.
    pub network_b: TokenServiceConfig,
    /// One of the four.
    pub network_c: ServiceConfig,
    /// One of the four.
    pub network_d: ServiceConfig,
}

/// A service that we call.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServiceConfig {
    /// What its URLs begin with.
    #[serde(deserialize_with = "service_url")]
    pub base_url: Url,
}

/// A service that we call with tokens.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenServiceConfig {
    /// What its URLs begin with.
    #[serde(deserialize_with = "service_url")]
    pub base_url: Url,
    /// Where tokens are fetched: the whole URL.
    #[serde(deserialize_with = "service_url")]
    pub token_url: Url,
}

/// Exchange rates.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RatesConfig {
    /// The day's file; none: rates are not fetched.
    #[serde(deserialize_with = "optional_file_url")]
    pub url: Option<Url>,
    /// The day's file of the currencies that the first one does not have; none: it is not fetched.
    #[serde(deserialize_with = "optional_file_url")]
    pub second_url: Option<Url>,
}

/// Countries of addresses.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GeoConfig {
    /// The database; none: countries are not known.
    #[serde(deserialize_with = "optional_path")]
    pub mmdb: Option<PathBuf>,
    /// The ranges of relays; none: relays are not recognised.
    #[serde(deserialize_with = "optional_path")]
    pub relay_ranges: Option<PathBuf>,
    /// The header by which a trusted proxy tells the country.
    #[serde(deserialize_with = "optional_header_name")]
    pub country_header: Option<HeaderName>,
}

/// How long things are kept.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RetentionConfig {
    /// Of a click's address and user agent.
    #[serde(rename = "click_address_days", deserialize_with = "days")]
    pub click_addresses: Duration,
    /// Of a click that no install refers to.
    #[serde(rename = "click_days", deserialize_with = "days")]
    pub clicks: Duration,
    /// Of a delivery that came to its end.
    #[serde(rename = "delivery_days", deserialize_with = "days")]
    pub deliveries: Duration,
    /// Of a postback.
    #[serde(rename = "postback_days", deserialize_with = "days")]
    pub postbacks: Duration,
    /// Of a postback of no app.
    #[serde(rename = "unclaimed_postback_days", deserialize_with = "days")]
    pub unclaimed_postbacks: Duration,
    /// Of the body of a billing notification. What it came to stays.
    #[serde(rename = "notification_days", deserialize_with = "days")]
    pub notifications: Duration,
    /// Of an entry of the audit log.
    #[serde(rename = "audit_days", deserialize_with = "days")]
    pub audit: Duration,
    /// Of a device's attribution data, after its last activity.
    #[serde(rename = "attribution_days", deserialize_with = "days")]
    pub attributions: Duration,
}

// The readers below cannot fail on what `rules.rs` let through.

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

fn optional_path<'de, D: Deserializer<'de>>(input: D) -> Result<Option<PathBuf>, D::Error> {
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

pub(super) fn address_ranges<'de, D: Deserializer<'de>>(
    input: D,
) -> Result<Vec<AddressRange>, D::Error> {
    let texts = Vec::<String>::deserialize(input)?;
    texts
        .iter()
        .map(|text| AddressRange::parse(text).map_err(D::Error::custom))
        .collect()
}
