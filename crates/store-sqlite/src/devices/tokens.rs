//! AdServices tokens waiting to be redeemed with Apple. A lease is a due time in the future;
//! settling a token checks that the due time is unchanged.

use crate::Failure;
use crate::tables::SqliteTables;
use rusqlite::{Connection, params};
use tributary_domain::access::Environment;
use tributary_domain::device::{DeviceKey, DeviceRef};
use tributary_domain::install::ConfigureCommand;
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_recording::TokenTable;
use tributary_store::{LeasedToken, StoreError};

pub(super) fn has_due(connection: &Connection, now: Timestamp) -> Result<bool, Failure> {
    let due = connection
        .prepare_cached("select 1 from ad_services_tokens where due_at <= ?1 limit 1")?
        .exists([now.as_millis()])?;
    Ok(due)
}

pub(super) fn lease(
    connection: &Connection,
    now: Timestamp,
    until: Timestamp,
    limit: u32,
) -> Result<Vec<LeasedToken>, Failure> {
    let mut statement = connection.prepare_cached(
        "update ad_services_tokens set due_at = ?2, attempts = attempts + 1
         where (app_id, environment, device_id) in (
             select app_id, environment, device_id from ad_services_tokens
             where due_at <= ?1 order by due_at limit ?3)
         returning app_id, environment, device_id, token, received_at, attempts",
    )?;
    let rows = statement.query_map(params![now.as_millis(), until.as_millis(), limit], |row| {
        let environment: String = row.get(1)?;
        let leased = LeasedToken {
            app: AppId::from_bytes(row.get(0)?),
            environment: Environment::Live,
            device: DeviceKey::stored(row.get(2)?),
            token: row.get(3)?,
            received_at: Timestamp::from_millis(row.get(4)?),
            attempts: row.get::<_, u32>(5)?.saturating_sub(1),
            leased_until: until,
        };
        Ok((leased, environment))
    })?;
    rows.map(|row| {
        let (leased, environment) = row?;
        let environment = Environment::parse(&environment);
        let corrupt = || StoreError::corrupt("ad_services_tokens", "environment", leased.app);
        let environment = environment.ok_or_else(corrupt)?;
        Ok(LeasedToken {
            environment,
            ..leased
        })
    })
    .collect()
}

impl TokenTable for SqliteTables<'_> {
    async fn enqueue_token(&self, command: &ConfigureCommand) -> Result<(), Failure> {
        self.0
            .prepare_cached(
                "insert into ad_services_tokens (app_id, environment, device_id, token, received_at,
                                                 attempts, due_at)
                 values (?1, ?2, ?3, ?4, ?5, 0, ?5) on conflict do nothing",
            )?
            .execute(params![
                command.app.as_bytes(),
                command.environment.as_str(),
                command.device.as_str(),
                command.ad_services_token,
                command.at.as_millis()
            ])?;
        Ok(())
    }

    async fn holds_token(&self, lease: &LeasedToken) -> Result<bool, Failure> {
        let sql = format!("select 1 from ad_services_tokens where {LEASE_CONDITION}");
        Ok(self.0.prepare_cached(&sql)?.exists(lease_key(lease))?)
    }

    async fn remove_token(&self, lease: &LeasedToken) -> Result<bool, Failure> {
        let sql = format!("delete from ad_services_tokens where {LEASE_CONDITION}");
        Ok(self.0.prepare_cached(&sql)?.execute(lease_key(lease))? == 1)
    }

    async fn retry_token(&self, lease: &LeasedToken, due_at: Timestamp) -> Result<bool, Failure> {
        let sql = format!("update ad_services_tokens set due_at = ?5 where {LEASE_CONDITION}");
        let (app, environment, device, leased_until) = lease_key(lease);
        let values = (app, environment, device, leased_until, due_at.as_millis());
        Ok(self.0.prepare_cached(&sql)?.execute(values)? == 1)
    }

    async fn remove_device_token(&self, device: DeviceRef<'_>) -> Result<(), Failure> {
        let (app, environment) = (device.app.as_bytes(), device.environment.as_str());
        self.0
            .prepare_cached(
                "delete from ad_services_tokens
                 where app_id = ?1 and environment = ?2 and device_id = ?3",
            )?
            .execute(params![app, environment, device.key.as_str()])?;
        Ok(())
    }
}

/// SQL condition that a lease is still held. [`lease_key`] supplies its values.
const LEASE_CONDITION: &str = "app_id = ?1 and environment = ?2 and device_id = ?3 and due_at = ?4";

fn lease_key(lease: &LeasedToken) -> (&[u8; 16], &'static str, &str, i64) {
    (
        lease.app.as_bytes(),
        lease.environment.as_str(),
        lease.device.as_str(),
        lease.leased_until.as_millis(),
    )
}
