//! `POST /api/webhook/revenuecat/{appId}`: durable notifications per second.
//!
//! Each subscription starts with a purchase and continues with a renewal, so half of the requests
//! update an existing subscription. An unexpected response ends the run.

use crate::child::Server;
use crate::load::{Load, StopCondition};
use crate::pace::LoadPace;
use crate::report::{Requirements, millis, print_line};
use crate::site::BenchSite;
use crate::template::{ID_PLACEHOLDER, IdOrder, TIME_PLACEHOLDER, Template};
use crate::web_events::EngineArgument;
use crate::{machine, report};
use clap::Args;
use serde_json::{Value, json};
use std::process::ExitCode;
use std::time::Duration;
use tributary_testkit::TestDatabase;

/// The webhook's bearer token.
const SECRET: &str = "0123456789abcdef0123456789abcdef";
/// Required notifications per second.
const FLOOR: u64 = 1_000;
/// Expected response status.
const RECEIVED: u16 = 200;

/// Command-line options.
#[derive(Debug, Args)]
pub(crate) struct BillingBenchOptions {
    /// Database engine. PostgreSQL uses the server in `TEST_DATABASE_URL`, in a temporary schema.
    #[arg(long, value_enum, default_value_t = EngineArgument::Sqlite)]
    engine: EngineArgument,
    /// Length of a round in seconds.
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Number of client connections.
    #[arg(long, default_value_t = 64)]
    connections: usize,
    /// Number of rounds of purchases, each followed by a round of renewals.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
}

fn notification(kind: &str, id: &str, transaction: &str) -> Value {
    json!({"api_version": "1.0", "event": {
        "id": format!("{id}-{ID_PLACEHOLDER}"), "type": kind, "app_user_id": format!("person-{ID_PLACEHOLDER}"),
        "original_app_user_id": format!("$RCAnonymousID:{ID_PLACEHOLDER}"), "aliases": [format!("person-{ID_PLACEHOLDER}")],
        "event_timestamp_ms": TIME_PLACEHOLDER, "purchased_at_ms": TIME_PLACEHOLDER, "period_type": "NORMAL", "store": "APP_STORE",
        "environment": "PRODUCTION", "product_id": "pro.monthly", "price": 9.99, "currency": "EUR",
        "price_in_purchased_currency": 8.99, "tax_percentage": 0.19, "commission_percentage": 0.15,
        "transaction_id": format!("{transaction}-{ID_PLACEHOLDER}"), "original_transaction_id": format!("t-{ID_PLACEHOLDER}"),
        "country_code": "DE", "subscriber_attributes": {"tributaryId": {"value": format!("phone-{ID_PLACEHOLDER}")}},
    }})
}

/// Runs the benchmark. The exit code is 1 if a requirement is not met.
pub(crate) fn run(options: &BillingBenchOptions) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Runtime::new()?;
    let database = runtime.block_on(TestDatabase::new(options.engine.engine()));
    print_line(format_args!(
        "{} cores; syncing 8 kB takes {}",
        machine::cores(),
        millis(machine::sync_time(&database.folder())?)
    ));
    print_line(options.engine.durability());
    let server = Server::product(&database)?;
    let site = BenchSite::open(&server, &database)?;
    let secret = json!({"billing": {"revenuecat": {"secret": format!("Bearer {SECRET}")}}});
    site.call(server.address, "PATCH", "", &secret)?;
    let path = format!("/api/webhook/revenuecat/{}", site.app);
    let load = |body: &Value| Load {
        address: server.address,
        requests: Template::post(
            &server.address.to_string(),
            &path,
            SECRET,
            &body.to_string(),
            IdOrder::Scattered,
        )
        .expecting_status(RECEIVED),
        connections: options.connections,
        next: 0,
    };
    let mut purchases = load(&notification("INITIAL_PURCHASE", "purchase", "t"));
    let mut renewals = load(&notification("RENEWAL", "renewal", "r"));
    let mut slowest = u64::MAX;
    for round in 1..=options.rounds {
        let end = StopCondition::After(Duration::from_secs(options.seconds));
        let bought = purchases.run(LoadPace::FlatOut, end)?;
        // Exactly one renewal for each purchase in this round.
        let renewed = renewals.run(LoadPace::FlatOut, StopCondition::Sent(bought.answered))?;
        for (what, outcome) in [("purchases", &bought), ("renewals", &renewed)] {
            let (p50, p99) = (millis(outcome.times.p50), millis(outcome.times.p99));
            let (rate, answered) = (outcome.per_second, outcome.answered);
            print_line(format_args!(
                "  round {round}: {what} {rate}/s ({answered} answered), p50 {p50}, p99 {p99}"
            ));
            slowest = slowest.min(rate);
        }
    }
    print_line(format_args!(
        "  server memory: {}",
        report::megabytes(server.memory()?)
    ));
    let mut requirements = Requirements::default();
    requirements.check(
        slowest >= FLOOR,
        format_args!(
            "at least {FLOOR} notifications/s in the slowest round ({slowest}/s), none rejected"
        ),
    );
    Ok(ExitCode::from(u8::from(!requirements.all_met())))
}
