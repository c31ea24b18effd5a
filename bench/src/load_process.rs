//! The load generator as a child process, so that its CPU time is separate from the benchmark's and
//! from the server's.
//!
//! The benchmark writes one JSON object per line to the child's standard input: first a
//! [`LoadOrder`], then a [`LoadRun`] for each run. The child answers each run with a
//! [`LoadSummary`].

use crate::endpoints::traffic::{EndpointRequests, EndpointTraffic};
use crate::load::{Load, LoadResult, StopCondition};
use crate::pace::{Latencies, LoadPace};
use anyhow::{Context as _, bail};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::io::{BufRead, BufReader, Write as _};
use std::net::SocketAddr;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio};
use std::time::Duration;

/// Requests that are prepared for a run without a pace or count. They are repeated.
const PREPARED_REQUESTS: u64 = 2_000;

/// The load on one server.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct LoadOrder {
    pub(crate) traffic: EndpointTraffic,
    pub(crate) address: SocketAddr,
    pub(crate) connections: usize,
    /// Number of the first request.
    pub(crate) next: u64,
}

/// One run.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct LoadRun {
    /// Requests per second; `None` for a closed loop.
    rate: Option<u64>,
    /// Duration in milliseconds; `None` if the run ends after `requests`.
    millis: Option<u64>,
    requests: u64,
}

/// Result of one run. Times are in nanoseconds.
#[derive(Debug, Serialize, Deserialize)]
struct LoadSummary {
    answered: u64,
    per_second: u64,
    p50: u64,
    p99: u64,
    max: u64,
    processor_time: u64,
}

impl LoadRun {
    fn new(pace: LoadPace, end: StopCondition) -> Self {
        let rate = match pace {
            LoadPace::FlatOut => None,
            LoadPace::PerSecond(rate) => Some(rate),
        };
        match end {
            StopCondition::After(time) => Self {
                rate,
                millis: Some(u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
                requests: 0,
            },
            StopCondition::Sent(requests) => Self {
                rate,
                millis: None,
                requests,
            },
        }
    }

    fn pace(&self) -> LoadPace {
        self.rate.map_or(LoadPace::FlatOut, LoadPace::PerSecond)
    }

    fn end(&self) -> StopCondition {
        self.millis
            .map_or(StopCondition::Sent(self.requests), |millis| {
                StopCondition::After(Duration::from_millis(millis))
            })
    }

    /// Returns how many different requests the run sends.
    fn different_requests(&self) -> u64 {
        match (self.millis, self.rate) {
            (None, _) => self.requests,
            // One second more, because the last requests may be sent late.
            (Some(millis), Some(rate)) => rate * (millis / 1_000 + 1),
            (Some(_), None) => PREPARED_REQUESTS,
        }
    }
}

impl From<LoadResult> for LoadSummary {
    fn from(result: LoadResult) -> Self {
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let Latencies { p50, p99, max } = result.times;
        Self {
            answered: result.answered,
            per_second: result.per_second,
            p50: nanos(p50),
            p99: nanos(p99),
            max: nanos(max),
            processor_time: nanos(result.processor_time),
        }
    }
}

impl From<LoadSummary> for LoadResult {
    fn from(summary: LoadSummary) -> Self {
        Self {
            answered: summary.answered,
            per_second: summary.per_second,
            times: Latencies {
                p50: Duration::from_nanos(summary.p50),
                p99: Duration::from_nanos(summary.p99),
                max: Duration::from_nanos(summary.max),
            },
            processor_time: Duration::from_nanos(summary.processor_time),
        }
    }
}

/// A load generator in a child process. It is killed on drop.
#[derive(Debug)]
pub(crate) struct LoadProcess {
    child: Child,
    orders: ChildStdin,
    results: BufReader<ChildStdout>,
}

impl LoadProcess {
    /// Starts the child.
    pub(crate) fn start(order: &LoadOrder) -> anyhow::Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .arg("load")
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let orders = child.stdin.take().context("stdin is not piped")?;
        let results = child.stdout.take().context("stdout is not piped")?;
        let mut process = Self {
            child,
            orders,
            results: BufReader::new(results),
        };
        process.write(order)?;
        Ok(process)
    }

    fn write(&mut self, value: &impl Serialize) -> anyhow::Result<()> {
        let line = serde_json::to_string(value)? + "\n";
        self.orders.write_all(line.as_bytes())?;
        Ok(())
    }

    /// Sends until the stop condition holds, then waits for the requests in flight.
    pub(crate) fn run(&mut self, pace: LoadPace, end: StopCondition) -> anyhow::Result<LoadResult> {
        self.write(&LoadRun::new(pace, end))?;
        let summary: Option<LoadSummary> = read_line(&mut self.results)?;
        let summary = summary.context("the load generator failed; its error is above")?;
        Ok(summary.into())
    }
}

impl Drop for LoadProcess {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// Reads a line of JSON. Returns `None` at the end of the input.
fn read_line<T: DeserializeOwned>(input: &mut impl BufRead) -> anyhow::Result<Option<T>> {
    let mut line = String::new();
    if input.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    Ok(Some(serde_json::from_str(&line)?))
}

/// Runs the load generator in the child process.
pub(crate) fn serve() -> anyhow::Result<ExitCode> {
    let mut input = BufReader::new(std::io::stdin());
    let Some(order) = read_line::<LoadOrder>(&mut input)? else {
        bail!("started by the benchmarks only");
    };
    let mut load = Load {
        requests: EndpointRequests::new(order.traffic, order.address)?,
        address: order.address,
        connections: order.connections,
        next: order.next,
    };
    while let Some(run) = read_line::<LoadRun>(&mut input)? {
        load.prepare(run.different_requests());
        let result = load.run(run.pace(), run.end())?;
        let mut output = std::io::stdout().lock();
        serde_json::to_writer(&mut output, &LoadSummary::from(result))?;
        output.write_all(b"\n")?;
        output.flush()?;
    }
    Ok(ExitCode::SUCCESS)
}
