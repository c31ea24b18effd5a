//! AdServices tokens waiting to be redeemed with Apple. A lease is a due time in the future;
//! settling a token checks that the due time is unchanged.

use super::DeviceColumns;
use crate::Failure;
use crate::due_work::{Look, earliest, look_at_apps};
use crate::params::{Param, column};
use crate::pool::Pool;
use crate::rows::{id, uuid};
use crate::tx::{self, TransactionMode, Tx};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio_postgres::Row;
use tributary_domain::access::Environment;
use tributary_domain::device::{DeviceKey, DeviceRef};
use tributary_domain::due_work::WorkKind;
use tributary_domain::install::ConfigureCommand;
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_recording::TokenTable;
use tributary_store::{LeasedToken, StoreError, StoreResult};
use uuid::Uuid;

/// A due token with its due time.
struct Due {
    token: LeasedToken,
    due_at: i64,
}

impl Due {
    fn read(row: &Row, until: Timestamp) -> Result<Self, Failure> {
        let app = AppId::from_bytes(id(row, "app_id")?);
        let corrupt = |column| StoreError::corrupt("ad_services_tokens", column, app);
        let attempts: i64 = row.try_get("attempts")?;
        let token = LeasedToken {
            app,
            environment: Environment::parse(row.try_get("environment")?)
                .ok_or_else(|| corrupt("environment"))?,
            device: DeviceKey::stored(row.try_get("device_id")?),
            token: row.try_get("token")?,
            received_at: Timestamp::from_millis(row.try_get("received_at")?),
            attempts: u32::try_from(attempts).map_err(|_| corrupt("attempts"))?,
            leased_until: until,
        };
        Ok(Self {
            token,
            due_at: row.try_get("due_at")?,
        })
    }

    fn app(&self) -> Uuid {
        uuid(self.token.app.as_bytes())
    }
}

/// Leases due tokens of all apps.
pub(super) async fn lease_all(
    tx: &Tx,
    now: Timestamp,
    until: Timestamp,
    limit: u32,
) -> Result<Vec<LeasedToken>, Failure> {
    let sql = "select app_id, environment, device_id, token, received_at, attempts, due_at
               from ad_services_tokens where due_at <= $1 order by due_at limit $2";
    let rows = tx
        .query(sql, &[&now.as_millis(), &i64::from(limit)])
        .await?;
    lease(tx, &rows, until).await
}

/// Leases due tokens of the apps with hints, one app per transaction.
pub(super) async fn lease_hinted(
    pool: &Arc<Pool>,
    now: Timestamp,
    until: Timestamp,
    limit: u32,
) -> StoreResult<Vec<LeasedToken>> {
    let shared = pool.clone();
    let look = async move |app, limit| {
        let lease = async move |tx: &Tx| lease_of(tx, app, (now, until), limit).await;
        let name = "lease_ad_services_tokens";
        tx::run(&shared, name, TransactionMode::Write, lease).await
    };
    look_at_apps(pool, WorkKind::Tokens, now, limit, look).await
}

/// Leases due tokens of an app.
async fn lease_of(
    tx: &Tx,
    app: AppId,
    (now, until): (Timestamp, Timestamp),
    limit: u32,
) -> Result<Look<LeasedToken>, Failure> {
    let sql = "select app_id, environment, device_id, token, received_at, attempts, due_at
               from ad_services_tokens where app_id = $1 and due_at <= $2 order by due_at limit $3";
    let key = uuid(app.as_bytes());
    let rows = tx
        .query(sql, &[&key, &now.as_millis(), &i64::from(limit)])
        .await?;
    let leased = lease(tx, &rows, until).await?;
    let sql = "select min(due_at) from ad_services_tokens where app_id = $1";
    Ok(Look::new(leased, earliest(tx, sql, app).await?))
}

/// Leases due tokens, which were found without locking. The update claims each row only if its due
/// time is unchanged. So only one of two workers gets a token.
async fn lease(tx: &Tx, rows: &[Row], until: Timestamp) -> Result<Vec<LeasedToken>, Failure> {
    let due: Vec<Due> = rows
        .iter()
        .map(|row| Due::read(row, until))
        .collect::<Result<_, _>>()?;
    if due.is_empty() {
        return Ok(Vec::new());
    }
    let numbers: Vec<i64> = (0..).take(due.len()).collect();
    let leased = tx
        .query(
            "update ad_services_tokens as stored
             set due_at = $6, attempts = stored.attempts + 1
             from unnest($1, $2, $3, $4, $5) as due (app_id, environment, device_id, due_at, number)
             where stored.app_id = due.app_id and stored.environment = due.environment
               and stored.device_id = due.device_id and stored.due_at = due.due_at
               /* distributed: and stored.app_id = any($1) */
             returning due.number",
            &[
                &column(&due, Due::app),
                &column(&due, |due| due.token.environment.as_str()),
                &column(&due, |due| due.token.device.as_str()),
                &column(&due, |due| due.due_at),
                &numbers,
                &until.as_millis(),
            ],
        )
        .await?;
    let mut due: BTreeMap<i64, LeasedToken> = numbers
        .into_iter()
        .zip(due.into_iter().map(|due| due.token))
        .collect();
    let mut tokens = BTreeMap::new();
    for row in &leased {
        let number: i64 = row.try_get(0)?;
        tokens.extend(due.remove_entry(&number));
    }
    // In order of their due times.
    Ok(tokens.into_values().collect())
}

/// Stores the calls' tokens, unless their devices have one already.
pub(crate) async fn enqueue(tx: &Tx, commands: &[&ConfigureCommand]) -> Result<(), Failure> {
    if commands.is_empty() {
        return Ok(());
    }
    let received_at = column(commands, |command| command.at.as_millis());
    tx.execute(
        "insert into ad_services_tokens (app_id, environment, device_id, token, received_at,
                                         attempts, due_at)
         select app_id, environment, device_id, token, received_at, 0, received_at
         from unnest($1, $2, $3, $4, $5)
              as new (app_id, environment, device_id, token, received_at)
         on conflict (app_id, environment, device_id) do nothing",
        &[
            &column(commands, |command| uuid(command.app.as_bytes())),
            &column(commands, |command| command.environment.as_str()),
            &column(commands, |command| command.device.as_str()),
            &column(commands, |command| command.ad_services_token.as_deref()),
            &received_at,
        ],
    )
    .await?;
    for command in commands {
        tx.hint(WorkKind::Tokens, command.app, command.at);
    }
    Ok(())
}

impl TokenTable for Tx {
    async fn enqueue_token(&self, command: &ConfigureCommand) -> Result<(), Failure> {
        enqueue(self, &[command]).await
    }

    async fn holds_token(&self, lease: &LeasedToken) -> Result<bool, Failure> {
        let sql = format!("select 1 from ad_services_tokens where {LEASE_CONDITION}");
        let (app, environment, device, leased_until) = lease_key(lease);
        let params: [&dyn Param; 4] = [&app, &environment, &device, &leased_until];
        Ok(self.query_opt(&sql, &params).await?.is_some())
    }

    async fn remove_token(&self, lease: &LeasedToken) -> Result<bool, Failure> {
        let sql = format!("delete from ad_services_tokens where {LEASE_CONDITION}");
        let (app, environment, device, leased_until) = lease_key(lease);
        let params: [&dyn Param; 4] = [&app, &environment, &device, &leased_until];
        Ok(self.execute_counting(&sql, &params).await? == 1)
    }

    async fn retry_token(&self, lease: &LeasedToken, due_at: Timestamp) -> Result<bool, Failure> {
        let sql = format!("update ad_services_tokens set due_at = $5 where {LEASE_CONDITION}");
        let (app, environment, device, leased_until) = lease_key(lease);
        let due_millis = due_at.as_millis();
        let params: [&dyn Param; 5] = [&app, &environment, &device, &leased_until, &due_millis];
        let is_held = self.execute_counting(&sql, &params).await? == 1;
        if is_held {
            self.hint(WorkKind::Tokens, lease.app, due_at);
        }
        Ok(is_held)
    }

    async fn remove_device_token(&self, device: DeviceRef<'_>) -> Result<(), Failure> {
        let (app, environment, key) = device.columns();
        self.execute(
            "delete from ad_services_tokens
             where app_id = $1 and environment = $2 and device_id = $3",
            &[&app, &environment, &key],
        )
        .await?;
        Ok(())
    }
}

/// SQL condition that a lease is still held. [`lease_key`] supplies its values.
const LEASE_CONDITION: &str = "app_id = $1 and environment = $2 and device_id = $3 and due_at = $4";

fn lease_key(lease: &LeasedToken) -> (Uuid, &'static str, &str, i64) {
    (
        uuid(lease.app.as_bytes()),
        lease.environment.as_str(),
        lease.device.as_str(),
        lease.leased_until.as_millis(),
    )
}
