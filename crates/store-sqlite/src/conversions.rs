//! Gathers the conversion for a delivery.

use crate::event_rows::{EVENT_COLUMNS, read_event};
use crate::links::LINK_COLUMNS;
use crate::rows::read_row;
use crate::{Failure, devices, outbox_table};
use rusqlite::{Connection, OptionalExtension, params};
use tributary_domain::access::Environment;
use tributary_domain::event::Event;
use tributary_domain::forwarding::Conversion;
use tributary_domain::install::DeviceState;
use tributary_domain::link::Link;
use tributary_domain::vocabulary::id::{AppId, EventId};
use tributary_store::records::LinkRow;
use tributary_store::{GatheredDelivery, PendingDelivery, QueueRef};

pub(crate) fn gather(
    connection: &Connection,
    queue: QueueRef,
    pending: PendingDelivery,
) -> Result<GatheredDelivery, Failure> {
    let Some(event) = find_event(connection, queue.app, pending.event)? else {
        return Ok(GatheredDelivery {
            pending,
            conversion: None,
            link: None,
        });
    };
    let click = match event.credit.as_ref().and_then(|credit| credit.click) {
        Some(click) => outbox_table::find_click(connection, queue.app, click)?,
        None => None,
    };
    let link = find_link(connection, &event)?;
    let state = match &event.device {
        Some(device) => devices::find_state(connection, queue.app, event.environment, device)?,
        None => DeviceState::default(),
    };
    let conversion = Conversion::new(&pending, event, click, state);
    Ok(GatheredDelivery {
        pending,
        conversion: Some(conversion),
        link,
    })
}

pub(crate) fn find_event(
    connection: &Connection,
    app: AppId,
    event: EventId,
) -> Result<Option<Event>, Failure> {
    let sql = format!(
        "select {EVENT_COLUMNS} from events
         where app_id = ?1 and environment = ?2 and event_id = ?3"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let key = params![app.as_bytes(), Environment::Live.as_str(), event.as_bytes()];
    statement
        .query_and_then(key, read_event)?
        .next()
        .transpose()
}

fn find_link(connection: &Connection, event: &Event) -> Result<Option<Link>, Failure> {
    let Some(link) = event.credit.as_ref().and_then(|credit| credit.link) else {
        return Ok(None);
    };
    let sql = format!("select {LINK_COLUMNS} from links where app_id = ?1 and link_id = ?2");
    let row = connection
        .prepare_cached(&sql)?
        .query_row((event.app.as_bytes(), link.as_bytes()), read_row::<LinkRow>)
        .optional()?;
    Ok(row.map(LinkRow::read).transpose()?)
}
