//! Forwarding: how many deliveries a second leave while events are accepted, and whether a network that hangs makes
//! accepting slower. The networks are simulated, in a process of their own on the same machine.

use crate::child::{Server, SimulatorProcess};
use crate::load::{Load, StopCondition};
use crate::machine;
use crate::pace::{LoadPace, median, per_second, thousandths};
use crate::report::{Requirements, millis, print_line, ratio};
use crate::site::BenchSite;
use crate::template::{IdOrder, Template};
use crate::web_events::EngineArgument;
use anyhow::{Context as _, bail};
use clap::Args;
use serde_json::json;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use tributary_testkit::TestDatabase;

/// Deliveries a second that are demanded.
const DELIVERIES_MIN: u64 = 3_000;
/// The part of the usual rate that accepting must keep while a network hangs, in thousandths.
const RATE_KEPT_MIN: u64 = 900;
/// What arrives a second while deliveries leave.
const ARRIVAL_RATE: u64 = 300;
/// How long a backlog may take to leave.
const DRAIN_MAX: Duration = Duration::from_mins(5);
/// How often the network is asked how many it has.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Where the integration is, below the app.
const INTEGRATION: &str = "/integrations/network_a";

/// What can be set.
#[derive(Debug, Args)]
pub(crate) struct ForwardingBenchOptions {
    /// The database. `PostgreSQL` is the server of `TEST_DATABASE_URL`, in a schema of the run's own.
    #[arg(long, value_enum, default_value_t = EngineArgument::Sqlite)]
    engine: EngineArgument,
    /// Deliveries that wait before they may leave.
    #[arg(long, default_value_t = 60_000)]
    backlog: u64,
    /// How long a round of accepting is.
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Connections of the load.
    #[arg(long, default_value_t = 64)]
    connections: usize,
    /// Rounds of each side.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
}

/// A website whose events a simulated network hears of.
struct Bench {
    simulator: SimulatorProcess,
    server: Server,
    site: BenchSite,
    load: Load<Template>,
}

/// Measures.
pub(crate) fn run(options: &ForwardingBenchOptions) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Runtime::new()?;
    let database = runtime.block_on(TestDatabase::new(options.engine.engine()));
    print_line(options.engine.durability());
    print_line(format_args!(
        "{} cores for server, database, network and load; 8 kB are synced in {}",
        machine::cores(),
        millis(machine::sync_time(&database.folder())?)
    ));
    let mut bench = Bench::open(options, &database)?;
    let mut verdicts = Requirements::default();
    bench.throughput(options, &mut verdicts)?;
    bench.measure_hanging_network(options, &mut verdicts)?;
    bench.server.stop()?;
    Ok(ExitCode::from(u8::from(!verdicts.all_met())))
}

impl Bench {
    fn open(options: &ForwardingBenchOptions, database: &TestDatabase) -> anyhow::Result<Self> {
        let simulator = SimulatorProcess::start()?;
        let server = Server::product_with(database, &simulator.settings())?;
        let site = BenchSite::open(&server, database)?;
        let load = Load {
            address: server.address,
            requests: site.purchase(server.address, &site.path(), IdOrder::Scattered),
            connections: options.connections,
            next: 0,
        };
        let bench = Self {
            simulator,
            server,
            site,
            load,
        };
        let change = json!({
            "enabled": true, "settings": {"pixelId": "1"}, "credentials": {"accessToken": "bench-token-1"},
        });
        bench
            .site
            .call(bench.server.address, "PATCH", INTEGRATION, &change)?;
        Ok(bench)
    }

    /// Orders a fault of the network, until it is cleared.
    fn fault(&self, fault: serde_json::Value) -> anyhow::Result<()> {
        let order = json!({"network": "network_a", "fault": fault});
        self.simulator.call("POST", "/control/faults", &order)?;
        Ok(())
    }

    /// The network is well again, and the queue is told to go on at once.
    fn clear_faults(&self) -> anyhow::Result<()> {
        self.simulator
            .call("DELETE", "/control/faults", &json!(null))?;
        let resume = format!("{INTEGRATION}/resume");
        self.site
            .call(self.server.address, "POST", &resume, &json!(null))?;
        Ok(())
    }

    /// What the network counted so far.
    fn counted(&self) -> anyhow::Result<u64> {
        let state = self.simulator.call("GET", "/control/state", &json!(null))?;
        let counted = state["networks"]["network_a"]["counted"].as_u64();
        counted.context("the network's books")
    }

    /// Waits until the network has so many, while others arrive; gives how long that took.
    fn wait_until_drained(&mut self, count: u64) -> anyhow::Result<Duration> {
        let begun = Instant::now();
        while self.counted()? < count {
            self.load.run(
                LoadPace::PerSecond(ARRIVAL_RATE),
                StopCondition::After(POLL_INTERVAL),
            )?;
            if begun.elapsed() > DRAIN_MAX {
                bail!("the backlog does not leave: {} of {count}", self.counted()?);
            }
        }
        Ok(begun.elapsed())
    }

    /// How many leave a second.
    fn throughput(
        &mut self,
        options: &ForwardingBenchOptions,
        verdicts: &mut Requirements,
    ) -> anyhow::Result<()> {
        print_line(format_args!(
            "deliveries a second to one integration, {ARRIVAL_RATE} events a second arriving meanwhile:"
        ));
        let mut rates = Vec::new();
        for round in 1..=options.rounds {
            self.fault(json!({"kind": "status", "status": 503, "body": ""}))?;
            let before = self.counted()?;
            self.load
                .run(LoadPace::FlatOut, StopCondition::Sent(options.backlog))?;
            self.clear_faults()?;
            let took = self.wait_until_drained(before + options.backlog)?;
            let rate = per_second(options.backlog, took);
            print_line(format_args!(
                "  round {round}: {} in {}: {rate} a second",
                options.backlog,
                millis(took)
            ));
            rates.push(rate);
        }
        let rate = median(rates).context("no round")?;
        print_line(format_args!("  median: {rate} a second"));
        verdicts.check(
            rate >= DELIVERIES_MIN,
            format_args!("at least {DELIVERIES_MIN} a second"),
        );
        Ok(())
    }

    /// Whether accepting is slower while the network hangs.
    fn measure_hanging_network(
        &mut self,
        options: &ForwardingBenchOptions,
        verdicts: &mut Requirements,
    ) -> anyhow::Result<()> {
        print_line("events accepted a second, with the network well and with it hanging:");
        let (mut wells, mut hangings) = (Vec::new(), Vec::new());
        let end = StopCondition::After(Duration::from_secs(options.seconds));
        for round in 1..=options.rounds {
            let well = self.load.run(LoadPace::FlatOut, end)?.per_second;
            self.fault(json!({"kind": "hang"}))?;
            let hanging = self.load.run(LoadPace::FlatOut, end)?.per_second;
            self.clear_faults()?;
            let part = ratio(thousandths(hanging, well));
            print_line(format_args!(
                "  round {round}: well {well}, hanging {hanging}, ratio {part}"
            ));
            wells.push(well);
            hangings.push(hanging);
        }
        let (well, hanging) = (
            median(wells).context("no round")?,
            median(hangings).context("no round")?,
        );
        let part = thousandths(hanging, well);
        print_line(format_args!(
            "  median: well {well}, hanging {hanging}, ratio {}",
            ratio(part)
        ));
        verdicts.check(
            part >= RATE_KEPT_MIN,
            format_args!("at least {} of the usual rate", ratio(RATE_KEPT_MIN)),
        );
        Ok(())
    }
}
