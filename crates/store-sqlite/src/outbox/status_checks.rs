//! Status checks: requests whose result a network reports later.

use crate::Failure;
use crate::tables::SqliteTables;
use rusqlite::{Connection, params};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_recording::StatusCheckTable;
use tributary_store::records::StatusCheckRow;
use tributary_store::{QueueRef, StatusCheck};

impl StatusCheckTable for SqliteTables<'_> {
    async fn insert_checks(&self, queue: QueueRef, checks: &[StatusCheck]) -> Result<(), Failure> {
        let sql = format!(
            "insert into status_checks (app_id, network, {})
             values (?1, ?2, ?3, ?4, ?5, ?6, ?7) on conflict do nothing",
            StatusCheckRow::COLUMNS
        );
        for row in checks.iter().map(StatusCheckRow::write) {
            self.0.prepare_cached(&sql)?.execute(params![
                queue.app.as_bytes(),
                queue.network.as_str(),
                row.request_id,
                row.sent_at,
                row.step,
                row.due_at,
                row.deliveries
            ])?;
        }
        Ok(())
    }

    async fn status_check(
        &self,
        queue: QueueRef,
        request: &str,
    ) -> Result<Option<StatusCheck>, Failure> {
        Ok(find(self.0, queue, "request_id = ?3", &request, 1)?.pop())
    }

    async fn postpone_check(
        &self,
        queue: QueueRef,
        request: &str,
        step: u32,
        due_at: Timestamp,
    ) -> Result<(), Failure> {
        self.0
            .prepare_cached(
                "update status_checks set step = ?4, due_at = ?5
                 where app_id = ?1 and network = ?2 and request_id = ?3",
            )?
            .execute(params![
                queue.app.as_bytes(),
                queue.network.as_str(),
                request,
                step,
                due_at.as_millis()
            ])?;
        Ok(())
    }

    async fn remove_check(&self, queue: QueueRef, request: &str) -> Result<(), Failure> {
        self.0
            .prepare_cached(
                "delete from status_checks where app_id = ?1 and network = ?2 and request_id = ?3",
            )?
            .execute(params![
                queue.app.as_bytes(),
                queue.network.as_str(),
                request
            ])?;
        Ok(())
    }
}

fn find(
    connection: &Connection,
    queue: QueueRef,
    condition: &str,
    value: &dyn rusqlite::ToSql,
    limit: u32,
) -> Result<Vec<StatusCheck>, Failure> {
    let sql = format!(
        "select {} from status_checks
         where app_id = ?1 and network = ?2 and {condition} order by due_at limit ?4",
        StatusCheckRow::COLUMNS
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let key = params![queue.app.as_bytes(), queue.network.as_str(), value, limit];
    let rows = statement.query_map(key, |row| {
        Ok(StatusCheckRow {
            request_id: row.get("request_id")?,
            sent_at: row.get("sent_at")?,
            step: row.get("step")?,
            due_at: row.get("due_at")?,
            deliveries: row.get("deliveries")?,
        })
    })?;
    rows.map(|row| Ok(row?.read(queue)?)).collect()
}

/// Returns the checks that are due.
pub(super) fn find_due(
    connection: &Connection,
    queue: QueueRef,
    now: Timestamp,
    limit: u32,
) -> Result<Vec<StatusCheck>, Failure> {
    find(connection, queue, "due_at <= ?3", &now.as_millis(), limit)
}
