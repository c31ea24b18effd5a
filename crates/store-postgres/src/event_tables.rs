//! `EventTable` and `FirstPaymentTable`: events and first payments as `recording` uses them.

use crate::devices::DeviceColumns;
use crate::params::{Param, column};
use crate::rows::{read_row, uuid};
use crate::tx::Tx;
use crate::web_events::find_refunds;
use crate::{Failure, duplicates, event_rows};
use std::collections::{BTreeMap, BTreeSet};
use tokio_postgres::Row;
use tributary_domain::access::Environment;
use tributary_domain::billing::transaction_key;
use tributary_domain::device::{DeviceKey, DeviceRef, UserKey};
use tributary_domain::erasure::Trace;
use tributary_domain::event::duplicate::{EventReplacement, VERIFIABLE_NAMES};
use tributary_domain::event::{Credit, Event, EventKey, EventSource, SELF_CREDITED_SOURCE};
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::id::{AppId, EventId};
use tributary_domain::vocabulary::money::Amount;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_recording::{EventTable, FirstPaymentTable, SharedId};
use tributary_store::records::{
    Columns, CreditColumns, ERASED_EVENT, IS_PAYMENT, OF_USER_WITHOUT_DEVICE, TraceRow,
    skipped_to_json, uncounted_reason,
};
use uuid::Uuid;

impl EventTable for Tx {
    async fn events(
        &self,
        (app, environment): (AppId, Environment),
        ids: &BTreeSet<EventId>,
    ) -> Result<Vec<Event>, Failure> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let ids: Vec<Uuid> = ids.iter().map(|id| uuid(id.as_bytes())).collect();
        event_rows::find(
            self,
            "app_id = $1 and environment = $2 and event_id = any($3)",
            &[&uuid(app.as_bytes()), &environment.as_str(), &ids],
        )
        .await
    }

    async fn insert_event(&self, event: &Event) -> Result<bool, Failure> {
        let key = EventKey::of(event, None);
        if event_rows::claim(self, &[key]).await? != [true] {
            return Ok(false);
        }
        event_rows::insert(self, &[event]).await?;
        Ok(true)
    }

    async fn replace_events(&self, events: &[&Event]) -> Result<(), Failure> {
        let (apps, environments, ids) = keys(events);
        self.execute(
            "delete from events as stored
             using unnest($1, $2, $3) as new (app_id, environment, event_id)
             where stored.app_id = new.app_id and stored.environment = new.environment
               and stored.event_id = new.event_id
               /* distributed: and stored.app_id = any($1) */",
            &[&apps, &environments, &ids],
        )
        .await?;
        event_rows::insert(self, events).await
    }

    async fn delete_event(&self, event: &Event) -> Result<(), Failure> {
        let (app, environment) = (uuid(event.app.as_bytes()), event.environment.as_str());
        self.execute(
            "delete from events where app_id = $1 and environment = $2 and event_id = $3",
            &[&app, &environment, &uuid(event.id.as_bytes())],
        )
        .await?;
        self.execute(
            "delete from event_keys
             where app_id = $1 and environment = $2 and source = $3 and given_id = $4",
            &[
                &app,
                &environment,
                &event.source.as_str(),
                &event.external_id,
            ],
        )
        .await?;
        Ok(())
    }

    async fn events_by_external_id<'a>(
        &self,
        source: EventSource,
        ids: &[SharedId<'a>],
    ) -> Result<Vec<(SharedId<'a>, Event)>, Failure> {
        duplicates::find_by_source(self, ids, source).await
    }

    async fn refunded_amounts<'a>(
        &self,
        app: AppId,
        payments: &[&'a str],
    ) -> Result<BTreeMap<&'a str, Amount>, Failure> {
        let payments = payments.iter().map(|payment| (app, *payment)).collect();
        let refunds = find_refunds(self, &payments).await?;
        let refunds = refunds.into_iter();
        Ok(refunds
            .map(|((_, payment), refunds)| (payment, refunds.total))
            .collect())
    }

    async fn reserve_transactions(
        &self,
        transactions: &BTreeSet<SharedId<'_>>,
    ) -> Result<(), Failure> {
        duplicates::reserve_transactions(self, transactions).await
    }

    async fn duplicate_candidates(
        &self,
        (app, environment): (AppId, Environment),
        span: (EventId, EventId),
    ) -> Result<Vec<Event>, Failure> {
        event_rows::find(
            self,
            "app_id = $1 and environment = $2 and event_id >= $3 and event_id < $4
             and source = $5 and name = any($6)
             and (duplicate_of is not null
                  or exists (select 1 from event_keys as taken
                             where taken.app_id = events.app_id
                               and taken.environment = events.environment
                               and taken.source = $7 and taken.given_id = events.given_id
                               and taken.fingerprint is not null)
                  or exists (select 1 from billing_keys as billed
                             where billed.app_id = events.app_id
                               and billed.environment = events.environment
                               and billed.lookup_key = $8 || events.given_id))",
            &[
                &uuid(app.as_bytes()),
                &environment.as_str(),
                &uuid(span.0.as_bytes()),
                &uuid(span.1.as_bytes()),
                &EventSource::Sdk.as_str(),
                &VERIFIABLE_NAMES.to_vec(),
                &EventSource::Web.as_str(),
                &transaction_key("").as_str(),
            ],
        )
        .await
    }

    async fn events_to_credit(
        &self,
        device: DeviceRef<'_>,
        after: Option<EventId>,
        limit: usize,
    ) -> Result<Vec<Event>, Failure> {
        let (app, environment, device) = device.columns();
        let after = after.map_or(Uuid::nil(), |id| uuid(id.as_bytes()));
        event_rows::find(
            self,
            "app_id = $1 and environment = $2 and device_id = $3 and event_id > $4 and source <> $6
             order by event_id limit $5",
            &[
                &app,
                &environment,
                &device,
                &after,
                &i64::try_from(limit).unwrap_or(i64::MAX),
                &SELF_CREDITED_SOURCE.as_str(),
            ],
        )
        .await
    }

    async fn credited_events(
        &self,
        (app, environment): (AppId, Environment),
        devices: &[&DeviceKey],
    ) -> Result<Vec<Event>, Failure> {
        let keys: Vec<&str> = devices.iter().map(|device| device.as_str()).collect();
        event_rows::find(
            self,
            "app_id = $1 and environment = $2 and device_id = any($3) and source <> $4 order by event_id",
            &[
                &uuid(app.as_bytes()),
                &environment.as_str(),
                &keys,
                &SELF_CREDITED_SOURCE.as_str(),
            ],
        )
        .await
    }

    async fn write_credit(&self, device: DeviceRef<'_>, credit: &Credit) -> Result<(), Failure> {
        let (app, environment, device) = device.columns();
        let columns = CreditColumns::write(credit);
        self.execute(
            "update events set network = $4, match_type = $5, link_id = $6, click_id = $7,
                               campaign = $8, hold = $10
             where app_id = $1 and environment = $2 and device_id = $3 and source <> $9",
            &[
                &app,
                &environment,
                &device,
                &columns.network,
                &columns.match_type,
                &columns.link_id.as_ref().map(uuid),
                &columns.click_id.as_ref().map(uuid),
                &columns.campaign,
                &SELF_CREDITED_SOURCE.as_str(),
                &columns.hold,
            ],
        )
        .await?;
        Ok(())
    }

    async fn write_skipped(&self, events: &[&Event]) -> Result<(), Failure> {
        let (apps, environments, ids) = keys(events);
        let skipped = column(events, |event| skipped_to_json(&event.skipped));
        self.execute(
            "update events as stored set skipped = new.skipped
             from unnest($1, $2, $3, $4) as new (app_id, environment, event_id, skipped)
             where stored.app_id = new.app_id and stored.environment = new.environment
               and stored.event_id = new.event_id
               /* distributed: and stored.app_id = any($1) */",
            &[
                &apps,
                &environments,
                &ids,
                &column(&skipped, |text| text.as_deref()),
            ],
        )
        .await?;
        Ok(())
    }

    async fn traces_of_device(&self, device: DeviceRef<'_>) -> Result<Vec<Trace>, Failure> {
        let of = (device.app, device.environment);
        traces(self, of, "device_id = any($3)", vec![device.device()]).await
    }

    async fn traces_of_people(
        &self,
        of: (AppId, Environment),
        people: &[UserKey],
    ) -> Result<Vec<Trace>, Failure> {
        let condition = format!("user_id = any($3) and {OF_USER_WITHOUT_DEVICE}");
        traces(self, of, &condition, column(people, UserKey::as_str)).await
    }

    async fn rename_billing_events(
        &self,
        device: DeviceRef<'_>,
        pseudonym: &DeviceKey,
    ) -> Result<(), Failure> {
        let (app, environment, key) = device.columns();
        let billing = EventSource::Billing.as_str();
        self.execute(
            "update events set device_id = $4
             where app_id = $1 and environment = $2 and device_id = $3 and source = $5",
            &[&app, &environment, &key, &pseudonym.as_str(), &billing],
        )
        .await?;
        Ok(())
    }

    async fn erase_events_of_device(
        &self,
        device: DeviceRef<'_>,
        pseudonym: &DeviceKey,
    ) -> Result<(), Failure> {
        let sql = format!(
            "update events set device_id = $4, {ERASED_EVENT}
             where app_id = $1 and environment = $2 and device_id = $3"
        );
        let (app, environment, key) = device.columns();
        self.execute(&sql, &[&app, &environment, &key, &pseudonym.as_str()])
            .await?;
        Ok(())
    }

    async fn erase_events_of_people(
        &self,
        (app, environment): (AppId, Environment),
        people: &[UserKey],
    ) -> Result<(), Failure> {
        let sql = format!(
            "update events set {ERASED_EVENT}
             where app_id = $1 and environment = $2 and user_id = any($3)
               and {OF_USER_WITHOUT_DEVICE}"
        );
        let (app, environment) = (uuid(app.as_bytes()), environment.as_str());
        let people = column(people, UserKey::as_str);
        self.execute(&sql, &[&app, &environment, &people]).await?;
        Ok(())
    }

    async fn latest_event(
        &self,
        device: DeviceRef<'_>,
    ) -> Result<(Option<Timestamp>, bool), Failure> {
        let (app, environment, key) = device.columns();
        let billing = EventSource::Billing.as_str();
        let row = self
            .query_opt(
                "select max(occurred_at), coalesce(bool_or(source = $4), false) from events
                 where app_id = $1 and environment = $2 and device_id = $3",
                &[&app, &environment, &key, &billing],
            )
            .await?;
        let Some(row) = row else {
            return Ok((None, false));
        };
        let occurred_at: Option<i64> = row.try_get(0)?;
        Ok((occurred_at.map(Timestamp::from_millis), row.try_get(1)?))
    }

    async fn day_of_next_event(
        &self,
        (app, environment): (AppId, Environment),
        from: EventId,
    ) -> Result<Option<Day>, Failure> {
        let found = self
            .query_opt(
                "select occurred_at from events
                 where app_id = $1 and environment = $2 and event_id >= $3
                 order by event_id limit 1",
                &[
                    &uuid(app.as_bytes()),
                    &environment.as_str(),
                    &uuid(from.as_bytes()),
                ],
            )
            .await?;
        let day = |row: Row| Ok(Day::of(Timestamp::from_millis(row.try_get(0)?)));
        found.map(day).transpose()
    }

    async fn events_between(
        &self,
        of: (AppId, Environment),
        span: (EventId, EventId),
        limit: usize,
    ) -> Result<Vec<Event>, Failure> {
        between(self, of, span, limit, "").await
    }

    async fn sdk_amounts_between(
        &self,
        of: (AppId, Environment),
        span: (EventId, EventId),
        limit: usize,
    ) -> Result<Vec<Event>, Failure> {
        let condition = "and source = 'sdk' and amount_micros is not null";
        between(self, of, span, limit, condition).await
    }

    async fn write_counting(&self, events: &[Event]) -> Result<(), Failure> {
        if events.is_empty() {
            return Ok(());
        }
        let (apps, environments, ids) = keys(&events.iter().collect::<Vec<_>>());
        self.execute(
            "update events as stored
             set uncounted = new.uncounted, first_payment = new.first_payment
             from unnest($1, $2, $3, $4, $5)
                  as new (app_id, environment, event_id, uncounted, first_payment)
             where stored.app_id = new.app_id and stored.environment = new.environment
               and stored.event_id = new.event_id
               /* distributed: and stored.app_id = any($1) */",
            &[
                &apps,
                &environments,
                &ids,
                &column(events, uncounted_reason),
                &column(events, |event| event.first_payment),
            ],
        )
        .await?;
        Ok(())
    }
}

/// The events' keys as SQL columns.
fn keys<'e>(events: &[&'e Event]) -> (Vec<Uuid>, Vec<&'e str>, Vec<Uuid>) {
    (
        column(events, |event| uuid(event.app.as_bytes())),
        column(events, |event| event.environment.as_str()),
        column(events, |event| uuid(event.id.as_bytes())),
    )
}

/// Finds the events in a range of ids that match a condition.
async fn between(
    tx: &Tx,
    (app, environment): (AppId, Environment),
    (from, until): (EventId, EventId),
    limit: usize,
    condition: &str,
) -> Result<Vec<Event>, Failure> {
    let conditions = format!(
        "app_id = $1 and environment = $2 and event_id >= $3 and event_id < $4 {condition}
         order by event_id limit $5"
    );
    let values: [&dyn Param; 5] = [
        &uuid(app.as_bytes()),
        &environment.as_str(),
        &uuid(from.as_bytes()),
        &uuid(until.as_bytes()),
        &i64::try_from(limit).unwrap_or(i64::MAX),
    ];
    event_rows::find(tx, &conditions, &values).await
}

/// Finds the references from events that match a condition.
async fn traces(
    tx: &Tx,
    (app, environment): (AppId, Environment),
    condition: &str,
    values: Vec<&str>,
) -> Result<Vec<Trace>, Failure> {
    let sql = format!(
        "select {} from events where app_id = $1 and environment = $2 and {condition}",
        TraceRow::COLUMNS
    );
    let (app, environment) = (uuid(app.as_bytes()), environment.as_str());
    let rows = tx.query(&sql, &[&app, &environment, &values]).await?;
    let trace = |row| Ok(read_row::<TraceRow>(row)?.read()?);
    rows.iter().map(trace).collect()
}

impl FirstPaymentTable for Tx {
    async fn flagged_payments(&self, device: DeviceRef<'_>) -> Result<Vec<Event>, Failure> {
        let (app, environment, device) = device.columns();
        let condition = "app_id = $1 and environment = $2 and device_id = $3 and first_payment";
        event_rows::find(self, condition, &[&app, &environment, &device]).await
    }

    async fn earliest_payment(&self, device: DeviceRef<'_>) -> Result<Option<Event>, Failure> {
        let (app, environment, device) = device.columns();
        let condition = format!(
            "app_id = $1 and environment = $2 and device_id = $3 and {IS_PAYMENT}
             order by event_id limit 1"
        );
        let found = event_rows::find(self, &condition, &[&app, &environment, &device]).await?;
        Ok(found.into_iter().next())
    }

    async fn write_first_payment_flags(&self, moved: &[EventReplacement]) -> Result<(), Failure> {
        let after: Vec<&Event> = moved.iter().map(|one| &one.after).collect();
        let (apps, environments, ids) = keys(&after);
        self.execute(
            "update events as stored set first_payment = new.first_payment
             from unnest($1, $2, $3, $4) as new (app_id, environment, event_id, first_payment)
             where stored.app_id = new.app_id and stored.environment = new.environment
               and stored.event_id = new.event_id
               /* distributed: and stored.app_id = any($1) */",
            &[
                &apps,
                &environments,
                &ids,
                &column(&after, |event| event.first_payment),
            ],
        )
        .await?;
        Ok(())
    }

    async fn write_first_payment(
        &self,
        device: DeviceRef<'_>,
        first: Option<&Event>,
    ) -> Result<(), Failure> {
        let (app, environment, device) = device.columns();
        let first = first.map(|event| uuid(event.id.as_bytes()));
        self.execute(
            "update identities set first_payment_id = $4
             where app_id = $1 and environment = $2 and device_id = $3
               and first_payment_id is distinct from $4",
            &[&app, &environment, &device, &first],
        )
        .await?;
        Ok(())
    }

    async fn clear_first_payment(
        &self,
        device: DeviceRef<'_>,
        event: EventId,
    ) -> Result<(), Failure> {
        let (app, environment, device) = device.columns();
        self.execute(
            "update identities set first_payment_id = null
             where app_id = $1 and environment = $2 and device_id = $3 and first_payment_id = $4",
            &[&app, &environment, &device, &uuid(event.as_bytes())],
        )
        .await?;
        Ok(())
    }

    async fn paying_devices(
        &self,
        (app, environment): (AppId, Environment),
        (from, until): (EventId, EventId),
    ) -> Result<BTreeSet<DeviceKey>, Failure> {
        let rows = self
            .query(
                "select distinct device_id from events
                 where app_id = $1 and environment = $2 and event_id >= $3 and event_id < $4
                   and device_id is not null and (usd_micros > 0 or first_payment)",
                &[
                    &uuid(app.as_bytes()),
                    &environment.as_str(),
                    &uuid(from.as_bytes()),
                    &uuid(until.as_bytes()),
                ],
            )
            .await?;
        rows.iter()
            .map(|row| Ok(DeviceKey::stored(row.try_get(0)?)))
            .collect()
    }
}
