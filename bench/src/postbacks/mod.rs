//! The doors for Apple's postbacks: how many a second are verified and stored, and whether what is stored and counted
//! is what was sent.
//!
//! Nobody but Apple can sign with Apple's key, so the server is the product with keys of our own.

mod mix;

use crate::child::{Server, full_key};
use crate::load::{Load, StopCondition};
use crate::machine;
use crate::pace::{LoadPace, thousandths};
use crate::report::{Requirements, millis, print_line};
use crate::site::{ApiClient, created_id};
use crate::web_events::{EngineArgument, summary_line};
use anyhow::Context as _;
use clap::Args;
use mix::{BLOCK_REQUESTS, PostbackMixCounts, PreparedRequests};
use serde_json::{Value, json};
use std::process::ExitCode;
use tributary_server::config::{self, Config};
use tributary_server::wiring::{ServerParts, router};
use tributary_testkit::TestDatabase;
use tributary_testkit::postbacks::{APP_STORE_ID, test_keys};

/// Postbacks a second that are demanded.
const POSTBACKS_MIN: u64 = 2_000;
/// The part of that pace that must be kept up with, in thousandths: the last answers come after the last request.
const RATE_KEPT_MIN: u64 = 980;
/// Postbacks of a page of the list.
const PAGE: usize = 500;

/// What can be set.
#[derive(Debug, Args)]
pub(crate) struct PostbacksBenchOptions {
    /// The database. `PostgreSQL` is the server of `TEST_DATABASE_URL`, in a schema of the run's own.
    #[arg(long, value_enum, default_value_t = EngineArgument::Sqlite)]
    engine: EngineArgument,
    /// How long postbacks arrive at the pace that is demanded. As many are then sent as fast as answers come.
    #[arg(long, default_value_t = 30)]
    seconds: u64,
    /// Connections of the load.
    #[arg(long, default_value_t = 64)]
    connections: usize,
}

/// Serves the product with keys of our own until told to stop.
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

/// An app whose postbacks are sent.
struct Bench {
    server: Server,
    visitor: ApiClient,
    app: String,
    /// Blocks that were sent so far.
    blocks: u64,
}

/// Measures; the exit code says whether the floor is held and the figures are right.
pub(crate) fn run(options: &PostbacksBenchOptions) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Runtime::new()?;
    let database = runtime.block_on(TestDatabase::new(options.engine.engine()));
    print_line(options.engine.durability());
    print_line(format_args!(
        "{} cores for server, database and load; 8 kB are synced in {}",
        machine::cores(),
        millis(machine::sync_time(&database.folder())?)
    ));
    let mut bench = Bench::open(&database)?;
    let mut verdicts = Requirements::default();
    bench.measure_at_required_rate(options, &mut verdicts)?;
    bench.measure_throughput(options, &mut verdicts)?;
    bench.server.stop()?;
    Ok(ExitCode::from(u8::from(!verdicts.all_met())))
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

    /// Postbacks that were not sent before.
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

    /// At the pace that is demanded.
    fn measure_at_required_rate(
        &mut self,
        options: &PostbacksBenchOptions,
        verdicts: &mut Requirements,
    ) -> anyhow::Result<()> {
        let mut load = self.prepare(options);
        let all = load.requests.len();
        print_line(format_args!(
            "{POSTBACKS_MIN} a second arrive for {} s: {all} postbacks, {} of them to be answered with 200, {} with 400",
            options.seconds,
            load.requests.count_with_status(200),
            load.requests.count_with_status(400)
        ));
        let outcome = load.run(LoadPace::PerSecond(POSTBACKS_MIN), StopCondition::Sent(all))?;
        print_line(format_args!("  {}", summary_line(&outcome)));
        verdicts.check(
            thousandths(outcome.per_second, POSTBACKS_MIN) >= RATE_KEPT_MIN,
            "kept up with, every answer as it must be",
        );
        self.compare(verdicts)
    }

    /// As fast as answers come; then the same once more.
    fn measure_throughput(
        &mut self,
        options: &PostbacksBenchOptions,
        verdicts: &mut Requirements,
    ) -> anyhow::Result<()> {
        let mut load = self.prepare(options);
        let all = load.requests.len();
        print_line(format_args!("{all} postbacks as fast as answers come:"));
        for what in ["new", "replayed"] {
            let before = self.server.processor_time()?;
            let outcome = load.run(LoadPace::FlatOut, StopCondition::Sent(all))?;
            let spent = self.server.processor_time()?.saturating_sub(before);
            let each = spent / u32::try_from(all)?;
            print_line(format_args!(
                "  {what}: {} ({} µs of the server's processor time each)",
                summary_line(&outcome),
                each.as_micros()
            ));
            verdicts.check(
                outcome.per_second >= POSTBACKS_MIN,
                format_args!("at least {POSTBACKS_MIN} a second"),
            );
            self.compare(verdicts)?;
        }
        Ok(())
    }

    /// Whether what is stored and counted is what was sent.
    fn compare(&self, verdicts: &mut Requirements) -> anyhow::Result<()> {
        let (sent, found) = (PostbackMixCounts::of(self.blocks), self.stored_counts()?);
        let path = format!("/{}/skan/stats", self.app);
        let stats = self.visitor.call("GET", &path, &Value::Null)?;
        let installs = stats["meta"]["totals"]["installs"].as_u64();
        print_line(format_args!(
            "  {} stored: {} count, {} have a wrong signature, {} another value than the one before; {} installs in the figures",
            found.stored,
            found.counted,
            found.invalid,
            found.conflicting,
            installs.context("installs")?
        ));
        let right = found == sent && installs == Some(sent.counted);
        verdicts.check(right, "as many as were sent");
        Ok(())
    }

    /// What the list of postbacks has, page by page.
    fn stored_counts(&self) -> anyhow::Result<PostbackMixCounts> {
        let mut tally = PostbackMixCounts::default();
        let mut cursor = String::new();
        loop {
            let path = format!("/{}/skan/postbacks?limit={PAGE}{cursor}", self.app);
            let page = self.visitor.call("GET", &path, &Value::Null)?;
            for one in page["data"].as_array().context("a list")? {
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
