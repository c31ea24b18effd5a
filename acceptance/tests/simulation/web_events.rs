//! Web events against a model: random payments, renewals, refunds, repeats, conflicts and missing
//! parents, first from concurrent clients, then one by one. The responses are checked, and at the
//! end the log, its amounts and the roll-ups equal the model to the millionth of a dollar.
//!
//! A failure prints its seed; `PROPTEST_RNG_SEED` repeats it, as far as a race can be repeated.

use super::web_cases::{CLICKS, Case, case, posts};
use super::web_compare::check_stored;
use super::web_history::check_history;
use super::web_model::{Kind, Post, PostOutcome, Reply};
use crate::random::env_number;
use crate::website::{Website, with};
use proptest::test_runner::{Config, RngSeed, TestCaseError, TestError, TestRunner};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, Hasher as _};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tributary_domain::access::{AnalyticsRead, Authorized, Environment, Permission};
use tributary_domain::report::Figures;
use tributary_testkit::{TestResponse, TestServer, on_both_engines};

/// Default time per engine in seconds; `TRIBUTARY_SIMULATION_SECONDS` changes it.
const SECONDS: u64 = 6;
/// Minimum number of cases per engine, however long they take.
const CASES_MIN: u64 = 8;
/// Queries of the website's clicks, one per network.
const QUERIES: [&str; CLICKS] = ["fbclid=x", "gclid=x", "ttclid=x", "oppref=x"];

/// A website with one click per network.
#[derive(Clone)]
struct SimulatedShop {
    site: Website,
    clicks: Arc<Vec<String>>,
}

impl SimulatedShop {
    async fn open(server: &TestServer, key: &str) -> Self {
        let mut site = Website::open_at(&format!("http://{}", server.address), key).await;
        let mut clicks = vec![std::mem::take(&mut site.click)];
        for query in &QUERIES[1..] {
            clicks.push(site.tap(&site.link, query).await);
        }
        Self {
            site,
            clicks: Arc::new(clicks),
        }
    }

    /// Builds the body of a post; `variant` selects one of two spellings of the amount.
    fn body(&self, post: &Post, variant: u64) -> Value {
        let click = post.click.map_or("clk_forged", |click| &self.clicks[click]);
        let mut body = with(
            &self.site.event(&post.id, post.kind.name()),
            "arClickId",
            click,
        );
        body["deviceId"] = json!(format!("device-{}", post.device));
        body["timestampMs"] = json!(post.at);
        if post.kind != Kind::SignUp {
            body["revenue"] = json!(decimal(post.micros, variant.is_multiple_of(2)));
            body["currency"] = json!(post.currency);
        }
        if let Some(parent) = &post.parent {
            body["originalTransactionId"] = json!(parent);
        }
        body
    }

    /// Reads the log and the roll-ups.
    async fn read_stored(
        &self,
        server: &TestServer,
        reader: &Authorized<AnalyticsRead>,
    ) -> (Vec<Value>, BTreeMap<String, Figures>) {
        (
            self.site.log().await,
            self.site.figures(server, reader).await,
        )
    }

    async fn send(&self, post: &Post, clock: &AtomicU64) -> Reply {
        let began = clock.fetch_add(1, Ordering::SeqCst);
        let answer = self.site.send(&self.body(post, began)).await;
        let ended = clock.fetch_add(1, Ordering::SeqCst);
        Reply {
            post: post.clone(),
            began,
            ended,
            outcome: outcome(&answer),
        }
    }
}

fn decimal(micros: i64, short: bool) -> String {
    let sign = if micros < 0 { "-" } else { "" };
    let micros = micros.unsigned_abs();
    let text = format!("{sign}{}.{:06}", micros / 1_000_000, micros % 1_000_000);
    if short {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

fn outcome(answer: &TestResponse) -> PostOutcome {
    match answer.status.as_u16() {
        202 if answer.data()["duplicate"] == true => PostOutcome::Duplicate,
        202 => PostOutcome::Accepted,
        409 | 422 => PostOutcome::Refused(answer.code()),
        _ => panic!("unexpected response to an event: {answer:?}"),
    }
}

/// Number of posts by outcome, and of stored events.
type Tally = BTreeMap<String, u64>;

/// Runs a case on a new website.
async fn run_case(
    server: &TestServer,
    key: &str,
    reader: &Authorized<AnalyticsRead>,
    case: Case,
) -> Result<Tally, String> {
    let shop = SimulatedShop::open(server, key).await;
    let posts = posts(&case.drafts);
    let clock = Arc::new(AtomicU64::new(0));
    let clients: Vec<_> = case
        .scripts
        .iter()
        .map(|script| {
            let script: Vec<Post> = script
                .iter()
                .map(|index| index.get(&posts).clone())
                .collect();
            let (shop, clock) = (shop.clone(), clock.clone());
            tokio::spawn(async move {
                let mut replies = Vec::new();
                for post in &script {
                    replies.push(shop.send(post, &clock).await);
                }
                replies
            })
        })
        .collect();
    let mut replies = Vec::new();
    for client in clients {
        replies.extend(client.await.map_err(|error| error.to_string())?);
    }
    let mut model = check_history(&replies)?;
    let (log, figures) = shop.read_stored(server, reader).await;
    check_stored(&log, &figures, &shop.clicks, &model)?;
    // The model predicts the responses to sequential posts. A post without its parent succeeds once
    // the parent is stored.
    let mut waiting = posts;
    for _turn in 0..3 {
        let mut late = Vec::new();
        for post in waiting {
            let reply = shop.send(&post, &clock).await;
            let expected = model.post(&post);
            if reply.outcome != expected {
                return Err(format!("expected {expected:?}: {reply:?}"));
            }
            if reply.outcome == PostOutcome::Refused("original_transaction_unavailable".to_owned())
            {
                late.push(post);
            }
            replies.push(reply);
        }
        waiting = late;
    }
    let (log, figures) = shop.read_stored(server, reader).await;
    check_stored(&log, &figures, &shop.clicks, &model)?;
    let mut tally = Tally::from([("stored".to_owned(), model.0.len() as u64)]);
    for reply in replies {
        let name = match reply.outcome {
            PostOutcome::Accepted => format!("accepted {}", reply.post.kind.name()),
            PostOutcome::Duplicate => "duplicate".to_owned(),
            PostOutcome::Refused(code) => code,
        };
        *tally.entry(name).or_default() += 1;
    }
    Ok(tally)
}

fn seed(config: &Config) -> u64 {
    match config.rng_seed {
        RngSeed::Fixed(seed) => seed,
        RngSeed::Random => std::hash::RandomState::new().build_hasher().finish(),
    }
}

on_both_engines! {
    async fn events_revenue_and_refunds_agree_with_the_model(engine: Engine) {
        let server = TestServer::start(engine).await;
        let organization = server.organization("Example").await;
        let reader = Authorized::operator(organization);
        let key = server.key(organization, Permission::Full, Environment::Live).await;
        let config = Config { cases: 1_000, max_shrink_iters: 60, failure_persistence: None, ..Config::default() };
        let seed = seed(&config);
        let time = Duration::from_secs(env_number("TRIBUTARY_SIMULATION_SECONDS", SECONDS));
        println!("{engine:?}: seed {seed}");
        let mut runner = TestRunner::new(Config { rng_seed: RngSeed::Fixed(seed), ..config });
        let (started, failed) = (Instant::now(), AtomicBool::new(false));
        let total = Mutex::new(Tally::new());
        let outcome = tokio::task::block_in_place(|| runner.run(&case(), |case| {
            let enough = total.lock().unwrap().get("cases").is_some_and(|count| *count >= CASES_MIN);
            if enough && started.elapsed() > time && !failed.load(Ordering::Relaxed) {
                return Ok(());
            }
            let result = tokio::runtime::Handle::current().block_on(run_case(&server, &key, &reader, case));
            let tally = result.map_err(|violation| {
                failed.store(true, Ordering::Relaxed);
                TestCaseError::fail(violation)
            })?;
            let mut total = total.lock().unwrap();
            for (name, count) in tally.into_iter().chain([("cases".to_owned(), 1)]) {
                *total.entry(name).or_default() += count;
            }
            Ok(())
        }));
        let total = total.into_inner().unwrap();
        println!("{engine:?}: {total:?}");
        if let Err(TestError::Fail(reason, case)) = outcome {
            panic!("seed {seed}: {reason}\n{case:#?}");
        }
        assert!(total["cases"] >= CASES_MIN, "too few cases ran: {outcome:?}");
        for name in [
            "accepted purchase", "accepted renewal", "accepted refund", "duplicate", "event_id_conflict",
            "original_transaction_unavailable", "original_transaction_invalid", "refund_exceeds_payment",
        ] {
            assert!(total.contains_key(name), "no post had the outcome {name}");
        }
    }
}
