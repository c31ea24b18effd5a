//! Reports: whether they cost the same on a little and on a lot. A month is made up in two sizes, loaded through the
//! store, and the same questions are asked of both.

use crate::child::Server;
use crate::machine;
use crate::pace::{Latencies, per_second};
use crate::pages::{PAGES, SignedInBrowser};
use crate::report::{Requirements, megabytes, millis, print_line, ratio};
use crate::site::{BenchSite, send_request};
use crate::web_events::EngineArgument;
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
use tributary_testkit::{AdLink, SampleAction, SampleApp, TestDatabase, apply_all};

const DAYS: u32 = 30;
const DAY_MILLIS: i64 = 24 * 60 * 60 * 1_000;
/// What a report on the large month may cost, in thousandths of what it costs on the small one.
const GROWTH_MAX: u64 = 2_000;
/// What a report may take.
const P50_MAX: Duration = Duration::from_millis(20);
/// What a page of the dashboard may take.
const PAGE_P50_MAX: Duration = Duration::from_millis(100);
/// What a first visit of the overview may carry.
const TRANSFER_BYTES_MAX: u64 = 300_000;
/// Events a second that loading must reach.
const LOADED_MIN: u64 = 50_000;
/// Events a second that an export must reach.
const EXPORTED_MIN: u64 = 200_000;

/// The questions, below the app; the first two and the first page of the log are what is demanded.
const QUERIES: [&str; 7] = [
    "overview",
    "stats?groupBy=day,network",
    "events",
    "events?eventId=0-0-0-0",
    "events?deviceId=device-0000000000000000",
    "events?userId=user-0",
    "events?name=quest_7",
];

/// What can be set.
#[derive(Debug, Args)]
pub(crate) struct ReportsBenchOptions {
    /// The database. `PostgreSQL` is the server of `TEST_DATABASE_URL`, in a schema of the run's own.
    #[arg(long, value_enum, default_value_t = EngineArgument::Sqlite)]
    engine: EngineArgument,
    /// Events of the small month, about.
    #[arg(long, default_value_t = 100_000)]
    small: u64,
    /// Events of the large month, about.
    #[arg(long, default_value_t = 10_000_000)]
    large: u64,
    /// How often each question is asked.
    #[arg(long, default_value_t = 41)]
    times: usize,
    /// What the months are made of.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// What came of one month.
struct MonthMeasurements {
    events: u64,
    loaded: u64,
    times: Vec<Latencies>,
    exported: u64,
    pages: Vec<Latencies>,
    transferred: u64,
}

/// Measures.
pub(crate) fn run(options: &ReportsBenchOptions) -> anyhow::Result<ExitCode> {
    print_line(options.engine.durability());
    print_line(format_args!(
        "{} cores for server, database and questions",
        machine::cores()
    ));
    let small = measure(options, options.small)?;
    let large = measure(options, options.large)?;
    let mut verdicts = Requirements::default();
    for (place, question) in QUERIES.iter().enumerate() {
        let (little, lot) = (small.times[place].p50, large.times[place].p50);
        let growth = thousandths(lot, little);
        print_line(format_args!(
            "{question}: p50 {} on {} events, {} on {}",
            millis(little),
            small.events,
            millis(lot),
            large.events
        ));
        verdicts.check(
            growth <= GROWTH_MAX,
            format_args!("at most twice as long ({})", ratio(growth)),
        );
        verdicts.check(lot < P50_MAX, format_args!("less than {}", millis(P50_MAX)));
    }
    let loaded = large.loaded;
    verdicts.check(
        loaded >= LOADED_MIN,
        format_args!("{LOADED_MIN} events loaded a second ({loaded})"),
    );
    let exported = large.exported;
    verdicts.check(
        exported >= EXPORTED_MIN,
        format_args!("{EXPORTED_MIN} events exported a second ({exported})"),
    );
    for (page, times) in PAGES.iter().zip(&large.pages) {
        let p50 = times.p50;
        verdicts.check(
            p50 < PAGE_P50_MAX,
            format_args!(
                "{page} in less than {} ({})",
                millis(PAGE_P50_MAX),
                millis(p50)
            ),
        );
    }
    let transferred = large.transferred;
    verdicts.check(
        transferred <= TRANSFER_BYTES_MAX,
        format_args!("the overview carries at most {TRANSFER_BYTES_MAX} bytes ({transferred})"),
    );
    Ok(ExitCode::from(u8::from(!verdicts.all_met())))
}

fn thousandths(part: Duration, whole: Duration) -> u64 {
    let share = part.as_nanos() * 1_000 / whole.as_nanos().max(1);
    u64::try_from(share).unwrap_or(u64::MAX)
}

fn measure(options: &ReportsBenchOptions, size: u64) -> anyhow::Result<MonthMeasurements> {
    let runtime = tokio::runtime::Runtime::new()?;
    let database = runtime.block_on(TestDatabase::new(options.engine.engine()));
    let server = Server::product(&database)?;
    let site = BenchSite::open(&server, &database)?;
    let month = month(&server, &site, options, size)?;
    server.stop()?;
    let (events, took) = runtime.block_on(load(&database, &month))?;
    let loaded = per_second(events, took);
    print_line(format_args!(
        "{events} events loaded in {took:.1?}: {loaded} a second"
    ));

    let server = Server::product(&database)?;
    let mut times = Vec::new();
    for question in QUERIES {
        times.push(measure_query(&server, &site, question, options.times)?);
    }
    let person = SignedInBrowser::sign_up(&server, &database)?;
    let pages = PAGES
        .iter()
        .map(|page| person.measure_page(&server, &site, page, options.times))
        .collect::<anyhow::Result<_>>()?;
    let transferred = person.transfer(&server, &site)?;
    let (bytes, took) = export(&server, &site)?;
    let exported = per_second(events, took);
    print_line(format_args!(
        "{} exported in {took:.1?}: {exported} events a second",
        megabytes(bytes)
    ));
    print_line(format_args!(
        "the server occupies {}",
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

/// The month up to today, for an app with four links and its website.
fn month(
    server: &Server,
    site: &BenchSite,
    options: &ReportsBenchOptions,
    size: u64,
) -> anyhow::Result<SampleApp> {
    let mut links = Vec::new();
    for number in 0..4 {
        let body = json!({"name": format!("Link {number}"), "fallbackUrl": "https://example.com"});
        let made = site.call(server.address, "POST", "/links", &body)?;
        links.push(AdLink {
            link: link(&made["data"])?,
            network: None,
        });
    }
    let listed = site.call(server.address, "GET", "/links", &Value::Null)?;
    let listed = listed["data"].as_array().context("links")?;
    let funnel = listed.iter().find(|link| link["type"] == "web_funnel");
    let now = runtime().now().as_millis();
    let begin = (now / DAY_MILLIS - i64::from(DAYS)) * DAY_MILLIS;
    Ok(SampleApp {
        app: AppId::parse(&site.app).map_err(|_| anyhow!("no app id"))?,
        rules: AttributionRules::default(),
        links,
        funnel: link(funnel.context("the funnel")?)?,
        environment: Environment::Live,
        begin: Timestamp::from_millis(begin),
        days: DAYS,
        events: size,
        seed: options.seed,
    })
}

fn link(shape: &Value) -> anyhow::Result<LinkId> {
    let id = shape["id"].as_str().context("an id")?;
    LinkId::parse(id).map_err(|_| anyhow!("no link id"))
}

/// Loads a month through the port. The time that it takes to make it up is not counted.
async fn load(database: &TestDatabase, month: &SampleApp) -> anyhow::Result<(u64, Duration)> {
    let store = database.open().await;
    let (mut events, mut took) = (0, Duration::ZERO);
    for day in 0..month.days {
        for stage in month.day(day) {
            events += stage.iter().map(SampleAction::events).sum::<u64>();
            let begun = Instant::now();
            apply_all(&store, stage).await?;
            took += begun.elapsed();
        }
    }
    store.close().await;
    Ok((events, took))
}

fn headers(site: &BenchSite) -> String {
    format!("Authorization: Bearer {}\r\n", site.key)
}

fn measure_query(
    server: &Server,
    site: &BenchSite,
    question: &str,
    times: usize,
) -> anyhow::Result<Latencies> {
    let path = format!("/api/v1/apps/{}/{question}", site.app);
    let mut took = Vec::with_capacity(times);
    // The first one opens what the others use.
    for number in 0..=times {
        let begun = Instant::now();
        let (head, body) = send_request(server.address, "GET", &path, &headers(site), "")?;
        if !head.starts_with("HTTP/1.1 200") {
            bail!("{path}: {body}");
        }
        if number > 0 {
            took.push(begun.elapsed());
        }
    }
    Ok(Latencies::of(took))
}

/// Downloads every event; gives its bytes.
fn export(server: &Server, site: &BenchSite) -> anyhow::Result<(u64, Duration)> {
    let begun = Instant::now();
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
        bail!("the export broke off");
    }
    Ok((bytes, begun.elapsed()))
}
