//! Results as a table and as JSON, and the requirements.

use super::traffic::MeasuredEndpoint;
use super::{SideRound, range};
use crate::engine::EngineArgument;
use crate::machine;
use crate::pace::{median, thousandths};
use crate::report::{Requirements, megabytes, millis, print_line, ratio};
use serde_json::{Value, json};
use std::time::Duration;

/// The product's maximum p99, in thousandths of the bare server's p99.
const P99_TIMES_MAX: u64 = 3_000;
/// Required notifications per second.
const NOTIFICATIONS_MIN: u64 = 1_000;
/// Required postbacks per second.
const POSTBACKS_MIN: u64 = 2_000;

/// One round of both servers in a closed loop.
#[derive(Debug)]
pub(super) struct ThroughputRound {
    pub(super) bare: SideRound,
    pub(super) product: SideRound,
}

impl ThroughputRound {
    fn ratio(&self) -> u64 {
        thousandths(self.product.rate, self.bare.rate)
    }

    /// Formats the round in one line.
    pub(super) fn line(&self) -> String {
        let side = |side: &SideRound| {
            let micros = |time: Duration| time.as_micros();
            let postgres = match micros(side.postgres) {
                0 => String::new(),
                micros => format!(", PostgreSQL {micros} µs"),
            };
            format!(
                "{}/s (server {} µs{postgres}, load {} µs CPU each)",
                side.rate,
                micros(side.server),
                micros(side.load)
            )
        };
        let (bare, product) = (side(&self.bare), side(&self.product));
        format!(
            "bare {bare}, product {product}, ratio {}",
            ratio(self.ratio())
        )
    }
}

/// All rounds of one endpoint.
#[derive(Debug)]
pub(super) struct EndpointResult {
    pub(super) endpoint: MeasuredEndpoint,
    pub(super) engine: EngineArgument,
    pub(super) apps: u32,
    pub(super) rounds: Vec<ThroughputRound>,
    /// Median p99 at 70 % of the own maximum: bare server and product.
    pub(super) p99: Option<(Duration, Duration)>,
    /// The product's resident memory after the rounds in a closed loop.
    pub(super) memory: u64,
    /// Maximum stolen time of a round, in thousandths of the time of all cores.
    pub(super) stolen: u64,
}

impl EndpointResult {
    fn ratios(&self) -> Vec<u64> {
        self.rounds.iter().map(ThroughputRound::ratio).collect()
    }

    fn median<T: Ord + Copy + Default>(&self, value: impl Fn(&ThroughputRound) -> T) -> T {
        median(self.rounds.iter().map(value).collect()).unwrap_or_default()
    }

    /// Required ratio in thousandths, if there is one.
    fn floor(&self) -> Option<u64> {
        let (sqlite, postgres) = match self.endpoint {
            MeasuredEndpoint::WebEvents => (400, 250),
            MeasuredEndpoint::Clicks => (350, 200),
            MeasuredEndpoint::Configure => (250, 120),
            MeasuredEndpoint::SdkEvents => (150, 100),
            MeasuredEndpoint::Billing | MeasuredEndpoint::Postbacks => return None,
        };
        Some(match self.engine {
            EngineArgument::Sqlite => sqlite,
            EngineArgument::Postgres => postgres,
        })
    }

    /// Checks the requirements.
    pub(super) fn check(&self, requirements: &mut Requirements) {
        let part = median(self.ratios()).unwrap_or_default();
        let rate = self.median(|round| round.product.rate);
        if let Some(floor) = self.floor() {
            let text = format_args!("ratio {} at least {}", ratio(part), ratio(floor));
            requirements.check(part >= floor, text);
        }
        let least = match self.endpoint {
            MeasuredEndpoint::Billing => NOTIFICATIONS_MIN,
            MeasuredEndpoint::Postbacks => POSTBACKS_MIN,
            _ => 0,
        };
        if least > 0 {
            requirements.check(rate >= least, format_args!("at least {least}/s ({rate}/s)"));
        }
        if let Some(times) = self.p99_times() {
            let text = format_args!(
                "p99 at most {} times the bare server's ({})",
                P99_TIMES_MAX / 1_000,
                ratio(times)
            );
            requirements.check(times <= P99_TIMES_MAX, text);
        }
    }

    /// The product's p99 in thousandths of the bare server's.
    fn p99_times(&self) -> Option<u64> {
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.p99
            .map(|(bare, product)| thousandths(nanos(product), nanos(bare)))
    }

    fn row(&self) -> String {
        let p99 = |time: fn(&(Duration, Duration)) -> Duration| {
            let p99 = self.p99.as_ref();
            p99.map_or_else(|| "-".to_owned(), |both| millis(time(both)))
        };
        let cpu = |time: fn(&ThroughputRound) -> Duration| self.median(time).as_micros();
        let postgres = match self.engine {
            EngineArgument::Sqlite => String::new(),
            EngineArgument::Postgres => format!(" + {} µs", cpu(|round| round.product.postgres)),
        };
        let ratios = self.ratios();
        format!(
            "| {:?} | {:?} | {} | {} | {} | **{}** ({}) | {} | {} | {} µs | {} µs{postgres} | {} |",
            self.endpoint,
            self.engine,
            self.apps,
            self.median(|round| round.bare.rate),
            self.median(|round| round.product.rate),
            ratio(median(ratios.clone()).unwrap_or_default()),
            range(&ratios),
            p99(|both| both.0),
            p99(|both| both.1),
            cpu(|round| round.bare.server),
            cpu(|round| round.product.server),
            megabytes(self.memory),
        )
    }

    fn json(&self) -> Value {
        let ratios = self.ratios();
        let number = |thousandths: u64| ratio(thousandths).parse::<f64>().unwrap_or_default();
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let cpu = |time: fn(&ThroughputRound) -> Duration| micros(self.median(time));
        json!({
            "endpoint": self.endpoint, "engine": self.engine, "apps": self.apps,
            "bareRequestsPerSecond": self.median(|round| round.bare.rate),
            "requestsPerSecond": self.median(|round| round.product.rate),
            "ratio": number(median(ratios.clone()).unwrap_or_default()),
            "ratioMin": ratios.iter().min().copied().map(number),
            "ratioMax": ratios.iter().max().copied().map(number),
            "bareP99Micros": self.p99.map(|(bare, _)| micros(bare)),
            "p99Micros": self.p99.map(|(_, product)| micros(product)),
            "bareCpuMicrosPerRequest": cpu(|round| round.bare.server),
            "cpuMicrosPerRequest": cpu(|round| round.product.server),
            "postgresCpuMicrosPerRequest": cpu(|round| round.product.postgres),
            "loadCpuMicrosPerRequest": cpu(|round| round.product.load),
            "memoryBytes": self.memory,
            "stolenMax": number(self.stolen),
        })
    }
}

/// Prints all results as a Markdown table.
pub(super) fn print_table(results: &[EndpointResult]) {
    print_line("");
    print_line(
        "| endpoint | engine | apps | bare/s | product/s | ratio | p99 bare | p99 product | CPU bare | \
         CPU product | memory |",
    );
    print_line("|---|---|---|---|---|---|---|---|---|---|---|");
    for result in results {
        print_line(result.row());
    }
}

/// Returns all results as JSON.
pub(super) fn to_json(results: &[EndpointResult]) -> anyhow::Result<String> {
    let results: Vec<Value> = results.iter().map(EndpointResult::json).collect();
    let all = json!({"cores": machine::cores(), "results": results});
    Ok(serde_json::to_string_pretty(&all)? + "\n")
}
