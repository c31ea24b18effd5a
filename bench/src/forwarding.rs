//! Forwarding: deliveries per second while events arrive, and the effect of a hanging network on
//! ingestion. The network simulator runs as a separate process on the same machine.

use crate::child::{Server, SimulatorProcess};
use crate::engine::EngineArgument;
use crate::load::{Load, StopCondition};
use crate::machine;
use crate::pace::{LoadPace, median, per_second, thousandths};
use crate::report::{Requirements, millis, print_line, ratio};
use crate::site::BenchSite;
use crate::template::{IdOrder, Template};
use anyhow::{Context as _, bail};
use clap::Args;
use serde_json::json;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use tributary_testkit::TestDatabase;

/// Required deliveries per second.
const DELIVERIES_MIN: u64 = 3_000;
/// Required ingestion rate while a network hangs, in thousandths of the normal rate.
const RATE_KEPT_MIN: u64 = 900;
/// Events per second that arrive while deliveries are sent.
const ARRIVAL_RATE: u64 = 300;
/// Maximum time to drain the backlog.
const DRAIN_MAX: Duration = Duration::from_mins(5);
/// Interval at which the simulator's count is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Path of the integration, relative to the app.
const INTEGRATION: &str = "/integrations/network_a";

/// Command-line options.
#[derive(Debug, Args)]
pub(crate) struct ForwardingBenchOptions {
    /// Database engine. `PostgreSQL` uses the server in `TEST_DATABASE_URL`, in a temporary schema.
    #[arg(long, value_enum, default_value_t = EngineArgument::Sqlite)]
    engine: EngineArgument,
    /// Deliveries queued before sending starts.
    #[arg(long, default_value_t = 60_000)]
    backlog: u64,
    /// Length of an ingestion round in seconds.
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Number of client connections.
    #[arg(long, default_value_t = 64)]
    connections: usize,
    /// Number of rounds for each measurement.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
}

/// A website whose events are forwarded to the simulator.
struct Bench {
    simulator: SimulatorProcess,
    server: Server,
    site: BenchSite,
    load: Load<Template>,
}

/// Runs the benchmark. The exit code is 1 if a requirement is not met.
pub(crate) fn run(options: &ForwardingBenchOptions) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Runtime::new()?;
    let database = runtime.block_on(TestDatabase::new(options.engine.engine()));
    print_line(options.engine.durability());
    print_line(format_args!(
        "{} cores for server, database, simulator and load; syncing 8 kB takes {}",
        machine::cores(),
        millis(machine::sync_time(&database.folder())?)
    ));
    let mut bench = Bench::open(options, &database)?;
    let mut requirements = Requirements::default();
    bench.throughput(options, &mut requirements)?;
    bench.measure_hanging_network(options, &mut requirements)?;
    bench.server.stop()?;
    Ok(ExitCode::from(u8::from(!requirements.all_met())))
}

impl Bench {
    fn open(options: &ForwardingBenchOptions, database: &TestDatabase) -> anyhow::Result<Self> {
        let simulator = SimulatorProcess::start()?;
        let server = Server::product_with(database, &simulator.settings())?;
        let site = BenchSite::open(&server, database)?;
        let load = Load {
            address: server.address,
            requests: site.purchase(&server.address.to_string(), IdOrder::Scattered),
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

    /// Makes the simulator fail until [`Self::clear_faults`] is called.
    fn fault(&self, fault: serde_json::Value) -> anyhow::Result<()> {
        let order = json!({"network": "network_a", "fault": fault});
        self.simulator.call("POST", "/control/faults", &order)?;
        Ok(())
    }

    /// Clears the faults and resumes the paused integration at once.
    fn clear_faults(&self) -> anyhow::Result<()> {
        self.simulator
            .call("DELETE", "/control/faults", &json!(null))?;
        let resume = format!("{INTEGRATION}/resume");
        self.site
            .call(self.server.address, "POST", &resume, &json!(null))?;
        Ok(())
    }

    /// Returns the number of conversions that the simulator has counted.
    fn counted(&self) -> anyhow::Result<u64> {
        let state = self.simulator.call("GET", "/control/state", &json!(null))?;
        let counted = state["networks"]["network_a"]["counted"].as_u64();
        counted.context("no count from the simulator")
    }

    /// Waits until the simulator has counted `count` conversions while new events arrive. Returns
    /// the time it took.
    fn wait_until_drained(&mut self, count: u64) -> anyhow::Result<Duration> {
        let started = Instant::now();
        while self.counted()? < count {
            self.load.run(
                LoadPace::PerSecond(ARRIVAL_RATE),
                StopCondition::After(POLL_INTERVAL),
            )?;
            if started.elapsed() > DRAIN_MAX {
                bail!(
                    "backlog not drained in time: {} of {count}",
                    self.counted()?
                );
            }
        }
        Ok(started.elapsed())
    }

    /// Measures deliveries per second.
    fn throughput(
        &mut self,
        options: &ForwardingBenchOptions,
        requirements: &mut Requirements,
    ) -> anyhow::Result<()> {
        print_line(format_args!(
            "deliveries/s to one integration while {ARRIVAL_RATE} events/s arrive:"
        ));
        let mut rates = Vec::new();
        for round in 1..=options.rounds {
            self.fault(json!({"kind": "status", "status": 503, "body": ""}))?;
            let before = self.counted()?;
            self.load
                .run(LoadPace::FlatOut, StopCondition::Sent(options.backlog))?;
            self.clear_faults()?;
            let elapsed = self.wait_until_drained(before + options.backlog)?;
            let rate = per_second(options.backlog, elapsed);
            print_line(format_args!(
                "  round {round}: {} in {}: {rate}/s",
                options.backlog,
                millis(elapsed)
            ));
            rates.push(rate);
        }
        let rate = median(rates).context("no round")?;
        print_line(format_args!("  median: {rate}/s"));
        requirements.check(
            rate >= DELIVERIES_MIN,
            format_args!("at least {DELIVERIES_MIN}/s"),
        );
        Ok(())
    }

    /// Measures whether a hanging network slows ingestion.
    fn measure_hanging_network(
        &mut self,
        options: &ForwardingBenchOptions,
        requirements: &mut Requirements,
    ) -> anyhow::Result<()> {
        print_line("events accepted/s, with a healthy and with a hanging network:");
        let (mut wells, mut hangings) = (Vec::new(), Vec::new());
        let end = StopCondition::After(Duration::from_secs(options.seconds));
        for round in 1..=options.rounds {
            let well = self.load.run(LoadPace::FlatOut, end)?.per_second;
            self.fault(json!({"kind": "hang"}))?;
            let hanging = self.load.run(LoadPace::FlatOut, end)?.per_second;
            self.clear_faults()?;
            let part = ratio(thousandths(hanging, well));
            print_line(format_args!(
                "  round {round}: healthy {well}, hanging {hanging}, ratio {part}"
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
            "  median: healthy {well}, hanging {hanging}, ratio {}",
            ratio(part)
        ));
        requirements.check(
            part >= RATE_KEPT_MIN,
            format_args!("at least {} of the normal rate", ratio(RATE_KEPT_MIN)),
        );
        Ok(())
    }
}
