//! Reports: latency on a small and on a large data set. The benchmark generates a month of data in
//! two sizes, loads both through the store, and runs the same queries on each.

use crate::child::{Server, move_database};
use crate::engine::EngineArgument;
use crate::machine;
use crate::pace::{Latencies, per_second};
use crate::pages::{PAGES, SignedInBrowser};
use crate::report::{Requirements, megabytes, millis, print_line, ratio};
use crate::site::{BenchSite, send_request};
use anyhow::{Context as _, anyhow, bail};
use clap::Args;
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use tributary_domain::access::Environment;
use tributary_domain::app::AttributionRules;
use tributary_domain::vocabulary::id::{AppId, LinkId};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_server::system::runtime;
use tributary_testkit::{AdLink, Engine, SampleAction, SampleApp, TestDatabase, apply_all};

const DAYS: u32 = 30;
const DAY_MILLIS: i64 = 24 * 60 * 60 * 1_000;
/// Maximum latency on the large month, in thousandths of the latency on the small month.
const GROWTH_MAX: u64 = 2_000;
/// Maximum median latency of a report.
const P50_MAX: Duration = Duration::from_millis(20);
/// Maximum median latency of a dashboard page.
const PAGE_P50_MAX: Duration = Duration::from_millis(100);
/// Maximum bytes transferred by a first visit to the overview.
const TRANSFER_BYTES_MAX: u64 = 200_000;
/// Required load rate in events per second.
const LOADED_MIN: u64 = 50_000;
/// Required export rate in events per second.
const EXPORTED_MIN: u64 = 200_000;

/// Measured queries, relative to the app's path. `{device}` is a device of the month.
const QUERIES: [&str; 7] = [
    "overview",
    "stats?groupBy=day,network",
    "events",
    "events?eventId=0-0-0-0",
    "events?deviceId={device}",
    "events?userId=user-0",
    "events?name=quest_7",
];

/// Command-line options.
#[derive(Debug, Args)]
pub(crate) struct ReportsBenchOptions {
    /// Database engine. `PostgreSQL` uses the server in `TEST_DATABASE_URL`, in a temporary schema.
    #[arg(long, value_enum, default_value_t = EngineArgument::Sqlite)]
    engine: EngineArgument,
    /// Load the embedded database and move it to `PostgreSQL`, which takes a fraction of the time.
    #[arg(long)]
    through_sqlite: bool,
    /// Approximate number of events in the small month.
    #[arg(long, default_value_t = 100_000)]
    small: u64,
    /// Approximate number of events in the large month.
    #[arg(long, default_value_t = 10_000_000)]
    large: u64,
    /// Requests per query.
    #[arg(long, default_value_t = 41)]
    times: usize,
    /// Seed for the generated months.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Results for one month.
struct MonthMeasurements {
    events: u64,
    loaded: u64,
    times: Vec<Latencies>,
    exported: u64,
    pages: Vec<Latencies>,
    transferred: u64,
}

/// Runs the benchmark. The exit code is 1 if a requirement is not met.
pub(crate) fn run(options: &ReportsBenchOptions) -> anyhow::Result<ExitCode> {
    print_line(options.engine.durability());
    print_line(format_args!(
        "{} cores for server, database and client",
        machine::cores()
    ));
    let small = measure(options, options.small)?;
    let large = measure(options, options.large)?;
    let mut requirements = Requirements::default();
    for (index, query) in QUERIES.iter().enumerate() {
        let (small_p50, large_p50) = (small.times[index].p50, large.times[index].p50);
        let growth = thousandths(large_p50, small_p50);
        print_line(format_args!(
            "{query}: p50 {} with {} events, {} with {}",
            millis(small_p50),
            small.events,
            millis(large_p50),
            large.events
        ));
        requirements.check(
            growth <= GROWTH_MAX,
            format_args!("at most twice the latency ({})", ratio(growth)),
        );
        requirements.check(
            large_p50 < P50_MAX,
            format_args!("less than {}", millis(P50_MAX)),
        );
    }
    let loaded = large.loaded;
    requirements.check(
        loaded >= LOADED_MIN,
        format_args!("at least {LOADED_MIN} events loaded/s ({loaded})"),
    );
    let exported = large.exported;
    requirements.check(
        exported >= EXPORTED_MIN,
        format_args!("at least {EXPORTED_MIN} events exported/s ({exported})"),
    );
    for (page, times) in PAGES.iter().zip(&large.pages) {
        let p50 = times.p50;
        requirements.check(
            p50 < PAGE_P50_MAX,
            format_args!(
                "{page} in less than {} ({})",
                millis(PAGE_P50_MAX),
                millis(p50)
            ),
        );
    }
    let transferred = large.transferred;
    requirements.check(
        transferred <= TRANSFER_BYTES_MAX,
        format_args!("overview transfers at most {TRANSFER_BYTES_MAX} bytes ({transferred})"),
    );
    Ok(ExitCode::from(u8::from(!requirements.all_met())))
}

fn thousandths(part: Duration, whole: Duration) -> u64 {
    let share = part.as_nanos() * 1_000 / whole.as_nanos().max(1);
    u64::try_from(share).unwrap_or(u64::MAX)
}

fn measure(options: &ReportsBenchOptions, size: u64) -> anyhow::Result<MonthMeasurements> {
    let runtime = tokio::runtime::Runtime::new()?;
    let engine = options.engine.engine();
    let is_moved = options.through_sqlite && engine == Engine::Postgres;
    let loaded_engine = if is_moved { Engine::Sqlite } else { engine };
    let mut database = runtime.block_on(TestDatabase::new(loaded_engine));
    let server = Server::product(&database)?;
    let site = BenchSite::open(&server, &database)?;
    let month = month(&server, &site, (size, options.seed))?;
    server.stop()?;
    let (events, elapsed) = runtime.block_on(load(&database, &month))?;
    let loaded = per_second(events, elapsed);
    print_line(format_args!(
        "{events} events loaded in {elapsed:.1?}: {loaded}/s"
    ));
    if is_moved {
        let target = runtime.block_on(TestDatabase::new(engine));
        let elapsed = move_database(&database, &target)?;
        print_line(format_args!("moved to PostgreSQL in {elapsed:.1?}"));
        database = target;
    }

    let server = Server::product(&database)?;
    let device = newest_device(&server, &site)?;
    let mut times = Vec::new();
    for query in QUERIES {
        let query = query.replace("{device}", &device);
        times.push(measure_query(&server, &site, &query, options.times)?);
    }
    let browser = SignedInBrowser::sign_up(&server, &database)?;
    let items = browser.find_items(&server, &site)?;
    let pages = PAGES
        .iter()
        .map(|page| {
            let page = items
                .iter()
                .fold(page.replace("{device}", &device), |page, (mark, id)| {
                    page.replace(mark, id)
                });
            browser.measure_page(&server, &site, &page, options.times)
        })
        .collect::<anyhow::Result<_>>()?;
    let transferred = browser.transfer(&server, &site)?;
    let (installs, elapsed) = what_if(&server, &site)?;
    print_line(format_args!(
        "what-if replayed {installs} installs in {elapsed:.1?}"
    ));
    let (bytes, elapsed) = export(&server, &site)?;
    let exported = per_second(events, elapsed);
    print_line(format_args!(
        "{} exported in {elapsed:.1?}: {exported} events/s",
        megabytes(bytes)
    ));
    print_line(format_args!(
        "server memory: {}",
        megabytes(server.memory()?)
    ));
    server.stop()?;
    Ok(MonthMeasurements {
        events,
        loaded,
        times,
        exported,
        pages,
        transferred,
    })
}

/// Describes the month up to today, for an app with four links and a website.
pub(crate) fn month(
    server: &Server,
    site: &BenchSite,
    (size, seed): (u64, u64),
) -> anyhow::Result<SampleApp> {
    let mut links = Vec::new();
    for number in 0..4 {
        let body = json!({"name": format!("Link {number}"), "fallbackUrl": "https://example.com"});
        let created = site.call(server.address, "POST", "/links", &body)?;
        links.push(AdLink {
            link: link(&created["data"])?,
            network: None,
        });
    }
    let listed = site.call(server.address, "GET", "/links", &Value::Null)?;
    let listed = listed["data"].as_array().context("no list of links")?;
    let funnel = listed.iter().find(|link| link["type"] == "web_funnel");
    let now = runtime().now().as_millis();
    let begin = (now / DAY_MILLIS - i64::from(DAYS)) * DAY_MILLIS;
    Ok(SampleApp {
        app: AppId::parse(&site.app).map_err(|_| anyhow!("invalid app id"))?,
        rules: AttributionRules::default(),
        links,
        funnel: link(funnel.context("no web funnel link")?)?,
        environment: Environment::Live,
        begin: Timestamp::from_millis(begin),
        days: DAYS,
        events: size,
        seed,
    })
}

fn link(shape: &Value) -> anyhow::Result<LinkId> {
    let id = shape["id"].as_str().context("no id in the response")?;
    LinkId::parse(id).map_err(|_| anyhow!("invalid link id"))
}

/// Loads a month directly into the store, without HTTP. Time spent generating the data is not
/// counted.
pub(crate) async fn load(
    database: &TestDatabase,
    month: &SampleApp,
) -> anyhow::Result<(u64, Duration)> {
    let store = database.open().await;
    let (mut events, mut elapsed) = (0, Duration::ZERO);
    for day in 0..month.days {
        for stage in month.day(day) {
            events += stage.iter().map(SampleAction::events).sum::<u64>();
            let started = Instant::now();
            apply_all(&store, stage).await?;
            elapsed += started.elapsed();
        }
    }
    store.close().await;
    Ok((events, elapsed))
}

/// Returns the headers of a request with the site's key.
pub(crate) fn headers(site: &BenchSite) -> String {
    format!("Authorization: Bearer {}\r\n", site.key)
}

/// Returns the device of the newest SDK event.
fn newest_device(server: &Server, site: &BenchSite) -> anyhow::Result<String> {
    let path = "/events?source=sdk&limit=1";
    let newest = site.call(server.address, "GET", path, &Value::Null)?;
    let device = newest["data"][0]["deviceId"].as_str();
    Ok(device.context("no SDK event with a device")?.to_owned())
}

fn measure_query(
    server: &Server,
    site: &BenchSite,
    query: &str,
    times: usize,
) -> anyhow::Result<Latencies> {
    let path = format!("/api/v1/apps/{}/{query}", site.app);
    let mut latencies = Vec::with_capacity(times);
    // The first request warms caches and is not counted.
    for number in 0..=times {
        let started = Instant::now();
        let (head, body) = send_request(server.address, "GET", &path, &headers(site), "")?;
        if !head.starts_with("HTTP/1.1 200") {
            bail!("{path}: {body}");
        }
        if number > 0 {
            latencies.push(started.elapsed());
        }
    }
    Ok(Latencies::of(latencies))
}

/// Replays the newest installs under a shorter click window. Returns their number and the time.
fn what_if(server: &Server, site: &BenchSite) -> anyhow::Result<(u64, Duration)> {
    let started = Instant::now();
    let rules = json!({"attribution": {"clickWindowHours": 24}});
    let answer = site.call(server.address, "POST", "/attribution/what-if", &rules)?;
    let replayed = answer["data"]["installs"].as_u64();
    Ok((
        replayed.context("no number of installs")?,
        started.elapsed(),
    ))
}

/// Exports all events. Returns the bytes and the time.
fn export(server: &Server, site: &BenchSite) -> anyhow::Result<(u64, Duration)> {
    let started = Instant::now();
    let mut stream = TcpStream::connect(server.address)?;
    write!(
        stream,
        "GET /api/v1/apps/{}/export?format=ndjson HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n{}\r\n",
        site.app,
        headers(site)
    )?;
    let (mut bytes, mut buffer, mut last) = (0, vec![0; 1 << 20], Vec::new());
    loop {
        let read = stream.read(&mut buffer)?;
        if read == 0 {
            break;
        }
        bytes += u64::try_from(read)?;
        last.extend_from_slice(&buffer[..read]);
        let rest = last.len().saturating_sub(5);
        last.drain(..rest);
    }
    if last != b"0\r\n\r\n" {
        bail!("the export is incomplete");
    }
    Ok((bytes, started.elapsed()))
}
