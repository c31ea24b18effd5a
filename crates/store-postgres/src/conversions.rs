//! Gathers conversions for a batch of deliveries, with one statement per table.

use crate::devices::bulk;
use crate::links::LINK_COLUMNS;
use crate::rows::{read_row_at, uuid};
use crate::tx::Tx;
use crate::{Failure, event_rows, outbox_table};
use std::collections::{BTreeMap, BTreeSet};
use tributary_domain::access::Environment;
use tributary_domain::click::Click;
use tributary_domain::device::DeviceRef;
use tributary_domain::event::Event;
use tributary_domain::forwarding::Conversion;
use tributary_domain::install::DeviceState;
use tributary_domain::link::Link;
use tributary_domain::vocabulary::id::{AppId, ClickId, EventId, LinkId};
use tributary_store::records::LinkRow;
use tributary_store::{GatheredDelivery, PendingDelivery, QueueRef};
use uuid::Uuid;

pub(crate) async fn gather(
    tx: &Tx,
    queue: QueueRef,
    pending: &[PendingDelivery],
) -> Result<Vec<GatheredDelivery>, Failure> {
    let app = queue.app;
    let events = find_events(tx, app, pending.iter().map(|pending| pending.event)).await?;
    let facts = Facts {
        clicks: find_clicks(tx, app, &events).await?,
        links: find_links(tx, app, &events).await?,
        devices: find_devices(tx, &events).await?,
    };
    let gathered = pending.iter().map(|pending| GatheredDelivery {
        pending: pending.clone(),
        conversion: events
            .get(&pending.event)
            .map(|event| facts.conversion(pending, event)),
        link: events
            .get(&pending.event)
            .and_then(|event| facts.links.get(&event.credit.as_ref()?.link?).cloned()),
    });
    Ok(gathered.collect())
}

/// Facts besides the events.
struct Facts {
    clicks: BTreeMap<(AppId, ClickId), Click>,
    links: BTreeMap<LinkId, Link>,
    /// By event id.
    devices: BTreeMap<EventId, DeviceState>,
}

impl Facts {
    fn conversion(&self, pending: &PendingDelivery, event: &Event) -> Conversion {
        let click = event.credit.as_ref().and_then(|credit| credit.click);
        let click = click.and_then(|click| self.clicks.get(&(event.app, click)));
        let state = self.devices.get(&event.id).cloned().unwrap_or_default();
        Conversion::new(pending, event.clone(), click.cloned(), state)
    }
}

/// Finds live events by id. Test events are never sent.
pub(crate) async fn find_events(
    tx: &Tx,
    app: AppId,
    wanted: impl Iterator<Item = EventId>,
) -> Result<BTreeMap<EventId, Event>, Failure> {
    let wanted: BTreeSet<EventId> = wanted.collect();
    if wanted.is_empty() {
        return Ok(BTreeMap::new());
    }
    let ids: Vec<Uuid> = wanted.iter().map(|event| uuid(event.as_bytes())).collect();
    let found = event_rows::find(
        tx,
        "app_id = $1 and environment = $2 and event_id = any($3)",
        &[&uuid(app.as_bytes()), &Environment::Live.as_str(), &ids],
    )
    .await?;
    Ok(found.into_iter().map(|event| (event.id, event)).collect())
}

async fn find_clicks(
    tx: &Tx,
    app: AppId,
    events: &BTreeMap<EventId, Event>,
) -> Result<BTreeMap<(AppId, ClickId), Click>, Failure> {
    let wanted = events
        .values()
        .filter_map(|event| Some((app, event.credit.as_ref()?.click?)));
    outbox_table::find_clicks(tx, wanted.collect()).await
}

async fn find_links(
    tx: &Tx,
    app: AppId,
    events: &BTreeMap<EventId, Event>,
) -> Result<BTreeMap<LinkId, Link>, Failure> {
    let wanted: BTreeSet<LinkId> = events
        .values()
        .filter_map(|event| event.credit.as_ref()?.link)
        .collect();
    if wanted.is_empty() {
        return Ok(BTreeMap::new());
    }
    let ids: Vec<Uuid> = wanted.iter().map(|link| uuid(link.as_bytes())).collect();
    let sql = format!("select {LINK_COLUMNS} from links where app_id = $1 and link_id = any($2)");
    let rows = tx.query(&sql, &[&uuid(app.as_bytes()), &ids]).await?;
    let link = |row| {
        let link = read_row_at::<LinkRow>(row, 0)?.read()?;
        Ok((link.id, link))
    };
    rows.iter().map(link).collect()
}

async fn find_devices(
    tx: &Tx,
    events: &BTreeMap<EventId, Event>,
) -> Result<BTreeMap<EventId, DeviceState>, Failure> {
    let (senders, devices): (Vec<EventId>, Vec<DeviceRef<'_>>) = events
        .values()
        .filter_map(|event| {
            let device = DeviceRef {
                app: event.app,
                environment: event.environment,
                key: event.device.as_ref()?,
            };
            Some((event.id, device))
        })
        .unzip();
    let states = bulk::find(tx, &devices).await?;
    Ok(senders.into_iter().zip(states).collect())
}
