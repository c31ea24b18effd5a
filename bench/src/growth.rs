//! A large database compared with an empty one, and the product's use of disk and memory.
//!
//! All events are web events, each from a different device.

use crate::child::Server;
use crate::endpoints::traffic::{EndpointTraffic, MeasuredEndpoint};
use crate::endpoints::{Side, create_sites, fill};
use crate::idle::IdleConnections;
use crate::options::RunOptions;
use crate::pace::{LoadPace, median, thousandths};
use crate::recent_clicks::RecentClicks;
use crate::report::{Requirements, megabytes, millis, print_line, ratio, summary_line};
use crate::rounds::{REPETITIONS_MAX, run_rounds};
use crate::site::send_request;
use anyhow::{Context as _, bail};
use clap::Args;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use tributary_testkit::{Engine, TestDatabase};

/// Required throughput with the large database, in thousandths of that with the empty one.
const RATE_KEPT_MIN: u64 = 800;
/// Maximum p99 with idle connections, in thousandths of the p99 without.
const P99_TIMES_MAX: u64 = 1_500;
/// Maximum bytes on disk per event, with indexes.
const EVENT_BYTES_MAX: u64 = 400;
/// Maximum time from the start of the process until it is ready.
const START_MAX: Duration = Duration::from_millis(500);
/// Maximum resident memory at full load.
const MEMORY_MAX: u64 = 200 * 1024 * 1024;
/// Maximum growth of the memory between the first and the last round. Allows for allocators and
/// caches that fill once, but not for a leak per event.
const MEMORY_GROWTH_MAX: u64 = 16 * 1024 * 1024;
/// Load for latency measurements, in percent of the maximum throughput.
const PACED_PERCENT: u64 = 70;
/// Tables and indexes to list.
const LISTED_RELATIONS: usize = 12;

/// Command-line options.
#[derive(Debug, Args)]
pub(crate) struct GrowthBenchOptions {
    #[command(flatten)]
    run: RunOptions,
    /// Events in the large database.
    #[arg(long, default_value_t = 10_000_000)]
    events: u64,
    /// Number of apps that the events belong to in turn.
    #[arg(long, default_value_t = 100)]
    apps: u32,
    /// Number of idle connections.
    #[arg(long, default_value_t = 10_000)]
    idle: usize,
}

/// A database and the traffic that it receives.
struct GrowthDatabase {
    database: TestDatabase,
    traffic: EndpointTraffic,
    events: u64,
    /// Bytes that the events added.
    bytes: u64,
}

impl GrowthDatabase {
    async fn create(options: &GrowthBenchOptions, events: u64) -> anyhow::Result<Self> {
        let database = TestDatabase::new(options.run.engine.engine()).await;
        let sites = create_sites(&database, options.apps)?;
        let clicks = RecentClicks { count: 0, until: 0 };
        let before = stored_bytes(&database).await?;
        fill(&database, &sites, clicks, events).await?;
        let bytes = stored_bytes(&database).await?.saturating_sub(before);
        Ok(Self {
            database,
            traffic: EndpointTraffic {
                endpoint: MeasuredEndpoint::WebEvents,
                sites,
                clicks,
                devices: 0,
            },
            events,
            bytes,
        })
    }

    fn serve(&self, options: &GrowthBenchOptions) -> anyhow::Result<Side> {
        let server = Server::product_with(&self.database, &IdleConnections::settings())?;
        let engine = Some(options.run.engine.engine());
        let connections = options.run.connections;
        Side::start(server, engine, &self.traffic, connections, self.events)
    }
}

/// A round with the empty and the large database.
struct GrowthRound {
    /// Requests per second with the large database.
    rate: u64,
    /// The same in thousandths of the rate with the empty one.
    rate_kept: u64,
    /// Resident memory of the server with the large database.
    memory: u64,
}

/// Runs the benchmark. The exit code is 1 if a requirement is not met.
pub(crate) fn run(options: &GrowthBenchOptions) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Runtime::new()?;
    let mut requirements = Requirements::default();
    let empty = runtime.block_on(GrowthDatabase::create(options, 0))?;
    options.run.engine.print_conditions(&empty.database)?;
    let large = runtime.block_on(GrowthDatabase::create(options, options.events))?;
    runtime.block_on(print_relations(&large.database));
    let each = large.bytes / options.events.max(1);
    requirements.check(
        each <= EVENT_BYTES_MAX,
        format_args!("at most {EVENT_BYTES_MAX} bytes per event on disk ({each})"),
    );
    let mut large_side = large.serve(options)?;
    let rate = measure_throughput(
        options,
        empty.serve(options)?,
        &mut large_side,
        &mut requirements,
    )?;
    measure_idle_connections(options, &mut large_side, rate, &mut requirements)?;
    large_side.stop()?;
    measure_start(&large.database, &mut requirements)?;
    Ok(ExitCode::from(u8::from(!requirements.all_met())))
}

/// Alternates rounds with the empty and the large database. Returns the rate with the large one.
fn measure_throughput(
    options: &GrowthBenchOptions,
    mut empty: Side,
    large: &mut Side,
    requirements: &mut Requirements,
) -> anyhow::Result<u64> {
    let time = options.run.round_time();
    let measured = run_rounds(options.run.rounds, REPETITIONS_MAX, |number| {
        let without = empty.run_round(LoadPace::FlatOut, time)?.rate;
        let rate = large.run_round(LoadPace::FlatOut, time)?.rate;
        let round = GrowthRound {
            rate,
            rate_kept: thousandths(rate, without),
            memory: large.server.memory()?,
        };
        print_line(format_args!(
            "  round {number}: empty {without}/s, {} events {rate}/s, ratio {}, memory {}",
            options.events,
            ratio(round.rate_kept),
            megabytes(round.memory)
        ));
        Ok(round)
    })?;
    empty.stop()?;
    let all = |value: fn(&GrowthRound) -> u64| -> Vec<u64> {
        measured.results.iter().map(value).collect()
    };
    let part = median(all(|round| round.rate_kept)).context("no round")?;
    requirements.check(
        part >= RATE_KEPT_MIN,
        format_args!(
            "throughput at least {} of an empty database ({})",
            ratio(RATE_KEPT_MIN),
            ratio(part)
        ),
    );
    check_memory(&all(|round| round.memory), requirements);
    median(all(|round| round.rate)).context("no round")
}

fn check_memory(samples: &[u64], requirements: &mut Requirements) {
    let most = samples.iter().max().copied().unwrap_or_default();
    requirements.check(
        most <= MEMORY_MAX,
        format_args!(
            "memory at full load at most {} ({})",
            megabytes(MEMORY_MAX),
            megabytes(most)
        ),
    );
    let growth = match samples {
        [first, .., last] => last.saturating_sub(*first),
        _ => 0,
    };
    requirements.check(
        growth <= MEMORY_GROWTH_MAX,
        format_args!(
            "memory after the last round at most {} above the first ({})",
            megabytes(MEMORY_GROWTH_MAX),
            megabytes(growth)
        ),
    );
}

/// Measures the time to start after a clean stop.
fn measure_start(database: &TestDatabase, requirements: &mut Requirements) -> anyhow::Result<()> {
    let started = Instant::now();
    let server = Server::product(database)?;
    let (head, _) = send_request(server.address, "GET", "/readyz", "", "")?;
    let elapsed = started.elapsed();
    if !head.starts_with("HTTP/1.1 200") {
        bail!("the server is not ready: {head}");
    }
    server.stop()?;
    requirements.check(
        elapsed <= START_MAX,
        format_args!(
            "ready at most {} after the start ({})",
            millis(START_MAX),
            millis(elapsed)
        ),
    );
    Ok(())
}

/// Alternates rounds without and with idle connections, at 70 % of the maximum.
fn measure_idle_connections(
    options: &GrowthBenchOptions,
    side: &mut Side,
    rate: u64,
    requirements: &mut Requirements,
) -> anyhow::Result<()> {
    let pace = LoadPace::PerSecond(rate * PACED_PERCENT / 100);
    let time = options.run.round_time();
    let measured = run_rounds(options.run.rounds, REPETITIONS_MAX, |number| {
        let mut p99 = |count: usize| {
            let idle = IdleConnections::open(side.server.address, count)?;
            let outcome = side.run_round(pace, time)?.outcome;
            let line = summary_line(&outcome);
            print_line(format_args!("  round {number}, {count} idle: {line}"));
            idle.check_all_open()?;
            anyhow::Ok(outcome.times.p99)
        };
        Ok((p99(0)?, p99(options.idle)?))
    })?;
    let (without, with): (Vec<_>, Vec<_>) = measured.results.into_iter().unzip();
    let (without, with) = (
        median(without).context("no round")?,
        median(with).context("no round")?,
    );
    let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let times = thousandths(nanos(with), nanos(without));
    requirements.check(
        times <= P99_TIMES_MAX,
        format_args!(
            "p99 with {} idle connections at most {} times that without ({}: {} and {})",
            options.idle,
            ratio(P99_TIMES_MAX),
            ratio(times),
            millis(with),
            millis(without)
        ),
    );
    Ok(())
}

/// Returns the bytes of all tables and indexes.
async fn stored_bytes(database: &TestDatabase) -> anyhow::Result<u64> {
    let sql = match database.engine() {
        Engine::Sqlite => {
            "select (page_count - freelist_count) * page_size \
             from pragma_page_count, pragma_freelist_count, pragma_page_size"
        }
        Engine::Postgres => {
            "select sum(pg_total_relation_size(oid)) from pg_class \
             where relkind = 'r' and relnamespace = current_schema()::regnamespace"
        }
    };
    let rows = database.direct_connection().await.rows(sql).await;
    let bytes = rows.first().and_then(|row| row.first()?.as_deref());
    Ok(bytes.context("no size of the database")?.parse()?)
}

/// Prints the largest tables and indexes.
async fn print_relations(database: &TestDatabase) {
    let sql = match database.engine() {
        Engine::Sqlite => "select name, sum(pgsize) from dbstat group by name order by 2 desc",
        Engine::Postgres => {
            "select relname, pg_relation_size(oid) from pg_class \
             where relkind in ('r', 'i') and relnamespace = current_schema()::regnamespace \
             order by 2 desc"
        }
    };
    let rows = database.direct_connection().await.rows(sql).await;
    for row in rows.iter().take(LISTED_RELATIONS) {
        if let [Some(name), Some(bytes)] = &row[..] {
            let bytes = bytes.parse().map(megabytes).unwrap_or_default();
            print_line(format_args!("  {name}: {bytes}"));
        }
    }
}
