//! Status checks: requests whose result a network reports later.

use crate::params::{Param, column};
use crate::tx::Tx;
use crate::{Failure, queues};
use tokio_postgres::Row;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_recording::StatusCheckTable;
use tributary_store::records::StatusCheckRow;
use tributary_store::{QueueRef, StatusCheck};

impl StatusCheckTable for Tx {
    async fn insert_checks(&self, queue: QueueRef, checks: &[StatusCheck]) -> Result<(), Failure> {
        if checks.is_empty() {
            return Ok(());
        }
        let (app, network) = queues::key_columns(queue);
        let rows = column(checks, StatusCheckRow::write);
        let sql = format!(
            "insert into status_checks (app_id, network, {})
             select $1, $2, new.* from unnest($3, $4, $5, $6, $7) as new
             on conflict (app_id, network, request_id) do nothing",
            StatusCheckRow::COLUMNS
        );
        self.execute(
            &sql,
            &[
                &app,
                &network,
                &column(&rows, |row| row.request_id.as_str()),
                &column(&rows, |row| row.sent_at),
                &column(&rows, |row| row.step),
                &column(&rows, |row| row.due_at),
                &column(&rows, |row| row.deliveries.as_str()),
            ],
        )
        .await?;
        Ok(())
    }

    async fn status_check(
        &self,
        queue: QueueRef,
        request: &str,
    ) -> Result<Option<StatusCheck>, Failure> {
        Ok(find(self, queue, "request_id = $3", &request, 1)
            .await?
            .pop())
    }

    async fn postpone_check(
        &self,
        queue: QueueRef,
        request: &str,
        step: u32,
        due_at: Timestamp,
    ) -> Result<(), Failure> {
        let (app, network) = queues::key_columns(queue);
        self.execute(
            "update status_checks set step = $4, due_at = $5
             where app_id = $1 and network = $2 and request_id = $3",
            &[
                &app,
                &network,
                &request,
                &i64::from(step),
                &due_at.as_millis(),
            ],
        )
        .await?;
        Ok(())
    }

    async fn remove_check(&self, queue: QueueRef, request: &str) -> Result<(), Failure> {
        let (app, network) = queues::key_columns(queue);
        self.execute(
            "delete from status_checks where app_id = $1 and network = $2 and request_id = $3",
            &[&app, &network, &request],
        )
        .await?;
        Ok(())
    }
}

async fn find(
    tx: &Tx,
    queue: QueueRef,
    condition: &str,
    value: &dyn Param,
    limit: u32,
) -> Result<Vec<StatusCheck>, Failure> {
    let (app, network) = queues::key_columns(queue);
    let sql = format!(
        "select {} from status_checks
         where app_id = $1 and network = $2 and {condition} order by due_at limit $4",
        StatusCheckRow::COLUMNS
    );
    let rows = tx
        .query(&sql, &[&app, &network, value, &i64::from(limit)])
        .await?;
    let check = |row: &Row| {
        let row = StatusCheckRow {
            request_id: row.try_get("request_id")?,
            sent_at: row.try_get("sent_at")?,
            step: row.try_get("step")?,
            due_at: row.try_get("due_at")?,
            deliveries: row.try_get("deliveries")?,
        };
        Ok(row.read(queue)?)
    };
    rows.iter().map(check).collect()
}

/// Returns the checks that are due.
pub(super) async fn find_due(
    tx: &Tx,
    queue: QueueRef,
    now: Timestamp,
    limit: u32,
) -> Result<Vec<StatusCheck>, Failure> {
    find(tx, queue, "due_at <= $3", &now.as_millis(), limit).await
}
