//! Events from apps' SDKs: many requests to a transaction.
//!
//! The events of one app all count in the same few roll-up rows, and a row is held from its update to the
//! commit. A transaction for each request would let an app send only as many a second as commits fit into
//! one, one after the other. Here the requests that wait together are decided together, in the order of their
//! arrival: what is known is read for all of them, a statement a table, the rules say what each event is, and
//! all of it is written at once. Whoever holds a roll-up row then does nothing more but commit.

use crate::batch::{Batches, Item};
use crate::devices::{AsColumns, locked};
use crate::event_rows::EventKey;
use crate::pool::Pool;
use crate::rates::imported_rates;
use crate::tx::{self, Mode, Tx};
use crate::{Failure, duplicates, event_rows, integrations, planned, rollups};
use locked::Locked;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tributary_domain::click::Click;
use tributary_domain::device::DeviceRef;
use tributary_domain::event::duplicate::{is_verifiable, mark_duplicate};
use tributary_domain::event::name::canonical;
use tributary_domain::event::sdk::{Arrival, Owner, SdkEvent, record};
use tributary_domain::event::{Event, EventSource};
use tributary_domain::exchange::{ImportedRates, exchange};
use tributary_domain::forwarding::plan::DeviceFacts;
use tributary_domain::install::{Attribution, Known};
use tributary_domain::integration::Integration;
use tributary_domain::report::Increments;
use tributary_domain::vocabulary::id::{AppId, ClickId, EventId};
use tributary_recording::{SharedId, Tally, settle_first_payment};
use tributary_store::Acceptance;
use tributary_store::records::PlannedRow;
use uuid::Uuid;

/// Events of one device that arrived together.
#[derive(Clone)]
pub(crate) struct Request {
    pub(crate) arrival: Arrival,
    pub(crate) events: Vec<SdkEvent>,
}

impl Item for Request {
    fn rows(&self) -> usize {
        self.events.len()
    }
}

impl Request {
    const fn device(&self) -> DeviceRef<'_> {
        DeviceRef {
            app: self.arrival.app,
            environment: self.arrival.environment,
            key: &self.arrival.device,
        }
    }

    /// The ids of those events that a verified source may report too.
    fn verifiable(&self) -> impl Iterator<Item = (SharedId<'_>, EventId)> {
        let (app, environment) = (self.arrival.app, self.arrival.environment);
        self.events
            .iter()
            .filter(|event| is_verifiable(&canonical(&event.name).0))
            .map(move |event| ((app, environment, event.given_id.as_str()), event.id))
    }

    fn keys(&self) -> impl Iterator<Item = EventKey<'_>> {
        self.events.iter().map(|event| EventKey {
            app: self.arrival.app,
            environment: self.arrival.environment,
            source: EventSource::Sdk,
            given_id: &event.given_id,
            event: event.id,
            fingerprint: None,
        })
    }
}

/// Where events are written in batches.
pub(crate) fn batches(pool: Arc<Pool>) -> Batches<Request, Vec<Acceptance>> {
    let name = "accept_sdk_events";
    Batches::start(name, move |requests: Arc<[Request]>| {
        let pool = pool.clone();
        async move {
            tx::run(&pool, name, Mode::Write, async move |tx| {
                accept(tx, &requests).await
            })
            .await
        }
    })
}

/// Records the events of some requests that are new, in order. One answer per request.
async fn accept(tx: &Tx, requests: &[Request]) -> Result<Vec<Vec<Acceptance>>, Failure> {
    let senders = requests
        .iter()
        .map(|request| (request.device(), request.arrival.received_at));
    let verifiable: Vec<_> = requests.iter().flat_map(Request::verifiable).collect();
    let holders = duplicates::reserve(tx, &verifiable).await?;
    let mut devices = locked::lock(tx, senders).await?;
    let answers = claim_ids(tx, requests).await?;
    let rates = find_rates(tx, requests, &answers).await?;

    let surroundings = Surroundings::gather(tx, requests, &answers, &devices).await?;

    let mut increments = Increments::default();
    let mut recorded = Vec::new();
    let mut planned = Vec::new();
    let mut displaced = BTreeMap::new();
    for (request, answers) in requests.iter().zip(&answers) {
        let arrival = &request.arrival;
        let device = devices
            .get_mut(&request.device().columns())
            .ok_or(Failure::Overtaken)?;
        // A payment of an earlier request of this batch is known by now.
        let mut owner = owner(&device.known);
        for event in new_events(request, answers) {
            let exchanged = event
                .exchange_day()
                .and_then(|(amount, currency, day)| exchange(amount, currency, day, &rates));
            let id = (arrival.app, arrival.environment, event.given_id.as_str());
            let holder = holders.get(&id);
            let mut event = record(event.clone(), arrival, &owner, exchanged);
            if let Some(holder) = holder {
                mark_duplicate(&mut event, holder);
            }
            planned.extend(surroundings.plan(&mut event, arrival, &device.known));
            if event.first_payment {
                owner.first_payment = Some(event.id);
                device.note_first_payment(event.id);
            } else if event.displaces(owner.first_payment) {
                owner.first_payment = Some(event.id);
                device.known.first_payment = Some(event.id);
                displaced.insert(request.device().columns(), request.device());
            }
            increments.add_event(&event);
            recorded.push(event);
        }
        device.note_seen(arrival.received_at);
    }
    event_rows::insert(tx, &recorded).await?;
    locked::write_noted(tx, devices.values()).await?;
    let mut tally = Tally::default();
    for device in displaced.into_values() {
        settle_first_payment(tx, device, &mut tally).await?;
    }
    increments.merge(tally.increments);
    planned::insert(tx, &planned).await?;
    rollups::keep(tx, &increments).await?;
    Ok(answers)
}

/// The devices of a batch.
type Devices<'a> = BTreeMap<(Uuid, &'static str, &'a str), Locked<'a>>;

/// What planning needs beside the events and their devices.
struct Surroundings {
    integrations: BTreeMap<AppId, Arc<[Integration]>>,
    /// The clicks that the devices' installs are credited to, where somebody wants to know.
    clicks: BTreeMap<(AppId, ClickId), Click>,
}

impl Surroundings {
    /// Gathers them for the requests that have something new: a statement for the integrations, and one for the
    /// clicks of those apps that might send something.
    async fn gather(
        tx: &Tx,
        requests: &[Request],
        answers: &[Vec<Acceptance>],
        devices: &Devices<'_>,
    ) -> Result<Self, Failure> {
        let new: Vec<&Request> = requests
            .iter()
            .zip(answers)
            .filter(|(_, answers)| answers.contains(&Acceptance::Accepted))
            .map(|(request, _)| request)
            .collect();
        let apps: BTreeSet<AppId> = new.iter().map(|request| request.arrival.app).collect();
        let integrations = integrations::touched(tx, &apps).await?;
        let sends = |app: &AppId| {
            let all = integrations.get(app);
            all.is_some_and(|all| all.iter().any(Integration::is_active))
        };
        let sending: BTreeSet<AppId> = apps.into_iter().filter(sends).collect();
        let clicks = new.iter().filter_map(|request| {
            let app = request.arrival.app;
            let device = devices.get(&request.device().columns())?;
            let click = credited_click(&device.known)?;
            sending.contains(&app).then_some((app, click))
        });
        let clicks = planned::find_clicks(tx, clicks.collect()).await?;
        Ok(Self {
            integrations,
            clicks,
        })
    }

    /// Plans an event, and notes on it who does not hear of it.
    fn plan(&self, event: &mut Event, arrival: &Arrival, known: &Known) -> Vec<PlannedRow> {
        let integrations = self.integrations.get(&arrival.app);
        let click = credited_click(known);
        let facts = DeviceFacts {
            known,
            click: click.and_then(|click| self.clicks.get(&(arrival.app, click))),
            holds_suspicious: arrival.holds_suspicious,
            policy: arrival.policy,
            now: arrival.received_at,
        };
        let plan = facts.plan(event, integrations.map_or(&[], |all| all));
        let row = |one| PlannedRow::write(event, one, arrival.received_at);
        plan.planned.iter().map(row).collect()
    }
}

fn credited_click(known: &Known) -> Option<ClickId> {
    known.attribution.as_ref()?.decision.click
}

fn owner(known: &Known) -> Owner {
    let device = known.device.as_ref();
    Owner {
        user: known.identity.user.clone(),
        platform: device.map(|device| device.traits.platform),
        country: device.and_then(|device| device.country.clone()),
        credit: known.attribution.as_ref().map(Attribution::credit),
        first_payment: known.first_payment,
    }
}

/// Takes the ids that the senders gave. Of an id that several events here have, the first one gets it.
async fn claim_ids(tx: &Tx, requests: &[Request]) -> Result<Vec<Vec<Acceptance>>, Failure> {
    let keys: Vec<EventKey<'_>> = requests.iter().flat_map(Request::keys).collect();
    let mut claimed = event_rows::claim(tx, &keys).await?.into_iter();
    let acceptance = |is_new| {
        if is_new {
            Acceptance::Accepted
        } else {
            Acceptance::Duplicate
        }
    };
    let of_request = |request: &Request| {
        let claimed = claimed.by_ref().take(request.events.len());
        claimed.map(acceptance).collect()
    };
    Ok(requests.iter().map(of_request).collect())
}

fn new_events<'a>(
    request: &'a Request,
    answers: &'a [Acceptance],
) -> impl Iterator<Item = &'a SdkEvent> {
    let answered = request.events.iter().zip(answers);
    answered
        .filter(|(_, answer)| **answer == Acceptance::Accepted)
        .map(|(event, _)| event)
}

/// The rates that the new events need, each asked for once.
async fn find_rates(
    tx: &Tx,
    requests: &[Request],
    answers: &[Vec<Acceptance>],
) -> Result<ImportedRates, Failure> {
    let wanted: BTreeSet<_> = requests
        .iter()
        .zip(answers)
        .flat_map(|(request, answers)| new_events(request, answers))
        .filter_map(SdkEvent::exchange_day)
        .map(|(_, currency, day)| (currency, day))
        .collect();
    let wanted: Vec<_> = wanted.into_iter().collect();
    imported_rates(tx, &wanted).await
}
