//! `EventTable` and `FirstPaymentTable`: events and first payments as `recording` uses them.

use crate::Failure;
use crate::duplicates;
use crate::event_rows::{
    EVENT_COLUMNS, delete_event, find_events, insert_event, read_events, replace_event,
};
use crate::rows::read_row;
use crate::tables::SqliteTables;
use crate::web_events::find_refunds;
use rusqlite::{OptionalExtension, ToSql, params};
use std::collections::{BTreeMap, BTreeSet};
use tributary_domain::access::Environment;
use tributary_domain::billing::transaction_key;
use tributary_domain::device::{DeviceKey, DeviceRef, Identity, UserKey};
use tributary_domain::erasure::Trace;
use tributary_domain::event::duplicate::{EventReplacement, VERIFIABLE_NAMES};
use tributary_domain::event::{Credit, Event, EventSource, SELF_CREDITED_SOURCE};
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::id::{AppId, EventId};
use tributary_domain::vocabulary::money::Amount;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_recording::{EventTable, FirstPaymentTable, SharedId};
use tributary_store::records::{
    Columns, CreditColumns, ERASED_EVENT, IS_PAYMENT, IdentityRow, OF_USER_WITHOUT_DEVICE,
    TraceRow, skipped_to_json, uncounted_reason,
};

impl EventTable for SqliteTables<'_> {
    async fn events(
        &self,
        (app, environment): (AppId, Environment),
        ids: &BTreeSet<EventId>,
    ) -> Result<Vec<Event>, Failure> {
        let environment = environment.as_str();
        let conditions = ["app_id = ?", "environment = ?", "event_id = ?"];
        let mut found = Vec::new();
        for id in ids {
            let values: [&dyn ToSql; 3] = [app.as_bytes(), &environment, id.as_bytes()];
            found.extend(find_events(self.0, &conditions, &values, 1)?);
        }
        Ok(found)
    }

    async fn insert_event(&self, event: &Event) -> Result<bool, Failure> {
        insert_event(self.0, event)
    }

    async fn replace_events(&self, events: &[&Event]) -> Result<(), Failure> {
        for event in events {
            replace_event(self.0, event)?;
        }
        Ok(())
    }

    async fn delete_event(&self, event: &Event) -> Result<(), Failure> {
        delete_event(self.0, event)
    }

    async fn events_by_external_id<'a>(
        &self,
        source: EventSource,
        ids: &[SharedId<'a>],
    ) -> Result<Vec<(SharedId<'a>, Event)>, Failure> {
        let mut found = Vec::new();
        for id in ids {
            let event = duplicates::find_by_source(self.0, *id, source)?;
            found.extend(event.map(|event| (*id, event)));
        }
        Ok(found)
    }

    async fn refunded_amounts<'a>(
        &self,
        app: AppId,
        payments: &[&'a str],
    ) -> Result<BTreeMap<&'a str, Amount>, Failure> {
        let mut refunded = BTreeMap::new();
        for payment in payments {
            let found = find_refunds(self.0, (app, payment))?;
            refunded.extend(found.map(|refunds| (*payment, refunds.total)));
        }
        Ok(refunded)
    }

    async fn reserve_transactions(
        &self,
        transactions: &BTreeSet<SharedId<'_>>,
    ) -> Result<(), Failure> {
        duplicates::reserve_transactions(self.0, transactions)
    }

    async fn duplicate_candidates(
        &self,
        (app, environment): (AppId, Environment),
        span: (EventId, EventId),
    ) -> Result<Vec<Event>, Failure> {
        let names = VERIFIABLE_NAMES.map(|name| format!("'{name}'")).join(", ");
        let sql = format!(
            "select {EVENT_COLUMNS} from events
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
        let values = params![
            app.as_bytes(),
            environment.as_str(),
            span.0.as_bytes(),
            span.1.as_bytes(),
            transaction_key("")
        ];
        read_events(&mut *self.0.prepare_cached(&sql)?, values)
    }

    async fn events_to_credit(
        &self,
        device: DeviceRef<'_>,
        after: Option<EventId>,
        limit: usize,
    ) -> Result<Vec<Event>, Failure> {
        let sql = format!(
            "select {EVENT_COLUMNS} from events
             where app_id = ?1 and environment = ?2 and device_id = ?3 and source <> ?4
               and event_id > ?5 order by event_id limit ?6"
        );
        let after: &[u8] = after.as_ref().map_or(&[], |id| id.as_bytes());
        let values = params![
            device.app.as_bytes(),
            device.environment.as_str(),
            device.key.as_str(),
            SELF_CREDITED_SOURCE.as_str(),
            after,
            i64::try_from(limit).unwrap_or(i64::MAX)
        ];
        read_events(&mut *self.0.prepare_cached(&sql)?, values)
    }

    async fn credited_events(
        &self,
        (app, environment): (AppId, Environment),
        devices: &[&DeviceKey],
    ) -> Result<Vec<Event>, Failure> {
        let mut events = Vec::new();
        for key in devices {
            let device = DeviceRef {
                app,
                environment,
                key,
            };
            events.extend(self.events_to_credit(device, None, usize::MAX).await?);
        }
        events.sort_unstable_by_key(|event| event.id);
        Ok(events)
    }

    async fn write_credit(&self, device: DeviceRef<'_>, credit: &Credit) -> Result<(), Failure> {
        let columns = CreditColumns::write(credit);
        self.0
            .prepare_cached(
                "update events set network = ?4, match_type = ?5, link_id = ?6, click_id = ?7,
                                   campaign = ?8, hold = ?10
                 where app_id = ?1 and environment = ?2 and device_id = ?3 and source <> ?9",
            )?
            .execute(params![
                device.app.as_bytes(),
                device.environment.as_str(),
                device.key.as_str(),
                columns.network,
                columns.match_type,
                columns.link_id,
                columns.click_id,
                columns.campaign,
                SELF_CREDITED_SOURCE.as_str(),
                columns.hold
            ])?;
        Ok(())
    }

    async fn write_skipped(&self, events: &[&Event]) -> Result<(), Failure> {
        let mut write = self.0.prepare_cached(
            "update events set skipped = ?4
             where app_id = ?1 and environment = ?2 and event_id = ?3",
        )?;
        for event in events {
            write.execute(params![
                event.app.as_bytes(),
                event.environment.as_str(),
                event.id.as_bytes(),
                skipped_to_json(&event.skipped)
            ])?;
        }
        Ok(())
    }

    async fn traces_of_device(&self, device: DeviceRef<'_>) -> Result<Vec<Trace>, Failure> {
        let of = (device.app, device.environment);
        traces(self, of, "device_id = ?3", device.key.as_str())
    }

    async fn traces_of_people(
        &self,
        of: (AppId, Environment),
        people: &[UserKey],
    ) -> Result<Vec<Trace>, Failure> {
        let mut found = Vec::new();
        for person in people {
            let condition = format!("user_id = ?3 and {OF_USER_WITHOUT_DEVICE}");
            found.extend(traces(self, of, &condition, person.as_str())?);
        }
        Ok(found)
    }

    async fn rename_billing_events(
        &self,
        device: DeviceRef<'_>,
        pseudonym: &DeviceKey,
    ) -> Result<(), Failure> {
        let sql = "update events set device_id = ?4
             where app_id = ?1 and environment = ?2 and device_id = ?3 and source = ?5";
        self.0.prepare_cached(sql)?.execute(params![
            device.app.as_bytes(),
            device.environment.as_str(),
            device.key.as_str(),
            pseudonym.as_str(),
            EventSource::Billing.as_str()
        ])?;
        Ok(())
    }

    async fn erase_events_of_device(
        &self,
        device: DeviceRef<'_>,
        pseudonym: &DeviceKey,
    ) -> Result<(), Failure> {
        let sql = format!(
            "update events set device_id = ?4, {ERASED_EVENT}
             where app_id = ?1 and environment = ?2 and device_id = ?3"
        );
        self.0.prepare_cached(&sql)?.execute(params![
            device.app.as_bytes(),
            device.environment.as_str(),
            device.key.as_str(),
            pseudonym.as_str()
        ])?;
        Ok(())
    }

    async fn erase_events_of_people(
        &self,
        (app, environment): (AppId, Environment),
        people: &[UserKey],
    ) -> Result<(), Failure> {
        let sql = format!(
            "update events set {ERASED_EVENT}
             where app_id = ?1 and environment = ?2 and user_id = ?3 and {OF_USER_WITHOUT_DEVICE}"
        );
        let mut update = self.0.prepare_cached(&sql)?;
        for person in people {
            update.execute(params![
                app.as_bytes(),
                environment.as_str(),
                person.as_str()
            ])?;
        }
        Ok(())
    }

    async fn latest_event(
        &self,
        device: DeviceRef<'_>,
    ) -> Result<(Option<Timestamp>, bool), Failure> {
        let (occurred_at, has_billing): (Option<i64>, bool) = self
            .0
            .prepare_cached(
                "select max(occurred_at), coalesce(max(source = ?4), 0) from events
                 where app_id = ?1 and environment = ?2 and device_id = ?3",
            )?
            .query_row(
                params![
                    device.app.as_bytes(),
                    device.environment.as_str(),
                    device.key.as_str(),
                    EventSource::Billing.as_str()
                ],
                |row| Ok((row.get(0)?, row.get(1)?)),
            )?;
        Ok((occurred_at.map(Timestamp::from_millis), has_billing))
    }

    async fn day_of_next_event(
        &self,
        (app, environment): (AppId, Environment),
        from: EventId,
    ) -> Result<Option<Day>, Failure> {
        let mut find = self.0.prepare_cached(
            "select occurred_at from events where app_id = ?1 and environment = ?2 and event_id >= ?3
             order by event_id limit 1",
        )?;
        let key = (app.as_bytes(), environment.as_str(), from.as_bytes());
        let found = find.query_row(key, |row| Ok(Day::of(Timestamp::from_millis(row.get(0)?))));
        Ok(found.optional()?)
    }

    async fn events_between(
        &self,
        of: (AppId, Environment),
        span: (EventId, EventId),
        limit: usize,
    ) -> Result<Vec<Event>, Failure> {
        between(self, of, span, limit, "")
    }

    async fn sdk_amounts_between(
        &self,
        of: (AppId, Environment),
        span: (EventId, EventId),
        limit: usize,
    ) -> Result<Vec<Event>, Failure> {
        let condition = "and source = 'sdk' and amount_micros is not null";
        between(self, of, span, limit, condition)
    }

    async fn write_counting(&self, events: &[Event]) -> Result<(), Failure> {
        let mut update = self.0.prepare_cached(
            "update events set uncounted = ?4, first_payment = ?5
             where app_id = ?1 and environment = ?2 and event_id = ?3",
        )?;
        for event in events {
            update.execute(params![
                event.app.as_bytes(),
                event.environment.as_str(),
                event.id.as_bytes(),
                uncounted_reason(event),
                event.first_payment
            ])?;
        }
        Ok(())
    }
}

/// Finds the events in a range of ids that match a condition.
fn between(
    tables: &SqliteTables<'_>,
    (app, environment): (AppId, Environment),
    (from, until): (EventId, EventId),
    limit: usize,
    condition: &str,
) -> Result<Vec<Event>, Failure> {
    let sql = format!(
        "select {EVENT_COLUMNS} from events
         where app_id = ?1 and environment = ?2 and event_id >= ?3 and event_id < ?4 {condition}
         order by event_id limit ?5"
    );
    let values = params![
        app.as_bytes(),
        environment.as_str(),
        from.as_bytes(),
        until.as_bytes(),
        i64::try_from(limit).unwrap_or(i64::MAX)
    ];
    read_events(&mut *tables.0.prepare_cached(&sql)?, values)
}

/// Finds the references from events that match a condition.
fn traces(
    tables: &SqliteTables<'_>,
    (app, environment): (AppId, Environment),
    condition: &str,
    value: &str,
) -> Result<Vec<Trace>, Failure> {
    let sql = format!(
        "select {} from events where app_id = ?1 and environment = ?2 and {condition}",
        TraceRow::COLUMNS
    );
    let mut find = tables.0.prepare_cached(&sql)?;
    let values = params![app.as_bytes(), environment.as_str(), value];
    let rows = find.query_map(values, read_row::<TraceRow>)?;
    rows.map(|row| Ok(row?.read()?)).collect()
}

impl FirstPaymentTable for SqliteTables<'_> {
    async fn flagged_payments(&self, device: DeviceRef<'_>) -> Result<Vec<Event>, Failure> {
        payments(self, device, "first_payment = 1")
    }

    async fn earliest_payment(&self, device: DeviceRef<'_>) -> Result<Option<Event>, Failure> {
        let earliest = format!(
            "event_id = (select min(event_id) from events
                         where app_id = ?1 and environment = ?2 and device_id = ?3
                           and {IS_PAYMENT})"
        );
        Ok(payments(self, device, &earliest)?.pop())
    }

    async fn write_first_payment_flags(&self, moved: &[EventReplacement]) -> Result<(), Failure> {
        let mut write = self.0.prepare_cached(
            "update events set first_payment = ?4
             where app_id = ?1 and environment = ?2 and event_id = ?3",
        )?;
        for EventReplacement { after, .. } in moved {
            write.execute(params![
                after.app.as_bytes(),
                after.environment.as_str(),
                after.id.as_bytes(),
                after.first_payment
            ])?;
        }
        Ok(())
    }

    async fn write_first_payment(
        &self,
        device: DeviceRef<'_>,
        first: Option<&Event>,
    ) -> Result<(), Failure> {
        let key = (device.app.as_bytes(), device.environment.as_str());
        let Some(first) = first else {
            // A device without an identity row has no first payment either.
            self.0
                .prepare_cached(
                    "update identities set first_payment_id = null
                     where app_id = ?1 and environment = ?2 and device_id = ?3
                       and first_payment_id is not null",
                )?
                .execute((key.0, key.1, device.key.as_str()))?;
            return Ok(());
        };
        let unknown = IdentityRow::write(&Identity::default());
        self.0
            .prepare_cached(
                "insert into identities (app_id, environment, device_id, user_id, matching,
                                         first_payment_id, updated_at)
                 values (?1, ?2, ?3, ?4, ?5, ?6, ?7)
                 on conflict (app_id, environment, device_id) do update
                 set first_payment_id = excluded.first_payment_id
                 where first_payment_id is not excluded.first_payment_id",
            )?
            .execute(params![
                key.0,
                key.1,
                device.key.as_str(),
                unknown.user_id,
                unknown.matching,
                first.id.as_bytes(),
                first.received_at.as_millis()
            ])?;
        Ok(())
    }

    async fn clear_first_payment(
        &self,
        device: DeviceRef<'_>,
        event: EventId,
    ) -> Result<(), Failure> {
        self.0
            .prepare_cached(
                "update identities set first_payment_id = null
                 where app_id = ?1 and environment = ?2 and device_id = ?3
                   and first_payment_id = ?4",
            )?
            .execute((
                device.app.as_bytes(),
                device.environment.as_str(),
                device.key.as_str(),
                event.as_bytes(),
            ))?;
        Ok(())
    }

    async fn paying_devices(
        &self,
        (app, environment): (AppId, Environment),
        (from, until): (EventId, EventId),
    ) -> Result<BTreeSet<DeviceKey>, Failure> {
        let mut find = self.0.prepare_cached(
            "select distinct device_id from events
             where app_id = ?1 and environment = ?2 and event_id >= ?3 and event_id < ?4
               and device_id is not null and (usd_micros > 0 or first_payment = 1)",
        )?;
        let key = params![
            app.as_bytes(),
            environment.as_str(),
            from.as_bytes(),
            until.as_bytes()
        ];
        let devices = find.query_map(key, |row| Ok(DeviceKey::stored(row.get(0)?)))?;
        Ok(devices.collect::<Result<_, _>>()?)
    }
}

/// Finds a device's events that match a condition.
fn payments(
    tables: &SqliteTables<'_>,
    device: DeviceRef<'_>,
    condition: &str,
) -> Result<Vec<Event>, Failure> {
    let sql = format!(
        "select {EVENT_COLUMNS} from events
         where app_id = ?1 and environment = ?2 and device_id = ?3 and {condition}"
    );
    let (environment, key) = (device.environment.as_str(), device.key.as_str());
    let mut find = tables.0.prepare_cached(&sql)?;
    read_events(&mut find, params![device.app.as_bytes(), environment, key])
}
