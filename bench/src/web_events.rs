//! `POST /api/v1/apps/{appId}/web-events` compared with a route that only parses the same body.
//!
//! Rounds alternate between the product and the baseline, so that other activity on the machine
//! affects both. The results are medians.

use crate::child::Server;
use crate::load::{Load, LoadResult, StopCondition};
use crate::pace::{Latencies, LoadPace, median, per_second, thousandths};
use crate::report::{Requirements, megabytes, millis, print_line, ratio};
use crate::site::BenchSite;
use crate::template::{IdOrder, Template};
use crate::{bare, machine, preload};
use anyhow::Context as _;
use clap::{Args, ValueEnum};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use tributary_testkit::{Engine, TestDatabase};

/// Warm-up before each measured round.
const WARM_UP: Duration = Duration::from_secs(1);
/// Load for latency measurements, in percent of the maximum throughput, which is measured for the
/// product and the baseline separately.
const PACED_PERCENT: u64 = 70;
/// The product's maximum p99 as a multiple of the baseline's p99.
const P99_TIMES_MAX: u64 = 10;
/// Number of memory samples.
const MEMORY_POINTS: u64 = 10;
/// Maximum growth between the first and the last sample. Allows for allocators and caches that
/// fill once, but not for a leak per event.
const MEMORY_GROWTH_MAX: u64 = 16 * 1024 * 1024;

/// Command-line options.
#[derive(Debug, Args)]
pub(crate) struct WebEventsBenchOptions {
    /// Database engine. PostgreSQL uses the server in `TEST_DATABASE_URL`, in a temporary schema.
    #[arg(long, value_enum, default_value_t = EngineArgument::Sqlite)]
    engine: EngineArgument,
    /// Events stored before the benchmark starts.
    #[arg(long, default_value_t = 1_000_000)]
    events_before: u64,
    /// Length of a round in seconds.
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Order of event and device ids.
    #[arg(long, value_enum, default_value_t = IdOrder::InOrder)]
    ids: IdOrder,
    /// Number of client connections.
    #[arg(long, default_value_t = 64)]
    connections: usize,
    /// Number of rounds for each measurement.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Events sent while memory is sampled.
    #[arg(long, default_value_t = 1_000_000)]
    memory_events: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum EngineArgument {
    Sqlite,
    Postgres,
}

impl EngineArgument {
    pub(crate) const fn engine(self) -> Engine {
        match self {
            Self::Sqlite => Engine::Sqlite,
            Self::Postgres => Engine::Postgres,
        }
    }

    /// Required throughput, in thousandths of the baseline's throughput.
    const fn floor(self) -> u64 {
        match self {
            Self::Sqlite => 350,
            Self::Postgres => 150,
        }
    }

    /// Describes the durability of an acknowledged event.
    pub(crate) const fn durability(self) -> &'static str {
        match self {
            Self::Sqlite => {
                "SQLite, durable: the write-ahead log is synced to disk before the response"
            }
            Self::Postgres => {
                "PostgreSQL, durable: synchronous_commit=on, fsync=on; commits before the response"
            }
        }
    }
}

/// A server and its load generator.
struct Side {
    server: Server,
    load: Load<Template>,
}

/// Product and baseline.
struct Sides {
    product: Side,
    bare: Side,
}

/// Result of one round on one side.
struct Round {
    outcome: LoadResult,
    /// The server's CPU time per request.
    processor_time: Duration,
}

/// Runs the benchmark. The exit code is 1 if a requirement is not met.
pub(crate) fn run(options: &WebEventsBenchOptions) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Runtime::new()?;
    let database = runtime.block_on(TestDatabase::new(options.engine.engine()));
    let beside = runtime.block_on(TestDatabase::new(Engine::Sqlite));
    let site = runtime.block_on(prepare(options, &database))?;
    let side = |server: Server, path: &str| Side {
        load: Load {
            address: server.address,
            requests: site.purchase(server.address, path, options.ids),
            connections: options.connections,
            next: options.events_before,
        },
        server,
    };
    let mut sides = Sides {
        product: side(Server::product(&database)?, &site.path()),
        bare: side(Server::bare(&beside)?, bare::PATH),
    };
    print_line(format_args!(
        "one device per purchase, ids {:?}; {} bytes per body, {} connections, rounds of {} s",
        options.ids,
        sides.product.load.requests.body_length(),
        options.connections,
        options.seconds
    ));
    let mut requirements = Requirements::default();
    let maxima = throughput(options, &mut sides, &mut requirements)?;
    measure_latency(options, &mut sides, maxima, &mut requirements)?;
    memory(options, &mut sides.product, &mut requirements)?;
    sides.bare.server.stop()?;
    sides.product.server.stop()?;
    Ok(ExitCode::from(u8::from(!requirements.all_met())))
}

/// Creates the website and fills the database.
async fn prepare(
    options: &WebEventsBenchOptions,
    database: &TestDatabase,
) -> anyhow::Result<BenchSite> {
    print_line(options.engine.durability());
    print_line(format_args!(
        "{} cores for server, database and load; syncing 8 kB takes {}",
        machine::cores(),
        millis(machine::sync_time(&database.folder())?)
    ));
    let server = Server::product(database)?;
    let site = BenchSite::open(&server, database)?;
    server.stop()?;
    let started = Instant::now();
    let store = database.open().await;
    preload::web_events(store.clone(), &site, options.events_before, options.ids).await?;
    store.close().await;
    let rate = per_second(options.events_before, started.elapsed());
    print_line(format_args!(
        "{} events preloaded through the store port, {rate}/s",
        options.events_before
    ));
    Ok(site)
}

/// Measures the maximum throughput of the product and of the baseline. Returns the product's
/// throughput first.
fn throughput(
    options: &WebEventsBenchOptions,
    sides: &mut Sides,
    requirements: &mut Requirements,
) -> anyhow::Result<(u64, u64)> {
    print_line("requests/s, closed loop:");
    let (mut products, mut bares) = (Vec::new(), Vec::new());
    for round in 1..=options.rounds {
        let bare = run_round(&mut sides.bare, options, LoadPace::FlatOut)?;
        let product = run_round(&mut sides.product, options, LoadPace::FlatOut)?;
        let (bare_rate, product_rate) = (bare.outcome.per_second, product.outcome.per_second);
        let part = ratio(thousandths(product_rate, bare_rate));
        let spent = |round: &Round| round.processor_time.as_micros();
        let (bare_cpu, product_cpu) = (spent(&bare), spent(&product));
        print_line(format_args!(
            "  round {round}: bare {bare_rate} ({bare_cpu} µs CPU each), \
             product {product_rate} ({product_cpu} µs), ratio {part}"
        ));
        products.push(product_rate);
        bares.push(bare_rate);
    }
    let product = median(products).context("no round")?;
    let bare = median(bares).context("no round")?;
    let part = thousandths(product, bare);
    let (shown, floor) = (ratio(part), options.engine.floor());
    print_line(format_args!(
        "  median: bare {bare}, product {product}, ratio {shown}"
    ));
    requirements.check(part >= floor, format_args!("at least {}", ratio(floor)));
    Ok((product, bare))
}

/// Measures latency at a constant arrival rate.
fn measure_latency(
    options: &WebEventsBenchOptions,
    sides: &mut Sides,
    (product, bare): (u64, u64),
    requirements: &mut Requirements,
) -> anyhow::Result<()> {
    print_line(format_args!(
        "latency from the due time, at {PACED_PERCENT} % of each side's maximum:"
    ));
    let pace = |most: u64| LoadPace::PerSecond(most * PACED_PERCENT / 100);
    let (mut products, mut bares) = (Vec::new(), Vec::new());
    for round in 1..=options.rounds {
        let bare = run_round(&mut sides.bare, options, pace(bare))?.outcome;
        print_line(format_args!(
            "  round {round}: bare    {}",
            summary_line(&bare)
        ));
        bares.push(bare.times.p99);
        let product = run_round(&mut sides.product, options, pace(product))?.outcome;
        print_line(format_args!(
            "  round {round}: product {}",
            summary_line(&product)
        ));
        products.push(product.times.p99);
    }
    let product = median(products).context("no round")?;
    let bare = median(bares).context("no round")?;
    let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let times = thousandths(nanos(product), nanos(bare));
    print_line(format_args!(
        "  median p99: bare {}, product {}, factor {}",
        millis(bare),
        millis(product),
        ratio(times)
    ));
    let requirement = format_args!("p99 at most {P99_TIMES_MAX} times the baseline's");
    requirements.check(times <= P99_TIMES_MAX * 1_000, requirement);
    Ok(())
}

/// Formats a result in one line.
pub(crate) fn summary_line(outcome: &LoadResult) -> String {
    let Latencies { p50, p99, max } = outcome.times;
    let rate = outcome.per_second;
    let (p50, p99, max) = (millis(p50), millis(p99), millis(max));
    format!("{rate}/s, p50 {p50}, p99 {p99}, max {max}")
}

fn run_round(
    side: &mut Side,
    options: &WebEventsBenchOptions,
    pace: LoadPace,
) -> anyhow::Result<Round> {
    side.load.run(pace, StopCondition::After(WARM_UP))?;
    let before = side.server.processor_time()?;
    let end = StopCondition::After(Duration::from_secs(options.seconds));
    let outcome = side.load.run(pace, end)?;
    let spent = side.server.processor_time()?.saturating_sub(before);
    let answered = u32::try_from(outcome.answered)?.max(1);
    Ok(Round {
        outcome,
        processor_time: spent / answered,
    })
}

/// Samples the server's memory while events arrive.
fn memory(
    options: &WebEventsBenchOptions,
    side: &mut Side,
    requirements: &mut Requirements,
) -> anyhow::Result<()> {
    let part = options.memory_events / MEMORY_POINTS;
    if part == 0 {
        return Ok(());
    }
    print_line(format_args!(
        "server memory over {} events:",
        part * MEMORY_POINTS
    ));
    let mut samples = Vec::new();
    let mut answered = 0;
    for _ in 0..MEMORY_POINTS {
        answered += side
            .load
            .run(LoadPace::FlatOut, StopCondition::Sent(part))?
            .answered;
        let bytes = side.server.memory()?;
        print_line(format_args!("  after {answered}: {}", megabytes(bytes)));
        samples.push(bytes);
    }
    let growth = match (samples.first(), samples.last()) {
        (Some(first), Some(last)) => last.saturating_sub(*first),
        _ => 0,
    };
    let requirement = format_args!(
        "flat: last sample at most {} above the first",
        megabytes(MEMORY_GROWTH_MAX)
    );
    requirements.check(growth <= MEMORY_GROWTH_MAX, requirement);
    Ok(())
}
