//! `POST /api/webhook/revenuecat/{appId}`: notifications a second that are durable when they are answered.
//!
//! Every subscription begins with a purchase and goes on with a renewal, so that half of what is measured meets a
//! subscription that is there. A failed answer ends the run.

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

/// What the provider sends behind `Bearer`.
const SECRET: &str = "0123456789abcdef0123456789abcdef";
/// Notifications a second that are demanded.
const FLOOR: u64 = 1_000;
/// What a notification is answered with.
const RECEIVED: u16 = 200;

/// What can be set.
#[derive(Debug, Args)]
pub(crate) struct BillingBenchOptions {
    /// The database. PostgreSQL is the server of `TEST_DATABASE_URL`, in a schema of the run's own.
    #[arg(long, value_enum, default_value_t = EngineArgument::Sqlite)]
    engine: EngineArgument,
    /// How long a round is.
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Connections of the load.
    #[arg(long, default_value_t = 64)]
    connections: usize,
    /// Rounds of purchases, each followed by one of renewals.
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

/// Measures; the exit code says whether the floor is held.
pub(crate) fn run(options: &BillingBenchOptions) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Runtime::new()?;
    let database = runtime.block_on(TestDatabase::new(options.engine.engine()));
    print_line(format_args!(
        "{} cores; 8 kB made durable in {}",
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
        // Renewals of what was just bought, and no more of them.
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
        "  the server's memory: {}",
        report::megabytes(server.memory()?)
    ));
    let mut verdicts = Requirements::default();
    verdicts.check(
        slowest >= FLOOR,
        format_args!(
            "{FLOOR} notifications a second in the slowest round ({slowest}/s), none refused"
        ),
    );
    Ok(ExitCode::from(u8::from(!verdicts.all_met())))
}
