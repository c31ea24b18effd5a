//! Alerts for operators, sent by webhook.

use crate::rows::app_by_id;
use crate::{Failure, SqliteStore};
use async_trait::async_trait;
use rusqlite::{Connection, params};
use tributary_domain::forwarding::alert::{Alert, AlertKind};
use tributary_domain::integration::Network;
use tributary_domain::vocabulary::id::{AlertId, AppId};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::records::alert_id;
use tributary_store::{Alerts, DueAlert, StoreError, StoreResult};

/// Stores an alert that is due at once.
pub(crate) fn insert(connection: &Connection, alert: &Alert) -> Result<(), Failure> {
    connection
        .prepare_cached(
            "insert into alerts (app_id, alert_id, kind, network, at, message, attempts, due_at)
             values (?1, ?2, ?3, ?4, ?5, ?6, 0, ?5) on conflict do nothing",
        )?
        .execute(params![
            alert.app.as_bytes(),
            alert.id.as_bytes(),
            alert.kind.as_str(),
            alert.network.map(Network::as_str),
            alert.at.as_millis(),
            alert.message
        ])?;
    Ok(())
}

type AlertColumns = ([u8; 16], [u8; 16], String, Option<String>, i64, String, u32);

fn read(
    connection: &Connection,
    (app, id, kind, network, at, message, attempts): AlertColumns,
) -> Result<DueAlert, Failure> {
    let app = AppId::from_bytes(app);
    let id = AlertId::from_bytes(id);
    let corrupt = |column| StoreError::corrupt("alerts", column, id);
    let network = network.map(|text| Network::parse(&text).ok_or_else(|| corrupt("network")));
    Ok(DueAlert {
        alert: Alert {
            id,
            app,
            kind: AlertKind::parse(&kind).ok_or_else(|| corrupt("kind"))?,
            network: network.transpose()?,
            at: Timestamp::from_millis(at),
            message,
        },
        url: app_by_id(connection, app)?.and_then(|app| app.alert_webhook_url),
        attempts,
    })
}

fn lease(
    connection: &Connection,
    now: Timestamp,
    until: Timestamp,
    limit: u32,
) -> Result<Vec<DueAlert>, Failure> {
    let rows: Vec<AlertColumns> = connection
        .prepare_cached(
            "update alerts set attempts = attempts + 1, due_at = ?2
             where (app_id, alert_id) in (select app_id, alert_id from alerts
                                          where due_at <= ?1 order by due_at limit ?3)
             returning app_id, alert_id, kind, network, at, message, attempts",
        )?
        .query_map((now.as_millis(), until.as_millis(), limit), |row| {
            Ok((
                row.get(0)?,
                row.get(1)?,
                row.get(2)?,
                row.get(3)?,
                row.get(4)?,
                row.get(5)?,
                row.get(6)?,
            ))
        })?
        .collect::<Result<_, _>>()?;
    rows.into_iter().map(|row| read(connection, row)).collect()
}

fn raise_everywhere(
    connection: &Connection,
    kind: AlertKind,
    message: &str,
    unless_since: Timestamp,
    at: Timestamp,
    random: [u8; 8],
) -> Result<u64, Failure> {
    let apps: Vec<[u8; 16]> = connection
        .prepare_cached(
            "select app_id from apps where not exists (
                 select 1 from alerts
                 where alerts.app_id = apps.app_id and alerts.kind = ?1 and alerts.at >= ?2)",
        )?
        .query_map((kind.as_str(), unless_since.as_millis()), |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    let mut raised = 0;
    for app in apps {
        let app = AppId::from_bytes(app);
        let webhook = app_by_id(connection, app)?.and_then(|app| app.alert_webhook_url);
        if webhook.is_some() {
            let alert = Alert {
                id: alert_id(at, random, raised),
                app,
                kind,
                network: None,
                at,
                message: message.to_owned(),
            };
            insert(connection, &alert)?;
            raised += 1;
        }
    }
    Ok(raised)
}

#[async_trait]
impl Alerts for SqliteStore {
    async fn raise_alert_everywhere(
        &self,
        kind: AlertKind,
        message: String,
        unless_since: Timestamp,
        at: Timestamp,
        random: [u8; 8],
    ) -> StoreResult<u64> {
        self.write("raise_alert_everywhere", move |connection| {
            raise_everywhere(connection, kind, &message, unless_since, at, random)
        })
        .await
    }

    async fn lease_alerts(
        &self,
        now: Timestamp,
        until: Timestamp,
        limit: u32,
    ) -> StoreResult<Vec<DueAlert>> {
        // Read first, without writing: usually nothing is due, and a read needs no sync.
        let due = self
            .read("due_alerts", move |connection| {
                let sql = "select 1 from alerts where due_at <= ?1";
                Ok(connection.prepare_cached(sql)?.exists([now.as_millis()])?)
            })
            .await?;
        if !due {
            return Ok(Vec::new());
        }
        self.write("lease_alerts", move |connection| {
            lease(connection, now, until, limit)
        })
        .await
    }

    async fn settle_alert(
        &self,
        app: AppId,
        alert: AlertId,
        retry_at: Option<Timestamp>,
    ) -> StoreResult<()> {
        self.write("settle_alert", move |connection| {
            let sql = "update alerts set due_at = ?3 where app_id = ?1 and alert_id = ?2";
            connection.prepare_cached(sql)?.execute(params![
                app.as_bytes(),
                alert.as_bytes(),
                retry_at.map(Timestamp::as_millis)
            ])?;
            Ok(())
        })
        .await
    }
}
