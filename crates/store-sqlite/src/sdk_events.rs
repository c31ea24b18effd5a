//! Accepts SDK events.

use crate::event_rows::{claim_in, insert_in};
use crate::rates::imported_rates;
use crate::write_batch::WriteBatch;
use crate::{Failure, devices, duplicates, outbox_table};
use tributary_domain::device::DeviceRef;
use tributary_domain::event::sdk::{
    RecordedSdkEvent, SdkChanges, SdkEventOutcome, SdkFacts, SdkRequest, decide, planning_click,
};

/// Gathers the facts for a request, and claims and reserves its event ids. Rows that may be
/// unreadable are read first, because a request that fails after writing rolls back the whole
/// batch.
fn gather<'r>(batch: &WriteBatch<'_>, request: &'r SdkRequest) -> Result<SdkFacts<'r>, Failure> {
    let connection = batch.connection;
    let DeviceRef {
        app,
        environment,
        key,
    } = request.sender();
    let mut facts = SdkFacts::default();
    let state = devices::find_state_in(batch, app, environment, key)?;
    let integrations = batch.integrations(app)?;
    if let Some(click) = planning_click(&state, &integrations) {
        let found = outbox_table::find_click(connection, app, click)?;
        let found = found.map(|found| ((app, click), found));
        facts.clicks.extend(found);
    }
    facts.integrations.insert(app, integrations);
    facts.devices.insert(request.sender(), state);
    for claim in request.keys() {
        if claim_in(batch, claim)? {
            let id = (claim.app, claim.environment, claim.external_id);
            facts.new_ids.insert(id);
        }
    }
    for (id, event) in request.verifiable() {
        if facts.new_ids.contains(&id) {
            let verified = duplicates::reserve_in(batch, id, event)?;
            facts.verified.insert(id, verified);
        }
    }
    facts.rates = imported_rates(connection, request.exchange_days(&facts.new_ids))?;
    Ok(facts)
}

/// Writes changes whose ids are claimed.
fn write(batch: &WriteBatch<'_>, changes: &SdkChanges<'_>) -> Result<(), Failure> {
    let connection = batch.connection;
    for RecordedSdkEvent { event, planned } in &changes.recorded {
        insert_in(batch, event)?;
        outbox_table::insert_in(batch, event, planned)?;
    }
    batch.count(|counted| changes.count(counted));
    for event in changes.first_payments() {
        devices::note_first_payment(connection, event)?;
    }
    for device in &changes.unsettled {
        devices::settle_first_payment_in(batch, *device)?;
    }
    for (device, at) in &changes.seen {
        devices::note_last_seen(connection, *device, *at)?;
    }
    Ok(())
}

/// Accepts a request. A request cannot be refused after it has written, so it needs no savepoint.
pub(crate) fn accept(
    batch: &WriteBatch<'_>,
    request: &SdkRequest,
) -> Result<Vec<SdkEventOutcome>, Failure> {
    let facts = gather(batch, request)?;
    let decisions = decide(std::slice::from_ref(request), &facts);
    write(batch, &decisions.changes)?;
    Ok(decisions.answers.into_iter().flatten().collect())
}

#[cfg(test)]
mod tests {
    use crate::SqliteStore;
    use rusqlite::Connection;
    use std::sync::Arc;
    use tributary_store::contract::fixtures::{SharedStore, join_all};
    use tributary_store::contract::sdk_fixtures::{event, tenant};

    #[tokio::test]
    async fn an_unreadable_device_fails_only_its_own_request() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.db");
        let opened = path.clone();
        let opened = tokio::task::spawn_blocking(move || SqliteStore::open(&opened)).await;
        let store: SharedStore = Arc::new(opened.unwrap().unwrap());
        let one = tenant(&store).await;
        one.call_configure(one.configure("unreadable", 10)).await;
        let connection = Connection::open(&path).unwrap();
        let damage = "update devices set decision = 'damaged'";
        connection.execute(damage, ()).unwrap();
        for round in 0..5 {
            let requests = (0..20).map(|number| {
                let device = if number == 10 {
                    "unreadable".to_owned()
                } else {
                    format!("device-{number}")
                };
                let id = format!("{round}-{number}");
                let arrival = one.arrival(&device, 20);
                store.accept_sdk_events(arrival, vec![event(&id, "level_up", 20)])
            });
            let outcomes = join_all(requests.collect()).await;
            let failed = outcomes.iter().filter(|outcome| outcome.is_err()).count();
            assert_eq!(failed, 1, "{outcomes:?}");
        }
    }
}
