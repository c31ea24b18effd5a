//! Everything that is stored about one person.

use crate::devices::find_state;
use crate::event_rows::{EVENT_COLUMNS, read_events};
use crate::rows::{read_row, require_app};
use crate::tables::{SqliteTables, run};
use crate::{Failure, SqliteStore};
use async_trait::async_trait;
use rusqlite::{OptionalExtension, Params, Statement, params};
use std::collections::BTreeMap;
use tributary_domain::access::{Authorized, Environment, PeopleExport};
use tributary_domain::audit::AuditContext;
use tributary_domain::billing::Chain;
use tributary_domain::device::{DeviceRef, UserKey};
use tributary_domain::event::{Event, EventSource};
use tributary_domain::install::DeviceState;
use tributary_domain::personal_data::{DataSubject, EventReferences, PersonIds, UserLink};
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::id::{AppId, ClickId, EventId};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_recording::{
    PersonTable, note_person_export, person_chains, person_events, person_records,
    person_subscription,
};
use tributary_store::personal_data::{
    EventOwner, PersonDeviceDetails, PersonEvents, PersonEventsQuery, PersonRecords,
    PersonSubscription,
};
use tributary_store::records::{Columns, OF_USER_WITHOUT_DEVICE, UserLinkRow};
use tributary_store::{PersonalData, StoreError, StoreResult};

#[async_trait]
impl PersonalData for SqliteStore {
    async fn person_records(
        &self,
        caller: &Authorized<PeopleExport>,
        app: AppId,
        subject: DataSubject,
    ) -> StoreResult<PersonRecords> {
        let (organization, environment) = (caller.organization_of(app)?, caller.environment());
        self.read("person_records", move |connection| {
            require_app(connection, organization, app)?;
            let tables = SqliteTables(connection);
            run(person_records(&tables, (app, environment), &subject))
        })
        .await
    }

    async fn note_person_export(
        &self,
        caller: &Authorized<PeopleExport>,
        app: AppId,
        subject: DataSubject,
        records: PersonRecords,
        origin: AuditContext,
    ) -> StoreResult<()> {
        let organization = caller.organization_of(app)?;
        self.write("note_person_export", move |connection| {
            let tables = SqliteTables(connection);
            let of = (organization, app);
            run(note_person_export(&tables, of, &subject, &records, &origin))
        })
        .await
    }

    async fn person_chains(
        &self,
        caller: &Authorized<PeopleExport>,
        app: AppId,
        records: PersonRecords,
    ) -> StoreResult<Vec<Chain>> {
        let (organization, environment) = (caller.organization_of(app)?, caller.environment());
        self.read("person_chains", move |connection| {
            require_app(connection, organization, app)?;
            let tables = SqliteTables(connection);
            run(person_chains(&tables, (app, environment), &records))
        })
        .await
    }

    async fn person_subscription(
        &self,
        caller: &Authorized<PeopleExport>,
        subject: DataSubject,
        ids: PersonIds,
        chain: Chain,
    ) -> StoreResult<Option<PersonSubscription>> {
        let organization = caller.organization_of(chain.app)?;
        self.read("person_subscription", move |connection| {
            require_app(connection, organization, chain.app)?;
            let tables = SqliteTables(connection);
            run(person_subscription(&tables, (&subject, &ids), chain))
        })
        .await
    }

    async fn person_events(
        &self,
        caller: &Authorized<PeopleExport>,
        app: AppId,
        query: PersonEventsQuery,
    ) -> StoreResult<PersonEvents> {
        let (organization, environment) = (caller.organization_of(app)?, caller.environment());
        self.read("person_events", move |connection| {
            require_app(connection, organization, app)?;
            let tables = SqliteTables(connection);
            run(person_events(&tables, (app, environment), &query))
        })
        .await
    }
}

fn limit_of(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

/// Reads one column of all rows.
fn values<T: rusqlite::types::FromSql>(
    statement: &mut Statement<'_>,
    key: impl Params,
) -> Result<Vec<T>, Failure> {
    let rows = statement.query_map(key, |row| row.get(0))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

impl SqliteTables<'_> {
    /// Collects the references from the events that match a condition on `?3`.
    fn references(
        &self,
        (app, environment): (AppId, Environment),
        (condition, value): (&str, &str),
        limit: usize,
    ) -> Result<EventReferences, Failure> {
        let select = |what: &str, condition_of_kind: &str| {
            let sql = format!(
                "select distinct {what} from events
                 where app_id = ?1 and environment = ?2 and {condition} and {condition_of_kind}
                 limit ?4"
            );
            self.0.prepare_cached(&sql)
        };
        let key = params![app.as_bytes(), environment.as_str(), value, limit_of(limit)];
        let users: Vec<String> = values(&mut *select("user_id", "user_id is not null")?, key)?;
        let clicks: Vec<[u8; 16]> = values(&mut *select("click_id", "click_id is not null")?, key)?;
        let billed = format!("source = '{}'", EventSource::Billing.as_str());
        let payments: Vec<String> = values(&mut *select("given_id", &billed)?, key)?;
        Ok(EventReferences {
            users: users.into_iter().map(UserKey::stored).collect(),
            clicks: clicks.into_iter().map(ClickId::from_bytes).collect(),
            payments: payments.into_iter().collect(),
        })
    }

    fn links(
        &self,
        (app, environment): (AppId, Environment),
        (column, value): (&str, &str),
    ) -> Result<Vec<UserLink>, Failure> {
        let sql = format!(
            "select {} from user_links
             where app_id = ?1 and environment = ?2 and {column} = ?3
             order by user_id, device_id",
            UserLinkRow::COLUMNS
        );
        let mut find = self.0.prepare_cached(&sql)?;
        let key = params![app.as_bytes(), environment.as_str(), value];
        let rows = find.query_map(key, read_row::<UserLinkRow>)?;
        rows.map(|row| Ok(row?.read(app)?)).collect()
    }
}

impl PersonTable for SqliteTables<'_> {
    async fn device_state(&self, device: DeviceRef<'_>) -> Result<DeviceState, Failure> {
        find_state(self.0, device.app, device.environment, device.key)
    }

    async fn references_of_device(
        &self,
        device: DeviceRef<'_>,
        limit: usize,
    ) -> Result<EventReferences, Failure> {
        let scope = (device.app, device.environment);
        self.references(scope, ("device_id = ?3", device.key.as_str()), limit)
    }

    async fn references_of_users(
        &self,
        scope: (AppId, Environment),
        users: &[UserKey],
        limit: usize,
    ) -> Result<EventReferences, Failure> {
        let condition = format!("user_id = ?3 and {OF_USER_WITHOUT_DEVICE}");
        let mut found = EventReferences::default();
        for user in users {
            let of_user = self.references(scope, (&condition, user.as_str()), limit)?;
            found = found.merged(of_user);
        }
        Ok(found)
    }

    async fn links_of_device(&self, device: DeviceRef<'_>) -> Result<Vec<UserLink>, Failure> {
        let scope = (device.app, device.environment);
        self.links(scope, ("device_id", device.key.as_str()))
    }

    async fn links_of_user(
        &self,
        scope: (AppId, Environment),
        user: &UserKey,
    ) -> Result<Vec<UserLink>, Failure> {
        self.links(scope, ("user_id", user.as_str()))
    }

    async fn person_device_details(
        &self,
        device: DeviceRef<'_>,
    ) -> Result<PersonDeviceDetails, Failure> {
        let key = params![
            device.app.as_bytes(),
            device.environment.as_str(),
            device.key.as_str()
        ];
        let stored: Option<(Option<Vec<u8>>, Option<i64>)> = self
            .0
            .prepare_cached(
                "select address_hash, active_at from devices
                 where app_id = ?1 and environment = ?2 and device_id = ?3",
            )?
            .query_row(key, |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        let (address_hash, active_at) = stored.unwrap_or_default();
        let hash = address_hash.map(<[u8; 32]>::try_from).transpose();
        let hash = hash.map_err(|_| StoreError::corrupt("devices", "address_hash", device.app))?;
        let has_erase_token = self
            .0
            .prepare_cached(
                "select 1 from erase_tokens
                 where app_id = ?1 and environment = ?2 and device_id = ?3",
            )?
            .exists(key)?;
        let ad_services_token = self
            .0
            .prepare_cached(
                "select received_at, attempts from ad_services_tokens
                 where app_id = ?1 and environment = ?2 and device_id = ?3",
            )?
            .query_row(key, |row| {
                Ok((Timestamp::from_millis(row.get(0)?), row.get(1)?))
            })
            .optional()?;
        Ok(PersonDeviceDetails {
            address_hash: hash.map(Digest::from_bytes),
            active_at: active_at.map(Timestamp::from_millis),
            has_erase_token,
            ad_services_token,
            cohort: None,
        })
    }

    async fn notification_bodies(
        &self,
        chain: &Chain,
    ) -> Result<BTreeMap<String, String>, Failure> {
        let mut find = self.0.prepare_cached(
            "select given_id, body from notifications
             where app_id = ?1 and environment = ?2 and provider = ?3 and chain = ?4
               and body is not null",
        )?;
        let rows = find.query_map(
            params![
                chain.app.as_bytes(),
                chain.environment.as_str(),
                chain.provider.as_str(),
                chain.name
            ],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    async fn events_of_person(
        &self,
        (app, environment): (AppId, Environment),
        owner: &EventOwner,
        after: Option<EventId>,
        limit: usize,
    ) -> Result<Vec<Event>, Failure> {
        let (condition, id) = match owner {
            EventOwner::Device(device) => ("device_id = ?3".to_owned(), device.as_str()),
            EventOwner::User(user) => (
                format!("user_id = ?3 and {OF_USER_WITHOUT_DEVICE}"),
                user.as_str(),
            ),
        };
        let sql = format!(
            "select {EVENT_COLUMNS} from events
             where app_id = ?1 and environment = ?2 and {condition} and event_id > ?4
             order by event_id limit ?5"
        );
        // No event has the lowest id.
        let after = after.map_or([0; 16], |after| *after.as_bytes());
        let key = params![
            app.as_bytes(),
            environment.as_str(),
            id,
            after,
            limit_of(limit)
        ];
        read_events(&mut *self.0.prepare_cached(&sql)?, key)
    }
}
