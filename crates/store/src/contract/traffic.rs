//! Traffic checks.

use super::fixtures::{SharedStore, at, organization, refusal, unique};
use super::sdk_fixtures::{Tenant, address_hash, tenant};
use crate::{CheckedHour, TrafficHistory};
use tributary_domain::access::{Authorized, Environment};
use tributary_domain::forwarding::alert::{Alert, AlertKind};
use tributary_domain::install::ConfigureCommand;
use tributary_domain::refusal::Refusal;
use tributary_domain::report::anomaly::{
    TrafficAnomaly, TrafficCheck, TrafficFigure, TrafficSubject,
};
use tributary_domain::vocabulary::id::AlertId;

const HOUR: i64 = 3_600;

fn anomaly(tenant: &Tenant, seconds: i64) -> TrafficAnomaly {
    TrafficAnomaly {
        subject: TrafficSubject::Link(tenant.link.id),
        figure: TrafficFigure::Revenue,
        hour: at(seconds),
        value: 9_000_000_000,
        expected: 14,
        ended_at: None,
    }
}

fn checked(tenant: &Tenant, seconds: i64, peak: i64, check: TrafficCheck) -> CheckedHour {
    let alert = |_: &TrafficAnomaly| Alert {
        id: AlertId::new(at(seconds), unique()),
        app: tenant.app.id,
        kind: AlertKind::TrafficAnomaly,
        network: None,
        at: at(seconds),
        message: "Unusual revenue.".to_owned(),
    };
    CheckedHour {
        app: tenant.app.id,
        hour: at(seconds),
        peak,
        alerts: check.raised.iter().map(alert).collect(),
        check,
        at: at(seconds),
    }
}

/// Only the first of several nodes stores an hour and its alerts.
pub async fn an_hour_is_stored_once(store: &SharedStore) {
    let tenant = tenant(store).await;
    let is_unchecked = async |seconds| {
        let apps = store.unchecked_apps(at(seconds), 1_000).await;
        let id = (tenant.writer.organization(), tenant.app.id);
        apps.expect("apps").contains(&id)
    };
    assert!(is_unchecked(0).await);
    let check = || TrafficCheck {
        raised: vec![anomaly(&tenant, 0)],
        ended: Vec::new(),
    };
    let record = async |seconds| {
        let hour = checked(&tenant, seconds, 3, check());
        store.record_checked_hour(hour, at(-HOUR)).await
    };
    assert!(record(0).await.expect("stored"));
    assert!(!record(0).await.expect("refused"), "stored by another node");
    assert!(!record(-HOUR).await.expect("refused"), "an earlier hour");
    assert!(!is_unchecked(0).await && is_unchecked(HOUR).await);
    let alerts = store.lease_alerts(at(1), at(60), 10).await;
    let alerts = alerts.expect("alerts");
    assert_eq!(alerts.len(), 1, "one alert, although two nodes noticed");
    assert_eq!(alerts[0].alert.kind, AlertKind::TrafficAnomaly);
}

/// Anomalies are stored per subject, end once, and are removed with the peaks when they are old.
pub async fn anomalies_are_kept_per_subject(store: &SharedStore) {
    let tenant = tenant(store).await;
    let app = tenant.app.id;
    let raised = |seconds| TrafficCheck {
        raised: vec![anomaly(&tenant, seconds)],
        ended: Vec::new(),
    };
    let ended = TrafficCheck {
        raised: Vec::new(),
        ended: vec![TrafficSubject::Link(tenant.link.id), TrafficSubject::App],
    };
    let record = async |seconds, peak, check| {
        let hour = checked(&tenant, seconds, peak, check);
        let stored = store.record_checked_hour(hour, at(seconds - 2 * HOUR));
        assert!(stored.await.expect("stored"));
    };
    let history = async || store.traffic_history(app, at(-9 * HOUR)).await;
    record(0, 7, raised(0)).await;
    assert_eq!(
        history().await.expect("a history"),
        TrafficHistory {
            peaks: vec![(at(0), 7)],
            anomalies: vec![anomaly(&tenant, 0)],
        }
    );
    record(HOUR, 0, ended).await;
    let over = TrafficAnomaly {
        ended_at: Some(at(HOUR)),
        ..anomaly(&tenant, 0)
    };
    let shown = store.traffic_anomalies(&tenant.reader, app, at(0)).await;
    assert_eq!(shown.expect("anomalies"), [over]);
    let later = store.traffic_anomalies(&tenant.reader, app, at(1)).await;
    assert_eq!(later.expect("anomalies"), []);
    record(2 * HOUR, 5, raised(2 * HOUR)).await;
    let found = history().await.expect("a history");
    assert_eq!(found.anomalies, [anomaly(&tenant, 2 * HOUR)], "replaced");
    assert_eq!(found.peaks.len(), 2, "an hour without installs has no row");
    record(5 * HOUR, 0, TrafficCheck::default()).await;
    assert_eq!(
        history().await.expect("a history"),
        TrafficHistory::default(),
        "old rows are removed"
    );
}

/// Anomalies belong to the organization and to live data.
pub async fn others_read_no_anomalies(store: &SharedStore) {
    let tenant = tenant(store).await;
    let app = tenant.app.id;
    let check = TrafficCheck {
        raised: vec![anomaly(&tenant, 0)],
        ended: Vec::new(),
    };
    let hour = checked(&tenant, 0, 0, check);
    assert!(
        store
            .record_checked_hour(hour, at(0))
            .await
            .expect("stored")
    );
    let test = tenant.test_reader();
    let found = store.traffic_anomalies(&test, app, at(0)).await;
    assert_eq!(found.expect("anomalies"), []);
    let stranger = Authorized::operator(organization(store).await.organization());
    let refused = store.traffic_anomalies(&stranger, app, at(0)).await;
    assert_eq!(refusal(refused), Refusal::AppNotFound);
}

/// The busiest address of each app is found by its hash, in live data of the period only.
pub async fn the_busiest_address_of_each_app_is_found(store: &SharedStore) {
    let (one, other) = (tenant(store).await, tenant(store).await);
    let install = async |tenant: &Tenant, device: &str, seconds, address| {
        let command = ConfigureCommand {
            address_hash: Some(address_hash(address)),
            ..tenant.configure(device, seconds)
        };
        tenant.call_configure(command).await;
    };
    // Of two equally busy addresses, the one with the lower hash is found.
    assert!(address_hash(2) < address_hash(4));
    for (device, address) in [("a", 1), ("b", 2), ("c", 2), ("d", 3), ("e", 4), ("f", 4)] {
        install(&one, device, 10, address).await;
    }
    install(&one, "before", -1, 1).await;
    install(&one, "after", HOUR, 1).await;
    install(&other, "a", 10, 9).await;
    other
        .call_configure(other.configure("no address", 10))
        .await;
    for device in ["t", "u", "v"] {
        let command = ConfigureCommand {
            environment: Environment::Test,
            address_hash: Some(address_hash(1)),
            ..one.configure(device, 10)
        };
        one.call_configure(command).await;
    }
    let found = store.busiest_addresses(at(0), at(HOUR)).await;
    let mut found = found.expect("addresses");
    found.sort_by_key(|(_, _, installs)| *installs);
    assert_eq!(
        found,
        [
            (other.app.id, address_hash(9), 1),
            (one.app.id, address_hash(2), 2)
        ]
    );
}
