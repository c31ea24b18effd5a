//! Erasing a person: no personal data remains, and all figures stay the same.

use super::erasure_fixtures::{
    ALIAS, DEVICE, LONG_AGO, PERSON, PersonScenario, device, person, person_scenario,
};
use super::fixtures::{
    SharedStore, assert_rebuild_changes_nothing, at, first_page, origin, refusal,
};
use super::outbox_fixtures::{LEASE, ends_with, settled};
use super::sdk_fixtures::{payment, tenant};
use crate::{DeviceDetails, LogPart};
use std::collections::{BTreeMap, BTreeSet};
use tributary_domain::access::{Authorized, Environment};
use tributary_domain::device::{ContactHashes, DeviceKey, Identity};
use tributary_domain::erasure::{Erasure, pseudonym};
use tributary_domain::event::{Event, EventFilter};
use tributary_domain::forwarding::lifecycle::ERASED;
use tributary_domain::forwarding::{AttemptVerdict, DeliveryStatus};
use tributary_domain::personal_data::PersonIds;
use tributary_domain::refusal::Refusal;
use tributary_domain::report::cohort::CohortReportQuery;
use tributary_domain::report::{Dimension, ReportQuery};

impl PersonScenario {
    pub(super) async fn device_details(
        &self,
        device: DeviceKey,
    ) -> Result<DeviceDetails, crate::StoreError> {
        let (store, app) = (&self.tenant().store, self.tenant().app.id);
        store.device(&self.tenant().reader, app, device).await
    }

    /// Returns all figures as text.
    pub(super) async fn figures(&self) -> Vec<String> {
        let (store, app, reader) = {
            let tenant = self.tenant();
            (&tenant.store, tenant.app.id, &tenant.reader)
        };
        let span = (at(2 * LONG_AGO), at(10_000_000));
        let mut figures = Vec::new();
        let dimensions = [
            vec![Dimension::Network],
            vec![Dimension::Link, Dimension::Campaign],
            vec![Dimension::Adset, Dimension::Ad],
            vec![Dimension::Source, Dimension::Event],
            vec![Dimension::Country, Dimension::Platform],
        ];
        for by in dimensions {
            let query = ReportQuery {
                periods: vec![span],
                group_by: by,
                filters: Vec::new(),
                rows_max: 10_000,
            };
            let rows = store.stats(reader, app, query).await;
            let rows = rows.expect("figures are read").into_iter();
            figures.extend(rows.map(|row| format!("{:?} {:?}", row.values, row.figures)));
        }
        for by in [Dimension::Network, Dimension::Country] {
            let query = CohortReportQuery::new(vec![span], &[by], 30, 1_000);
            let rows = store.cohorts(reader, app, query).await;
            let rows = rows.expect("cohorts are read").into_iter();
            figures.extend(rows.map(|row| format!("{row:?}")));
        }
        figures.sort();
        figures
    }

    /// Asserts that a rebuild keeps all figures.
    pub(super) async fn assert_rebuild_keeps_figures(&self) {
        let before = self.figures().await;
        assert_rebuild_changes_nothing(&self.tenant().store).await;
        assert_eq!(self.figures().await, before);
    }

    pub(super) async fn events_of_device(&self, device: DeviceKey) -> BTreeMap<String, Event> {
        let filter = EventFilter {
            device: Some(device),
            ..EventFilter::default()
        };
        self.log(filter).await
    }
}

/// An erased device is not found under any of its ids, and cannot be erased again.
pub async fn an_erased_device_is_not_found(store: &SharedStore) {
    let scenario = person_scenario(store).await;
    let (app, live) = (scenario.tenant().app.id, scenario.eraser(Environment::Live));
    let erase = |name: &'static str| {
        let (store, eraser) = (store.clone(), live.clone());
        async move {
            let name = device(name);
            store
                .erase_device(&eraser, app, name, pseudonym([8; 16]), origin(400))
                .await
        }
    };
    assert_eq!(refusal(erase("never-seen").await), Refusal::DeviceNotFound);
    let of_tests = scenario.eraser(Environment::Test);
    let refused = store.erase_device(
        &of_tests,
        app,
        device(DEVICE),
        pseudonym([8; 16]),
        origin(400),
    );
    assert_eq!(refusal(refused.await), Refusal::DeviceNotFound);
    let stranger = Authorized::operator(tenant(store).await.writer.organization());
    let refused = store.erase_device(
        &stranger,
        app,
        device(DEVICE),
        pseudonym([8; 16]),
        origin(400),
    );
    assert_eq!(refusal(refused.await), Refusal::AppNotFound);
    assert!(
        scenario.device_details(device(DEVICE)).await.is_ok(),
        "nothing was erased"
    );

    scenario.erase(400).await;
    assert_eq!(
        refusal(scenario.device_details(device(DEVICE)).await),
        Refusal::DeviceNotFound
    );
    assert_eq!(refusal(erase(DEVICE).await), Refusal::DeviceNotFound);
    assert!(scenario.events_of_device(device(DEVICE)).await.is_empty());
    for name in [PERSON, ALIAS] {
        let filter = EventFilter {
            user: Some(person(name)),
            ..EventFilter::default()
        };
        assert!(scenario.log(filter).await.is_empty());
    }
}

/// Figures and cohorts stay the same, even after a rebuild.
pub async fn erasing_keeps_all_figures(store: &SharedStore) {
    let scenario = person_scenario(store).await;
    let before = scenario.figures().await;
    assert!(before.len() > 8, "there are figures: {before:?}");
    scenario.assert_rebuild_keeps_figures().await;
    scenario.erase(400).await;
    assert_eq!(scenario.figures().await, before);
    scenario.assert_rebuild_keeps_figures().await;
}

/// On every engine, the remaining device, events and click are what the domain rule prescribes.
pub async fn the_remaining_rows_follow_the_domain_rule(store: &SharedStore) {
    let scenario = person_scenario(store).await;
    let before = scenario
        .device_details(device(DEVICE))
        .await
        .expect("device details")
        .state;
    let log = scenario.log(EventFilter::default()).await;
    let lonely = &log["lonely"];
    assert_eq!(
        (&lonely.device, &lonely.user),
        (&None, &Some(person(PERSON)))
    );
    let name = scenario.erase(400).await;
    let erasure = Erasure {
        device: device(DEVICE),
        pseudonym: name.clone(),
        person: PersonIds {
            devices: BTreeSet::from([device(DEVICE)]),
            users: BTreeSet::from([person(PERSON), person(ALIAS)]),
            advertising: before
                .device
                .iter()
                .filter_map(|it| it.advertising_id.clone())
                .collect(),
        },
    };
    let expected: BTreeMap<String, Event> = log
        .into_iter()
        .map(|(id, event)| (id, erasure.erase_event(event)))
        .collect();
    assert_eq!(scenario.log(EventFilter::default()).await, expected);
    let now = scenario
        .device_details(name)
        .await
        .expect("the pseudonym's details")
        .state;
    assert_eq!(now.device, before.device.map(|it| erasure.erase_device(it)));
    assert_eq!(
        now.attribution,
        before.attribution.map(|it| erasure.erase_attribution(it))
    );
    assert_eq!(now.identity, Identity::default());
    assert_eq!(now.first_payment, before.first_payment);
    assert!(now.first_payment.is_some());
    let part = LogPart {
        after: None,
        from: at(0),
        until: at(1_000),
        limit: 10,
    };
    let app = scenario.tenant().app.id;
    let clicks = store.log_clicks(&scenario.tenant().reader, app, part).await;
    assert_eq!(
        clicks.expect("clicks are read"),
        [erasure.erase_click(scenario.click.clone())]
    );
}

/// Pending deliveries are cancelled and counted as cancelled. Deliveries that are being sent are
/// settled by the process that sends them.
pub async fn erasing_cancels_pending_deliveries(store: &SharedStore) {
    let scenario = person_scenario(store).await;
    let forwarding = &scenario.forwarding;
    assert!(forwarding.lease(LEASE, 95_000, 95_100).await.is_some());
    let due = forwarding
        .take_due(LEASE, 95_000)
        .await
        .expect("a leased queue");
    assert!(due.len() > 1, "several deliveries are due");
    forwarding
        .send_events(DEVICE, &["late"], "sign_up", 95_001)
        .await;
    let cancelled = async || {
        let statuses = forwarding.delivery_statuses().await.into_iter();
        let cancelled_ones = statuses.filter(|(_, status, _)| *status == "cancelled");
        cancelled_ones
            .map(|(id, _, why)| (id, why))
            .collect::<Vec<_>>()
    };
    assert_eq!(cancelled().await, []);
    scenario.erase(95_002).await;
    let why = Some(ERASED.to_owned());
    assert_eq!(cancelled().await, [("late".to_owned(), why.clone())]);
    let mut outcomes = vec![settled(
        &due[0],
        AttemptVerdict::Delivered,
        ends_with(DeliveryStatus::Delivered),
        at(95_003),
    )];
    outcomes.extend(due[1..].iter().map(|one| {
        let next = tributary_domain::forwarding::lifecycle::NextStep::Wait {
            due_at: at(95_004),
            ambiguous_since: None,
        };
        settled(one, AttemptVerdict::Retry, next, at(95_003))
    }));
    let settlement = forwarding.settlement(outcomes, 95_003);
    assert!(forwarding.settle(LEASE, settlement).await);
    // A resend contains no personal data, because the device now has a pseudonym.
    let again = forwarding
        .take_due(LEASE, 95_005)
        .await
        .expect("a leased queue");
    let gathered = store
        .gather_conversions(forwarding.queue, again)
        .await
        .expect("conversions");
    assert_eq!(gathered.len(), due.len() - 1);
    for one in gathered {
        let conversion = one.conversion.expect("its event");
        assert_eq!(conversion.event.device, Some(pseudonym([7; 16])));
        assert_eq!(conversion.matching, ContactHashes::default());
        assert_eq!(conversion.device.and_then(|it| it.advertising_id), None);
        assert_eq!(conversion.click.and_then(|it| it.user_agent), None);
    }
    let reader = &scenario.tenant().reader;
    let health = store
        .delivery_health(reader, scenario.tenant().app.id, at(95_006))
        .await;
    let health = health.expect("health is read");
    let pending: u64 = health.iter().map(|(_, one)| one.pending).sum();
    assert_eq!(pending, u64::try_from(due.len() - 1).expect("a few"));
    let of_test = scenario.tenant().test_reader();
    let health = store.delivery_health(&of_test, scenario.tenant().app.id, at(95_006));
    assert_eq!(health.await.expect("health is read"), []);
    assert_eq!(cancelled().await, [("late".to_owned(), why)]);
}

/// The audit log records the erasure without the device id.
pub async fn an_erasure_is_audited_without_the_device_id(store: &SharedStore) {
    let scenario = person_scenario(store).await;
    let name = scenario.erase(400).await;
    let (writer, app) = (&scenario.tenant().writer, scenario.tenant().app.id);
    let log = store
        .audit_log(&writer.read_access(), Some(app), first_page("10"))
        .await;
    let latest = log.expect("the log is read").items.remove(0);
    assert_eq!(latest.action.as_str(), "device.erased");
    assert_eq!(latest.target, name.as_str());
    assert_eq!(latest.changes, []);
}

/// A device that was never configured can be erased.
pub async fn a_never_configured_device_is_erased(store: &SharedStore) {
    let scenario = person_scenario(store).await;
    let (tenant, eraser) = (scenario.tenant(), scenario.eraser(Environment::Live));
    let paid = vec![payment("stranger", "7", "USD", 310)];
    let accepted = store.accept_sdk_events(tenant.arrival("heard-of", 310), paid);
    accepted.await.expect("events are accepted");
    let name = pseudonym([9; 16]);
    let erased = store.erase_device(
        &eraser,
        tenant.app.id,
        device("heard-of"),
        name.clone(),
        origin(400),
    );
    erased.await.expect("a device is erased");
    let log = scenario.events_of_device(name).await;
    assert_eq!(log.keys().collect::<Vec<_>>(), ["stranger"]);
    assert_eq!(
        refusal(scenario.device_details(device("heard-of")).await),
        Refusal::DeviceNotFound
    );
    scenario.assert_rebuild_keeps_figures().await;
}
