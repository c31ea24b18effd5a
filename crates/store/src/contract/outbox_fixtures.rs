//! Fixtures for deliveries.

use super::fixtures::{SharedStore, at, first_page, origin, unique};
use super::sdk_fixtures::{Tenant, event, tenant};
use crate::{
    DeliverySettlement, DeliveryWithEvent, LeaseId, LeaseRequest, LeasedQueue, PendingDelivery,
    QueueRef, SettledDelivery, Store,
};
use std::collections::BTreeMap;
use tributary_domain::access::AppsRead;
use tributary_domain::access::Authorized;
use tributary_domain::event::{Event, EventFilter};
use tributary_domain::forwarding::alert::{Alert, AlertKind};
use tributary_domain::forwarding::delivery::DeliveryFilter;
use tributary_domain::forwarding::lifecycle::NextStep;
use tributary_domain::forwarding::queue_change::QueueChange;
use tributary_domain::forwarding::{AttemptVerdict, DeliveryAttempt, DeliveryStatus};
use tributary_domain::integration::{
    Credential, Integration, IntegrationChange, Network, SettingValue,
};
use tributary_domain::keyring::seal::SealedSecret;
use tributary_domain::vocabulary::change::Change;
use tributary_domain::vocabulary::id::AlertId;
use tributary_domain::vocabulary::revision::Precondition;
use tributary_domain::vocabulary::time::Timestamp;

/// Lease of the first process.
pub const LEASE: LeaseId = LeaseId([1; 16]);
/// Lease of the second process.
pub const OTHER_LEASE: LeaseId = LeaseId([2; 16]);

/// An app with Meta (`network_a`) connected.
pub struct ForwardingApp {
    /// Tenant of the app.
    pub tenant: Tenant,
    /// Queue of the integration.
    pub queue: QueueRef,
}

/// Returns the settings that `network_a`, `network_c` or `network_d` requires.
pub fn connected(network: Network) -> IntegrationChange {
    let id = match network {
        Network::C => "pixelCode",
        _ => "pixelId",
    };
    let secret = match network {
        Network::D => "apiKey",
        _ => "accessToken",
    };
    let credential = Credential {
        sealed: SealedSecret::from_bytes(vec![1, 2, 3]),
        hint: None,
    };
    IntegrationChange {
        enabled: Change::Set(true),
        settings: BTreeMap::from([(id, Change::Set(SettingValue::Text("42".to_owned())))]),
        credentials: BTreeMap::from([(secret, Change::Set(credential))]),
        ..IntegrationChange::default()
    }
}

/// Creates an app with Meta (`network_a`) connected.
pub async fn forwarding_app(store: &SharedStore) -> ForwardingApp {
    let tenant = tenant(store).await;
    let queue = QueueRef {
        app: tenant.app.id,
        network: Network::A,
    };
    let forwarding = ForwardingApp { tenant, queue };
    forwarding
        .change(Network::A, connected(Network::A), 4)
        .await;
    forwarding
}

impl ForwardingApp {
    /// Returns the same app through another node.
    #[must_use]
    pub fn through(&self, node: &SharedStore) -> Self {
        let tenant = Tenant {
            store: node.clone(),
            writer: self.tenant.writer.clone(),
            reader: self.tenant.reader.clone(),
            app: self.tenant.app.clone(),
            link: self.tenant.link.clone(),
        };
        Self {
            tenant,
            queue: self.queue,
        }
    }

    /// Changes an integration.
    pub async fn change(
        &self,
        network: Network,
        change: IntegrationChange,
        seconds: i64,
    ) -> Integration {
        let changed = self.tenant.store.update_integration(
            &self.tenant.writer,
            self.queue.app,
            network,
            change,
            Precondition::None,
            origin(seconds),
        );
        changed.await.expect("the integration is changed")
    }

    /// Configures a device whose install is credited to Meta (`network_a`).
    pub async fn attribute_install(&self, device: &str, seconds: i64) {
        let click = self.tenant.record_click(seconds - 1).await;
        let command = self.tenant.configure_with_click(device, &click, seconds);
        self.tenant.call_configure(command).await;
    }

    /// Sends events with one name.
    pub async fn send_events(&self, device: &str, ids: &[&str], name: &str, seconds: i64) {
        let events = ids.iter().map(|id| event(id, name, seconds)).collect();
        let arrival = self.tenant.arrival(device, seconds);
        let accepted = self.tenant.store.accept_sdk_events(arrival, events);
        accepted.await.expect("events are accepted");
    }

    /// Returns a caller that may read apps.
    pub fn reader(&self) -> Authorized<AppsRead> {
        self.tenant.writer.read_access()
    }

    /// Lists the deliveries that match a filter.
    pub async fn deliveries(&self, filter: DeliveryFilter) -> Vec<DeliveryWithEvent> {
        let (reader, app) = (self.reader(), self.queue.app);
        let page = self
            .tenant
            .store
            .deliveries(&reader, app, filter, first_page("500"));
        page.await.expect("a list").items
    }

    /// Returns the external id, status and reason of every delivery, sorted.
    pub async fn delivery_statuses(&self) -> Vec<(String, &'static str, Option<String>)> {
        let mut statuses: Vec<_> = self
            .deliveries(DeliveryFilter::default())
            .await
            .into_iter()
            .map(|one| {
                let event = one.event.expect("its event");
                let name = if event.is_service_install {
                    "install".to_owned()
                } else {
                    event.external_id
                };
                (name, one.delivery.status.as_str(), one.delivery.reason)
            })
            .collect();
        statuses.sort();
        statuses
    }

    /// Lists all events.
    pub async fn log(&self) -> Vec<Event> {
        let (reader, app) = (&self.tenant.reader, self.queue.app);
        let filter = EventFilter::default();
        let page = self
            .tenant
            .store
            .events(reader, app, filter, first_page("500"));
        page.await.expect("the log").items
    }

    /// Leases the queue.
    pub async fn lease(&self, lease: LeaseId, from: i64, until: i64) -> Option<LeasedQueue> {
        let request = self.queue.lease_request(lease, at(from), at(until));
        self.lease_as(request).await
    }

    /// Leases the queue or a part of it.
    pub async fn lease_as(&self, request: LeaseRequest) -> Option<LeasedQueue> {
        let leased = self.tenant.store.lease_queue(self.queue, request);
        leased.await.expect("a lease")
    }

    /// Claims due deliveries: reads them and marks them as in flight.
    pub async fn take_due(&self, lease: LeaseId, seconds: i64) -> Option<Vec<PendingDelivery>> {
        let store = self.tenant.store.clone();
        self.take_due_via(&*store, self.queue.network, lease, seconds)
            .await
    }

    /// Like [`Self::take_due`], for the given network and node.
    pub async fn take_due_via(
        &self,
        store: &dyn Store,
        network: Network,
        lease: LeaseId,
        seconds: i64,
    ) -> Option<Vec<PendingDelivery>> {
        let queue = QueueRef {
            app: self.queue.app,
            network,
        };
        let all = store.integrations(&self.reader(), queue.app).await;
        let all = all.expect("integrations");
        let one = all.iter().find(|one| one.network == network);
        let revision = one.expect("all four").revision.number();
        let due = store.due_deliveries(queue, lease, revision, at(seconds), 1_000);
        let due = due.await.expect("deliveries")?;
        let ids = due.iter().map(|one| one.id).collect();
        let begun = store.begin_sending(queue, lease, ids, at(seconds));
        assert_eq!(begun.await.expect("deliveries")?.len(), due.len());
        Some(due)
    }

    /// Settles deliveries. Returns false if the lease was lost.
    pub async fn settle(&self, lease: LeaseId, settlement: DeliverySettlement) -> bool {
        let settled = self
            .tenant
            .store
            .settle_deliveries(self.queue, lease, settlement);
        settled.await.expect("the settlement succeeds").is_some()
    }

    /// Builds a settlement with these results only.
    pub fn settlement(&self, settled: Vec<SettledDelivery>, seconds: i64) -> DeliverySettlement {
        DeliverySettlement {
            at: at(seconds),
            begun_at: at(seconds),
            changes: Vec::new(),
            revision: 1,
            settled,
            is_test: false,
            checks: Vec::new(),
            pause_alert: None,
            failure_alert: None,
        }
    }

    /// Builds an alert.
    pub fn alert(&self, kind: AlertKind, seconds: i64) -> Alert {
        Alert {
            id: AlertId::new(at(seconds), unique()),
            app: self.queue.app,
            kind,
            network: Some(Network::A),
            at: at(seconds),
            message: "Something happened.".to_owned(),
        }
    }
}

/// Builds the result of one further attempt.
pub fn settled(
    pending: &PendingDelivery,
    verdict: AttemptVerdict,
    next: NextStep,
    at: Timestamp,
) -> SettledDelivery {
    let mut attempts = pending.attempts.clone();
    attempts.push(DeliveryAttempt {
        at,
        status: Some(200),
        duration_ms: 12,
        verdict,
        answer: Some("words".to_owned()),
        refusal: Some("100".to_owned()),
    });
    SettledDelivery {
        id: pending.id,
        attempts_made: pending.attempts_made + 1,
        attempts,
        next,
    }
}

/// Builds the change that pauses a queue because a credential has expired.
pub fn expired_credential(seconds: i64) -> QueueChange {
    QueueChange::Stopped {
        at: at(seconds),
        code: "190".to_owned(),
        message: Some("expired".to_owned()),
    }
}

/// Builds the step that finishes a delivery with this status.
pub fn ends_with(status: DeliveryStatus) -> NextStep {
    NextStep::End {
        status,
        reason: None,
    }
}
