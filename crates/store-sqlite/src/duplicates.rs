//! Events that two sources report.
//!
//! An SDK event that a verified source may report too reserves its id among the ids of web events: a key without a
//! fingerprint. A web event that finds its id reserved learns of the SDK event by that, and takes the key over. A billing
//! event reserves the id of its store transaction for no event at all. The SDK event that comes later learns by that
//! that it has to look for billing events.

use crate::batch::Batch;
use crate::billing::{self, find_any_app};
use crate::events::{find_events, replace_event};
use crate::{Failure, devices, planned};
use rusqlite::{Connection, OptionalExtension, ToSql, params};
use tributary_domain::access::Environment;
use tributary_domain::app::FraudPolicy;
use tributary_domain::billing::transaction_key;
use tributary_domain::device::DeviceKey;
use tributary_domain::event::duplicate::{
    Replacement, SdkTerms, VERIFIABLE_NAMES, is_verifiable, settle,
};
use tributary_domain::event::{Event, EventSource};
use tributary_domain::forwarding::course::DUPLICATE_OF_VERIFIED;
use tributary_domain::forwarding::plan::DeviceFacts;
use tributary_domain::integration::{Integration, Network};
use tributary_domain::ledger::{MoneyPolicy, sdk_policy};
use tributary_domain::report::Increments;
use tributary_domain::vocabulary::id::{AppId, EventId};
use tributary_domain::vocabulary::time::Timestamp;

/// The event of a reserved key that belongs to a billing event. Those are found by their transactions.
const BILLING: [u8; 16] = [0; 16];

/// An app, an environment and an id that a sender gave.
pub(crate) type SharedId<'a> = (AppId, Environment, &'a str);

/// Reserves an id; false when it is taken already.
fn take(
    connection: &Connection,
    (app, environment, id): SharedId<'_>,
    holder: &[u8; 16],
) -> Result<bool, Failure> {
    let reserved = connection
        .prepare_cached(
            "insert into event_keys (app_id, environment, source, given_id, event_id)
             values (?1, ?2, ?3, ?4, ?5) on conflict do nothing",
        )?
        .execute(params![
            app.as_bytes(),
            environment.as_str(),
            EventSource::Web.as_str(),
            id,
            holder
        ])?;
    Ok(reserved == 1)
}

/// Reserves the id of a new SDK event. Returns the verified events that have the id already.
pub(crate) fn reserve(batch: &Batch<'_>, event: &Event) -> Result<Vec<Event>, Failure> {
    if !is_verifiable(&event.name) {
        return Ok(Vec::new());
    }
    let (connection, id) = (batch.connection, shared_id(event));
    if take(connection, id, event.id.as_bytes())? {
        return Ok(Vec::new());
    }
    connection
        .prepare_cached(
            "update event_keys set event_id = ?5
             where app_id = ?1 and environment = ?2 and source = ?3 and given_id = ?4
               and event_id = ?6",
        )?
        .execute(params![
            event.app.as_bytes(),
            event.environment.as_str(),
            EventSource::Web.as_str(),
            event.given_id,
            event.id.as_bytes(),
            BILLING
        ])?;
    verified(connection, id)
}

/// Reserves the id of a store transaction for billing events.
pub(crate) fn reserve_transaction(
    connection: &Connection,
    transaction: SharedId<'_>,
) -> Result<(), Failure> {
    take(connection, transaction, &BILLING).map(|_| ())
}

fn shared_id(event: &Event) -> SharedId<'_> {
    (event.app, event.environment, &event.given_id)
}

/// Gives a reserved id to a web event.
pub(crate) fn take_over(
    connection: &Connection,
    event: &Event,
    fingerprint: &[u8],
) -> Result<bool, Failure> {
    let taken = connection
        .prepare_cached(
            "update event_keys set event_id = ?5, fingerprint = ?6
             where app_id = ?1 and environment = ?2 and source = ?3 and given_id = ?4
               and fingerprint is null",
        )?
        .execute(params![
            event.app.as_bytes(),
            event.environment.as_str(),
            event.source.as_str(),
            event.given_id,
            event.id.as_bytes(),
            fingerprint
        ])?;
    Ok(taken == 1)
}

/// An event by our id.
pub(crate) fn find(
    connection: &Connection,
    app: AppId,
    environment: Environment,
    event: EventId,
) -> Result<Option<Event>, Failure> {
    let environment = environment.as_str();
    let conditions = ["app_id = ?", "environment = ?", "event_id = ?"];
    let values: [&dyn ToSql; 3] = [app.as_bytes(), &environment, event.as_bytes()];
    Ok(find_events(connection, &conditions, &values, 1)?.pop())
}

/// The event that has an id among those of a source. A reservation is not an event.
fn of_source(
    connection: &Connection,
    (app, environment, id): SharedId<'_>,
    source: EventSource,
) -> Result<Option<Event>, Failure> {
    let event: Option<[u8; 16]> = connection
        .prepare_cached(
            "select event_id from event_keys
             where app_id = ?1 and environment = ?2 and source = ?3 and given_id = ?4",
        )?
        .query_row(
            params![app.as_bytes(), environment.as_str(), source.as_str(), id],
            |row| row.get(0),
        )
        .optional()?;
    let event = match event {
        Some(event) => find(connection, app, environment, EventId::from_bytes(event))?,
        None => None,
    };
    Ok(event.filter(|event| event.source == source))
}

/// The SDK event of an id.
pub(crate) fn reported(
    connection: &Connection,
    id: SharedId<'_>,
) -> Result<Option<Event>, Failure> {
    of_source(connection, id, EventSource::Sdk)
}

/// The verified events of an id: the website's, and those of the store transaction.
fn verified(connection: &Connection, id: SharedId<'_>) -> Result<Vec<Event>, Failure> {
    let mut verified = billing::of_transaction(connection, id)?;
    verified.extend(of_source(connection, id, EventSource::Web)?);
    verified.sort_by_key(|event| event.id);
    Ok(verified)
}

/// Stores an SDK event that a verified event makes a duplicate, moves its figures, and cancels what waits to be sent of
/// it. The caller settles the first payment of its device when all else is written.
pub(crate) fn demote(
    connection: &Connection,
    demotion: &Replacement,
    at: Timestamp,
    increments: &mut Increments,
) -> Result<(), Failure> {
    replace_event(connection, &demotion.after)?;
    increments.replace_event(&demotion.before, &demotion.after);
    let event = &demotion.before;
    if demotion.vacates_first_payment() {
        connection
            .prepare_cached(
                "update identities set first_payment_id = null
                 where app_id = ?1 and environment = ?2 and device_id = ?3 and first_payment_id = ?4",
            )?
            .execute(params![
                event.app.as_bytes(),
                event.environment.as_str(),
                event.device.as_ref().map(DeviceKey::as_str),
                event.id.as_bytes()
            ])?;
    }
    for network in Network::ALL {
        let id = (event.app, event.id);
        planned::cancel(connection, id, network, DUPLICATE_OF_VERIFIED, at)?;
    }
    Ok(())
}

/// Decides about the SDK event of an id after the verified events of the id changed. Returns its device if that changed
/// it: the device's first payment has to be settled.
pub(crate) fn settle_reported(
    connection: &Connection,
    id: SharedId<'_>,
    now: Timestamp,
    increments: &mut Increments,
) -> Result<Option<DeviceKey>, Failure> {
    let Some(event) = reported(connection, id)?.filter(|event| is_verifiable(&event.name)) else {
        return Ok(None);
    };
    let Some(app) = find_any_app(connection, event.app)? else {
        return Ok(None);
    };
    let around = planned::surroundings(connection, event.app, event.credit.as_ref())?;
    let terms = SdkTerms {
        policy: sdk_policy(&app),
        revenue_events: &app.revenue_events,
        integrations: &around.integrations,
    };
    let Some(mut settled) = settle(event, &verified(connection, id)?, terms) else {
        return Ok(None);
    };
    if settled.is_demotion() {
        demote(connection, &settled, now, increments)?;
    } else {
        let circumstances = Circumstances {
            around: &around,
            policy: terms.policy,
            holds_suspicious: app.attribution.fraud == FraudPolicy::Hold,
            now,
        };
        restore(connection, &mut settled, &circumstances, increments)?;
    }
    Ok(settled.after.device)
}

/// Decides about the SDK events of a stretch of the log that verified events have the ids of. It corrects what counts,
/// and leaves deliveries alone.
pub(crate) fn rejudge(
    connection: &Connection,
    (app, environment): (AppId, Environment),
    span: (EventId, EventId),
    terms: SdkTerms<'_>,
) -> Result<(), Failure> {
    let names = VERIFIABLE_NAMES.map(|name| format!("'{name}'")).join(", ");
    let sql = format!(
        "select given_id from events
         where app_id = ?1 and environment = ?2 and event_id >= ?3 and event_id < ?4
           and source = 'sdk' and name in ({names})
           and (duplicate_of is not null
                or exists (select 1 from event_keys as taken
                           where taken.app_id = ?1 and taken.environment = ?2
                             and taken.source = 'web' and taken.given_id = events.given_id
                             and taken.fingerprint is not null)
                or exists (select 1 from billing_keys as billed
                           where billed.app_id = ?1 and billed.environment = ?2
                             and billed.lookup_key = ?5 || events.given_id))"
    );
    let key = params![
        app.as_bytes(),
        environment.as_str(),
        span.0.as_bytes(),
        span.1.as_bytes(),
        transaction_key("")
    ];
    let ids: Vec<String> = connection
        .prepare_cached(&sql)?
        .query_map(key, |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    for id in &ids {
        let id = (app, environment, id.as_str());
        let Some(event) = reported(connection, id)? else {
            continue;
        };
        if let Some(Replacement { before, after }) =
            settle(event, &verified(connection, id)?, terms)
        {
            let skipped = before.skipped;
            replace_event(connection, &Event { skipped, ..after })?;
        }
    }
    Ok(())
}

/// What planning an event again depends on.
struct Circumstances<'a> {
    around: &'a planned::Surroundings,
    policy: MoneyPolicy,
    holds_suspicious: bool,
    now: Timestamp,
}

/// Stores an SDK event that is no longer a duplicate, moves its figures, and plans its deliveries.
fn restore(
    connection: &Connection,
    settled: &mut Replacement,
    circumstances: &Circumstances<'_>,
    increments: &mut Increments,
) -> Result<(), Failure> {
    let Replacement { before, after } = settled;
    replace_event(connection, after)?;
    increments.replace_event(before, after);
    let Some(device) = after.device.clone() else {
        return Ok(());
    };
    let known = devices::find_known(connection, after.app, after.environment, &device)?;
    let facts = DeviceFacts {
        known: &known,
        click: circumstances.around.click.as_ref(),
        holds_suspicious: circumstances.holds_suspicious,
        policy: circumstances.policy,
        now: circumstances.now,
    };
    let integrations: &[Integration] = &circumstances.around.integrations;
    planned::replan(
        connection,
        after,
        &facts,
        integrations,
        DUPLICATE_OF_VERIFIED,
    )
}

#[cfg(test)]
mod tests {
    use crate::SqliteStore;
    use rusqlite::Connection;
    use std::sync::Arc;
    use tributary_store::contract::billing_duplicates::{BEFORE_THE_UPGRADE, are_corrected, pairs};
    use tributary_store::contract::fixtures::SharedStore;

    #[tokio::test]
    async fn pairs_of_before_the_upgrade_are_corrected() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.db");
        let opened = path.clone();
        let opened = tokio::task::spawn_blocking(move || SqliteStore::open(&opened)).await;
        let store: SharedStore = Arc::new(opened.unwrap().unwrap());
        let one = pairs(&store).await;
        let connection = Connection::open(&path).unwrap();
        connection.execute_batch(BEFORE_THE_UPGRADE).unwrap();
        connection
            .execute_batch(include_str!("../migrations/0018_transactions.sql"))
            .unwrap();
        are_corrected(&store, &one).await;
    }
}
