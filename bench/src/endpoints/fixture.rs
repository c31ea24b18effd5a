//! The servers, databases and load generators of one measurement.

use super::EndpointsBenchOptions;
use super::traffic::{EndpointTraffic, MeasuredEndpoint};
use crate::child::{Server, distribute, full_key};
use crate::load::StopCondition;
use crate::load_process::{LoadOrder, LoadProcess};
use crate::pace::{LoadPace, per_second};
use crate::preload;
use crate::recent_clicks::RecentClicks;
use crate::report::print_line;
use crate::site::BenchSite;
use crate::template::IdOrder;
use anyhow::Context as _;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Instant;
use tributary_server::system::runtime;
use tributary_testkit::{Engine, TestDatabase};

/// A server and its load generator.
pub(crate) struct Side {
    /// The server's engine; `None` for the bare server.
    pub(crate) engine: Option<Engine>,
    pub(crate) load: LoadProcess,
    pub(crate) server: Server,
}

impl Side {
    /// Starts the load generator for a server. `next` is the number of the first request: requests
    /// with lower numbers would have the ids of the stored events.
    pub(crate) fn start(
        server: Server,
        engine: Option<Engine>,
        traffic: &EndpointTraffic,
        connections: usize,
        next: u64,
    ) -> anyhow::Result<Self> {
        let load = LoadProcess::start(&LoadOrder {
            traffic: traffic.clone(),
            address: server.address,
            connections,
            next,
        })?;
        Ok(Self {
            engine,
            load,
            server,
        })
    }

    /// Stops the load generator and the server.
    pub(crate) fn stop(self) -> anyhow::Result<()> {
        drop(self.load);
        self.server.stop()
    }
}

/// The bare server and the product, with the product's database.
pub(crate) struct EndpointFixture {
    pub(crate) bare: Side,
    pub(crate) product: Side,
    /// Removed on drop, after the server has stopped.
    database: TestDatabase,
    sites: Vec<BenchSite>,
}

impl EndpointFixture {
    /// Creates the apps, fills the database and starts both servers.
    pub(crate) async fn open(
        options: &EndpointsBenchOptions,
        endpoint: MeasuredEndpoint,
        apps: u32,
    ) -> anyhow::Result<Self> {
        let database = TestDatabase::new(options.run.engine.engine()).await;
        print_line(format_args!(
            "{endpoint:?}, {apps} apps, {} connections, rounds of {} s",
            options.run.connections, options.run.seconds
        ));
        options.run.engine.print_conditions(&database)?;
        if options.distributed {
            distribute(&database)?;
        }
        let sites = create_sites(&database, apps)?;
        let (is_click, is_event) = match endpoint {
            MeasuredEndpoint::Clicks | MeasuredEndpoint::Configure => (true, false),
            MeasuredEndpoint::Postbacks => (false, false),
            _ => (false, true),
        };
        let clicks = RecentClicks {
            count: if is_click { options.clicks_before } else { 0 },
            until: runtime().now().as_millis(),
        };
        let events = if is_event { options.events_before } else { 0 };
        fill(&database, &sites, clicks, events).await?;
        let traffic = EndpointTraffic {
            endpoint,
            sites,
            clicks,
            devices: options.devices,
        };
        let product = Server::with_postback_keys(&database)?;
        if endpoint == MeasuredEndpoint::SdkEvents {
            configure_devices(options, &product, &traffic)?;
        }
        let connections = options.run.connections;
        Ok(Self {
            bare: Side::start(Server::bare()?, None, &traffic, connections, events)?,
            product: Side::start(
                product,
                Some(options.run.engine.engine()),
                &traffic,
                connections,
                events,
            )?,
            database,
            sites: traffic.sites,
        })
    }

    /// Collects PostgreSQL's statistics. A node does so too, but only after some seconds, and plans
    /// for empty tables would slow down the first rounds.
    pub(crate) async fn collect_statistics(&self) {
        if self.database.engine() == Engine::Postgres {
            let connection = self.database.direct_connection().await;
            connection.run("analyze").await;
        }
    }

    /// Prints how the latest installs of an app were attributed, which shows whether the evidence
    /// was valid.
    pub(crate) fn print_matches(&self) -> anyhow::Result<()> {
        let site = self.sites.first().context("no app")?;
        let address = self.product.server.address;
        let path = "/events?name=install&limit=500";
        let installs = site.call(address, "GET", path, &Value::Null)?;
        let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
        for install in installs["data"].as_array().context("no list of events")? {
            let kind = install["attribution"]["matchType"].as_str();
            *counts.entry(kind.unwrap_or("none")).or_default() += 1;
        }
        print_line(format_args!("  latest installs of an app: {counts:?}"));
        Ok(())
    }

    /// Stops the product and waits until it has ended. The bare server is killed.
    pub(crate) fn close(self) -> anyhow::Result<()> {
        self.product.stop()
    }
}

/// Creates apps over HTTP.
pub(crate) fn create_sites(database: &TestDatabase, apps: u32) -> anyhow::Result<Vec<BenchSite>> {
    let server = Server::product(database)?;
    let key = full_key(database)?;
    let sites = (0..apps)
        .map(|number| BenchSite::for_key(&server, key.clone(), number))
        .collect::<anyhow::Result<_>>()?;
    server.stop()?;
    Ok(sites)
}

/// Stores clicks and events through the store port.
pub(crate) async fn fill(
    database: &TestDatabase,
    sites: &[BenchSite],
    clicks: RecentClicks,
    events: u64,
) -> anyhow::Result<()> {
    let store = database.open().await;
    let started = Instant::now();
    preload::clicks(store.clone(), sites, clicks).await?;
    preload::web_events(store.clone(), sites, events, IdOrder::Scattered).await?;
    store.close().await;
    let rate = per_second(clicks.count + events, started.elapsed());
    print_line(format_args!(
        "  {} clicks and {events} events stored through the store port, {rate}/s",
        clicks.count
    ));
    Ok(())
}

/// Configures the devices that send events.
fn configure_devices(
    options: &EndpointsBenchOptions,
    server: &Server,
    traffic: &EndpointTraffic,
) -> anyhow::Result<()> {
    let order = LoadOrder {
        traffic: EndpointTraffic {
            endpoint: MeasuredEndpoint::Configure,
            ..traffic.clone()
        },
        address: server.address,
        connections: options.run.connections,
        next: 0,
    };
    let mut load = LoadProcess::start(&order)?;
    load.run(LoadPace::FlatOut, StopCondition::Sent(options.devices))?;
    Ok(())
}
