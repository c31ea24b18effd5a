//! Reads a person's data part by part.

use super::{EventOwner, PERSON_PART_EVENTS, PersonEventsQuery, PersonRecords, PersonSubscription};
use crate::{Store, StoreResult};
use std::collections::VecDeque;
use tributary_domain::access::{Authorized, Environment, PeopleExport};
use tributary_domain::audit::AuditContext;
use tributary_domain::billing::Chain;
use tributary_domain::event::Event;
use tributary_domain::forwarding::Delivery;
use tributary_domain::personal_data::DataSubject;
use tributary_domain::refusal::Refusal;
use tributary_domain::vocabulary::id::{AppId, AuditId, EventId};
use tributary_domain::vocabulary::time::Timestamp;

/// A part of a person's data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PersonPart {
    /// A subscription.
    Subscription(PersonSubscription),
    /// Events with their deliveries.
    Events(Vec<(Event, Vec<Delivery>)>),
}

/// An export of a person's data.
#[derive(Debug)]
pub struct PersonExport {
    caller: Authorized<PeopleExport>,
    app: AppId,
    subject: DataSubject,
    records: PersonRecords,
    id: AuditId,
    at: Timestamp,
    /// Subscriptions to read; `None` before they are searched.
    chains: Option<VecDeque<Chain>>,
    owners: VecDeque<EventOwner>,
    after: Option<EventId>,
}

impl PersonExport {
    /// Begins an export: finds the person, and records the export in the audit log before any data
    /// leaves the server. Refused if nothing is stored about the person.
    pub async fn begin<S: Store + ?Sized>(
        store: &S,
        caller: &Authorized<PeopleExport>,
        (app, subject): (AppId, DataSubject),
        origin: AuditContext,
    ) -> StoreResult<Self> {
        let records = store.person_records(caller, app, subject.clone()).await?;
        let (id, at) = (origin.audit_id, origin.at);
        let noted = (subject.clone(), records.clone());
        store
            .note_person_export(caller, app, noted.0, noted.1, origin)
            .await?;
        let devices = records.ids.devices.iter().cloned();
        let users = records.ids.users.iter().cloned();
        let owners = devices
            .map(EventOwner::Device)
            .chain(users.map(EventOwner::User));
        Ok(Self {
            caller: caller.clone(),
            app,
            owners: owners.collect(),
            subject,
            records,
            id,
            at,
            chains: None,
            after: None,
        })
    }

    /// Returns whose data is exported.
    pub const fn subject(&self) -> &DataSubject {
        &self.subject
    }

    /// Returns the app.
    pub const fn app(&self) -> AppId {
        self.app
    }

    /// Returns the environment of the data.
    pub const fn environment(&self) -> Environment {
        self.caller.environment()
    }

    /// Returns the id of the export's entry in the audit log.
    pub const fn id(&self) -> AuditId {
        self.id
    }

    /// Returns when the export began.
    pub const fn at(&self) -> Timestamp {
        self.at
    }

    /// Returns everything except subscriptions and events.
    pub const fn records(&self) -> &PersonRecords {
        &self.records
    }

    /// Returns the next part: subscriptions first, then events. Returns `None` after the last part.
    /// Refused if the person was erased since the export began: what was written is then no longer
    /// stored.
    pub async fn next<S: Store + ?Sized>(&mut self, store: &S) -> StoreResult<Option<PersonPart>> {
        while let Some(chain) = self.next_chain(store).await? {
            let (subject, ids) = (self.subject.clone(), self.records.ids.clone());
            let found = store.person_subscription(&self.caller, subject, ids, chain);
            let found = found.await?;
            if let Some(found) = found {
                return Ok(Some(PersonPart::Subscription(found)));
            }
        }
        while let Some(owner) = self.owners.front().cloned() {
            let query = PersonEventsQuery {
                subject: self.subject.clone(),
                ids: self.records.ids.clone(),
                owner,
                after: self.after,
                limit: PERSON_PART_EVENTS,
            };
            let part = store.person_events(&self.caller, self.app, query).await?;
            self.after = part.next;
            if part.next.is_none() {
                self.owners.pop_front();
            }
            if !part.events.is_empty() {
                return self.with_deliveries(store, part.events).await.map(Some);
            }
        }
        self.check_unchanged(store).await?;
        Ok(None)
    }

    async fn next_chain<S: Store + ?Sized>(&mut self, store: &S) -> StoreResult<Option<Chain>> {
        if self.chains.is_none() {
            let records = self.records.clone();
            let found = store.person_chains(&self.caller, self.app, records).await?;
            self.chains = Some(found.into());
        }
        Ok(self.chains.as_mut().and_then(VecDeque::pop_front))
    }

    async fn with_deliveries<S: Store + ?Sized>(
        &self,
        store: &S,
        events: Vec<Event>,
    ) -> StoreResult<PersonPart> {
        // Only live events have deliveries.
        let ids: Vec<EventId> = match self.environment() {
            Environment::Live => events.iter().map(|event| event.id).collect(),
            Environment::Test => Vec::new(),
        };
        let mut deliveries = if ids.is_empty() {
            Vec::new()
        } else {
            store.deliveries_of(self.app, ids).await?
        };
        let with = |event: Event| {
            let own = deliveries.extract_if(.., |one| one.event == event.id);
            let own = own.collect();
            (event, own)
        };
        Ok(PersonPart::Events(events.into_iter().map(with).collect()))
    }

    /// An erasure in the meantime removes devices and users.
    async fn check_unchanged<S: Store + ?Sized>(&self, store: &S) -> StoreResult<()> {
        let (app, subject) = (self.app, self.subject.clone());
        let now = store.person_records(&self.caller, app, subject).await?;
        if !self.records.ids.devices.is_subset(&now.ids.devices) {
            return Err(Refusal::DeviceNotFound.into());
        }
        Ok(())
    }
}
