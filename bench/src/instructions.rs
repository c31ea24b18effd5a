//! Instructions per request, counted by callgrind on a fixed set of requests.
//!
//! Instruction counts depend on the code and on the compiler, but hardly on the machine or its
//! load. The difference between a run with many requests and a run with few cancels the cost of
//! starting and stopping the server.

use crate::child::Server;
use crate::endpoints::traffic::{EndpointRequests, EndpointTraffic, MeasuredEndpoint};
use crate::endpoints::{create_sites, fill};
use crate::load::{Load, StopCondition};
use crate::options::EndpointSelection;
use crate::pace::{LoadPace, thousandths};
use crate::recent_clicks::RecentClicks;
use crate::report::{Requirements, print_line, ratio};
use crate::site::send_request;
use anyhow::{Context as _, bail};
use clap::Args;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use tributary_server::system::runtime;
use tributary_testkit::{Engine, TestDatabase};

/// Maximum count, in thousandths of the baseline.
const COUNT_MAX: u64 = 1_150;
/// Apps that the requests go to in turn.
const APPS: u32 = 4;
/// Recent clicks in the database.
const CLICKS: u64 = 2_000;
/// Configured devices that send events.
const DEVICES: u64 = 50;
/// One connection, because batches of several requests differ between runs.
const CONNECTIONS: usize = 1;
/// The functions that count, with everything they call: serving a connection, and committing a batch.
/// The others poll or wait, and run more often the longer a run takes.
const COUNTED_FUNCTIONS: [&str; 2] = ["*Dispatcher*poll_catch*", "*writer_thread*commit*"];
/// Prefix of the line with the total count in callgrind's output.
const TOTAL_PREFIX: &str = "totals: ";

/// Command-line options.
#[derive(Debug, Args)]
pub(crate) struct InstructionsBenchOptions {
    #[command(flatten)]
    selection: EndpointSelection,
    /// Requests in the short run. The long run has twice as many. The baseline is only valid for
    /// the default.
    #[arg(long, default_value_t = 400)]
    requests: u64,
    /// Write the counts as the new baseline for this compiler. Use a release build.
    #[arg(long)]
    update: bool,
}

type Counts = BTreeMap<String, u64>;

/// Runs the benchmark. The exit code is 1 if a count has grown too much.
pub(crate) fn run(options: &InstructionsBenchOptions) -> anyhow::Result<ExitCode> {
    let file = baseline_file()?;
    let async_runtime = tokio::runtime::Runtime::new()?;
    let mut counts = Counts::new();
    for endpoint in &options.selection.endpoint {
        let short = async_runtime.block_on(count(*endpoint, options.requests))?;
        let long = async_runtime.block_on(count(*endpoint, 2 * options.requests))?;
        let each = long.saturating_sub(short) / options.requests.max(1);
        let name = serde_json::to_value(endpoint)?;
        let name = name.as_str().context("endpoints have names")?.to_owned();
        print_line(format_args!("{name}: {each} instructions per request"));
        counts.insert(name, each);
    }
    if options.update {
        if let Some(folder) = file.parent() {
            std::fs::create_dir_all(folder)?;
        }
        std::fs::write(&file, serde_json::to_string_pretty(&counts)? + "\n")?;
        print_line(format_args!("wrote {}", file.display()));
        return Ok(ExitCode::SUCCESS);
    }
    let Ok(text) = std::fs::read_to_string(&file) else {
        print_line(format_args!(
            "NOT CHECKED: no baseline for this compiler. Run `tributary-bench instructions \
             --update` on a version that is known to be good, and commit {}.",
            file.display()
        ));
        return Ok(ExitCode::SUCCESS);
    };
    let mut requirements = Requirements::default();
    compare(&counts, &serde_json::from_str(&text)?, &mut requirements);
    Ok(ExitCode::from(u8::from(!requirements.all_met())))
}

fn compare(counts: &Counts, baseline: &Counts, requirements: &mut Requirements) {
    for (name, count) in counts {
        let Some(before) = baseline.get(name).copied() else {
            requirements.check(false, format_args!("{name}: a baseline"));
            continue;
        };
        let times = thousandths(*count, before);
        requirements.check(
            times <= COUNT_MAX,
            format_args!(
                "{name}: at most {} of the baseline ({}: {count} and {before})",
                ratio(COUNT_MAX),
                ratio(times)
            ),
        );
    }
}

/// Returns the baseline file of the installed compiler.
fn baseline_file() -> anyhow::Result<PathBuf> {
    let output = Command::new("rustc").arg("--version").output();
    let output = output.context("cannot run rustc")?;
    let version = String::from_utf8(output.stdout)?;
    let version = version.split_whitespace().nth(1);
    let version = version.context("rustc printed no version")?;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("instructions");
    Ok(folder.join(format!("rustc-{version}.json")))
}

/// Counts the instructions of a server that starts, receives requests and stops.
async fn count(endpoint: MeasuredEndpoint, requests: u64) -> anyhow::Result<u64> {
    let database = TestDatabase::new(Engine::Sqlite).await;
    let sites = create_sites(&database, APPS)?;
    let clicks = RecentClicks {
        count: CLICKS,
        until: runtime().now().as_millis(),
    };
    fill(&database, &sites, clicks, 0).await?;
    let traffic = EndpointTraffic {
        endpoint,
        sites,
        clicks,
        devices: DEVICES,
    };
    if endpoint == MeasuredEndpoint::SdkEvents {
        let server = Server::with_postback_keys(&database)?;
        let configure = EndpointTraffic {
            endpoint: MeasuredEndpoint::Configure,
            ..traffic.clone()
        };
        send(&server, configure, DEVICES)?;
        server.stop()?;
    }
    let output = database.folder().join("callgrind.out");
    let mut tool = vec![
        "valgrind".to_owned(),
        "--tool=callgrind".to_owned(),
        // Otherwise a thread that waits for another one may keep it from running.
        "--fair-sched=try".to_owned(),
        format!("--callgrind-out-file={}", output.display()),
    ];
    tool.extend(COUNTED_FUNCTIONS.map(|function| format!("--toggle-collect={function}")));
    let server = Server::under_tool(&database, &tool)
        .context("cannot start the server under valgrind; install the package `valgrind`")?;
    // The server prints its address before it is ready, which takes long under valgrind.
    send_request(server.address, "GET", "/readyz", "", "")?;
    send(&server, traffic, requests)?;
    server.stop()?;
    read_total(&std::fs::read_to_string(output)?)
}

fn send(server: &Server, traffic: EndpointTraffic, requests: u64) -> anyhow::Result<()> {
    let mut load = Load {
        requests: EndpointRequests::new(traffic, server.address)?,
        address: server.address,
        connections: CONNECTIONS,
        next: 0,
    };
    load.prepare(requests);
    load.run(LoadPace::FlatOut, StopCondition::Sent(requests))?;
    Ok(())
}

/// Reads the total count from callgrind's output.
fn read_total(output: &str) -> anyhow::Result<u64> {
    let mut lines = output.lines();
    let total = lines.find_map(|line| line.strip_prefix(TOTAL_PREFIX));
    let Some(total) = total else {
        bail!("no total in callgrind's output");
    };
    Ok(total.trim().parse()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_total_count() {
        let output = "version: 1\nevents: Ir\nfn=(1)\n16 400\n\ntotals: 81923\n";
        assert_eq!(read_total(output).unwrap(), 81_923);
        assert!(read_total("events: Ir\n").is_err());
    }

    #[test]
    fn a_count_may_grow_by_fifteen_percent() {
        let counts = |count: u64| Counts::from([("clicks".to_owned(), count)]);
        for (count, is_met) in [(900, true), (1_150, true), (1_151, false)] {
            let mut requirements = Requirements::default();
            compare(&counts(count), &counts(1_000), &mut requirements);
            assert_eq!(requirements.all_met(), is_met, "{count}");
        }
        let mut requirements = Requirements::default();
        compare(&counts(1), &Counts::new(), &mut requirements);
        assert!(!requirements.all_met(), "an endpoint needs a baseline");
    }
}
