//! Reads and writes rows of `events`.

use crate::Failure;
use crate::devices::DeviceColumns;
use crate::params::{Param, column, placeholders};
use crate::rows::{PostgresRow, uuid};
use crate::tx::Tx;
use std::borrow::Borrow;
use std::collections::{BTreeMap, HashSet};
use std::sync::LazyLock;
use tokio_postgres::Row;
use tributary_domain::device::DeviceRef;
use tributary_domain::event::{Event, EventKey};
use tributary_store::records::{CampaignCache, Columns, EventRow};
use uuid::Uuid;

/// The columns of `events`, in the order of an [`EventRow`].
pub(crate) const EVENT_COLUMNS: &str = EventRow::COLUMNS;

/// Reads an event from a row of [`EVENT_COLUMNS`].
pub(crate) fn read_event(row: &Row) -> Result<Event, Failure> {
    Ok(EventRow::from_row(&PostgresRow(row), 0)?.read()?)
}

/// Finds the events that match the conditions, in the order they specify.
pub(crate) async fn find(
    tx: &Tx,
    conditions: &str,
    params: &[&dyn Param],
) -> Result<Vec<Event>, Failure> {
    let sql = format!("select {EVENT_COLUMNS} from events where {conditions}");
    let rows = tx.query(&sql, params).await?;
    let mut campaigns = CampaignCache::default();
    rows.iter()
        .map(|row| Ok(EventRow::from_row(&PostgresRow(row), 0)?.read_cached(&mut campaigns)?))
        .collect()
}

/// Finds a device's latest events, newest first.
pub(crate) async fn latest(
    tx: &Tx,
    device: DeviceRef<'_>,
    limit: i64,
) -> Result<Vec<Event>, Failure> {
    let (app, environment, device) = device.columns();
    find(
        tx,
        "app_id = $1 and environment = $2 and device_id = $3 order by event_id desc limit $4",
        &[&app, &environment, &device, &limit],
    )
    .await
}

/// Claims event ids. Returns whether each claim succeeded, in order. A claim fails if the id is
/// already in use; if an id is repeated in one call, the first claim succeeds.
pub(crate) async fn claim(tx: &Tx, keys: &[EventKey<'_>]) -> Result<Vec<bool>, Failure> {
    // Sorted, so that two transactions with the same ids do not deadlock.
    let mut first = BTreeMap::new();
    for (index, key) in keys.iter().enumerate() {
        let names = (
            uuid(key.app.as_bytes()),
            key.environment.as_str(),
            key.source.as_str(),
        );
        first
            .entry((names, key.external_id))
            .or_insert((index, key));
    }
    let first: Vec<(usize, &EventKey<'_>)> = first.into_values().collect();
    let rows = tx
        .query(
            "insert into event_keys (app_id, environment, source, given_id, event_id, fingerprint)
             select * from unnest($1, $2, $3, $4, $5, $6)
             on conflict (app_id, environment, source, given_id) do nothing
             returning app_id, environment, event_id",
            &[
                &column(&first, |(_, key)| uuid(key.app.as_bytes())),
                &column(&first, |(_, key)| key.environment.as_str()),
                &column(&first, |(_, key)| key.source.as_str()),
                &column(&first, |(_, key)| key.external_id),
                &column(&first, |(_, key)| uuid(key.event.as_bytes())),
                &column(&first, |(_, key)| {
                    key.fingerprint.map(|digest| digest.as_bytes().as_slice())
                }),
            ],
        )
        .await?;
    let new: HashSet<(Uuid, &str, Uuid)> = rows
        .iter()
        .map(|row| Ok((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?)))
        .collect::<Result<_, tokio_postgres::Error>>()?;
    let mut claimed = vec![false; keys.len()];
    for (index, key) in first {
        let event = uuid(key.event.as_bytes());
        claimed[index] = new.contains(&(uuid(key.app.as_bytes()), key.environment.as_str(), event));
    }
    Ok(claimed)
}

static INSERT: LazyLock<String> = LazyLock::new(|| {
    format!(
        "insert into events ({EVENT_COLUMNS}) select * from unnest({})",
        placeholders(EventRow::COUNT)
    )
});

/// Inserts events whose ids are claimed.
pub(crate) async fn insert(tx: &Tx, events: &[impl Borrow<Event>]) -> Result<(), Failure> {
    if events.is_empty() {
        return Ok(());
    }
    let rows = events.iter().map(|event| EventRow::write(event.borrow()));
    let rows: Vec<_> = rows.collect();
    let rows = rows.as_slice();
    tx.execute(
        &INSERT,
        &[
            &column(rows, |row| uuid(&row.app_id)),
            &column(rows, |row| row.environment),
            &column(rows, |row| uuid(&row.event_id)),
            &column(rows, |row| row.given_id),
            &column(rows, |row| row.source),
            &column(rows, |row| row.name),
            &column(rows, |row| row.original_name),
            &column(rows, |row| row.occurred_at),
            &column(rows, |row| row.received_at),
            &column(rows, |row| row.device_id),
            &column(rows, |row| row.user_id),
            &column(rows, |row| row.platform),
            &column(rows, |row| row.country),
            &column(rows, |row| row.amount_micros),
            &column(rows, |row| row.currency),
            &column(rows, |row| row.usd_micros),
            &column(rows, |row| row.rate),
            &column(rows, |row| row.rate_day),
            &column(rows, |row| row.rate_source),
            &column(rows, |row| row.uncounted),
            &column(rows, |row| row.network),
            &column(rows, |row| row.match_type),
            &column(rows, |row| row.link_id.as_ref().map(uuid)),
            &column(rows, |row| row.click_id.as_ref().map(uuid)),
            &column(rows, |row| row.campaign.as_deref()),
            &column(rows, |row| row.params),
            &column(rows, |row| row.first_payment),
            &column(rows, |row| row.own),
            &column(rows, |row| row.skipped.as_deref()),
            &column(rows, |row| row.source_url),
            &column(rows, |row| row.parent_given_id),
            &column(rows, |row| row.email_sha256),
            &column(rows, |row| row.duplicate_of.as_ref().map(uuid)),
            &column(rows, |row| row.dedup_root.as_ref().map(uuid)),
            &column(rows, |row| row.device_spelling),
            &column(rows, |row| row.hold),
            &column(rows, |row| row.consent.as_deref()),
        ],
    )
    .await?;
    Ok(())
}
