//! `tributary apps`, `links`, `stats`, `events` and `deliveries`: read from a running server over its
//! REST API.
//!
//! The commands need no settings and no database, so they also run on another machine. Standard output
//! contains nothing but the result; notes and progress go to standard error.

pub(super) mod connection;
mod error;
mod export;
mod list;
mod object;
mod progress;
mod table;

pub use error::{ApiErrorBody, ApiErrorDetail, RemoteError};

use crate::cli::{
    AppArgument, AppsOptions, ClientCommand, DeliveriesOptions, EventsCommand, EventsListOptions,
    LinksOptions, StatsOptions,
};
use anyhow::Context as _;
use connection::ApiConnection;
use list::ListRequest;
use std::io::{self, Write as _};
use std::ops::ControlFlow;
use table::TableColumn;

/// Runs the command.
pub async fn run(command: ClientCommand) -> anyhow::Result<()> {
    match command {
        ClientCommand::Apps(options) => apps(&options).await,
        ClientCommand::Links(options) => links(&options).await,
        ClientCommand::Stats(options) => stats(&options).await,
        ClientCommand::Deliveries(options) => deliveries(&options).await,
        ClientCommand::Events(options) => match &options.command {
            Some(EventsCommand::Export(options)) => export::run(options).await,
            None => events(&options.list).await,
        },
    }
}

async fn apps(options: &AppsOptions) -> anyhow::Result<()> {
    let connection = ApiConnection::open(&options.connection)?;
    if let Some(id) = options.id {
        let path = ["apps".to_owned(), id.to_string()];
        return object::print(&connection, &path, options.list.json).await;
    }
    let request = ListRequest {
        path: vec!["apps".to_owned()],
        filters: options.filters(),
        columns: vec![
            TableColumn::text("id", "/id"),
            TableColumn::text("name", "/name"),
            TableColumn::text("ios", "/ios/bundleId"),
            TableColumn::text("android", "/android/packageName"),
            TableColumn::text("timezone", "/timezone"),
            TableColumn::text("archived", "/archived"),
            TableColumn::text("created", "/createdAt"),
        ],
    };
    list::print(&connection, request, options.list).await
}

async fn links(options: &LinksOptions) -> anyhow::Result<()> {
    let connection = ApiConnection::open(&options.connection)?;
    let mut path = app_path(&connection, options.app, "links").await?;
    if let Some(id) = options.id {
        path.push(id.to_string());
        return object::print(&connection, &path, options.list.json).await;
    }
    let request = ListRequest {
        path,
        filters: options.filters(),
        columns: vec![
            TableColumn::text("id", "/id"),
            TableColumn::text("name", "/name"),
            TableColumn::text("network", "/network"),
            TableColumn::text("type", "/type"),
            TableColumn::text("active", "/active"),
            TableColumn::text("folder", "/folder"),
            TableColumn::text("tags", "/tags"),
            TableColumn::text("url", "/url"),
        ],
    };
    list::print(&connection, request, options.list).await
}

async fn stats(options: &StatsOptions) -> anyhow::Result<()> {
    let connection = ApiConnection::open(&options.connection)?;
    let path = app_path(&connection, options.app, "stats").await?;
    // A dimension has the same name in the query and in the rows.
    let dimensions = options.group_by.split(',').map(|dimension| {
        let dimension = dimension.trim();
        TableColumn::text(dimension, &format!("/{dimension}"))
    });
    let figures = [
        ("clicks", "/clicks"),
        ("installs", "/installs"),
        ("events", "/events"),
        ("purchases", "/purchases"),
        ("renewals", "/renewals"),
        ("refunds", "/refunds"),
        ("revenue", "/revenue"),
        ("net revenue", "/netRevenue"),
        ("cost", "/cost"),
        ("roas", "/roas"),
    ];
    let figures = figures.map(|(title, pointer)| TableColumn::number(title, pointer));
    let request = ListRequest {
        path,
        filters: options.filters(),
        columns: dimensions.chain(figures).collect(),
    };
    list::print(&connection, request, options.list).await
}

async fn events(options: &EventsListOptions) -> anyhow::Result<()> {
    let connection = ApiConnection::open(&options.connection)?;
    let request = ListRequest {
        path: app_path(&connection, options.app, "events").await?,
        filters: options.filters(),
        columns: vec![
            TableColumn::time("time", "/timestampMs"),
            TableColumn::text("name", "/name"),
            TableColumn::text("event id", "/eventId"),
            TableColumn::text("device", "/deviceId"),
            TableColumn::text("source", "/source"),
            TableColumn::text("network", "/attribution/network"),
            TableColumn::number("amount", "/revenue/amount"),
            TableColumn::text("currency", "/revenue/currency"),
            TableColumn::number("usd", "/revenue/usd"),
            TableColumn::text("counted", "/revenue/counted"),
        ],
    };
    list::print(&connection, request, options.list).await
}

async fn deliveries(options: &DeliveriesOptions) -> anyhow::Result<()> {
    let connection = ApiConnection::open(&options.connection)?;
    let mut path = app_path(&connection, options.app, "deliveries").await?;
    if let Some(id) = options.id {
        path.push(id.to_string());
        return object::print(&connection, &path, options.list.json).await;
    }
    let request = ListRequest {
        path,
        filters: options.filters(),
        columns: vec![
            TableColumn::text("id", "/id"),
            TableColumn::text("event id", "/eventId"),
            TableColumn::text("event", "/event/name"),
            TableColumn::text("network", "/network"),
            TableColumn::text("status", "/status"),
            TableColumn::text("reason", "/reason"),
            TableColumn::number("attempts", "/attemptsMade"),
            TableColumn::text("planned", "/plannedAt"),
            TableColumn::text("settled", "/settledAt"),
        ],
    };
    list::print(&connection, request, options.list).await
}

/// Returns the path of an app's resource. Without an app, takes the only one that the key can access.
async fn app_path(
    connection: &ApiConnection,
    app: AppArgument,
    resource: &str,
) -> anyhow::Result<Vec<String>> {
    let app = match app.app {
        Some(app) => app.to_string(),
        None => only_app(connection).await?,
    };
    Ok(vec!["apps".to_owned(), app, resource.to_owned()])
}

async fn only_app(connection: &ApiConnection) -> anyhow::Result<String> {
    let apps = list::first_ids(connection, "apps", 2).await;
    let apps = apps.context("cannot find out the app; name it with --app")?;
    match <[String; 1]>::try_from(apps) {
        Ok([app]) => Ok(app),
        Err(apps) if apps.is_empty() => {
            anyhow::bail!("the key can access no app; create one first, or use another key")
        }
        Err(_) => anyhow::bail!(
            "the key can access several apps; name one with --app, see `tributary apps`"
        ),
    }
}

/// Writes to standard output. A closed pipe (`| head`) is not an error, but the end.
fn write_out(bytes: &[u8]) -> io::Result<ControlFlow<()>> {
    let mut stdout = io::stdout().lock();
    let written = stdout.write_all(bytes).and_then(|()| stdout.flush());
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(ControlFlow::Break(())),
        written => written.map(ControlFlow::Continue),
    }
}

/// Prints a note for people.
fn note(text: &str) {
    let _gone = writeln!(io::stderr().lock(), "tributary: {text}");
}
