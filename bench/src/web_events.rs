//! `POST /api/v1/apps/{appId}/web-events`, with all its checks, against a route of the same server that only parses
//! the same body.
//!
//! Rounds alternate, so that whatever else the machine does meets both sides; medians count.

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

/// What comes before each measured round and is not counted.
const WARM_UP: Duration = Duration::from_secs(1);
/// The share of its own maximum at which a side's times are taken, in percent.
const PACED_PERCENT: u64 = 70;
/// How many times the bare side's p99 the product's may be.
const P99_TIMES_MAX: u64 = 10;
/// How often memory is looked at.
const MEMORY_POINTS: u64 = 10;
/// How much more than at the first look it may be at the last and be called flat: what allocators and caches that
/// fill up once come to, and far less than anything that is kept for each of a million events.
const MEMORY_GROWTH_MAX: u64 = 16 * 1024 * 1024;

/// What can be set.
#[derive(Debug, Args)]
pub(crate) struct WebEventsBenchOptions {
    /// The database. PostgreSQL is the server of `TEST_DATABASE_URL`, in a schema of the run's own.
    #[arg(long, value_enum, default_value_t = EngineArgument::Sqlite)]
    engine: EngineArgument,
    /// Events that the database holds before.
    #[arg(long, default_value_t = 1_000_000)]
    events_before: u64,
    /// How long a round is.
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// What the ids of events and devices look like.
    #[arg(long, value_enum, default_value_t = IdOrder::InOrder)]
    ids: IdOrder,
    /// Connections of the load.
    #[arg(long, default_value_t = 64)]
    connections: usize,
    /// Rounds of each side.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Events over which memory is watched.
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

    /// The part of the bare side's rate that is demanded, in thousandths.
    const fn floor(self) -> u64 {
        match self {
            Self::Sqlite => 350,
            Self::Postgres => 150,
        }
    }

    /// What an answer promises.
    pub(crate) const fn durability(self) -> &'static str {
        match self {
            Self::Sqlite => {
                "SQLite, durable: the log that an event is in is synced to disk before it is answered"
            }
            Self::Postgres => {
                "PostgreSQL, durable: synchronous_commit=on, fsync=on; an event is committed before it is answered"
            }
        }
    }
}

/// A server and its load.
struct Side {
    server: Server,
    load: Load<Template>,
}

/// Both sides, ready to be measured.
struct Sides {
    product: Side,
    bare: Side,
}

/// What a round of one side came to.
struct Round {
    outcome: LoadResult,
    /// The server's own, of one request.
    processor_time: Duration,
}

/// Measures; the exit code says whether the floors are held.
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
        "each purchase of a device of its own, ids {:?}; {} bytes a body, {} connections, rounds of {} s",
        options.ids,
        sides.product.load.requests.body_length(),
        options.connections,
        options.seconds
    ));
    let mut verdicts = Requirements::default();
    let maxima = throughput(options, &mut sides, &mut verdicts)?;
    measure_latency(options, &mut sides, maxima, &mut verdicts)?;
    memory(options, &mut sides.product, &mut verdicts)?;
    sides.bare.server.stop()?;
    sides.product.server.stop()?;
    Ok(ExitCode::from(u8::from(!verdicts.all_met())))
}

/// Sets a website up and fills the database.
async fn prepare(
    options: &WebEventsBenchOptions,
    database: &TestDatabase,
) -> anyhow::Result<BenchSite> {
    print_line(options.engine.durability());
    print_line(format_args!(
        "{} cores for server, database and load; 8 kB are synced in {}",
        machine::cores(),
        millis(machine::sync_time(&database.folder())?)
    ));
    let server = Server::product(database)?;
    let site = BenchSite::open(&server, database)?;
    server.stop()?;
    let begun = Instant::now();
    let store = database.open().await;
    preload::web_events(store.clone(), &site, options.events_before, options.ids).await?;
    store.close().await;
    let rate = per_second(options.events_before, begun.elapsed());
    print_line(format_args!(
        "{} events stored before, {rate} a second through the port",
        options.events_before
    ));
    Ok(site)
}

/// The most that each side does. Gives the product's and the bare side's.
fn throughput(
    options: &WebEventsBenchOptions,
    sides: &mut Sides,
    verdicts: &mut Requirements,
) -> anyhow::Result<(u64, u64)> {
    print_line("requests a second, as fast as answers come:");
    let (mut products, mut bares) = (Vec::new(), Vec::new());
    for round in 1..=options.rounds {
        let bare = run_round(&mut sides.bare, options, LoadPace::FlatOut)?;
        let product = run_round(&mut sides.product, options, LoadPace::FlatOut)?;
        let (fast, slow) = (bare.outcome.per_second, product.outcome.per_second);
        let part = ratio(thousandths(slow, fast));
        let spent = |round: &Round| round.processor_time.as_micros();
        let (little, much) = (spent(&bare), spent(&product));
        print_line(format_args!(
            "  round {round}: bare {fast} ({little} µs of its processor time each), product {slow} ({much} µs), ratio {part}"
        ));
        products.push(slow);
        bares.push(fast);
    }
    let product = median(products).context("no round")?;
    let bare = median(bares).context("no round")?;
    let part = thousandths(product, bare);
    let (shown, floor) = (ratio(part), options.engine.floor());
    print_line(format_args!(
        "  median: bare {bare}, product {product}, ratio {shown}"
    ));
    verdicts.check(part >= floor, format_args!("at least {}", ratio(floor)));
    Ok((product, bare))
}

/// How long requests take at a constant rate of arrival.
fn measure_latency(
    options: &WebEventsBenchOptions,
    sides: &mut Sides,
    (product, bare): (u64, u64),
    verdicts: &mut Requirements,
) -> anyhow::Result<()> {
    print_line(format_args!(
        "times from the moment a request was due, at {PACED_PERCENT} % of each side's own maximum:"
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
        "  median p99: bare {}, product {}, {} times as long",
        millis(bare),
        millis(product),
        ratio(times)
    ));
    let demand = format_args!("p99 at most {P99_TIMES_MAX} times the bare one's");
    verdicts.check(times <= P99_TIMES_MAX * 1_000, demand);
    Ok(())
}

/// An outcome in one line.
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

/// Whether the server grows with what it was sent.
fn memory(
    options: &WebEventsBenchOptions,
    side: &mut Side,
    verdicts: &mut Requirements,
) -> anyhow::Result<()> {
    let part = options.memory_events / MEMORY_POINTS;
    if part == 0 {
        return Ok(());
    }
    print_line(format_args!(
        "the server's memory over {} events:",
        part * MEMORY_POINTS
    ));
    let mut seen = Vec::new();
    let mut answered = 0;
    for _ in 0..MEMORY_POINTS {
        answered += side
            .load
            .run(LoadPace::FlatOut, StopCondition::Sent(part))?
            .answered;
        let bytes = side.server.memory()?;
        print_line(format_args!("  after {answered}: {}", megabytes(bytes)));
        seen.push(bytes);
    }
    let growth = match (seen.first(), seen.last()) {
        (Some(first), Some(last)) => last.saturating_sub(*first),
        _ => 0,
    };
    let demand = format_args!(
        "flat: no more than {} above the first look at the last",
        megabytes(MEMORY_GROWTH_MAX)
    );
    verdicts.check(growth <= MEMORY_GROWTH_MAX, demand);
    Ok(())
}
