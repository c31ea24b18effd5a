//! Alerts for operators, sent by webhook.

use crate::due_work::{Look, earliest, look_at_apps};
use crate::params::column;
use crate::pool::Pool;
use crate::rows::{APP_COLUMNS, id, read_apps, uuid};
use crate::tx::{self, TransactionMode, Tx};
use crate::{Failure, PostgresStore};
use async_trait::async_trait;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio_postgres::Row;
use tributary_domain::due_work::WorkKind;
use tributary_domain::forwarding::alert::{Alert, AlertKind};
use tributary_domain::integration::Network;
use tributary_domain::vocabulary::id::{AlertId, AppId};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_domain::vocabulary::web_url::HttpsUrl;
use tributary_store::records::alert_id;
use tributary_store::{Alerts, DueAlert, StoreError, StoreResult};
use uuid::Uuid;

/// Stores an alert that is due at once. Inserting the same alert again does nothing.
pub(crate) async fn insert(tx: &Tx, alert: &Alert) -> Result<(), Failure> {
    tx.execute(
        "insert into alerts (app_id, alert_id, kind, network, at, message, attempts, due_at)
         values ($1, $2, $3, $4, $5, $6, 0, $5)
         on conflict (app_id, alert_id) do nothing",
        &[
            &uuid(alert.app.as_bytes()),
            &uuid(alert.id.as_bytes()),
            &alert.kind.as_str(),
            &alert.network.map(Network::as_str),
            &alert.at.as_millis(),
            &alert.message,
        ],
    )
    .await?;
    tx.hint(WorkKind::Alerts, alert.app, alert.at);
    Ok(())
}

/// Returns the alert webhooks of the apps that have one.
async fn find_webhooks(
    tx: &Tx,
    condition: &str,
    params: &[&dyn crate::params::Param],
) -> Result<BTreeMap<AppId, HttpsUrl>, Failure> {
    let sql = format!("select {APP_COLUMNS} from apps where {condition}");
    let apps = read_apps(tx, &tx.query(&sql, params).await?).await?;
    let listens = apps
        .into_iter()
        .filter_map(|app| Some((app.id, app.alert_webhook_url?)));
    Ok(listens.collect())
}

/// A due alert with its due time.
struct Due {
    alert: Alert,
    attempts: i64,
    due_at: i64,
}

impl Due {
    fn read(row: &Row) -> Result<Self, Failure> {
        let id_read = AlertId::from_bytes(id(row, 1)?);
        let corrupt = |column| StoreError::corrupt("alerts", column, id_read);
        let network: Option<&str> = row.try_get(3)?;
        let network = network.map(|text| Network::parse(text).ok_or_else(|| corrupt("network")));
        let alert = Alert {
            id: id_read,
            app: AppId::from_bytes(id(row, 0)?),
            kind: AlertKind::parse(row.try_get(2)?).ok_or_else(|| corrupt("kind"))?,
            network: network.transpose()?,
            at: Timestamp::from_millis(row.try_get(4)?),
            message: row.try_get(5)?,
        };
        Ok(Self {
            alert,
            attempts: row.try_get(6)?,
            due_at: row.try_get(7)?,
        })
    }
}

/// Finds due alerts of all apps.
async fn find_due(tx: &Tx, now: Timestamp, limit: u32) -> Result<Vec<Due>, Failure> {
    let sql = "select app_id, alert_id, kind, network, at, message, attempts, due_at from alerts
               where due_at <= $1 order by due_at, app_id, alert_id limit $2";
    let rows = tx
        .query(sql, &[&now.as_millis(), &i64::from(limit)])
        .await?;
    rows.iter().map(Due::read).collect()
}

/// Finds due alerts of an app.
async fn find_due_of(tx: &Tx, app: AppId, now: Timestamp, limit: u32) -> Result<Vec<Due>, Failure> {
    let sql = "select app_id, alert_id, kind, network, at, message, attempts, due_at from alerts
               where app_id = $1 and due_at <= $2 order by due_at, alert_id limit $3";
    let app = uuid(app.as_bytes());
    let rows = tx
        .query(sql, &[&app, &now.as_millis(), &i64::from(limit)])
        .await?;
    rows.iter().map(Due::read).collect()
}

/// Leases due alerts, which were found without locking. The update claims each row only if its due
/// time is unchanged. So only one of two workers gets an alert.
async fn lease(tx: &Tx, mut due: Vec<Due>, until: Timestamp) -> Result<Vec<DueAlert>, Failure> {
    if due.is_empty() {
        return Ok(Vec::new());
    }
    let leased = tx
        .query(
            "update alerts as stored set due_at = $4, attempts = stored.attempts + 1
             from unnest($1, $2, $3) as due (app_id, alert_id, due_at)
             where stored.app_id = due.app_id and stored.alert_id = due.alert_id
               and stored.due_at = due.due_at
               /* distributed: and stored.app_id = any($1) */
             returning stored.alert_id",
            &[
                &column(&due, |due| uuid(due.alert.app.as_bytes())),
                &column(&due, |due| uuid(due.alert.id.as_bytes())),
                &column(&due, |due| due.due_at),
                &until.as_millis(),
            ],
        )
        .await?;
    let leased = leased
        .iter()
        .map(|row| Ok(AlertId::from_bytes(id(row, 0)?)))
        .collect::<Result<Vec<_>, Failure>>()?;
    due.retain(|due| leased.contains(&due.alert.id));
    let apps: Vec<Uuid> = column(&due, |due| uuid(due.alert.app.as_bytes()));
    let listeners = find_webhooks(tx, "app_id = any($1)", &[&apps]).await?;
    let with_webhook = |due: Due| DueAlert {
        url: listeners.get(&due.alert.app).cloned(),
        attempts: u32::try_from(due.attempts + 1).unwrap_or(u32::MAX),
        alert: due.alert,
    };
    Ok(due.into_iter().map(with_webhook).collect())
}

/// Leases due alerts of the apps with hints, one app per transaction.
async fn lease_hinted(
    pool: &Arc<Pool>,
    now: Timestamp,
    until: Timestamp,
    limit: u32,
) -> StoreResult<Vec<DueAlert>> {
    let shared = pool.clone();
    let look = async move |app, limit| {
        let lease = async move |tx: &Tx| {
            let due = find_due_of(tx, app, now, limit).await?;
            let leased = lease(tx, due, until).await?;
            let sql = "select min(due_at) from alerts where app_id = $1";
            Ok(Look::new(leased, earliest(tx, sql, app).await?))
        };
        tx::run(&shared, "lease_alerts", TransactionMode::Write, lease).await
    };
    look_at_apps(pool, WorkKind::Alerts, now, limit, look).await
}

/// Stores an alert for every app with a webhook. Locks the app before checking for an earlier
/// alert, so nodes that notice the same problem raise only one alert.
async fn raise_everywhere(
    tx: &Tx,
    (kind, message): (AlertKind, &str),
    unless_since: Timestamp,
    at: Timestamp,
    random: [u8; 8],
) -> Result<u64, Failure> {
    let already_raised = "exists (select 1 from alerts where alerts.app_id = apps.app_id
                                               and alerts.kind = $1 and alerts.at >= $2)";
    let (name, since) = (kind.as_str(), unless_since.as_millis());
    let apps = find_webhooks(tx, &format!("not {already_raised}"), &[&name, &since]).await?;
    let mut raised = 0;
    for app in apps.into_keys() {
        let key = uuid(app.as_bytes());
        let lock = "select 1 from apps where app_id = $1 for no key update";
        tx.query_opt(lock, &[&key]).await?;
        let again = format!("select 1 from apps where app_id = $3 and {already_raised}");
        if tx
            .query_opt(&again, &[&name, &since, &key])
            .await?
            .is_some()
        {
            continue;
        }
        let alert = Alert {
            id: alert_id(at, random, raised),
            app,
            kind,
            network: None,
            at,
            message: message.to_owned(),
        };
        insert(tx, &alert).await?;
        raised += 1;
    }
    Ok(raised)
}

#[async_trait]
impl Alerts for PostgresStore {
    async fn raise_alert_everywhere(
        &self,
        kind: AlertKind,
        message: String,
        unless_since: Timestamp,
        at: Timestamp,
        random: [u8; 8],
    ) -> StoreResult<u64> {
        self.write("raise_alert_everywhere", async move |tx| {
            raise_everywhere(tx, (kind, &message), unless_since, at, random).await
        })
        .await
    }

    async fn lease_alerts(
        &self,
        now: Timestamp,
        until: Timestamp,
        limit: u32,
    ) -> StoreResult<Vec<DueAlert>> {
        if self.pool.is_distributed() {
            return lease_hinted(&self.pool, now, until, limit).await;
        }
        self.write("lease_alerts", async move |tx| {
            let due = find_due(tx, now, limit).await?;
            lease(tx, due, until).await
        })
        .await
    }

    async fn settle_alert(
        &self,
        app: AppId,
        alert: AlertId,
        retry_at: Option<Timestamp>,
    ) -> StoreResult<()> {
        self.write("settle_alert", async move |tx| {
            let sql = "update alerts set due_at = $3 where app_id = $1 and alert_id = $2";
            let (key, alert) = (uuid(app.as_bytes()), uuid(alert.as_bytes()));
            let due_at = retry_at.map(Timestamp::as_millis);
            tx.execute(sql, &[&key, &alert, &due_at]).await?;
            if let Some(retry_at) = retry_at {
                tx.hint(WorkKind::Alerts, app, retry_at);
            }
            Ok(())
        })
        .await
    }
}
