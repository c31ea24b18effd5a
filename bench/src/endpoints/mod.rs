//! The endpoints that record data, compared with a bare axum server that parses the same requests.
//!
//! Rounds alternate between the bare server and the product, so that other activity on the machine
//! affects both. Pairs of rounds during which the host took away cores are repeated. The results
//! are medians.

mod fixture;
mod result;
pub(crate) mod traffic;

use crate::load::{LoadResult, StopCondition};
use crate::machine;
use crate::options::{EndpointSelection, RunOptions};
use crate::pace::{LoadPace, median};
use crate::report::{Requirements, print_line, ratio, summary_line};
use crate::rounds::{MeasuredRounds, REPETITIONS_MAX, run_rounds};
use anyhow::Context as _;
use clap::Args;
use fixture::EndpointFixture;
pub(crate) use fixture::{Side, create_sites, fill};
use result::{EndpointResult, ThroughputRound, print_table, to_json};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use traffic::MeasuredEndpoint;
use tributary_testkit::Engine;

/// Warm-up before each measured round.
const WARM_UP: Duration = Duration::from_secs(1);
/// Load for latency measurements, in percent of the own maximum throughput.
const PACED_PERCENT: u64 = 70;
/// Postbacks in a closed loop, per second of a round. They are signed in advance, so a round has a
/// fixed number of them.
const POSTBACKS_PER_SECOND: u64 = 2_000;

/// Command-line options.
#[derive(Debug, Args)]
pub(crate) struct EndpointsBenchOptions {
    #[command(flatten)]
    run: RunOptions,
    #[command(flatten)]
    selection: EndpointSelection,
    /// Number of apps that the requests go to in turn; several numbers, separated by commas, are
    /// measured one after the other.
    #[arg(long, value_delimiter = ',', default_value = "100")]
    apps: Vec<u32>,
    /// Web events stored before `web-events`, `sdk-events` and `billing`.
    #[arg(long, default_value_t = 100_000)]
    events_before: u64,
    /// Clicks of the last 20 hours stored before `clicks` and `configure`. Published results use a
    /// million.
    #[arg(long, default_value_t = 100_000)]
    clicks_before: u64,
    /// Configured devices that send `sdk-events`.
    #[arg(long, default_value_t = 10_000)]
    devices: u64,
    /// Distribute the tables first. `TEST_DATABASE_URL` then names the coordinator of a Citus
    /// cluster, whose setting `citus.shard_count` says how many shards there are.
    #[arg(long)]
    distributed: bool,
    /// Measure throughput only, not latency.
    #[arg(long)]
    no_latency: bool,
    /// Also write the results to this file, as JSON.
    #[arg(long)]
    json: Option<PathBuf>,
}

/// Runs the benchmark. The exit code is 1 if a requirement is not met.
pub(crate) fn run(options: &EndpointsBenchOptions) -> anyhow::Result<ExitCode> {
    let mut results = Vec::new();
    let mut requirements = Requirements::default();
    for endpoint in &options.selection.endpoint {
        for apps in &options.apps {
            let result = measure(options, *endpoint, *apps)?;
            result.check(&mut requirements);
            results.push(result);
            // After each measurement, so that an interrupted run leaves its results.
            if let Some(file) = &options.json {
                std::fs::write(file, to_json(&results)?)
                    .with_context(|| format!("cannot write {}", file.display()))?;
            }
        }
    }
    print_table(&results);
    Ok(ExitCode::from(u8::from(!requirements.all_met())))
}

/// Measures an endpoint.
fn measure(
    options: &EndpointsBenchOptions,
    endpoint: MeasuredEndpoint,
    apps: u32,
) -> anyhow::Result<EndpointResult> {
    let runtime = tokio::runtime::Runtime::new()?;
    let mut fixture = runtime.block_on(EndpointFixture::open(options, endpoint, apps))?;
    warm_up(endpoint, &mut fixture.product)?;
    runtime.block_on(fixture.collect_statistics());
    let throughput = measure_throughput(options, endpoint, &mut fixture)?;
    let memory = fixture.product.server.memory()?;
    let latency = if options.no_latency {
        MeasuredRounds::default()
    } else {
        measure_latency(options, &mut fixture, &throughput.results)?
    };
    if endpoint == MeasuredEndpoint::Configure {
        fixture.print_matches()?;
    }
    fixture.close()?;
    let (bare, product): (Vec<_>, Vec<_>) = latency.results.into_iter().unzip();
    Ok(EndpointResult {
        endpoint,
        engine: options.run.engine,
        apps,
        rounds: throughput.results,
        p99: median(bare).zip(median(product)),
        memory,
        stolen: throughput.stolen.max(latency.stolen),
    })
}

/// Alternates rounds with the bare server and the product in a closed loop.
fn measure_throughput(
    options: &EndpointsBenchOptions,
    endpoint: MeasuredEndpoint,
    fixture: &mut EndpointFixture,
) -> anyhow::Result<MeasuredRounds<ThroughputRound>> {
    let time = options.run.round_time();
    run_rounds(options.run.rounds, REPETITIONS_MAX, |number| {
        let bare = fixture.bare.run_round(LoadPace::FlatOut, time)?;
        let product = match endpoint {
            MeasuredEndpoint::Postbacks => run_postbacks(options, &mut fixture.product)?,
            _ => fixture.product.run_round(LoadPace::FlatOut, time)?,
        };
        let round = ThroughputRound { bare, product };
        print_line(format_args!("  round {number}: {}", round.line()));
        Ok(round)
    })
}

/// Alternates rounds at 70 % of each side's maximum rate. Returns the p99 of the bare server and of the
/// product.
fn measure_latency(
    options: &EndpointsBenchOptions,
    fixture: &mut EndpointFixture,
    throughput: &[ThroughputRound],
) -> anyhow::Result<MeasuredRounds<(Duration, Duration)>> {
    let pace = |side: fn(&ThroughputRound) -> &SideRound| {
        let rates = throughput.iter().map(|round| side(round).rate);
        let rate = median(rates.collect()).unwrap_or_default();
        LoadPace::PerSecond(rate * PACED_PERCENT / 100)
    };
    let bare_pace = pace(|round| &round.bare);
    let product_pace = pace(|round| &round.product);
    let time = options.run.round_time();
    run_rounds(options.run.rounds, REPETITIONS_MAX, |number| {
        let p99 = |name: &str, side: &mut Side, pace: LoadPace| {
            let outcome = side.run_round(pace, time)?.outcome;
            let line = summary_line(&outcome);
            print_line(format_args!("  paced round {number}: {name} {line}"));
            anyhow::Ok(outcome.times.p99)
        };
        Ok((
            p99("bare", &mut fixture.bare, bare_pace)?,
            p99("product", &mut fixture.product, product_pace)?,
        ))
    })
}

/// Result of one round on one side.
#[derive(Debug)]
pub(crate) struct SideRound {
    pub(crate) outcome: LoadResult,
    pub(crate) rate: u64,
    /// CPU time per request of the server, of PostgreSQL and of the load generator.
    pub(crate) server: Duration,
    pub(crate) postgres: Duration,
    pub(crate) load: Duration,
}

/// Sends a fixed number of postbacks in a closed loop.
fn run_postbacks(options: &EndpointsBenchOptions, side: &mut Side) -> anyhow::Result<SideRound> {
    warm_up(MeasuredEndpoint::Postbacks, side)?;
    side.measure(LoadPace::FlatOut, postbacks_of(options.run.seconds))
}

fn postbacks_of(seconds: u64) -> StopCondition {
    StopCondition::Sent(seconds * POSTBACKS_PER_SECOND)
}

fn warm_up(endpoint: MeasuredEndpoint, side: &mut Side) -> anyhow::Result<()> {
    let end = match endpoint {
        MeasuredEndpoint::Postbacks => postbacks_of(WARM_UP.as_secs()),
        _ => StopCondition::After(WARM_UP),
    };
    side.load.run(LoadPace::FlatOut, end)?;
    Ok(())
}

impl Side {
    /// Runs a round after a warm-up.
    pub(crate) fn run_round(
        &mut self,
        pace: LoadPace,
        time: Duration,
    ) -> anyhow::Result<SideRound> {
        self.load.run(pace, StopCondition::After(WARM_UP))?;
        self.measure(pace, StopCondition::After(time))
    }

    /// Runs the load and measures the CPU time meanwhile.
    fn measure(&mut self, pace: LoadPace, end: StopCondition) -> anyhow::Result<SideRound> {
        let postgres_time = |side: &Self| match side.engine {
            Some(Engine::Postgres) => machine::postgres_processor_time(),
            _ => Ok(Duration::ZERO),
        };
        let before = (self.server.processor_time()?, postgres_time(self)?);
        let outcome = self.load.run(pace, end)?;
        let answered = u32::try_from(outcome.answered)?.max(1);
        let each = |after: Duration, before: Duration| after.saturating_sub(before) / answered;
        Ok(SideRound {
            rate: outcome.per_second,
            server: each(self.server.processor_time()?, before.0),
            postgres: each(postgres_time(self)?, before.1),
            load: outcome.processor_time / answered,
            outcome,
        })
    }
}

/// Formats thousandths as `min to max`.
fn range(values: &[u64]) -> String {
    let shown = |value: Option<&u64>| value.map_or_else(String::new, |value| ratio(*value));
    let (least, most) = (values.iter().min(), values.iter().max());
    format!("{} to {}", shown(least), shown(most))
}
