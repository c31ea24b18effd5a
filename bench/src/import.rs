//! `tributary import`: events per second into an empty app, and of a repeated import. The benchmark
//! generates a month of events in an SQLite database, exports it, and imports the file.

use crate::child::{Server, run_tributary};
use crate::engine::EngineArgument;
use crate::pace::per_second;
use crate::report::{Requirements, megabytes, print_line};
use crate::reports::{headers, load, month};
use crate::site::BenchSite;
use anyhow::{Context as _, bail};
use clap::Args;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, BufWriter, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;
use tributary_testkit::{Engine, TestDatabase};

/// Required rate into SQLite in events per second.
const SQLITE_MIN: u64 = 25_000;
/// Required rate into PostgreSQL in events per second.
const POSTGRES_MIN: u64 = 50_000;

/// Command-line options.
#[derive(Debug, Args)]
pub(crate) struct ImportBenchOptions {
    /// Database engine. `PostgreSQL` uses the server in `TEST_DATABASE_URL`, in a temporary schema.
    #[arg(long, value_enum, default_value_t = EngineArgument::Sqlite)]
    engine: EngineArgument,
    /// Approximate number of events.
    #[arg(long, default_value_t = 1_000_000)]
    events: u64,
    /// Seed for the generated month.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Runs the benchmark. The exit code is 1 if a requirement is not met.
pub(crate) fn run(options: &ImportBenchOptions) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Runtime::new()?;
    let source = runtime.block_on(TestDatabase::new(Engine::Sqlite));
    let file = source.folder().join("events.ndjson");
    let server = Server::product(&source)?;
    let site = BenchSite::open(&server, &source)?;
    let month = month(&server, &site, (options.events, options.seed))?;
    server.stop()?;
    runtime.block_on(load(&source, &month))?;
    let server = Server::product(&source)?;
    let events = export(&server, &site, &file)?;
    server.stop()?;
    let size = megabytes(std::fs::metadata(&file)?.len());
    print_line(format_args!("{events} events exported, {size}"));

    let target = runtime.block_on(TestDatabase::new(options.engine.engine()));
    options.engine.print_conditions(&target)?;
    let server = Server::product(&target)?;
    let site = BenchSite::open(&server, &target)?;
    server.stop()?;
    let imported = import(&target, &site, &file, &format!("new events: {events}"))?;
    print_line(format_args!("imported: {imported} events/s"));
    let repeated = import(&target, &site, &file, &format!("already stored: {events}"))?;
    print_line(format_args!("repeated: {repeated} events/s"));
    let min = match options.engine {
        EngineArgument::Sqlite => SQLITE_MIN,
        EngineArgument::Postgres => POSTGRES_MIN,
    };
    let mut requirements = Requirements::default();
    requirements.check(
        imported >= min,
        format_args!("at least {min} events imported/s ({imported})"),
    );
    Ok(ExitCode::from(u8::from(!requirements.all_met())))
}

/// Exports all events to a file. Returns their number.
fn export(server: &Server, site: &BenchSite, file: &Path) -> anyhow::Result<u64> {
    let mut stream = TcpStream::connect(server.address)?;
    // HTTP/1.0 has no chunks, so the rest of the response is the file.
    write!(
        stream,
        "GET /api/v1/apps/{}/export?kind=events&format=ndjson HTTP/1.0\r\nHost: bench\r\n{}\r\n",
        site.app,
        headers(site)
    )?;
    let mut response = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if response.read_line(&mut head)? == 0 {
            bail!("the server closed the connection: {head}");
        }
    }
    if !head.contains(" 200 ") {
        bail!("the export failed: {head}");
    }
    io::copy(&mut response, &mut BufWriter::new(File::create(file)?))?;
    let lines = BufReader::new(File::open(file)?).split(b'\n').count();
    Ok(u64::try_from(lines)?)
}

/// Imports a file. Returns events per second. Fails unless the account contains a line.
fn import(
    target: &TestDatabase,
    site: &BenchSite,
    file: &Path,
    expected: &str,
) -> anyhow::Result<u64> {
    let file = file.to_str().context("the path is not UTF-8")?;
    let started = Instant::now();
    let account = run_tributary(target, &["import", "--app", &site.app, file])?;
    let elapsed = started.elapsed();
    if !account.lines().any(|line| line == expected) {
        bail!("expected \"{expected}\":\n{account}");
    }
    let count = expected.rsplit(' ').next().unwrap_or_default();
    Ok(per_second(count.parse()?, elapsed))
}
