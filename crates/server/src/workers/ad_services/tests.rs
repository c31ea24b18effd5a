//! The worker against a server in this process that plays Apple.

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

/// In seconds, when the devices call.
const NOW: i64 = 60;
const DEVICE: &str = "6f9619ff-8b86-4011-b42d-00c04fc964ff";
const TOKEN: &str = "dG9rZW4tb2YtYS1kZXZpY2U=";
const TAP: &str =
    r#"{"attribution":true,"orgId":40669820,"campaignId":542370539,"claimType":"Click"}"#;
const NOBODY: &str = r#"{"attribution":false}"#;

/// Answers in the order of its script, and remembers what it was asked.
#[derive(Default)]
struct Apple {
    script: Mutex<VecDeque<(u16, &'static str)>>,
    asked: Mutex<Vec<String>>,
    /// Nobody is answered while a test holds this.
    silence: tokio::sync::Mutex<()>,
    at_once: AtomicUsize,
    most_at_once: AtomicUsize,
}

impl Apple {
    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

async fn redeem(
    State(apple): State<Arc<Apple>>,
    headers: HeaderMap,
    body: String,
) -> (Status, &'static str) {
    let at_once = apple.at_once.fetch_add(1, Ordering::SeqCst) + 1;
    apple.most_at_once.fetch_max(at_once, Ordering::SeqCst);
    assert_eq!(headers[CONTENT_TYPE], "text/plain");
    apple.asked.lock().unwrap().push(body);
    let (status, answer) = apple
        .script
        .lock()
        .unwrap()
        .pop_front()
        .unwrap_or((200, NOBODY));
    tokio::time::sleep(Duration::from_millis(20)).await;
    drop(apple.silence.lock().await);
    apple.at_once.fetch_sub(1, Ordering::SeqCst);
    (Status::from_u16(status).unwrap(), answer)
}

/// A worker, the app whose tokens it redeems, and Apple.
struct Scene {
    apple: Arc<Apple>,
    base: Url,
    tenant: Tenant,
    clock: Arc<ManualClock>,
    worker: AdServicesWorker,
    _folder: TempDir,
}

impl Scene {
    /// A device has sent a token.
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

    /// Another worker on the same store.
    fn employ(&mut self, base: &Url, reach: AddressPolicy) {
        let (store, source) = (self.tenant.store.clone(), self.clock.runtime());
        self.worker = AdServicesWorker::new(store, source, base, reach).unwrap();
    }

    /// Activates once, and gives how it ended: `idle`, `done`, or the failure.
    async fn activate(&mut self) -> String {
        match self.worker.run_once().await {
            Ok(WorkerActivity::Idle) => "idle".to_owned(),
            Ok(WorkerActivity::Done) => "done".to_owned(),
            Err(error) => format!("{error:#}"),
        }
    }

    /// Moves to the moment that the only token is due again, before which it is left alone.
    async fn wait_until_due(&mut self, wait: Duration) {
        let moment = Duration::from_millis(1);
        assert_eq!(self.activate().await, "idle");
        self.clock.advance(wait.saturating_sub(moment));
        assert_eq!(self.activate().await, "idle", "not before its time");
        self.clock.advance(moment);
    }

    /// What is known from Apple about a device, and the campaign that it is credited to.
    async fn word_on(&self, device: &str) -> String {
        let Tenant {
            store, reader, app, ..
        } = &self.tenant;
        let device = DeviceKey::parse(device).unwrap();
        let story = store.device(reader, app.id, device).await.unwrap();
        let decision = story.state.attribution.unwrap().decision;
        format!(
            "{} {}",
            decision.evidence.ad_services.as_deref().unwrap_or("none"),
            decision.campaign.id.as_deref().unwrap_or("-")
        )
    }

    /// What is known from Apple about the device.
    async fn word(&self) -> String {
        self.word_on(DEVICE).await
    }

    fn asked(&self) -> Vec<String> {
        self.apple.asked()
    }
}

/// The first call of a device, with a token.
fn call(tenant: &Tenant, device: &str, token: &str) -> ConfigureCommand {
    let mut command = tenant.configure(device, NOW);
    command.traits.platform = Platform::Ios;
    command.ad_services_token = Some(token.to_owned());
    command
}

#[rstest]
#[case::tap(&[(200, TAP)], &[], "tap 542370539")]
#[case::no_record(&[(200, NOBODY)], &[], "not_attributed -")]
#[case::not_ready_twice(&[(404, ""), (404, ""), (200, TAP)], &[5, 5], "tap 542370539")]
#[case::not_ready_three_times(&[(404, ""), (404, ""), (404, "")], &[5, 5], "not_attributed -")]
#[case::invalid(&[(400, "bad token")], &[], "invalid -")]
#[case::down_for_a_moment(&[(500, ""), (200, TAP)], &[30], "tap 542370539")]
#[case::down_for_longer(&[(500, ""), (503, ""), (500, ""), (200, TAP)], &[30, 60, 120], "tap 542370539")]
#[case::too_many_requests(&[(429, ""), (200, TAP)], &[30], "tap 542370539")]
#[case::gibberish(&[(200, "<html>"), (200, TAP)], &[30], "tap 542370539")]
#[case::redirects_are_not_followed(&[(302, ""), (200, TAP)], &[30], "tap 542370539")]
#[tokio::test]
async fn what_becomes_of_a_token(
    #[case] script: &[(u16, &'static str)],
    #[case] waits: &[u64],
    #[case] expected: &str,
) {
    let mut scene = Scene::new(script).await;
    for wait in waits {
        scene.activate().await;
        assert_eq!(scene.word().await, "pending -");
        scene.wait_until_due(Duration::from_secs(*wait)).await;
    }
    assert_eq!(scene.activate().await, "done");
    assert_eq!(scene.word().await, expected);
    scene.clock.advance(TOKEN_LIFE);
    assert_eq!(scene.activate().await, "idle", "and that was it");
    assert_eq!(scene.asked(), vec![TOKEN; script.len()]);
}

#[rstest]
#[case::young(Duration::ZERO, 1)]
#[case::about_to_end(TOKEN_LIFE.saturating_sub(Duration::from_millis(1)), 1)]
#[case::too_old(TOKEN_LIFE, 0)]
#[tokio::test]
async fn apple_is_not_asked_about_a_token_that_is_too_old(
    #[case] age: Duration,
    #[case] asked: usize,
) {
    let mut scene = Scene::new(&[(200, TAP)]).await;
    scene.clock.advance(age);
    assert_eq!(scene.activate().await, "done");
    let expected = if asked == 0 {
        "expired -"
    } else {
        "tap 542370539"
    };
    assert_eq!(scene.word().await, expected);
    assert_eq!(scene.asked().len(), asked);
}

#[tokio::test]
async fn a_token_that_would_be_too_old_when_tried_again_is_given_up() {
    let mut scene = Scene::new(&[(500, "")]).await;
    scene
        .clock
        .advance(TOKEN_LIFE.saturating_sub(Duration::from_secs(30)));
    scene.activate().await;
    assert_eq!(scene.word().await, "expired -");
}

#[rstest]
#[case::refused(&[(500, "")], "the answer has status 500")]
#[case::unreadable(&[(200, "{}")], "the answer cannot be read")]
#[tokio::test]
async fn trouble_is_told_without_the_token(
    #[case] script: &[(u16, &'static str)],
    #[case] expected: &str,
) {
    let mut scene = Scene::new(script).await;
    let told = scene.activate().await;
    assert_eq!(
        told,
        format!("1 of 1 AdServices tokens could not be redeemed: {expected}")
    );
}

#[tokio::test]
async fn an_apple_that_is_not_there_is_asked_later() {
    let mut scene = Scene::new(&[]).await;
    let nowhere = Url::parse("http://127.0.0.1:1").unwrap();
    scene.employ(&nowhere, AddressPolicy::Anywhere);
    for wait in [30, 60] {
        let told = scene.activate().await;
        assert!(
            told.contains("could not be redeemed") && told.contains("refused"),
            "{told}"
        );
        assert!(!told.contains(TOKEN), "{told}");
        scene.wait_until_due(Duration::from_secs(wait)).await;
    }
}

#[tokio::test]
async fn a_private_address_gets_no_token_unless_it_is_allowed() {
    let mut scene = Scene::new(&[]).await;
    let base = scene.base.clone();
    scene.employ(&base, AddressPolicy::PublicOnly);
    let told = scene.activate().await;
    assert!(told.contains("private address 127.0.0.1"), "{told}");
    assert_eq!(scene.asked().len(), 0);
}

#[tokio::test]
async fn many_tokens_are_redeemed_a_few_at_a_time_until_none_is_due() {
    let mut scene = Scene::new(&[]).await;
    let tenant = &scene.tenant;
    let devices: Vec<String> = (0..150).map(|count| format!("device-{count}")).collect();
    let calls = devices.iter().map(|device| call(tenant, device, device));
    let calls = calls.map(|call| tenant.call_configure(call));
    join_all(calls.collect()).await;
    assert_eq!(scene.activate().await, "done");
    for device in devices.iter().map(String::as_str).chain([DEVICE]) {
        assert_eq!(scene.word_on(device).await, "not_attributed -", "{device}");
    }
    let asked: BTreeSet<String> = scene.asked().into_iter().collect();
    assert_eq!((asked.len(), scene.asked().len()), (151, 151));
    let most = scene.apple.most_at_once.load(Ordering::SeqCst);
    assert!((2..=CONCURRENCY as usize).contains(&most), "{most} at once");
}

#[tokio::test]
async fn a_lost_lease_settles_nothing_and_breaks_nothing() {
    let mut scene = Scene::new(&[(200, TAP)]).await;
    let recorder = PrometheusBuilder::new().build_recorder();
    let _recording = ::metrics::set_default_local_recorder(&recorder);
    let (apple, store) = (scene.apple.clone(), scene.tenant.store.clone());
    let silence = apple.silence.lock().await;
    // Apple answers when the lease is over and another node has the token.
    let another_node = async {
        while apple.asked().is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let now: Timestamp = at(NOW).plus(LEASE);
        let leased = store.lease_ad_services_tokens(now, now.plus(LEASE), BATCH);
        let leased = leased.await.unwrap();
        drop(silence);
        leased
    };
    let (ended, mut leased) = tokio::join!(scene.activate(), another_node);
    assert_eq!(ended, "done");
    assert_eq!(scene.word().await, "pending -");
    let metrics = recorder.handle().render();
    let lost = "tributary_ad_services_attempts_total{outcome=\"lost\"} 1\n";
    assert!(metrics.contains(lost), "{metrics}");

    let invalid = TokenOutcome::Final(AdServices::Invalid);
    let settled = store.settle_ad_services_token(leased.remove(0), invalid, at(NOW));
    assert!(settled.await.unwrap(), "it is the other node's to settle");
    assert_eq!(scene.word().await, "invalid -");
}
