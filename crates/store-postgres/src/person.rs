//! Everything that is stored about one person.

use crate::devices::{DeviceColumns, find_state};
use crate::event_rows;
use crate::params::column;
use crate::rows::{AppLockMode, id, read_row, require_app, uuid};
use crate::tx::Tx;
use crate::{Failure, PostgresStore};
use async_trait::async_trait;
use std::collections::BTreeMap;
use tokio_postgres::Row;
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

/// Every read runs on the primary: a standby may lag behind an erasure.
#[async_trait]
impl PersonalData for PostgresStore {
    async fn person_records(
        &self,
        caller: &Authorized<PeopleExport>,
        app: AppId,
        subject: DataSubject,
    ) -> StoreResult<PersonRecords> {
        let (organization, environment) = (caller.organization_of(app)?, caller.environment());
        self.read("person_records", async move |tx| {
            require_app(tx, organization, app, AppLockMode::Reading).await?;
            // Boxed because the futures of many statements are large.
            Box::pin(person_records(tx, (app, environment), &subject)).await
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
        self.write("note_person_export", async move |tx| {
            note_person_export(tx, (organization, app), &subject, &records, &origin).await
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
        self.read("person_chains", async move |tx| {
            require_app(tx, organization, app, AppLockMode::Reading).await?;
            person_chains(tx, (app, environment), &records).await
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
        self.read("person_subscription", async move |tx| {
            require_app(tx, organization, chain.app, AppLockMode::Reading).await?;
            person_subscription(tx, (&subject, &ids), chain.clone()).await
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
        self.read("person_events", async move |tx| {
            require_app(tx, organization, app, AppLockMode::Reading).await?;
            person_events(tx, (app, environment), &query).await
        })
        .await
    }
}

fn limit_of(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

/// Collects the references from the events that match a condition on `$3`.
async fn references(
    tx: &Tx,
    (app, environment): (AppId, Environment),
    (condition, values): (&str, Vec<&str>),
    limit: usize,
) -> Result<EventReferences, Failure> {
    let billed = format!("source = '{}'", EventSource::Billing.as_str());
    let kinds = [
        ("user_id", "user_id is not null"),
        ("click_id", "click_id is not null"),
        ("given_id", billed.as_str()),
    ];
    let (app, environment, limit) = (uuid(app.as_bytes()), environment.as_str(), limit_of(limit));
    let mut found = EventReferences::default();
    for (what, condition_of_kind) in kinds {
        let sql = format!(
            "select distinct {what} from events
             where app_id = $1 and environment = $2 and {condition} and {condition_of_kind}
             limit $4"
        );
        let rows = tx
            .query(&sql, &[&app, &environment, &values, &limit])
            .await?;
        for row in rows {
            match what {
                "user_id" => {
                    found.users.insert(UserKey::stored(row.try_get(0)?));
                }
                "click_id" => {
                    found.clicks.insert(ClickId::from_bytes(id(&row, 0)?));
                }
                _ => {
                    found.payments.insert(row.try_get(0)?);
                }
            }
        }
    }
    Ok(found)
}

fn read_links(rows: &[Row], app: AppId) -> Result<Vec<UserLink>, Failure> {
    let link = |row| Ok(read_row::<UserLinkRow>(row)?.read(app)?);
    rows.iter().map(link).collect()
}

impl PersonTable for Tx {
    async fn device_state(&self, device: DeviceRef<'_>) -> Result<DeviceState, Failure> {
        find_state(self, device).await
    }

    async fn references_of_device(
        &self,
        device: DeviceRef<'_>,
        limit: usize,
    ) -> Result<EventReferences, Failure> {
        let scope = (device.app, device.environment);
        let of = ("device_id = any($3)", vec![device.device()]);
        references(self, scope, of, limit).await
    }

    async fn references_of_users(
        &self,
        scope: (AppId, Environment),
        users: &[UserKey],
        limit: usize,
    ) -> Result<EventReferences, Failure> {
        let condition = format!("user_id = any($3) and {OF_USER_WITHOUT_DEVICE}");
        let of = (condition.as_str(), column(users, UserKey::as_str));
        references(self, scope, of, limit).await
    }

    async fn links_of_device(&self, device: DeviceRef<'_>) -> Result<Vec<UserLink>, Failure> {
        let sql = format!(
            "select {} from user_links
             where app_id = $1 and environment = $2 and device_id = $3
             order by user_id, device_id",
            UserLinkRow::COLUMNS
        );
        let (app, environment, key) = device.columns();
        let rows = self.query(&sql, &[&app, &environment, &key]).await?;
        read_links(&rows, device.app)
    }

    async fn links_of_user(
        &self,
        (app, environment): (AppId, Environment),
        user: &UserKey,
    ) -> Result<Vec<UserLink>, Failure> {
        let sql = format!(
            "select {} from user_links
             where app_id = $1 and environment = $2 and user_id = $3
             order by user_id, device_id",
            UserLinkRow::COLUMNS
        );
        let key = (uuid(app.as_bytes()), environment.as_str(), user.as_str());
        let rows = self.query(&sql, &[&key.0, &key.1, &key.2]).await?;
        read_links(&rows, app)
    }

    async fn person_device_details(
        &self,
        device: DeviceRef<'_>,
    ) -> Result<PersonDeviceDetails, Failure> {
        let (app, environment, key) = device.columns();
        let stored = self
            .query_opt(
                "select address_hash, active_at from devices
                 where app_id = $1 and environment = $2 and device_id = $3",
                &[&app, &environment, &key],
            )
            .await?;
        let (address_hash, active_at): (Option<Vec<u8>>, Option<i64>) = match stored {
            Some(row) => (row.try_get(0)?, row.try_get(1)?),
            None => (None, None),
        };
        let hash = address_hash.map(<[u8; 32]>::try_from).transpose();
        let hash = hash.map_err(|_| StoreError::corrupt("devices", "address_hash", device.app))?;
        let proof = self
            .query_opt(
                "select 1 from erase_tokens
                 where app_id = $1 and environment = $2 and device_id = $3",
                &[&app, &environment, &key],
            )
            .await?;
        let token = self
            .query_opt(
                "select received_at, attempts from ad_services_tokens
                 where app_id = $1 and environment = $2 and device_id = $3",
                &[&app, &environment, &key],
            )
            .await?;
        let token = token.map(|row| {
            let attempts: i64 = row.try_get(1)?;
            let received_at = Timestamp::from_millis(row.try_get(0)?);
            Ok::<_, Failure>((received_at, u32::try_from(attempts).unwrap_or_default()))
        });
        Ok(PersonDeviceDetails {
            address_hash: hash.map(Digest::from_bytes),
            active_at: active_at.map(Timestamp::from_millis),
            has_erase_token: proof.is_some(),
            ad_services_token: token.transpose()?,
            cohort: None,
        })
    }

    async fn notification_bodies(
        &self,
        chain: &Chain,
    ) -> Result<BTreeMap<String, String>, Failure> {
        let rows = self
            .query(
                "select given_id, body from notifications
                 where app_id = $1 and environment = $2 and provider = $3 and chain = $4
                   and body is not null",
                &[
                    &uuid(chain.app.as_bytes()),
                    &chain.environment.as_str(),
                    &chain.provider.as_str(),
                    &chain.name,
                ],
            )
            .await?;
        rows.iter()
            .map(|row| Ok((row.try_get(0)?, row.try_get(1)?)))
            .collect()
    }

    async fn events_of_person(
        &self,
        (app, environment): (AppId, Environment),
        owner: &EventOwner,
        after: Option<EventId>,
        limit: usize,
    ) -> Result<Vec<Event>, Failure> {
        let (condition, key) = match owner {
            EventOwner::Device(device) => ("device_id = $3".to_owned(), device.as_str()),
            EventOwner::User(user) => (
                format!("user_id = $3 and {OF_USER_WITHOUT_DEVICE}"),
                user.as_str(),
            ),
        };
        let conditions = format!(
            "app_id = $1 and environment = $2 and {condition} and event_id > $4
             order by event_id limit $5"
        );
        // No event has the lowest id.
        let after = after.map_or([0; 16], |after| *after.as_bytes());
        let (app, environment) = (uuid(app.as_bytes()), environment.as_str());
        let (after, limit) = (uuid(&after), limit_of(limit));
        let values: [&dyn crate::params::Param; 5] = [&app, &environment, &key, &after, &limit];
        event_rows::find(self, &conditions, &values).await
    }
}
