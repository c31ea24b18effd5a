//! Tests the worker against a fake bank in this process.

use super::*;
use crate::testing::{self, ManualClock};
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode as Status;
use axum::response::{IntoResponse as _, Response as AxumResponse};
use axum::routing::get;
use rstest::rstest;
use std::sync::Mutex;
use tokio::net::TcpListener;
use tributary_domain::exchange::RateQuery;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::Store;

/// 2024-03-19T00:00:00Z.
const NOW: Timestamp = Timestamp::from_millis(1_710_806_400_000);
const MONDAY: &str = "date,currency,perEur\n2024-03-18,USD,1.0872\n";
const TUESDAY: &str = "date,currency,perEur\n2024-03-19,USD,1.0854\n";

/// Serves a file and records each request's conditional headers.
struct Bank {
    file: Mutex<(u16, String)>,
    conditions: Mutex<Vec<String>>,
}

async fn serve(State(bank): State<Arc<Bank>>, headers: HeaderMap) -> AxumResponse {
    let value = |name| {
        headers
            .get(name)
            .map_or("-", |value| value.to_str().unwrap())
    };
    let conditions = format!("{} {}", value(IF_NONE_MATCH), value(IF_MODIFIED_SINCE));
    bank.conditions.lock().unwrap().push(conditions);
    let (status, text) = bank.file.lock().unwrap().clone();
    let tag = format!("\"{}\"", text.len());
    if value(IF_NONE_MATCH) == tag {
        return Status::NOT_MODIFIED.into_response();
    }
    let headers = [(ETAG, tag), (LAST_MODIFIED, "then".to_owned())];
    (Status::from_u16(status).unwrap(), headers, text).into_response()
}

async fn bank(status: u16, text: &str) -> (Arc<Bank>, Url) {
    let bank = Arc::new(Bank {
        file: Mutex::new((status, text.to_owned())),
        conditions: Mutex::default(),
    });
    let router = Router::new()
        .route("/daily", get(serve))
        .with_state(bank.clone());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!(
        "http://{}/daily?token=canary",
        listener.local_addr().unwrap()
    );
    tokio::spawn(async move { axum::serve(listener, router).await });
    (bank, Url::parse(&url).unwrap())
}

fn worker(store: &Arc<dyn Store>, url: Option<Url>) -> RatesWorker {
    let runtime = ManualClock::at(NOW).runtime();
    let settings = RatesSettings {
        url,
        second_url: None,
    };
    RatesWorker::new(store.clone(), runtime, &settings).unwrap()
}

/// Returns the day of the latest dollar rate.
async fn latest(store: &Arc<dyn Store>) -> Option<String> {
    let day = rates::latest_imported_day(&**store).await.unwrap();
    day.map(|day| day.to_string())
}

/// Imports rates. Returns how many were new or different.
async fn import(store: &Arc<dyn Store>, text: &str) -> u64 {
    let rates = rates::parse(text.as_bytes(), Day::of(NOW)).unwrap();
    store.import_rates(rates, NOW).await.unwrap()
}

#[tokio::test]
async fn fetches_a_file_again_only_if_it_changed() {
    let (bank, url) = bank(200, MONDAY).await;
    let (store, _folder) = testing::store().await;
    let mut worker = worker(&store, Some(url));
    for _ in 0..2 {
        assert_eq!(worker.run_once().await.unwrap(), WorkerActivity::Done);
        assert_eq!(latest(&store).await.as_deref(), Some("2024-03-18"));
    }
    *bank.file.lock().unwrap() = (200, format!("{TUESDAY}\n"));
    assert_eq!(worker.run_once().await.unwrap(), WorkerActivity::Done);
    assert_eq!(latest(&store).await.as_deref(), Some("2024-03-19"));
    for known in [MONDAY, TUESDAY] {
        assert_eq!(import(&store, known).await, 0, "already stored: {known}");
    }
    let known = format!("\"{}\" then", MONDAY.len());
    assert_eq!(*bank.conditions.lock().unwrap(), ["- -", &known, &known]);
}

#[rstest]
#[case::yesterdays(MONDAY, 0)]
#[case::todays(TUESDAY, 0)]
#[case::fridays("date,currency,perEur\n2024-03-15,USD,1.0890\n", 1)]
#[case::another_currencys("date,currency,perEur\n2024-03-19,UAH,42.6\n", 1)]
#[tokio::test]
async fn a_restart_does_not_fetch_recent_rates(#[case] known: &str, #[case] fetched: usize) {
    let (bank, url) = bank(200, MONDAY).await;
    let (store, _folder) = testing::store().await;
    import(&store, known).await;
    let mut worker = worker(&store, Some(url));
    worker.run_once().await.unwrap();
    assert_eq!(bank.conditions.lock().unwrap().len(), fetched);
    worker.run_once().await.unwrap();
    assert_eq!(
        bank.conditions.lock().unwrap().len(),
        fetched + 1,
        "later runs always fetch"
    );
}

#[rstest]
#[case::gone(404, "", "rates.url responds with 404 Not Found")]
#[case::moved(301, "", "a redirect")]
#[case::no_rates(200, "<html></html>", "unknown exchange rate format")]
#[case::a_bad_line(
    200,
    "date,currency,perEur\n2024-03-18,USD,much\n",
    "line 2: USD: must be a decimal"
)]
#[case::of_the_future(
    200,
    "date,currency,perEur\n2024-03-19,USD,1.0854\n2024-03-21,USD,1.5\n",
    "line 3: 2024-03-21 is later than tomorrow, 2024-03-20"
)]
#[tokio::test]
async fn reports_and_refetches_an_unusable_file(
    #[case] status: u16,
    #[case] text: &str,
    #[case] expected: &str,
) {
    let (bank, url) = bank(status, text).await;
    let (store, _folder) = testing::store().await;
    let mut worker = worker(&store, Some(url));
    for _ in 0..2 {
        let error = format!("{:#}", worker.run_once().await.unwrap_err());
        assert!(
            error.contains(expected) && !error.contains("canary"),
            "{error}"
        );
    }
    assert_eq!(
        *bank.conditions.lock().unwrap(),
        ["- -", "- -"],
        "never \"not modified\""
    );
    assert_eq!(latest(&store).await, None);
}

#[tokio::test]
async fn fetches_nothing_without_a_url() {
    let (store, _folder) = testing::store().await;
    let mut worker = worker(&store, None);
    assert_eq!(worker.run_once().await.unwrap(), WorkerActivity::Idle);
}

/// 2026-11-16T12:00:00Z, weeks after the compiled-in snapshots.
const LATER: Timestamp = Timestamp::from_millis(1_794_830_400_000);
const BANK_LATER: &str = "date,currency,perEur\n2026-11-16,USD,1.16\n2026-11-16,JPY,178\n";

/// Returns a worker that fetches from both sources.
fn worker_of_two(store: &Arc<dyn Store>, url: Url, second_url: Url) -> RatesWorker {
    let settings = RatesSettings {
        url: Some(url),
        second_url: Some(second_url),
    };
    RatesWorker::new(store.clone(), ManualClock::at(LATER).runtime(), &settings).unwrap()
}

/// Returns the latest stored rates, formatted as `2026-11-16 AED 3.6725 currency-api`.
async fn stored(store: &Arc<dyn Store>, currencies: &[&str]) -> Vec<String> {
    let question = |code: &&str| RateQuery {
        currency: Currency::from_stored(code).unwrap(),
        day: Day::of(LATER),
    };
    let questions = currencies.iter().map(question).collect();
    let rates = store.latest_rates(questions).await.unwrap();
    let mut lines: Vec<String> = rates
        .iter()
        .map(|rate| {
            let code = rate.currency.as_str();
            format!("{} {code} {} {}", rate.day, rate.units, rate.source)
        })
        .collect();
    lines.sort();
    lines
}

#[tokio::test]
async fn the_second_source_adds_missing_currencies() {
    let (_bank, url) = bank(200, BANK_LATER).await;
    let figures =
        r#"{"date":"2026-11-16","usd":{"aed":3.6725,"btc":1e-5,"eur":0.5,"jpy":99,"ngn":1400}}"#;
    let (_second, second_url) = bank(200, figures).await;
    let (store, _folder) = testing::store().await;
    let own = "date,currency,perUsd\n2026-11-12,NGN,1450\n";
    let own = rates::parse(own.as_bytes(), Day::of(LATER)).unwrap();
    store.import_rates(own, LATER).await.unwrap();
    let mut worker = worker_of_two(&store, url, second_url);
    assert_eq!(worker.run_once().await.unwrap(), WorkerActivity::Done);
    assert_eq!(
        stored(&store, &["AED", "EUR", "JPY", "NGN", "USD"]).await,
        [
            "2026-11-12 NGN 1450 file",
            "2026-11-16 AED 3.6725 currency-api",
            "2026-11-16 JPY 178 file",
            "2026-11-16 USD 1.16 file",
        ]
    );
    let latest = rates::latest_second_source_day(&*store, Day::of(LATER))
        .await
        .unwrap();
    assert_eq!(latest.to_string(), "2026-11-16");
}

#[tokio::test]
async fn rejects_a_rate_that_moved_too_far() {
    let (_bank, url) = bank(200, BANK_LATER).await;
    let monday = r#"{"date":"2026-11-15","usd":{"mnt":3600,"ngn":1400}}"#;
    let (second, second_url) = bank(200, monday).await;
    let (store, _folder) = testing::store().await;
    let mut worker = worker_of_two(&store, url, second_url);
    worker.run_once().await.unwrap();
    let tuesday = r#"{"date":"2026-11-16","usd":{"mnt":0.69372624,"ngn":1410}}"#;
    *second.file.lock().unwrap() = (200, tuesday.to_owned());
    worker.run_once().await.unwrap();
    assert_eq!(
        stored(&store, &["MNT", "NGN"]).await,
        [
            "2026-11-15 MNT 3600 currency-api",
            "2026-11-16 NGN 1410 currency-api",
        ]
    );
}

#[rstest]
#[case::the_first(500, 200, "rates.url responds with 500", Some("2026-11-16"))]
#[case::the_second(200, 500, "rates.second_url responds with 500", None)]
#[case::both(500, 500, "rates.second_url responds with 500", None)]
#[tokio::test]
async fn a_failing_source_does_not_stop_the_other(
    #[case] first: u16,
    #[case] second: u16,
    #[case] expected: &str,
    #[case] latest_of_second: Option<&str>,
) {
    let (_bank, url) = bank(first, BANK_LATER).await;
    let figures = r#"{"date":"2026-11-16","usd":{"aed":3.6725}}"#;
    let (_second, second_url) = bank(second, figures).await;
    let (store, _folder) = testing::store().await;
    let mut worker = worker_of_two(&store, url, second_url);
    let error = format!("{:#}", worker.run_once().await.unwrap_err());
    assert!(
        error.contains(expected) && !error.contains("canary"),
        "{error}"
    );
    let found = rates::latest_second_source_day(&*store, Day::of(LATER))
        .await
        .unwrap();
    assert_eq!(found.to_string(), latest_of_second.unwrap_or("2026-09-29"));
    assert_eq!(latest(&store).await.is_some(), first == 200);
}
