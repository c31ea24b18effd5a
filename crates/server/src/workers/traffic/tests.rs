//! Tests the worker hour by hour, with a real store and a real receiver of alerts.

use super::*;
use crate::outbound::AddressPolicy;
use crate::testing::{self, ManualClock};
use crate::workers::alerts::AlertsWorker;
use tributary_domain::app::AppChange;
use tributary_domain::install::ConfigureCommand;
use tributary_domain::keyring::Keyring;
use tributary_domain::vocabulary::change::Change;
use tributary_domain::vocabulary::revision::Precondition;
use tributary_domain::vocabulary::web_url::HttpsUrl;
use tributary_store::contract::fixtures::origin;
use tributary_store::contract::sdk_fixtures::{Tenant, address_hash, tenant};

/// The contract fixtures' time of second 0 is 13 minutes and 20 seconds into an hour.
const PAST_THE_HOUR: i64 = 800;
const HOUR: i64 = 3_600;
/// Hours of history before the attack.
const HISTORY: i64 = 80;

struct Attacked {
    store: Arc<dyn Store>,
    tenant: Tenant,
    clock: Arc<ManualClock>,
    worker: TrafficWorker,
    _folder: tempfile::TempDir,
}

impl Attacked {
    async fn start() -> Self {
        let (store, folder) = testing::store().await;
        let tenant = tenant(&store).await;
        let change = AppChange {
            alert_webhook_url: Change::Set(
                HttpsUrl::parse("https://alerts.example.com/hook").unwrap(),
            ),
            ..AppChange::default()
        };
        let (writer, app) = (&tenant.writer, tenant.app.id);
        store
            .update_app(writer, app, change, Precondition::None, origin(5))
            .await
            .unwrap();
        let start = tributary_store::contract::fixtures::at(-PAST_THE_HOUR);
        let clock = ManualClock::at(start);
        let worker = TrafficWorker::new(store.clone(), clock.runtime());
        Self {
            store,
            tenant,
            clock,
            worker,
            _folder: folder,
        }
    }

    /// Records installs from one address in an hour, and checks the hour. Returns the alerts.
    async fn hour(&mut self, hour: i64, installs: i64) -> Vec<Alert> {
        for number in 0..installs {
            let second = hour * HOUR - PAST_THE_HOUR + number % HOUR;
            let command = ConfigureCommand {
                address_hash: Some(address_hash(1)),
                ..self.tenant.configure(&format!("{hour}-{number}"), second)
            };
            self.tenant.call_configure(command).await;
        }
        let now = tributary_store::contract::fixtures::at((hour + 1) * HOUR - PAST_THE_HOUR + 360);
        let clock = self.clock.runtime().now();
        let elapsed = now.as_millis() - clock.as_millis();
        self.clock
            .advance(Duration::from_millis(elapsed.try_into().unwrap()));
        assert_eq!(self.worker.run_once().await.unwrap(), WorkerActivity::Done);
        assert_eq!(self.worker.run_once().await.unwrap(), WorkerActivity::Idle);
        let leased = self
            .store
            .lease_alerts(now, now.plus(Duration::from_hours(9_999)), 100);
        leased
            .await
            .unwrap()
            .into_iter()
            .map(|due| due.alert)
            .collect()
    }

    async fn anomalies(&self) -> Vec<(String, bool)> {
        let since = Timestamp::from_millis(0);
        let (reader, app) = (&self.tenant.reader, self.tenant.app.id);
        let found = self
            .store
            .traffic_anomalies(reader, app, since)
            .await
            .unwrap();
        let mut kinds: Vec<(String, bool)> = found
            .iter()
            .map(|one| (one.subject.kind().to_owned(), one.ended_at.is_none()))
            .collect();
        kinds.sort();
        kinds
    }
}

#[tokio::test]
async fn a_flood_of_installs_alerts_once_until_it_ends() {
    let mut attacked = Attacked::start().await;
    for hour in 0..HISTORY {
        let alerts = attacked.hour(hour, hour % 2).await;
        assert_eq!(alerts, [], "usual traffic in hour {hour}");
    }
    let alerts = attacked.hour(HISTORY, 60).await;
    let messages: Vec<&str> = alerts.iter().map(|one| one.message.as_str()).collect();
    assert_eq!(alerts.len(), 2, "the app and the address: {messages:?}");
    assert_eq!(
        attacked.anomalies().await,
        [("address".to_owned(), true), ("app".to_owned(), true)]
    );

    let (url, received) = testing::receiver(Vec::new()).await;
    let sender = AlertsWorker::new(
        attacked.store.clone(),
        attacked.clock.runtime(),
        Keyring::new([3; 32]),
        AddressPolicy::Anywhere,
    )
    .unwrap();
    for alert in &alerts {
        assert!(sender.post_alert(alert, &url).await);
    }
    let bodies: Vec<serde_json::Value> = received
        .lock()
        .unwrap()
        .iter()
        .map(|(_, body)| serde_json::from_slice(body).unwrap())
        .collect();
    for body in &bodies {
        assert_eq!(body["type"], "traffic.anomaly");
        assert_eq!(body["appId"], attacked.tenant.app.id.to_string());
        let message = body["message"].as_str().unwrap();
        assert!(message.starts_with("Unusual installs") && message.contains(": 60. Usual: "));
    }

    assert_eq!(attacked.hour(HISTORY + 1, 60).await, [], "it continues");
    assert_eq!(attacked.hour(HISTORY + 2, 1).await, [], "it ends");
    assert_eq!(
        attacked.anomalies().await,
        [("address".to_owned(), false), ("app".to_owned(), false)]
    );
    assert_eq!(attacked.hour(HISTORY + 3, 60).await, [], "within a day");
}

#[tokio::test]
async fn a_small_app_never_alerts() {
    let mut quiet = Attacked::start().await;
    for hour in 0..HISTORY {
        quiet.hour(hour, i64::from(hour % 20 == 0)).await;
    }
    assert_eq!(quiet.hour(HISTORY, 29).await, [], "below every floor");
}
