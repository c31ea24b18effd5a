//! Tests the worker against a fake Apple server in this process.

use super::*;
use crate::testing::{self, ManualClock};
use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode as Status};
use axum::routing::post;
use metrics_exporter_prometheus::PrometheusBuilder;
use rstest::rstest;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tributary_domain::device::{DeviceKey, Platform};
use tributary_domain::install::ConfigureCommand;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::contract::fixtures::{at, join_all};
use tributary_store::contract::sdk_fixtures::{Tenant, tenant};

/// Time of the devices' calls, in seconds.
const NOW: i64 = 60;
const DEVICE: &str = "6f9619ff-8b86-4011-b42d-00c04fc964ff";
const TOKEN: &str = "dG9rZW4tb2YtYS1kZXZpY2U=";
const TAP: &str =
    r#"{"attribution":true,"orgId":40669820,"campaignId":542370539,"claimType":"Click"}"#;
const NOT_ATTRIBUTED: &str = r#"{"attribution":false}"#;

/// A fake Apple server with scripted responses, which records its requests.
#[derive(Default)]
struct Apple {
    script: Mutex<VecDeque<(u16, &'static str)>>,
    requests: Mutex<Vec<String>>,
    /// Responses wait while a test holds this lock.
    response_lock: tokio::sync::Mutex<()>,
    concurrent: AtomicUsize,
    max_concurrent: AtomicUsize,
}

impl Apple {
    fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

async fn redeem(
    State(apple): State<Arc<Apple>>,
    headers: HeaderMap,
    body: String,
) -> (Status, &'static str) {
    let concurrent = apple.concurrent.fetch_add(1, Ordering::SeqCst) + 1;
    apple.max_concurrent.fetch_max(concurrent, Ordering::SeqCst);
    assert_eq!(headers[CONTENT_TYPE], "text/plain");
    apple.requests.lock().unwrap().push(body);
    let (status, response) = apple
        .script
        .lock()
        .unwrap()
        .pop_front()
        .unwrap_or((200, NOT_ATTRIBUTED));
    tokio::time::sleep(Duration::from_millis(20)).await;
    drop(apple.response_lock.lock().await);
    apple.concurrent.fetch_sub(1, Ordering::SeqCst);
    (Status::from_u16(status).unwrap(), response)
}

/// A worker, an app whose tokens it redeems, and a fake Apple server.
struct Scene {
    apple: Arc<Apple>,
    base: Url,
    tenant: Tenant,
    clock: Arc<ManualClock>,
    worker: AdServicesWorker,
    _folder: TempDir,
}

impl Scene {
    /// Creates a scene in which a device has sent a token.
    async fn new(script: &[(u16, &'static str)]) -> Self {
        let apple = Arc::new(Apple {
            script: Mutex::new(script.iter().copied().collect()),
            ..Apple::default()
        });
        let router = Router::new()
            .route("/apple/api/v1/", post(redeem))
            .with_state(apple.clone());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}/apple", listener.local_addr().unwrap());
        let base = Url::parse(&base).unwrap();
        tokio::spawn(async move { axum::serve(listener, router).await });
        let (store, folder) = testing::store().await;
        let (tenant, clock) = (tenant(&store).await, ManualClock::at(at(NOW)));
        tenant.call_configure(call(&tenant, DEVICE, TOKEN)).await;
        let worker =
            AdServicesWorker::new(store, clock.runtime(), &base, AddressPolicy::Anywhere).unwrap();
        Self {
            apple,
            base,
            tenant,
            clock,
            worker,
            _folder: folder,
        }
    }

    /// Replaces the worker with another worker on the same store.
    fn replace_worker(&mut self, base: &Url, policy: AddressPolicy) {
        let (store, runtime) = (self.tenant.store.clone(), self.clock.runtime());
        self.worker = AdServicesWorker::new(store, runtime, base, policy).unwrap();
    }

    /// Runs the worker once and returns the outcome: `idle`, `done`, or the error.
    async fn run_once(&mut self) -> String {
        match self.worker.run_once().await {
            Ok(WorkerActivity::Idle) => "idle".to_owned(),
            Ok(WorkerActivity::Done) => "done".to_owned(),
            Ok(WorkerActivity::More) => "more".to_owned(),
            Err(error) => format!("{error:#}"),
        }
    }

    /// Advances the clock to the time when the token is due, and checks that it is not retried
    /// earlier.
    async fn wait_until_due(&mut self, wait: Duration) {
        let moment = Duration::from_millis(1);
        assert_eq!(self.run_once().await, "idle");
        self.clock.advance(wait.saturating_sub(moment));
        assert_eq!(self.run_once().await, "idle", "not before it is due");
        self.clock.advance(moment);
    }

    /// Returns Apple's result for a device, and the attributed campaign.
    async fn apple_result_of(&self, device: &str) -> String {
        let Tenant {
            store, reader, app, ..
        } = &self.tenant;
        let device = DeviceKey::parse(device).unwrap();
        let details = store.device(reader, app.id, device).await.unwrap();
        let decision = details.state.attribution.unwrap().decision;
        format!(
            "{} {}",
            decision.evidence.ad_services.as_deref().unwrap_or("none"),
            decision.campaign.id.as_deref().unwrap_or("-")
        )
    }

    /// Returns Apple's result for the device.
    async fn apple_result(&self) -> String {
        self.apple_result_of(DEVICE).await
    }

    fn requests(&self) -> Vec<String> {
        self.apple.requests()
    }
}

/// Returns a device's first call, with a token.
fn call(tenant: &Tenant, device: &str, token: &str) -> ConfigureCommand {
    let mut command = tenant.configure(device, NOW);
    command.traits.platform = Platform::Ios;
    command.ad_services_token = Some(token.to_owned());
    command
}

#[rstest]
#[case::tap(&[(200, TAP)], &[], "tap 542370539")]
#[case::no_record(&[(200, NOT_ATTRIBUTED)], &[], "not_attributed -")]
#[case::not_ready_twice(&[(404, ""), (404, ""), (200, TAP)], &[5, 5], "tap 542370539")]
#[case::not_ready_three_times(&[(404, ""), (404, ""), (404, "")], &[5, 5], "not_attributed -")]
#[case::invalid(&[(400, "bad token")], &[], "invalid -")]
#[case::down_for_a_moment(&[(500, ""), (200, TAP)], &[30], "tap 542370539")]
#[case::down_for_longer(&[(500, ""), (503, ""), (500, ""), (200, TAP)], &[30, 60, 120], "tap 542370539")]
#[case::too_many_requests(&[(429, ""), (200, TAP)], &[30], "tap 542370539")]
#[case::gibberish(&[(200, "<html>"), (200, TAP)], &[30], "tap 542370539")]
#[case::redirects_are_not_followed(&[(302, ""), (200, TAP)], &[30], "tap 542370539")]
#[tokio::test]
async fn redeems_or_retries_a_token(
    #[case] script: &[(u16, &'static str)],
    #[case] waits: &[u64],
    #[case] expected: &str,
) {
    let mut scene = Scene::new(script).await;
    for wait in waits {
        scene.run_once().await;
        assert_eq!(scene.apple_result().await, "pending -");
        scene.wait_until_due(Duration::from_secs(*wait)).await;
    }
    assert_eq!(scene.run_once().await, "done");
    assert_eq!(scene.apple_result().await, expected);
    scene.clock.advance(TOKEN_LIFE);
    assert_eq!(scene.run_once().await, "idle", "not retried any more");
    assert_eq!(scene.requests(), vec![TOKEN; script.len()]);
}

#[rstest]
#[case::young(Duration::ZERO, 1)]
#[case::about_to_end(TOKEN_LIFE.saturating_sub(Duration::from_millis(1)), 1)]
#[case::too_old(TOKEN_LIFE, 0)]
#[tokio::test]
async fn does_not_redeem_an_expired_token(#[case] age: Duration, #[case] requests: usize) {
    let mut scene = Scene::new(&[(200, TAP)]).await;
    scene.clock.advance(age);
    assert_eq!(scene.run_once().await, "done");
    let expected = if requests == 0 {
        "expired -"
    } else {
        "tap 542370539"
    };
    assert_eq!(scene.apple_result().await, expected);
    assert_eq!(scene.requests().len(), requests);
}

#[tokio::test]
async fn gives_up_on_a_token_that_would_expire_before_the_retry() {
    let mut scene = Scene::new(&[(500, "")]).await;
    scene
        .clock
        .advance(TOKEN_LIFE.saturating_sub(Duration::from_secs(30)));
    scene.run_once().await;
    assert_eq!(scene.apple_result().await, "expired -");
}

#[rstest]
#[case::refused(&[(500, "")], "the response has status 500")]
#[case::unreadable(&[(200, "{}")], "the response cannot be parsed")]
#[tokio::test]
async fn errors_do_not_contain_the_token(
    #[case] script: &[(u16, &'static str)],
    #[case] expected: &str,
) {
    let mut scene = Scene::new(script).await;
    let outcome = scene.run_once().await;
    assert_eq!(
        outcome,
        format!("1 of 1 AdServices tokens could not be redeemed: {expected}")
    );
}

#[tokio::test]
async fn retries_when_apple_is_unreachable() {
    let mut scene = Scene::new(&[]).await;
    let nowhere = Url::parse("http://127.0.0.1:1").unwrap();
    scene.replace_worker(&nowhere, AddressPolicy::Anywhere);
    for wait in [30, 60] {
        let outcome = scene.run_once().await;
        assert!(
            outcome.contains("could not be redeemed") && outcome.contains("refused"),
            "{outcome}"
        );
        assert!(!outcome.contains(TOKEN), "{outcome}");
        scene.wait_until_due(Duration::from_secs(wait)).await;
    }
}

#[tokio::test]
async fn does_not_send_a_token_to_a_private_address() {
    let mut scene = Scene::new(&[]).await;
    let base = scene.base.clone();
    scene.replace_worker(&base, AddressPolicy::PublicOnly);
    let outcome = scene.run_once().await;
    assert!(outcome.contains("private address 127.0.0.1"), "{outcome}");
    assert_eq!(scene.requests().len(), 0);
}

#[tokio::test]
async fn redeems_many_tokens_with_limited_concurrency() {
    let mut scene = Scene::new(&[]).await;
    let tenant = &scene.tenant;
    let devices: Vec<String> = (0..150).map(|count| format!("device-{count}")).collect();
    let calls = devices.iter().map(|device| call(tenant, device, device));
    let calls = calls.map(|call| tenant.call_configure(call));
    join_all(calls.collect()).await;
    for outcome in ["more", "more", "done"] {
        assert_eq!(scene.run_once().await, outcome);
    }
    for device in devices.iter().map(String::as_str).chain([DEVICE]) {
        assert_eq!(
            scene.apple_result_of(device).await,
            "not_attributed -",
            "{device}"
        );
    }
    let requests: BTreeSet<String> = scene.requests().into_iter().collect();
    assert_eq!((requests.len(), scene.requests().len()), (151, 151));
    let most = scene.apple.max_concurrent.load(Ordering::SeqCst);
    assert!((2..=CONCURRENCY as usize).contains(&most), "{most} at once");
}

#[tokio::test]
async fn a_lost_lease_stores_no_result() {
    let mut scene = Scene::new(&[(200, TAP)]).await;
    let recorder = PrometheusBuilder::new().build_recorder();
    let _recording = ::metrics::set_default_local_recorder(&recorder);
    let (apple, store) = (scene.apple.clone(), scene.tenant.store.clone());
    let response_lock = apple.response_lock.lock().await;
    // Apple responds only after the lease has expired and another node holds the token.
    let another_node = async {
        while apple.requests().is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let now: Timestamp = at(NOW).plus(LEASE);
        let leased = store.lease_ad_services_tokens(now, now.plus(LEASE), BATCH);
        let leased = leased.await.unwrap();
        drop(response_lock);
        leased
    };
    let (ended, mut leased) = tokio::join!(scene.run_once(), another_node);
    assert_eq!(ended, "done");
    assert_eq!(scene.apple_result().await, "pending -");
    let metrics = recorder.handle().render();
    let lost = "tributary_ad_services_attempts_total{outcome=\"lost\"} 1\n";
    assert!(metrics.contains(lost), "{metrics}");

    let invalid = TokenOutcome::Final(AdServices::Invalid);
    let settled = store.settle_ad_services_token(leased.remove(0), invalid, at(NOW));
    assert!(settled.await.unwrap(), "the other node stores the result");
    assert_eq!(scene.apple_result().await, "invalid -");
}
