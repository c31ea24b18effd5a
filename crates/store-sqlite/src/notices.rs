//! Notices and their messages.

use crate::rows::{find_app, read_row, require_app};
use crate::tables::{SqliteTables, run};
use crate::{Failure, SqliteStore};
use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, params};
use tributary_domain::access::{AppsRead, AppsWrite, Authorized};
use tributary_domain::audit::AuditContext;
use tributary_domain::forwarding::alert::Alert;
use tributary_domain::notice::{MessageOutcome, Notice, NoticeProgress, NoticeSettings};
use tributary_domain::refusal::Refusal;
use tributary_domain::vocabulary::id::{AppId, MessageId, NoticeId, OrganizationId};
use tributary_domain::vocabulary::revision::Precondition;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_recording::NoticeTable;
use tributary_recording::admin::{
    create_notice, delete_notice, queue_alert_messages, replace_notice, settle_message,
    settle_notice,
};
use tributary_store::records::{Columns, NoticeMessageRow, NoticeRow};
use tributary_store::{
    CheckedNotice, DueMessage, DueNotice, LeasedRows, Notices, SentMessage, StoreError, StoreResult,
};

const NOTICE_COLUMNS: &str = NoticeRow::COLUMNS;
const MESSAGE_COLUMNS: &str = NoticeMessageRow::COLUMNS;

impl NoticeTable for SqliteTables<'_> {
    async fn notice_rows(&self, app: AppId) -> Result<Vec<NoticeRow>, Failure> {
        let sql =
            format!("select {NOTICE_COLUMNS} from notices where app_id = ?1 order by notice_id");
        let mut statement = self.0.prepare_cached(&sql)?;
        let rows = statement.query_map([app.as_bytes()], read_row::<NoticeRow>)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    async fn write_notice(
        &self,
        notice: &Notice,
        due_at: Option<Timestamp>,
    ) -> Result<(), Failure> {
        let row = NoticeRow::write(notice);
        let sql = format!(
            "insert or replace into notices ({NOTICE_COLUMNS}, due_at)
             values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)"
        );
        self.0.prepare_cached(&sql)?.execute(params![
            row.app_id,
            row.notice_id,
            row.name,
            row.active,
            row.topic,
            row.settings,
            row.url,
            row.done_until,
            row.is_beyond,
            row.last_sent_at,
            row.last_error,
            row.created_at,
            row.updated_at,
            row.revision,
            row.owner_id,
            due_at.map(Timestamp::as_millis)
        ])?;
        Ok(())
    }

    async fn write_progress(
        &self,
        notice: &Notice,
        progress: NoticeProgress,
        due_at: Option<Timestamp>,
    ) -> Result<bool, Failure> {
        let sql = "update notices set done_until = ?4, is_beyond = ?5, due_at = ?6
                   where app_id = ?1 and notice_id = ?2 and revision = ?3";
        let updated = self.0.prepare_cached(sql)?.execute(params![
            notice.app.as_bytes(),
            notice.id.as_bytes(),
            notice.revision.number(),
            progress.done_until.map(|day| i64::from(day.as_days())),
            progress.is_beyond,
            due_at.map(Timestamp::as_millis)
        ])?;
        Ok(updated == 1)
    }

    async fn remove_notice(&self, app: AppId, notice: NoticeId) -> Result<(), Failure> {
        for table in ["notice_messages", "notices"] {
            let sql = format!("delete from {table} where app_id = ?1 and notice_id = ?2");
            self.0
                .prepare_cached(&sql)?
                .execute((app.as_bytes(), notice.as_bytes()))?;
        }
        Ok(())
    }

    async fn insert_message(&self, row: &NoticeMessageRow) -> Result<(), Failure> {
        let sql = format!(
            "insert into notice_messages ({MESSAGE_COLUMNS}) values (?1, ?2, ?3, ?4, ?5, ?6, ?7)
             on conflict do nothing"
        );
        self.0.prepare_cached(&sql)?.execute(params![
            row.app_id,
            row.message_id,
            row.notice_id,
            row.occasion,
            row.at,
            row.attempts,
            row.due_at
        ])?;
        Ok(())
    }

    async fn write_attempt(&self, sent: &SentMessage) -> Result<(), Failure> {
        let sql = "update notice_messages set due_at = ?3
                   where app_id = ?1 and message_id = ?2 and attempts = ?4";
        let retry_at = sent.retry_at.map(Timestamp::as_millis);
        let updated = self.0.prepare_cached(sql)?.execute(params![
            sent.app.as_bytes(),
            sent.message.as_bytes(),
            retry_at,
            sent.attempts
        ])?;
        let (error, sent_at) = match &sent.outcome {
            MessageOutcome::Sent => (None, Some(sent.at.as_millis())),
            MessageOutcome::Failed(error) => (Some(error), None),
            MessageOutcome::Skipped => return Ok(()),
        };
        if updated == 0 {
            return Ok(());
        }
        let sql = "update notices set last_error = ?3, last_sent_at = coalesce(?4, last_sent_at)
                   where app_id = ?1 and notice_id = ?2";
        self.0.prepare_cached(sql)?.execute(params![
            sent.app.as_bytes(),
            sent.notice.as_bytes(),
            error,
            sent_at
        ])?;
        Ok(())
    }

    async fn forget_messages(&self, app: AppId, before: Timestamp) -> Result<(), Failure> {
        let sql = "delete from notice_messages where app_id = ?1 and at < ?2 and due_at is null";
        self.0
            .prepare_cached(sql)?
            .execute((app.as_bytes(), before.as_millis()))?;
        Ok(())
    }
}

fn organization_of(connection: &Connection, app: AppId) -> Result<OrganizationId, Failure> {
    let found = connection
        .prepare_cached("select organization_id from apps where app_id = ?1")?
        .query_row([app.as_bytes()], |row| row.get(0))
        .optional()?;
    let found = found.ok_or_else(|| StoreError::corrupt("notices", "app_id", app))?;
    Ok(OrganizationId::from_bytes(found))
}

fn lease_due_notices(
    connection: &Connection,
    now: Timestamp,
    until: Timestamp,
    limit: u32,
) -> Result<LeasedRows<DueNotice>, Failure> {
    let sql = format!(
        "update notices set due_at = ?2
         where (app_id, notice_id) in (select app_id, notice_id from notices
                                       where due_at <= ?1 order by due_at limit ?3)
         returning {NOTICE_COLUMNS}"
    );
    let rows: Vec<NoticeRow> = connection
        .prepare_cached(&sql)?
        .query_map(
            (now.as_millis(), until.as_millis(), limit),
            read_row::<NoticeRow>,
        )?
        .collect::<Result<_, _>>()?;
    let mut leased = LeasedRows::default();
    for row in rows {
        let id = NoticeId::from_bytes(row.notice_id);
        let organization = organization_of(connection, AppId::from_bytes(row.app_id))?;
        let due = row.read().map(|notice| DueNotice {
            organization,
            notice,
        });
        leased.add(id, due)?;
    }
    Ok(leased)
}

fn lease_due_messages(
    connection: &Connection,
    now: Timestamp,
    until: Timestamp,
    limit: u32,
) -> Result<LeasedRows<DueMessage>, Failure> {
    let sql = format!(
        "update notice_messages set due_at = ?2, attempts = attempts + 1
         where (app_id, message_id) in (select app_id, message_id from notice_messages
                                        where due_at <= ?1 order by due_at limit ?3)
         returning {MESSAGE_COLUMNS}"
    );
    let rows: Vec<NoticeMessageRow> = connection
        .prepare_cached(&sql)?
        .query_map(
            (now.as_millis(), until.as_millis(), limit),
            read_row::<NoticeMessageRow>,
        )?
        .collect::<Result<_, _>>()?;
    let mut leased = LeasedRows::default();
    for row in rows {
        let (id, app) = (
            MessageId::from_bytes(row.message_id),
            AppId::from_bytes(row.app_id),
        );
        let organization = organization_of(connection, app)?;
        let notices = run(SqliteTables(connection).notice_rows(app))?;
        leased.add(id, row.read(organization, notices))?;
    }
    Ok(leased)
}

#[async_trait]
impl Notices for SqliteStore {
    async fn create_notice(
        &self,
        caller: &Authorized<AppsWrite>,
        notice: Notice,
        origin: AuditContext,
    ) -> StoreResult<Notice> {
        let organization = caller.organization_of(notice.app)?;
        self.write("create_notice", move |connection| {
            let tables = SqliteTables(connection);
            run(create_notice(&tables, organization, &notice, &origin))
        })
        .await
    }

    async fn notice(
        &self,
        caller: &Authorized<AppsRead>,
        app: AppId,
        notice: NoticeId,
    ) -> StoreResult<Notice> {
        let organization = caller.organization_of(app)?;
        self.read("notice", move |connection| {
            require_app(connection, organization, app)?;
            let mut found = run(SqliteTables(connection).notices_of(app))?.into_iter();
            Ok(found
                .find(|one| one.id == notice)
                .ok_or(Refusal::NoticeNotFound)?)
        })
        .await
    }

    async fn notices(&self, caller: &Authorized<AppsRead>, app: AppId) -> StoreResult<Vec<Notice>> {
        let organization = caller.organization_of(app)?;
        self.read("notices", move |connection| {
            find_app(connection, organization, app)?;
            run(SqliteTables(connection).notices_of(app))
        })
        .await
    }

    async fn replace_notice(
        &self,
        caller: &Authorized<AppsWrite>,
        (app, notice): (AppId, NoticeId),
        settings: NoticeSettings,
        precondition: Precondition,
        origin: AuditContext,
    ) -> StoreResult<Notice> {
        let organization = caller.organization_of(app)?;
        self.write("replace_notice", move |connection| {
            let (tables, of) = (SqliteTables(connection), (organization, app, notice));
            run(replace_notice(
                &tables,
                of,
                &settings,
                &precondition,
                &origin,
            ))
        })
        .await
    }

    async fn delete_notice(
        &self,
        caller: &Authorized<AppsWrite>,
        app: AppId,
        notice: NoticeId,
        precondition: Precondition,
        origin: AuditContext,
    ) -> StoreResult<()> {
        let organization = caller.organization_of(app)?;
        self.write("delete_notice", move |connection| {
            let (tables, of) = (SqliteTables(connection), (organization, app, notice));
            run(delete_notice(&tables, of, &precondition, &origin))
        })
        .await
    }

    async fn lease_notices(
        &self,
        now: Timestamp,
        until: Timestamp,
        limit: u32,
    ) -> StoreResult<LeasedRows<DueNotice>> {
        // Read first, without writing: usually nothing is due, and a read needs no sync.
        let is_due = self
            .read("due_notices", move |connection| {
                let sql = "select 1 from notices where due_at <= ?1";
                Ok(connection.prepare_cached(sql)?.exists([now.as_millis()])?)
            })
            .await?;
        if !is_due {
            return Ok(LeasedRows::default());
        }
        self.write("lease_notices", move |connection| {
            lease_due_notices(connection, now, until, limit)
        })
        .await
    }

    async fn settle_notice(&self, checked: CheckedNotice) -> StoreResult<()> {
        self.write("settle_notice", move |connection| {
            run(settle_notice(&SqliteTables(connection), &checked))
        })
        .await
    }

    async fn queue_alert_messages(&self, alert: Alert, now: Timestamp) -> StoreResult<()> {
        self.write("queue_alert_messages", move |connection| {
            run(queue_alert_messages(&SqliteTables(connection), &alert, now))
        })
        .await
    }

    async fn lease_messages(
        &self,
        now: Timestamp,
        until: Timestamp,
        limit: u32,
    ) -> StoreResult<LeasedRows<DueMessage>> {
        let is_due = self
            .read("due_messages", move |connection| {
                let sql = "select 1 from notice_messages where due_at <= ?1";
                Ok(connection.prepare_cached(sql)?.exists([now.as_millis()])?)
            })
            .await?;
        if !is_due {
            return Ok(LeasedRows::default());
        }
        self.write("lease_messages", move |connection| {
            lease_due_messages(connection, now, until, limit)
        })
        .await
    }

    async fn settle_message(&self, sent: SentMessage) -> StoreResult<()> {
        self.write("settle_message", move |connection| {
            run(settle_message(&SqliteTables(connection), &sent))
        })
        .await
    }
}
