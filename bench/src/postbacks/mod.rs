//! The doors for Apple's postbacks: how many a second are verified and stored, and whether what is stored and counted
//! is what was sent.
//!
//! Nobody but Apple can sign with Apple's key, so the server is the product with keys of our own.

mod mix;

use crate::child::{Server, full_key};
use crate::load::{End, Load};
use crate::machine;
use crate::pace::{Pace, thousandths};
use crate::report::{Verdicts, millis, say};
use crate::site::{Visitor, id};
use crate::web_events::{EngineArgument, line};
use anyhow::Context as _;
use clap::Args;
use mix::{BLOCK_REQUESTS, Prepared, Tally};
use serde_json::{Value, json};
use std::process::ExitCode;
use tributary_server::config::{self, Config};
use tributary_server::wiring::{Parts, router};
use tributary_testkit::Database;
use tributary_testkit::postbacks::{APP_STORE_ID, test_keys};

/// Postbacks a second that are demanded.
const POSTBACKS_MIN: u64 = 2_000;
/// The part of that pace that must be kept up with, in thousandths: the last answers come after the last request.
const KEPT_MIN: u64 = 980;
/// Postbacks of a page of the list.
const PAGE: usize = 500;

/// What can be set.
#[derive(Debug, Args)]
pub(crate) struct Options {
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
        router(Parts {
            postback_keys: test_keys(),
            ..parts
        })
    })?;
    Ok(ExitCode::SUCCESS)
}

/// An app whose postbacks are sent.
struct Bench {
    server: Server,
    visitor: Visitor,
    app: String,
    /// Blocks that were sent so far.
    blocks: u64,
}

/// Measures; the exit code says whether the floor is held and the figures are right.
pub(crate) fn run(options: &Options) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Runtime::new()?;
    let database = runtime.block_on(Database::new(options.engine.engine()));
    say(options.engine.durable());
    say(format_args!(
        "{} cores for server, database and load; 8 kB are synced in {}",
        machine::cores(),
        millis(machine::sync_time(&database.folder())?)
    ));
    let mut bench = Bench::open(&database)?;
    let mut verdicts = Verdicts::default();
    bench.arriving(options, &mut verdicts)?;
    bench.flat_out(options, &mut verdicts)?;
    bench.server.stop()?;
    Ok(ExitCode::from(u8::from(!verdicts.all_held())))
}

impl Bench {
    fn open(database: &Database) -> anyhow::Result<Self> {
        let server = Server::with_postback_keys(database)?;
        let visitor = Visitor {
            server: server.address,
            key: full_key(database)?,
        };
        let app = json!({"name": "Runner", "ios": {"appStoreId": APP_STORE_ID.to_string()}});
        let app = id(&visitor.call("POST", "", &app)?)?;
        Ok(Self {
            server,
            visitor,
            app,
            blocks: 0,
        })
    }

    /// Postbacks that were not sent before.
    fn prepare(&mut self, options: &Options) -> Load<Prepared> {
        let blocks = options.seconds * POSTBACKS_MIN / BLOCK_REQUESTS;
        let first = self.blocks * BLOCK_REQUESTS;
        self.blocks += blocks;
        Load {
            address: self.server.address,
            requests: Prepared::blocks(self.server.address, first, blocks),
            connections: options.connections,
            next: first,
        }
    }

    /// At the pace that is demanded.
    fn arriving(&mut self, options: &Options, verdicts: &mut Verdicts) -> anyhow::Result<()> {
        let mut load = self.prepare(options);
        let all = load.requests.len();
        say(format_args!(
            "{POSTBACKS_MIN} a second arrive for {} s: {all} postbacks, {} of them to be answered with 200, {} with 400",
            options.seconds,
            load.requests.answered_with(200),
            load.requests.answered_with(400)
        ));
        let outcome = load.run(Pace::PerSecond(POSTBACKS_MIN), End::Sent(all))?;
        say(format_args!("  {}", line(&outcome)));
        verdicts.add(
            thousandths(outcome.per_second, POSTBACKS_MIN) >= KEPT_MIN,
            "kept up with, every answer as it must be",
        );
        self.compare(verdicts)
    }

    /// As fast as answers come; then the same once more.
    fn flat_out(&mut self, options: &Options, verdicts: &mut Verdicts) -> anyhow::Result<()> {
        let mut load = self.prepare(options);
        let all = load.requests.len();
        say(format_args!("{all} postbacks as fast as answers come:"));
        for what in ["new", "replayed"] {
            let before = self.server.processor_time()?;
            let outcome = load.run(Pace::FlatOut, End::Sent(all))?;
            let spent = self.server.processor_time()?.saturating_sub(before);
            let each = spent / u32::try_from(all)?;
            say(format_args!(
                "  {what}: {} ({} µs of the server's processor time each)",
                line(&outcome),
                each.as_micros()
            ));
            verdicts.add(
                outcome.per_second >= POSTBACKS_MIN,
                format_args!("at least {POSTBACKS_MIN} a second"),
            );
            self.compare(verdicts)?;
        }
        Ok(())
    }

    /// Whether what is stored and counted is what was sent.
    fn compare(&self, verdicts: &mut Verdicts) -> anyhow::Result<()> {
        let (sent, found) = (Tally::of(self.blocks), self.found()?);
        let path = format!("/{}/skan/stats", self.app);
        let stats = self.visitor.call("GET", &path, &Value::Null)?;
        let installs = stats["meta"]["totals"]["installs"].as_u64();
        say(format_args!(
            "  {} stored: {} count, {} have a wrong signature, {} another value than the one before; {} installs in the figures",
            found.stored,
            found.counted,
            found.invalid,
            found.conflicting,
            installs.context("installs")?
        ));
        let right = found == sent && installs == Some(sent.counted);
        verdicts.add(right, "as many as were sent");
        Ok(())
    }

    /// What the list of postbacks has, page by page.
    fn found(&self) -> anyhow::Result<Tally> {
        let mut tally = Tally::default();
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
