//! Tests alerts against a receiver in this process.

use super::*;
use crate::testing::{self, ManualClock, receiver};
use axum::http::StatusCode;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use tributary_domain::app::AppChange;
use tributary_domain::forwarding::alert::AlertKind;
use tributary_domain::keyring::alert::{AlertSecret, AlertSecretRotation};
use tributary_domain::notice::{
    MailAddress, Notice, NoticeChannel, NoticeProgress, NoticeSettings, NoticeTopic,
};
use tributary_domain::vocabulary::change::Change;
use tributary_domain::vocabulary::id::NoticeId;
use tributary_domain::vocabulary::revision::{Precondition, Revision};
use tributary_domain::vocabulary::text::Name;
use tributary_domain::vocabulary::web_url::HttpsUrl;
use tributary_store::Store;
use tributary_store::contract::fixtures::{at, origin};
use tributary_store::contract::sdk_fixtures::{Tenant, tenant};

async fn listening(store: &Arc<dyn Store>) -> Tenant {
    let tenant = tenant(store).await;
    let change = AppChange {
        alert_webhook_url: Change::Set(HttpsUrl::parse("https://alerts.example.com/hook").unwrap()),
        ..AppChange::default()
    };
    let (writer, app) = (&tenant.writer, tenant.app.id);
    store
        .update_app(writer, app, change, Precondition::None, origin(5))
        .await
        .unwrap();
    tenant
}

fn worker(store: &Arc<dyn Store>, seconds: i64) -> AlertsWorker {
    let runtime = ManualClock::at(at(seconds)).runtime();
    AlertsWorker::new(
        store.clone(),
        runtime,
        Keyring::new([3; 32]),
        AddressPolicy::Anywhere,
    )
    .unwrap()
}

async fn raise(store: &Arc<dyn Store>, seconds: i64) -> u64 {
    let raised = store.raise_alert_everywhere(
        AlertKind::RatesStale,
        "The rates are old.".to_owned(),
        at(seconds - 3_600),
        at(seconds),
        [9; 8],
    );
    raised.await.unwrap()
}

#[tokio::test]
async fn alerts_are_signed_verifiably() {
    let (store, _folder) = testing::store().await;
    let tenant = listening(&store).await;
    let (url, received) = receiver(Vec::new()).await;
    assert_eq!(raise(&store, 10).await, 1);
    assert_eq!(raise(&store, 11).await, 0, "raised once per interval");
    let due = store.lease_alerts(at(12), at(60), 5).await.unwrap();
    let worker = worker(&store, 12);
    assert!(worker.post_alert(&due[0].alert, &url).await);
    let received = received.lock().unwrap();
    let (headers, body) = &received[0];
    let text = |name: &str| headers[name].to_str().unwrap().to_owned();
    let id = text("webhook-id");
    let seconds: i64 = text("webhook-timestamp").parse().unwrap();
    let of = (tenant.writer.organization(), tenant.app.id);
    let secret = Keyring::new([3; 32]).alert_secret(of, None).unwrap();
    let expected = secret.sign(&id, seconds, body);
    assert_eq!(
        text("webhook-signature"),
        format!("v1,{}", BASE64.encode(expected))
    );
    let alert_body: serde_json::Value = serde_json::from_slice(body).unwrap();
    assert_eq!(
        (&alert_body["type"], &alert_body["id"]),
        (&"rates.stale".into(), &id.into())
    );
    assert_eq!(alert_body["appId"], tenant.app.id.to_string());
}

#[tokio::test]
async fn alerts_are_signed_with_a_replaced_secret_until_its_end() {
    let (store, _folder) = testing::store().await;
    let tenant = listening(&store).await;
    let (url, received) = receiver(Vec::new()).await;
    raise(&store, 10).await;
    let keyring = Keyring::new([3; 32]);
    let of = (tenant.writer.organization(), tenant.app.id);
    let derived = keyring.alert_secret(of, None).unwrap();
    let successor = AlertSecret::from_bytes([9; 32]);
    let rotation = AlertSecretRotation {
        derived: keyring.seal_alert_secret(of, [1; 24], &derived),
        successor: keyring.seal_alert_secret(of, [2; 24], &successor),
        overlap: Duration::from_mins(1),
    };
    let rotated = store.rotate_alert_secret(&tenant.writer, of.1, rotation, origin(11));
    rotated.await.unwrap();
    let due = store.lease_alerts(at(12), at(60), 5).await.unwrap();
    for seconds in [70, 71] {
        assert!(
            worker(&store, seconds)
                .post_alert(&due[0].alert, &url)
                .await
        );
    }
    let received = received.lock().unwrap();
    let signed_by = |secret: &AlertSecret| {
        let requests = received.iter().map(|(headers, body)| {
            let text = |name: &str| headers[name].to_str().unwrap();
            let seconds = text("webhook-timestamp").parse().unwrap();
            let signed = BASE64.encode(secret.sign(text("webhook-id"), seconds, body));
            let header = text("webhook-signature");
            header.split(' ').any(|one| one == format!("v1,{signed}"))
        });
        requests.collect::<Vec<bool>>()
    };
    assert_eq!(signed_by(&derived), [true, false]);
    assert_eq!(signed_by(&successor), [true, true]);
}

#[tokio::test]
async fn retries_an_alert_and_then_gives_up() {
    let (store, _folder) = testing::store().await;
    listening(&store).await;
    raise(&store, 10).await;
    let mut now = 10;
    for wait in RETRY_WAITS.map(|wait| i64::try_from(wait.as_secs()).unwrap()) {
        let due = store.lease_alerts(at(now), at(now + 1), 5).await.unwrap();
        worker(&store, now).settle(&due[0], false).await.unwrap();
        assert!(
            store
                .lease_alerts(at(now + wait - 1), at(now), 5)
                .await
                .unwrap()
                .is_empty()
        );
        now += wait;
    }
    let due = store.lease_alerts(at(now), at(now + 1), 5).await.unwrap();
    assert_eq!(due[0].attempts, 8);
    worker(&store, now).settle(&due[0], false).await.unwrap();
    assert!(
        store
            .lease_alerts(at(now * 2), at(now), 5)
            .await
            .unwrap()
            .is_empty(),
        "dropped"
    );
}

#[tokio::test]
async fn an_error_response_is_not_success() {
    let (store, _folder) = testing::store().await;
    listening(&store).await;
    raise(&store, 10).await;
    let due = store.lease_alerts(at(12), at(60), 5).await.unwrap();
    let (url, _received) = receiver(vec![StatusCode::INTERNAL_SERVER_ERROR]).await;
    let worker = worker(&store, 12);
    assert!(!worker.post_alert(&due[0].alert, &url).await);
    assert!(
        worker.post_alert(&due[0].alert, &url).await,
        "the second attempt succeeds"
    );
    assert!(
        !worker
            .post_alert(&due[0].alert, "http://127.0.0.1:1/")
            .await
    );
}

#[tokio::test]
async fn an_alert_queues_messages_of_notices() {
    let (store, _folder) = testing::store().await;
    let tenant = listening(&store).await;
    let settings = NoticeSettings {
        name: Name::parse("Paused").unwrap(),
        active: true,
        channel: NoticeChannel::Email(vec![MailAddress::parse("a@example.com").unwrap()]),
        topic: NoticeTopic::TrafficAnomaly,
    };
    let notice = Notice {
        id: NoticeId::from_bytes([1; 16]),
        app: tenant.app.id,
        progress: NoticeProgress::default(),
        settings,
        owner: None,
        last_sent_at: None,
        last_error: None,
        created_at: at(5),
        updated_at: at(5),
        revision: Revision::FIRST,
    };
    let created = store.create_notice(&tenant.writer, notice, origin(5));
    created.await.unwrap();
    let kind = AlertKind::TrafficAnomaly;
    let raised = store.raise_alert_everywhere(kind, "Unusual.".to_owned(), at(1), at(10), [9; 8]);
    assert_eq!(raised.await.unwrap(), 1);
    let activity = worker(&store, 10).run_once().await.unwrap();
    assert_eq!(activity, WorkerActivity::More);
    let messages = store.lease_messages(at(70), at(130), 5).await.unwrap();
    assert_eq!(messages.due.len(), 1);
}
