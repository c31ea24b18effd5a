//! `tributary apps`, `links`, `stats`, `events` and `deliveries`: read from a running server over its
//! REST API.
//!
//! Filters have the names of the API's query parameters. Their values are checked by the server, which
//! knows more than this version if it is newer.

use super::arguments;
use clap::{Args, Subcommand};
use std::path::PathBuf;
use tributary_domain::vocabulary::id::{AppId, DeliveryId, LinkId};
use url::Url;

/// Default for `--limit`, as in the API.
const ROWS_DEFAULT: u64 = 50;

/// Commands that read from a running server over its REST API.
#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum ClientCommand {
    /// List the apps of a running server, or show one. Needs an API key.
    Apps(AppsOptions),
    /// List the links of an app, or show one. Needs an API key.
    Links(LinksOptions),
    /// Show the figures of an app by day, network and other dimensions. Needs an API key.
    Stats(StatsOptions),
    /// List the events of an app, newest first, or export them. Needs an API key.
    Events(Box<EventsOptions>),
    /// List the deliveries of an app, newest first, or show one. Needs an API key.
    Deliveries(DeliveriesOptions),
}

/// The running server, and the key for its API.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct ConnectionOptions {
    /// Address of the server. Default: `TRIBUTARY_SERVER`, or `http://127.0.0.1:8080`.
    #[arg(long, value_name = "URL", value_parser = arguments::server_url)]
    pub server: Option<Url>,
    /// File that contains the API key; `-` is standard input. Default: the key in `TRIBUTARY_API_KEY`.
    #[arg(long, value_name = "FILE")]
    pub key_file: Option<PathBuf>,
}

/// The app that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Args)]
pub struct AppArgument {
    /// App id (`app_…`), see `tributary apps`. Default: the app, if the key can access only one.
    #[arg(long, value_name = "ID", value_parser = arguments::app_id)]
    pub app: Option<AppId>,
}

/// Form and length of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Args)]
pub struct ListOptions {
    /// Print JSON, one object per line.
    #[arg(long)]
    pub json: bool,
    /// Maximum number of rows.
    #[arg(long, value_name = "N", default_value_t = ROWS_DEFAULT,
          value_parser = clap::value_parser!(u64).range(1..))]
    pub limit: u64,
    /// Print all rows.
    #[arg(long, conflicts_with = "limit")]
    pub all: bool,
}

/// The days that are read.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct DaysOptions {
    /// First day, such as 2027-01-31.
    #[arg(long, value_name = "DAY")]
    pub from: Option<String>,
    /// Last day, inclusive.
    #[arg(long, value_name = "DAY")]
    pub to: Option<String>,
    /// Time zone of the days, such as Europe/Berlin. Default: the app's time zone.
    #[arg(long, value_name = "ZONE")]
    pub timezone: Option<String>,
}

impl DaysOptions {
    /// Returns the query parameters.
    pub fn parameters(&self) -> Vec<(&'static str, String)> {
        given([
            ("from", &self.from),
            ("to", &self.to),
            ("timezone", &self.timezone),
        ])
    }
}

/// Options for apps.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct AppsOptions {
    /// Show this app. Default: list all apps.
    #[arg(value_name = "APP_ID", value_parser = arguments::app_id,
          conflicts_with_all = ["archived", "limit", "all"])]
    pub id: Option<AppId>,
    /// Also list archived apps.
    #[arg(long)]
    pub archived: bool,
    /// Form and length.
    #[command(flatten)]
    pub list: ListOptions,
    /// Server and key.
    #[command(flatten)]
    pub connection: ConnectionOptions,
}

impl AppsOptions {
    /// Returns the filters as query parameters.
    pub fn filters(&self) -> Vec<(&'static str, String)> {
        let archived = self.archived.then(|| "true".to_owned());
        given([("archived", &archived)])
    }
}

/// Options for links.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct LinksOptions {
    /// Show this link. Default: list the links of the app.
    #[arg(value_name = "LINK_ID", value_parser = arguments::link_id,
          conflicts_with_all = ["search", "tag", "folder", "limit", "all"])]
    pub id: Option<LinkId>,
    /// App.
    #[command(flatten)]
    pub app: AppArgument,
    /// Part of the name, slug, campaign id, campaign name, folder or a tag.
    #[arg(long, value_name = "TEXT")]
    pub search: Option<String>,
    /// Filter by tag.
    #[arg(long, value_name = "TEXT")]
    pub tag: Option<String>,
    /// Filter by folder.
    #[arg(long, value_name = "TEXT")]
    pub folder: Option<String>,
    /// Form and length.
    #[command(flatten)]
    pub list: ListOptions,
    /// Server and key.
    #[command(flatten)]
    pub connection: ConnectionOptions,
}

impl LinksOptions {
    /// Returns the filters as query parameters.
    pub fn filters(&self) -> Vec<(&'static str, String)> {
        given([
            ("search", &self.search),
            ("tag", &self.tag),
            ("folder", &self.folder),
        ])
    }
}

/// Options for figures.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct StatsOptions {
    /// App.
    #[command(flatten)]
    pub app: AppArgument,
    /// Up to three dimensions, separated by commas: at most one of day, hour, week and month, and any
    /// of network, link, campaign, adset, ad, country, platform, event and source.
    #[arg(
        long,
        alias = "groupBy",
        value_name = "DIMENSIONS",
        default_value = "day"
    )]
    pub group_by: String,
    /// Filter by network, such as `network_a` or `organic`. At most three filters.
    #[arg(long, value_name = "NETWORK")]
    pub network: Option<String>,
    /// Filter by link id.
    #[arg(long, alias = "linkId", value_name = "ID")]
    pub link_id: Option<String>,
    /// Filter by campaign id.
    #[arg(long, value_name = "ID")]
    pub campaign: Option<String>,
    /// Filter by ad set id.
    #[arg(long, value_name = "ID")]
    pub adset: Option<String>,
    /// Filter by ad id.
    #[arg(long, value_name = "ID")]
    pub ad: Option<String>,
    /// Filter by two-letter country code.
    #[arg(long, value_name = "CODE")]
    pub country: Option<String>,
    /// Filter by platform: ios, android, web, or app for iOS and Android.
    #[arg(long, value_name = "PLATFORM")]
    pub platform: Option<String>,
    /// Filter by event name.
    #[arg(long, value_name = "NAME")]
    pub event: Option<String>,
    /// Filter by source: sdk, billing or web.
    #[arg(long, value_name = "SOURCE")]
    pub source: Option<String>,
    /// Days. Default: 30 days.
    #[command(flatten)]
    pub days: DaysOptions,
    /// Form and length.
    #[command(flatten)]
    pub list: ListOptions,
    /// Server and key.
    #[command(flatten)]
    pub connection: ConnectionOptions,
}

impl StatsOptions {
    /// Returns the dimensions and filters as query parameters.
    pub fn filters(&self) -> Vec<(&'static str, String)> {
        let mut parameters = vec![("groupBy", self.group_by.clone())];
        parameters.extend(given([
            ("network", &self.network),
            ("linkId", &self.link_id),
            ("campaign", &self.campaign),
            ("adset", &self.adset),
            ("ad", &self.ad),
            ("country", &self.country),
            ("platform", &self.platform),
            ("event", &self.event),
            ("source", &self.source),
        ]));
        parameters.extend(self.days.parameters());
        parameters
    }
}

/// Options for events.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct EventsOptions {
    /// What to do. Default: list events.
    #[command(subcommand)]
    pub command: Option<EventsCommand>,
    /// Filters of the list.
    #[command(flatten)]
    pub list: EventsListOptions,
}

/// Commands for events.
#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum EventsCommand {
    /// Export all events, installs or clicks of an app to standard output or a file, oldest first.
    Export(EventsExportOptions),
}

/// Options for a list of events.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct EventsListOptions {
    /// App.
    #[command(flatten)]
    pub app: AppArgument,
    /// Filter by event name.
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Filter by the sender's event id.
    #[arg(long, alias = "eventId", value_name = "ID")]
    pub event_id: Option<String>,
    /// Filter by device id.
    #[arg(long, alias = "deviceId", value_name = "ID")]
    pub device_id: Option<String>,
    /// Filter by the app's user id.
    #[arg(long, alias = "userId", value_name = "ID")]
    pub user_id: Option<String>,
    /// Filter by source: sdk, billing or web.
    #[arg(long, value_name = "SOURCE")]
    pub source: Option<String>,
    /// Filter by credited network, such as `network_a` or `organic`.
    #[arg(long, value_name = "NETWORK")]
    pub network: Option<String>,
    /// Filter by credited link id.
    #[arg(long, alias = "linkId", value_name = "ID")]
    pub link_id: Option<String>,
    /// Days. Default: all.
    #[command(flatten)]
    pub days: DaysOptions,
    /// Form and length.
    #[command(flatten)]
    pub list: ListOptions,
    /// Server and key.
    #[command(flatten)]
    pub connection: ConnectionOptions,
}

impl EventsListOptions {
    /// Returns the filters as query parameters.
    pub fn filters(&self) -> Vec<(&'static str, String)> {
        let mut parameters = given([
            ("name", &self.name),
            ("eventId", &self.event_id),
            ("deviceId", &self.device_id),
            ("userId", &self.user_id),
            ("source", &self.source),
            ("network", &self.network),
            ("linkId", &self.link_id),
        ]);
        parameters.extend(self.days.parameters());
        parameters
    }
}

/// Options for an export.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct EventsExportOptions {
    /// App.
    #[command(flatten)]
    pub app: AppArgument,
    /// Records to export: events, installs or clicks.
    #[arg(long, value_name = "KIND", default_value = "events")]
    pub kind: String,
    /// Format: ndjson (one JSON object per line) or csv.
    #[arg(long, value_name = "FORMAT", default_value = "ndjson")]
    pub format: String,
    /// File to write. It appears when the export is complete, and replaces an existing file. Default:
    /// standard output.
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Days. Default: all.
    #[command(flatten)]
    pub days: DaysOptions,
    /// Server and key.
    #[command(flatten)]
    pub connection: ConnectionOptions,
}

impl EventsExportOptions {
    /// Returns the query parameters.
    pub fn parameters(&self) -> Vec<(&'static str, String)> {
        let mut parameters = vec![("kind", self.kind.clone()), ("format", self.format.clone())];
        parameters.extend(self.days.parameters());
        parameters
    }
}

/// Options for deliveries.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct DeliveriesOptions {
    /// Show this delivery with its attempts. Default: list the deliveries of the app.
    #[arg(value_name = "DELIVERY_ID", value_parser = arguments::delivery_id,
          conflicts_with_all = ["status", "network", "event_id", "from", "to", "limit", "all"])]
    pub id: Option<DeliveryId>,
    /// App.
    #[command(flatten)]
    pub app: AppArgument,
    /// Filter by status: pending, delivered, validated, unconfirmed, failed, expired or cancelled.
    #[arg(long, value_name = "STATUS")]
    pub status: Option<String>,
    /// Filter by network, such as `network_a`.
    #[arg(long, value_name = "NETWORK")]
    pub network: Option<String>,
    /// Filter by the sender's event id.
    #[arg(long, alias = "eventId", value_name = "ID")]
    pub event_id: Option<String>,
    /// Days, by the times of the events. Default: all.
    #[command(flatten)]
    pub days: DaysOptions,
    /// Form and length.
    #[command(flatten)]
    pub list: ListOptions,
    /// Server and key.
    #[command(flatten)]
    pub connection: ConnectionOptions,
}

impl DeliveriesOptions {
    /// Returns the filters as query parameters.
    pub fn filters(&self) -> Vec<(&'static str, String)> {
        let mut parameters = given([
            ("status", &self.status),
            ("network", &self.network),
            ("eventId", &self.event_id),
        ]);
        parameters.extend(self.days.parameters());
        parameters
    }
}

/// Returns the parameters that have a value.
fn given<const N: usize>(
    options: [(&'static str, &Option<String>); N],
) -> Vec<(&'static str, String)> {
    let set = options.into_iter();
    set.filter_map(|(name, value)| Some((name, value.clone()?)))
        .collect()
}
