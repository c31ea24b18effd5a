//! An in-memory store that loads facts, checks the expectations of changes and writes the changes.
//! Tests use it to compare a batch with its items processed one by one.

use super::duplicate::EventReplacement;
use super::sdk::{self, SdkChanges, SdkEventOutcome, SdkFacts, SdkRequest, planning_click};
use super::web::samples::{CLICK, web_click};
use super::web::{
    self, ExistingEvent, RefundTotals, Reservation, StoredWebClick, WebChanges, WebEvent, WebFacts,
};
use super::{Event, EventSource};
use crate::access::Environment;
use crate::device::DeviceKey;
use crate::forwarding::plan::PlannedDelivery;
use crate::forwarding::plan::samples::{APP, active, click};
use crate::install::DeviceState;
use crate::integration::{Integration, Network};
use crate::refusal::Refusal;
use crate::report::{Figures, Increments};
use crate::vocabulary::digest::Digest;
use crate::vocabulary::id::{ClickId, EventId};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The live data of one app.
#[derive(Debug, Clone, Default)]
pub(super) struct InMemoryEvents {
    pub(super) events: BTreeMap<EventId, Event>,
    /// Ids of web events. An id without a fingerprint is only reserved.
    pub(super) web_keys: BTreeMap<String, (EventId, Option<Digest>)>,
    pub(super) sdk_keys: BTreeSet<String>,
    pub(super) devices: BTreeMap<DeviceKey, DeviceState>,
    pub(super) refunds: BTreeMap<String, RefundTotals>,
    pub(super) first_payments: BTreeMap<DeviceKey, EventId>,
    pub(super) referenced_clicks: BTreeSet<ClickId>,
    pub(super) planned: Vec<(EventId, PlannedDelivery)>,
    pub(super) increments: Increments,
}

pub(super) fn integrations() -> Arc<[Integration]> {
    [active(Network::B), active(Network::D)].into()
}

fn nonzero<K: Ord + Clone>(figures: &BTreeMap<K, Figures>) -> BTreeMap<K, Figures> {
    let figures = figures.iter().filter(|(_, figures)| !figures.is_zero());
    figures
        .map(|(key, figures)| (key.clone(), *figures))
        .collect()
}

impl InMemoryEvents {
    /// Returns the stored data independent of write order.
    pub(super) fn outcome(&self) -> impl PartialEq + std::fmt::Debug + use<> {
        let counted = &self.increments;
        let figures = (
            nonzero(&counted.credits),
            nonzero(&counted.names),
            nonzero(&counted.places),
        );
        let rest = (
            self.refunds.clone(),
            self.first_payments.clone(),
            self.devices.clone(),
            self.referenced_clicks.clone(),
            self.planned.clone(),
        );
        let keys = (self.web_keys.clone(), self.sdk_keys.clone());
        (self.events.clone(), keys, rest, figures)
    }

    /// Stores an SDK event, counts it and reserves its id.
    pub(super) fn report(&mut self, event: Event) {
        if event.first_payment {
            let device = event.device.clone().unwrap();
            self.first_payments.insert(device, event.id);
        }
        let key = (event.id, None);
        self.web_keys.insert(event.external_id.clone(), key);
        self.increments.add_event(&event);
        self.events.insert(event.id, event);
    }

    fn sdk_facts<'a>(&mut self, requests: &'a [SdkRequest]) -> SdkFacts<'a> {
        let mut facts = SdkFacts {
            integrations: BTreeMap::from([(APP, integrations())]),
            ..SdkFacts::default()
        };
        for request in requests {
            let device = request.sender();
            let mut state = self.devices.get(device.key).cloned().unwrap_or_default();
            state.first_payment = self.first_payments.get(device.key).copied();
            if let Some(wanted) = planning_click(&state, &integrations()) {
                facts.clicks.insert((APP, wanted), click());
            }
            facts.devices.insert(device, state);
            for key in request.keys() {
                if self.sdk_keys.insert(key.external_id.to_owned()) {
                    let id = (key.app, key.environment, key.external_id);
                    facts.new_ids.insert(id);
                }
            }
            for (id, event) in request.verifiable() {
                let reserved = self.web_keys.entry(id.2.to_owned());
                let (holder, _) = *reserved.or_insert((event, None));
                let holder = self.events.get(&holder);
                let verified = holder.filter(|event| event.source == EventSource::Web);
                facts
                    .verified
                    .insert(id, verified.cloned().into_iter().collect());
            }
        }
        facts
    }

    /// Decides a batch of requests and writes the result.
    pub(super) fn send(&mut self, requests: &[SdkRequest]) -> Vec<Vec<SdkEventOutcome>> {
        let facts = self.sdk_facts(requests);
        let decisions = sdk::decide(requests, &facts);
        self.write_sdk(&decisions.changes);
        decisions.answers
    }

    fn write_sdk(&mut self, changes: &SdkChanges<'_>) {
        changes.count(&mut self.increments);
        for recorded in &changes.recorded {
            let event = &recorded.event;
            self.events.insert(event.id, event.clone());
            let planned = recorded.planned.iter().cloned();
            self.planned.extend(planned.map(|one| (event.id, one)));
        }
        for event in changes.first_payments() {
            let device = event.device.clone().unwrap();
            let before = self.first_payments.insert(device, event.id);
            assert_eq!(before, None, "a device has one first payment");
        }
        for device in &changes.unsettled {
            self.settle(device.key);
        }
        for (device, at) in &changes.seen {
            let state = self.devices.get_mut(device.key);
            let device = state.and_then(|state| state.device.as_mut());
            device.unwrap().last_seen_at = *at;
        }
    }

    fn web_facts<'a>(&self, web_events: &'a [WebEvent]) -> WebFacts<'a> {
        let mut facts = WebFacts {
            integrations: BTreeMap::from([(APP, integrations())]),
            ..WebFacts::default()
        };
        let stored = StoredWebClick {
            click: Arc::new(web_click()),
            is_referenced: self.referenced_clicks.contains(&CLICK),
        };
        facts.clicks.insert((APP, CLICK), stored);
        let parents = web_events.iter().filter_map(WebEvent::parent_key);
        for key in web_events.iter().map(WebEvent::key).chain(parents) {
            let Some((id, fingerprint)) = self.web_keys.get(key.1) else {
                continue;
            };
            let event = self.events.get(id).cloned().map(Box::new);
            if let Some(fingerprint) = *fingerprint {
                facts
                    .events
                    .insert(key, ExistingEvent { fingerprint, event });
            } else {
                let reported = event.filter(|event| event.source == EventSource::Sdk);
                let by = *id;
                let reservation = Reservation {
                    event_id: by,
                    sdk_event: reported,
                    billing_event: None,
                };
                facts.reservations.insert(key, reservation);
            }
            if let Some(refunds) = self.refunds.get(key.1) {
                facts.refunds.insert(key, *refunds);
            }
        }
        for device in web_events.iter().map(WebEvent::device_ref) {
            if let Some(first) = self.first_payments.get(device.key) {
                facts.first_payments.insert(device, *first);
            }
        }
        facts
    }

    /// Decides a batch of web events and writes the result.
    pub(super) fn post(&mut self, web_events: &[WebEvent]) -> Vec<Result<bool, Refusal>> {
        let facts = self.web_facts(web_events);
        let decisions = web::decide(web_events, &facts);
        self.write_web(&decisions.changes);
        let answers = decisions.answers.into_iter();
        answers
            .map(|answer| answer.map(|accepted| accepted.is_duplicate))
            .collect()
    }

    fn write_web(&mut self, changes: &WebChanges<'_>) {
        changes.count(&mut self.increments);
        for (demotion, _) in &changes.demotions {
            self.demote(demotion);
        }
        for recorded in &changes.recorded {
            let event = &recorded.event;
            let key = (event.id, Some(recorded.fingerprint));
            let before = self.web_keys.insert(event.external_id.clone(), key);
            let expected = recorded.reserved_by.map(|by| (by, None));
            assert_eq!(before, expected, "the id is unchanged since it was read");
            self.events.insert(event.id, event.clone());
            let planned = recorded.planned.iter().cloned();
            self.planned.extend(planned.map(|one| (event.id, one)));
        }
        for ((_, given_id), payment) in &changes.refunded {
            let stored = self.refunds.entry((*given_id).to_owned()).or_default();
            assert_eq!(
                stored.version, payment.version,
                "unchanged since it was read"
            );
            stored.version += payment.refunds;
            stored.total = payment.total;
        }
        for (device, payer) in &changes.payers {
            let first = self.first_payments.get(device.key).copied();
            assert_eq!(
                first, payer.stored_first_payment,
                "unchanged since it was read"
            );
            if let Some(claimed) = payer.new_first_payment {
                assert_eq!(first, None, "a first payment is claimed only once");
                self.first_payments.insert(device.key.clone(), claimed);
            }
        }
        self.referenced_clicks
            .extend(changes.clicks.iter().map(|(_, click)| *click));
        for (_, device) in &changes.unsettled {
            self.settle(device);
        }
    }

    fn demote(&mut self, demotion: &EventReplacement) {
        let (before, after) = (&demotion.before, &demotion.after);
        let replaced = self.events.insert(after.id, after.clone());
        assert_eq!(
            replaced.as_ref(),
            Some(before),
            "unchanged since it was read"
        );
        self.planned.retain(|(event, _)| *event != before.id);
        if demotion.vacates_first_payment() {
            self.first_payments.retain(|_, first| *first != before.id);
        }
    }

    /// Moves a device's first-payment flag to its earliest payment.
    fn settle(&mut self, device: &DeviceKey) {
        let of_device = |event: &&mut Event| {
            event.device.as_ref() == Some(device) && event.environment == Environment::Live
        };
        let mut first = None;
        // The map iterates in id order.
        for event in self.events.values_mut().filter(of_device) {
            let before = event.clone();
            event.first_payment = first.is_none() && event.payer().is_some();
            if event.first_payment {
                first = Some(event.id);
            }
            self.increments.replace_event(&before, event);
        }
        self.first_payments.remove(device);
        let first = first.map(|first| (device.clone(), first));
        self.first_payments.extend(first);
    }
}
