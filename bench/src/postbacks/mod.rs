//! Apple's postback endpoints: postbacks verified and stored per second, and whether the stored
//! counts are correct.
//!
//! The server trusts test keys, because only Apple can sign with Apple's keys.

pub(crate) mod mix;

use crate::child::{Server, full_key};
use crate::engine::EngineArgument;
use crate::load::{Load, StopCondition};
use crate::pace::{LoadPace, thousandths};
use crate::report::summary_line;
use crate::report::{Requirements, print_line};
use crate::site::{ApiClient, created_id};
use anyhow::Context as _;
use clap::Args;
use mix::{BLOCK_REQUESTS, PostbackMixCounts, PreparedRequests};
use serde_json::{Value, json};
use std::process::ExitCode;
use tributary_server::config::{self, Config};
use tributary_server::wiring::{ServerParts, router};
use tributary_testkit::TestDatabase;
use tributary_testkit::postbacks::{APP_STORE_ID, test_keys};

/// Required postbacks per second.
const POSTBACKS_MIN: u64 = 2_000;
/// Required share of the arrival rate, in thousandths. The last responses arrive after the last
/// request, so the measured rate is slightly lower.
const RATE_KEPT_MIN: u64 = 980;
/// Page size for the postback list.
const PAGE: usize = 500;

/// Command-line options.
#[derive(Debug, Args)]
pub(crate) struct PostbacksBenchOptions {
    /// Database engine. `PostgreSQL` uses the server in `TEST_DATABASE_URL`, in a temporary schema.
    #[arg(long, value_enum, default_value_t = EngineArgument::Sqlite)]
    engine: EngineArgument,
    /// Seconds of postbacks at the required rate. The same number of postbacks follows at maximum
    /// throughput.
    #[arg(long, default_value_t = 30)]
    seconds: u64,
    /// Number of client connections.
    #[arg(long, default_value_t = 64)]
    connections: usize,
}

/// Serves with test keys until it receives a stop signal.
pub(crate) fn serve() -> anyhow::Result<ExitCode> {
    let config = Config::load(None, config::environment())?;
    tributary_server::serve(config, |parts| {
        router(ServerParts {
            postback_keys: test_keys(),
            ..parts
        })
    })?;
    Ok(ExitCode::SUCCESS)
}

/// The server under test and its app.
struct Bench {
    server: Server,
    visitor: ApiClient,
    app: String,
    /// Blocks sent so far.
    blocks: u64,
}

/// Runs the benchmark. The exit code is 1 if a requirement is not met or a count is wrong.
pub(crate) fn run(options: &PostbacksBenchOptions) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Runtime::new()?;
    let database = runtime.block_on(TestDatabase::new(options.engine.engine()));
    options.engine.print_conditions(&database)?;
    let mut bench = Bench::open(&database)?;
    let mut requirements = Requirements::default();
    bench.measure_at_required_rate(options, &mut requirements)?;
    bench.measure_throughput(options, &mut requirements)?;
    bench.server.stop()?;
    Ok(ExitCode::from(u8::from(!requirements.all_met())))
}

impl Bench {
    fn open(database: &TestDatabase) -> anyhow::Result<Self> {
        let server = Server::with_postback_keys(database)?;
        let visitor = ApiClient {
            server: server.address,
            key: full_key(database)?,
        };
        let app = json!({"name": "Runner", "ios": {"appStoreId": APP_STORE_ID.to_string()}});
        let app = created_id(&visitor.call("POST", "", &app)?)?;
        Ok(Self {
            server,
            visitor,
            app,
            blocks: 0,
        })
    }

    /// Prepares postbacks that were not sent before.
    fn prepare(&mut self, options: &PostbacksBenchOptions) -> Load<PreparedRequests> {
        let blocks = options.seconds * POSTBACKS_MIN / BLOCK_REQUESTS;
        let first = self.blocks * BLOCK_REQUESTS;
        self.blocks += blocks;
        Load {
            address: self.server.address,
            requests: PreparedRequests::blocks(self.server.address, first, blocks),
            connections: options.connections,
            next: first,
        }
    }

    /// Sends at the required rate.
    fn measure_at_required_rate(
        &mut self,
        options: &PostbacksBenchOptions,
        requirements: &mut Requirements,
    ) -> anyhow::Result<()> {
        let mut load = self.prepare(options);
        let all = load.requests.len();
        print_line(format_args!(
            "{POSTBACKS_MIN}/s for {} s: {all} postbacks, {} expect status 200, {} expect 400",
            options.seconds,
            load.requests.count_with_status(200),
            load.requests.count_with_status(400)
        ));
        let outcome = load.run(LoadPace::PerSecond(POSTBACKS_MIN), StopCondition::Sent(all))?;
        print_line(format_args!("  {}", summary_line(&outcome)));
        requirements.check(
            thousandths(outcome.per_second, POSTBACKS_MIN) >= RATE_KEPT_MIN,
            "rate sustained, all responses as expected",
        );
        self.compare(requirements)
    }

    /// Sends at maximum throughput, then replays the same requests.
    fn measure_throughput(
        &mut self,
        options: &PostbacksBenchOptions,
        requirements: &mut Requirements,
    ) -> anyhow::Result<()> {
        let mut load = self.prepare(options);
        let all = load.requests.len();
        print_line(format_args!("{all} postbacks, closed loop:"));
        for what in ["new", "replayed"] {
            let before = self.server.processor_time()?;
            let outcome = load.run(LoadPace::FlatOut, StopCondition::Sent(all))?;
            let spent = self.server.processor_time()?.saturating_sub(before);
            let each = spent / u32::try_from(all)?;
            print_line(format_args!(
                "  {what}: {} ({} µs server CPU each)",
                summary_line(&outcome),
                each.as_micros()
            ));
            requirements.check(
                outcome.per_second >= POSTBACKS_MIN,
                format_args!("at least {POSTBACKS_MIN}/s"),
            );
            self.compare(requirements)?;
        }
        Ok(())
    }

    /// Checks that the stored counts match what was sent.
    fn compare(&self, requirements: &mut Requirements) -> anyhow::Result<()> {
        let (sent, found) = (PostbackMixCounts::of(self.blocks), self.stored_counts()?);
        let path = format!("/{}/skan/stats", self.app);
        let stats = self.visitor.call("GET", &path, &Value::Null)?;
        let installs = stats["meta"]["totals"]["installs"].as_u64();
        print_line(format_args!(
            "  {} stored: {} counted, {} invalid, {} conflicting; {} installs in reports",
            found.stored,
            found.counted,
            found.invalid,
            found.conflicting,
            installs.context("no installs in the report")?
        ));
        let right = found == sent && installs == Some(sent.counted);
        requirements.check(right, "stored counts match what was sent");
        Ok(())
    }

    /// Counts the stored postbacks, page by page.
    fn stored_counts(&self) -> anyhow::Result<PostbackMixCounts> {
        let mut tally = PostbackMixCounts::default();
        let mut cursor = String::new();
        loop {
            let path = format!("/{}/skan/postbacks?limit={PAGE}{cursor}", self.app);
            let page = self.visitor.call("GET", &path, &Value::Null)?;
            for one in page["data"].as_array().context("no list of postbacks")? {
                let is = |field: &str| u64::from(one[field] == true);
                tally.stored += 1;
                tally.counted += is("counted");
                tally.conflicting += is("conflicting");
                tally.invalid += u64::from(one["signature"] == "invalid");
            }
            match page["meta"]["cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return Ok(tally),
            }
        }
    }
}
