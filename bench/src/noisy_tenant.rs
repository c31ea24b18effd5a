//! One noisy tenant: taps and web events of quiet tenants without and with 48 concurrent reports of
//! another organization's key, and the server's memory with 80 slow readers of exports.
//!
//! Rounds alternate, so that other activity on the machine affects both. On a virtual machine, the
//! host may take the cores away for tens of milliseconds, which is all that a p99 then shows. Such
//! rounds are repeated. The results are medians.

use crate::child::Server;
use crate::engine::EngineArgument;
use crate::load::{Load, LoadResult, StopCondition};
use crate::pace::{LoadPace, median, thousandths};
use crate::preload;
use crate::quiet_tenants::{QuietTenants, create_tenants};
use crate::report::summary_line;
use crate::report::{Requirements, megabytes, millis, print_line, ratio};
use crate::rounds::run_rounds;
use crate::site::{BenchSite, send_request};
use crate::template::IdOrder;
use anyhow::{Context as _, anyhow, ensure};
use clap::Args;
use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tributary_testkit::TestDatabase;

/// Warm-up before each measured round.
const WARM_UP: Duration = Duration::from_secs(1);
/// Maximum p99 with the noisy tenant, in thousandths of the p99 without.
const P99_TIMES_MAX: u64 = 2_000;
/// Maximum number of repetitions of disturbed rounds, for each round that counts. More than in other
/// benchmarks, because this one fails if a round is still disturbed.
const REPETITIONS_PER_ROUND: usize = 5;
/// Maximum growth of the server's memory by slow readers of exports.
const MEMORY_GROWTH_MAX: u64 = 64 * 1024 * 1024;
/// How long the slow readers stay connected.
const SLOW_READING: Duration = Duration::from_secs(10);
/// Interval between memory samples.
const MEMORY_INTERVAL: Duration = Duration::from_millis(250);
/// Pause of a noisy client after 429. Much shorter than `Retry-After` asks for.
const REJECTED_PAUSE: Duration = Duration::from_millis(100);
/// How long an export may take to answer.
const EXPORT_ANSWER_MAX: Duration = Duration::from_secs(20);

/// The noisy tenant's reports, relative to its app's path.
const REPORTS: [&str; 3] = [
    "overview",
    "stats?groupBy=day,link,campaign",
    "events?name=missing",
];

/// Command-line options.
#[derive(Debug, Args)]
pub(crate) struct NoisyTenantBenchOptions {
    /// Database engine. PostgreSQL uses the server in `TEST_DATABASE_URL`, in a temporary schema.
    #[arg(long, value_enum, default_value_t = EngineArgument::Sqlite)]
    engine: EngineArgument,
    /// Events of the noisy tenant, stored before the benchmark starts.
    #[arg(long, default_value_t = 300_000)]
    events_before: u64,
    /// Number of quiet tenants.
    #[arg(long, default_value_t = 9)]
    quiet: usize,
    /// Concurrent reports of the noisy tenant.
    #[arg(long, default_value_t = 48)]
    reports: usize,
    /// Taps per second of all quiet tenants together, and as many web events.
    #[arg(long, default_value_t = 200)]
    rate: u64,
    /// Length of a round in seconds.
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Number of undisturbed rounds without and with the noisy tenant.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Number of slow readers of exports.
    #[arg(long, default_value_t = 80)]
    exports: usize,
}

/// Responses to the noisy tenant.
#[derive(Debug, Default)]
struct NoiseCounts {
    answered: AtomicU64,
    rejected: AtomicU64,
    /// Other responses by status. The status is empty if the server did not respond.
    others: Mutex<BTreeMap<String, u64>>,
}

/// Results of the quiet tenants in one round.
struct QuietRound {
    taps: LoadResult,
    events: LoadResult,
}

struct Bench<'a> {
    options: &'a NoisyTenantBenchOptions,
    server: Server,
    noisy: BenchSite,
    analytics_key: String,
    taps: Load<QuietTenants>,
    events: Load<QuietTenants>,
    /// Taps that the server answered, in all rounds.
    answered_taps: u64,
}

/// Runs the benchmark. The exit code is 1 if a requirement is not met.
pub(crate) fn run(options: &NoisyTenantBenchOptions) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Runtime::new()?;
    let database = runtime.block_on(TestDatabase::new(options.engine.engine()));
    options.engine.print_conditions(&database)?;
    let mut bench = Bench::open(options, &database, &runtime)?;
    let before = runtime.block_on(database.ids("clicks", "click_id")).len();
    let mut requirements = Requirements::default();
    bench.measure_rounds(&mut requirements)?;
    let after = runtime.block_on(database.ids("clicks", "click_id")).len();
    let recorded = u64::try_from(after - before)?;
    let unrecorded = bench.answered_taps.saturating_sub(recorded);
    let taps = bench.answered_taps;
    requirements.check(
        unrecorded == 0,
        format_args!("no tap unrecorded ({unrecorded} of {taps})"),
    );
    bench.measure_export_memory(&mut requirements)?;
    bench.server.stop()?;
    Ok(ExitCode::from(u8::from(!requirements.all_met())))
}

impl<'a> Bench<'a> {
    /// Creates the tenants and fills the noisy tenant's app.
    fn open(
        options: &'a NoisyTenantBenchOptions,
        database: &TestDatabase,
        runtime: &tokio::runtime::Runtime,
    ) -> anyhow::Result<Self> {
        let mut keys = runtime.block_on(create_tenants(database, options.quiet + 1))?;
        let server = Server::product(database)?;
        let noisy_keys = keys.pop().context("no tenant")?;
        let noisy = BenchSite::for_key(&server, noisy_keys.full, 0)?;
        let mut quiet = Vec::new();
        for (keys, number) in keys.into_iter().zip(1..) {
            quiet.push(BenchSite::for_key(&server, keys.full, number)?);
        }
        server.stop()?;
        let preloaded = async {
            let store = database.open().await;
            let count = options.events_before;
            let noisy = std::slice::from_ref(&noisy);
            preload::web_events(store.clone(), noisy, count, IdOrder::InOrder).await?;
            store.close().await;
            anyhow::Ok(())
        };
        runtime.block_on(preloaded)?;
        let server = Server::product(database)?;
        let load = |requests: QuietTenants| Load {
            address: server.address,
            requests,
            connections: 32,
            next: 0,
        };
        print_line(format_args!(
            "{} quiet tenants with {} taps/s and {} web events/s together; the noisy tenant has {} \
             events and sends {} reports at a time",
            options.quiet, options.rate, options.rate, options.events_before, options.reports
        ));
        Ok(Self {
            options,
            taps: load(QuietTenants::taps(&quiet, server.address)),
            events: load(QuietTenants::web_events(&quiet, server.address)),
            server,
            noisy,
            analytics_key: noisy_keys.analytics,
            answered_taps: 0,
        })
    }

    /// Alternates rounds without and with the noisy tenant, and compares their p99.
    fn measure_rounds(&mut self, requirements: &mut Requirements) -> anyhow::Result<()> {
        let rounds = self.options.rounds;
        let repetitions_max = rounds * REPETITIONS_PER_ROUND;
        let measured = run_rounds(rounds, repetitions_max, |number| self.measure_pair(number))?;
        ensure!(
            measured.are_undisturbed(),
            "not all rounds were undisturbed; the host is too busy for this benchmark"
        );
        let (calm, noisy): (Vec<_>, Vec<_>) = measured.results.into_iter().unzip();
        let mut check = |name: &str, kind: fn(&QuietRound) -> &LoadResult| {
            let p99 = |rounds: &[QuietRound]| {
                let times = rounds.iter().map(|round| kind(round).times.p99);
                times.collect()
            };
            check_p99(name, p99(&calm), p99(&noisy), requirements)
        };
        check("taps", |round| &round.taps)?;
        check("web events", |round| &round.events)
    }

    /// Runs a round without and a round with the noisy tenant.
    fn measure_pair(&mut self, number: usize) -> anyhow::Result<(QuietRound, QuietRound)> {
        let without = self.measure_quiet(&format!("round {number} without"))?;
        let (is_over, counts) = (AtomicBool::new(false), NoiseCounts::default());
        let with = std::thread::scope(|scope| {
            for report in 0..self.options.reports {
                let path = format!(
                    "/api/v1/apps/{}/{}",
                    self.noisy.app,
                    REPORTS[report % REPORTS.len()]
                );
                let (address, key) = (self.server.address, self.analytics_key.clone());
                let (is_over, counts) = (&is_over, &counts);
                scope.spawn(move || make_noise(address, &path, &key, is_over, counts));
            }
            let measured = self.measure_quiet(&format!("round {number} with   "));
            is_over.store(true, Ordering::Relaxed);
            measured
        })?;
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        print_line(format_args!(
            "    noisy tenant: {} reports, {} rejected with 429, others by status: {:?}",
            count(&counts.answered),
            count(&counts.rejected),
            lock(&counts.others)
        ));
        Ok((without, with))
    }

    /// Runs the quiet tenants' taps and web events at the same time.
    fn measure_quiet(&mut self, name: &str) -> anyhow::Result<QuietRound> {
        self.send_quiet(WARM_UP)?;
        let round = self.send_quiet(Duration::from_secs(self.options.seconds))?;
        let show = |kind: &str, outcome: &LoadResult| {
            print_line(format_args!("  {name}: {kind} {}", summary_line(outcome)));
        };
        show("taps      ", &round.taps);
        show("web events", &round.events);
        Ok(round)
    }

    fn send_quiet(&mut self, time: Duration) -> anyhow::Result<QuietRound> {
        let pace = LoadPace::PerSecond(self.options.rate);
        let end = StopCondition::After(time);
        let (taps, events) = (&mut self.taps, &mut self.events);
        let round = std::thread::scope(|scope| {
            let taps = scope.spawn(move || taps.run(pace, end));
            let events = events.run(pace, end)?;
            let taps = taps.join().map_err(|_| anyhow!("the load panicked"))??;
            anyhow::Ok(QuietRound { taps, events })
        })?;
        self.answered_taps += round.taps.answered;
        Ok(round)
    }

    /// Measures the server's memory while clients request exports and do not read them.
    fn measure_export_memory(&self, requirements: &mut Requirements) -> anyhow::Result<()> {
        let before = self.server.memory()?;
        let (mut open, mut accepted) = (Vec::new(), 0);
        for _ in 0..self.options.exports {
            let (stream, status) = request_export(self.server.address, &self.noisy)?;
            accepted += usize::from(status == "200");
            open.push(stream);
        }
        let (started, mut highest) = (Instant::now(), before);
        while started.elapsed() < SLOW_READING {
            std::thread::sleep(MEMORY_INTERVAL);
            highest = highest.max(self.server.memory()?);
        }
        drop(open);
        print_line(format_args!(
            "server memory: {} before, at most {} with {} slow readers of exports ({accepted} \
             accepted, the others rejected with 429)",
            megabytes(before),
            megabytes(highest),
            self.options.exports
        ));
        requirements.check(
            highest.saturating_sub(before) <= MEMORY_GROWTH_MAX,
            format_args!("at most {} more", megabytes(MEMORY_GROWTH_MAX)),
        );
        Ok(())
    }
}

fn lock<T>(counts: &Mutex<T>) -> MutexGuard<'_, T> {
    counts.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Requests reports until the round is over.
fn make_noise(
    server: SocketAddr,
    path: &str,
    key: &str,
    is_over: &AtomicBool,
    counts: &NoiseCounts,
) {
    let headers = format!("Authorization: Bearer {key}\r\n");
    while !is_over.load(Ordering::Relaxed) {
        let answer = send_request(server, "GET", path, &headers, "");
        let head = answer.map(|(head, _)| head).unwrap_or_default();
        let status = head.get(9..12).unwrap_or_default();
        match status {
            "200" => {
                counts.answered.fetch_add(1, Ordering::Relaxed);
            }
            "429" => {
                counts.rejected.fetch_add(1, Ordering::Relaxed);
            }
            other => *lock(&counts.others).entry(other.to_owned()).or_default() += 1,
        }
        if status != "200" {
            std::thread::sleep(REJECTED_PAUSE);
        }
    }
}

/// Requests an export, and reads no more than its status.
fn request_export(server: SocketAddr, site: &BenchSite) -> anyhow::Result<(TcpStream, String)> {
    let mut stream = TcpStream::connect(server)?;
    stream.set_read_timeout(Some(EXPORT_ANSWER_MAX))?;
    let (app, key) = (&site.app, &site.key);
    write!(
        stream,
        "GET /api/v1/apps/{app}/export?format=ndjson HTTP/1.1\r\nHost: bench\r\n\
         Authorization: Bearer {key}\r\n\r\n"
    )?;
    let mut first = [0; 12];
    stream.read_exact(&mut first)?;
    let status = String::from_utf8_lossy(&first[9..]).into_owned();
    Ok((stream, status))
}

/// Compares the medians of the rounds' p99.
fn check_p99(
    kind: &str,
    calm: Vec<Duration>,
    noisy: Vec<Duration>,
    requirements: &mut Requirements,
) -> anyhow::Result<()> {
    let calm = median(calm).context("no round")?;
    let noisy = median(noisy).context("no round")?;
    let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let times = thousandths(nanos(noisy), nanos(calm));
    print_line(format_args!(
        "  median p99 of {kind}: {} without, {} with the noisy tenant, factor {}",
        millis(calm),
        millis(noisy),
        ratio(times)
    ));
    let requirement = format_args!("{kind}: p99 at most twice the p99 without");
    requirements.check(times <= P99_TIMES_MAX, requirement);
    Ok(())
}
