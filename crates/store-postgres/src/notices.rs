//! Notices and their messages.

use crate::params::placeholders;
use crate::rows::{AppLockMode, id, read_row, require_app, uuid};
use crate::tx::Tx;
use crate::{Failure, PostgresStore};
use async_trait::async_trait;
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

impl NoticeTable for Tx {
    async fn notice_rows(&self, app: AppId) -> Result<Vec<NoticeRow>, Failure> {
        let sql =
            format!("select {NOTICE_COLUMNS} from notices where app_id = $1 order by notice_id");
        let rows = self.query(&sql, &[&uuid(app.as_bytes())]).await?;
        rows.iter().map(read_row::<NoticeRow>).collect()
    }

    async fn write_notice(
        &self,
        notice: &Notice,
        due_at: Option<Timestamp>,
    ) -> Result<(), Failure> {
        let row = NoticeRow::write(notice);
        let sql = format!(
            "insert into notices ({NOTICE_COLUMNS}, due_at) values ({})
             on conflict (app_id, notice_id) do update set
                 name = excluded.name, active = excluded.active, topic = excluded.topic,
                 settings = excluded.settings, url = excluded.url,
                 done_until = excluded.done_until, is_beyond = excluded.is_beyond,
                 last_sent_at = excluded.last_sent_at, last_error = excluded.last_error,
                 updated_at = excluded.updated_at, revision = excluded.revision,
                 owner_id = excluded.owner_id, due_at = excluded.due_at",
            placeholders(16)
        );
        self.execute(
            &sql,
            &[
                &uuid(&row.app_id),
                &uuid(&row.notice_id),
                &row.name,
                &row.active,
                &row.topic,
                &row.settings,
                &row.url.as_deref(),
                &row.done_until,
                &row.is_beyond,
                &row.last_sent_at,
                &row.last_error,
                &row.created_at,
                &row.updated_at,
                &row.revision,
                &row.owner_id.as_ref().map(uuid),
                &due_at.map(Timestamp::as_millis),
            ],
        )
        .await?;
        Ok(())
    }

    async fn write_progress(
        &self,
        notice: &Notice,
        progress: NoticeProgress,
        due_at: Option<Timestamp>,
    ) -> Result<bool, Failure> {
        let done_until = progress.done_until.map(|day| i64::from(day.as_days()));
        let updated = self
            .query_opt(
                "update notices set done_until = $4, is_beyond = $5, due_at = $6
                 where app_id = $1 and notice_id = $2 and revision = $3
                 returning notice_id",
                &[
                    &uuid(notice.app.as_bytes()),
                    &uuid(notice.id.as_bytes()),
                    &notice.revision.number(),
                    &done_until,
                    &progress.is_beyond,
                    &due_at.map(Timestamp::as_millis),
                ],
            )
            .await?;
        Ok(updated.is_some())
    }

    async fn remove_notice(&self, app: AppId, notice: NoticeId) -> Result<(), Failure> {
        let (app, notice) = (uuid(app.as_bytes()), uuid(notice.as_bytes()));
        for table in ["notice_messages", "notices"] {
            let sql = format!("delete from {table} where app_id = $1 and notice_id = $2");
            self.execute(&sql, &[&app, &notice]).await?;
        }
        Ok(())
    }

    async fn insert_message(&self, row: &NoticeMessageRow) -> Result<(), Failure> {
        let sql = format!(
            "insert into notice_messages ({MESSAGE_COLUMNS}) values ({})
             on conflict (app_id, message_id) do nothing",
            placeholders(7)
        );
        self.execute(
            &sql,
            &[
                &uuid(&row.app_id),
                &uuid(&row.message_id),
                &uuid(&row.notice_id),
                &row.occasion,
                &row.at,
                &row.attempts,
                &row.due_at,
            ],
        )
        .await?;
        Ok(())
    }

    async fn write_attempt(&self, sent: &SentMessage) -> Result<(), Failure> {
        let app = uuid(sent.app.as_bytes());
        let retry_at = sent.retry_at.map(Timestamp::as_millis);
        let updated = self
            .query_opt(
                "update notice_messages set due_at = $3
                 where app_id = $1 and message_id = $2 and attempts = $4
                 returning message_id",
                &[
                    &app,
                    &uuid(sent.message.as_bytes()),
                    &retry_at,
                    &i64::from(sent.attempts),
                ],
            )
            .await?;
        let (error, sent_at) = match &sent.outcome {
            MessageOutcome::Sent => (None, Some(sent.at.as_millis())),
            MessageOutcome::Failed(error) => (Some(error.clone()), None),
            MessageOutcome::Skipped => return Ok(()),
        };
        if updated.is_none() {
            return Ok(());
        }
        self.execute(
            "update notices set last_error = $3, last_sent_at = coalesce($4, last_sent_at)
             where app_id = $1 and notice_id = $2",
            &[&app, &uuid(sent.notice.as_bytes()), &error, &sent_at],
        )
        .await?;
        Ok(())
    }

    async fn forget_messages(&self, app: AppId, before: Timestamp) -> Result<(), Failure> {
        self.execute(
            "delete from notice_messages where app_id = $1 and at < $2 and due_at is null",
            &[&uuid(app.as_bytes()), &before.as_millis()],
        )
        .await?;
        Ok(())
    }
}

async fn organization_of(tx: &Tx, app: AppId) -> Result<OrganizationId, Failure> {
    let sql = "select organization_id from apps where app_id = $1";
    let row = tx.query_opt(sql, &[&uuid(app.as_bytes())]).await?;
    let row = row.ok_or_else(|| StoreError::corrupt("notices", "app_id", app))?;
    Ok(OrganizationId::from_bytes(id(&row, 0)?))
}

/// Leases due notices of all apps, which were found without locking. The update claims each row only
/// if its due time is unchanged, so only one of two nodes gets a notice.
async fn lease_due_notices(
    tx: &Tx,
    now: Timestamp,
    until: Timestamp,
    limit: u32,
) -> Result<LeasedRows<DueNotice>, Failure> {
    let sql = "select app_id, notice_id, due_at from notices
               where due_at <= $1 order by due_at, app_id, notice_id limit $2";
    let found = tx
        .query(sql, &[&now.as_millis(), &i64::from(limit)])
        .await?;
    let mut due = LeasedRows::default();
    for row in found {
        let (app, notice) = (uuid(&id(&row, 0)?), uuid(&id(&row, 1)?));
        let due_at: i64 = row.try_get(2)?;
        let sql = format!(
            "update notices set due_at = $4
             where app_id = $1 and notice_id = $2 and due_at = $3
             returning {NOTICE_COLUMNS}"
        );
        let leased = tx
            .query_opt(&sql, &[&app, &notice, &due_at, &until.as_millis()])
            .await?;
        if let Some(row) = leased {
            let row = read_row::<NoticeRow>(&row)?;
            let id = NoticeId::from_bytes(row.notice_id);
            let organization = organization_of(tx, AppId::from_bytes(row.app_id)).await?;
            let read = row.read().map(|notice| DueNotice {
                organization,
                notice,
            });
            due.add(id, read)?;
        }
    }
    Ok(due)
}

/// Leases due messages of all apps, as [`lease_due_notices`] does.
async fn lease_due_messages(
    tx: &Tx,
    now: Timestamp,
    until: Timestamp,
    limit: u32,
) -> Result<LeasedRows<DueMessage>, Failure> {
    let sql = "select app_id, message_id, due_at from notice_messages
               where due_at <= $1 order by due_at, app_id, message_id limit $2";
    let found = tx
        .query(sql, &[&now.as_millis(), &i64::from(limit)])
        .await?;
    let mut due = LeasedRows::default();
    for row in found {
        let (app, message) = (uuid(&id(&row, 0)?), uuid(&id(&row, 1)?));
        let due_at: i64 = row.try_get(2)?;
        let sql = format!(
            "update notice_messages set due_at = $4, attempts = attempts + 1
             where app_id = $1 and message_id = $2 and due_at = $3
             returning {MESSAGE_COLUMNS}"
        );
        let leased = tx
            .query_opt(&sql, &[&app, &message, &due_at, &until.as_millis()])
            .await?;
        if let Some(row) = leased {
            let row = read_row::<NoticeMessageRow>(&row)?;
            let (id, app) = (
                MessageId::from_bytes(row.message_id),
                AppId::from_bytes(row.app_id),
            );
            let organization = organization_of(tx, app).await?;
            let notices = tx.notice_rows(app).await?;
            due.add(id, row.read(organization, notices))?;
        }
    }
    Ok(due)
}

#[async_trait]
impl Notices for PostgresStore {
    async fn create_notice(
        &self,
        caller: &Authorized<AppsWrite>,
        notice: Notice,
        origin: AuditContext,
    ) -> StoreResult<Notice> {
        let organization = caller.organization_of(notice.app)?;
        self.write("create_notice", async move |tx| {
            create_notice(tx, organization, &notice, &origin).await
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
        self.read("notice", async move |tx| {
            require_app(tx, organization, app, AppLockMode::Reading).await?;
            let mut found = tx.notices_of(app).await?.into_iter();
            Ok(found
                .find(|one| one.id == notice)
                .ok_or(Refusal::NoticeNotFound)?)
        })
        .await
    }

    async fn notices(&self, caller: &Authorized<AppsRead>, app: AppId) -> StoreResult<Vec<Notice>> {
        let organization = caller.organization_of(app)?;
        self.read("notices", async move |tx| {
            require_app(tx, organization, app, AppLockMode::Reading).await?;
            tx.notices_of(app).await
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
        self.write("replace_notice", async move |tx| {
            let of = (organization, app, notice);
            replace_notice(tx, of, &settings, &precondition, &origin).await
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
        self.write("delete_notice", async move |tx| {
            let of = (organization, app, notice);
            delete_notice(tx, of, &precondition, &origin).await
        })
        .await
    }

    async fn lease_notices(
        &self,
        now: Timestamp,
        until: Timestamp,
        limit: u32,
    ) -> StoreResult<LeasedRows<DueNotice>> {
        self.write("lease_notices", async move |tx| {
            lease_due_notices(tx, now, until, limit).await
        })
        .await
    }

    async fn settle_notice(&self, checked: CheckedNotice) -> StoreResult<()> {
        self.write("settle_notice", async move |tx| {
            settle_notice(tx, &checked).await
        })
        .await
    }

    async fn queue_alert_messages(&self, alert: Alert, now: Timestamp) -> StoreResult<()> {
        self.write("queue_alert_messages", async move |tx| {
            queue_alert_messages(tx, &alert, now).await
        })
        .await
    }

    async fn lease_messages(
        &self,
        now: Timestamp,
        until: Timestamp,
        limit: u32,
    ) -> StoreResult<LeasedRows<DueMessage>> {
        self.write("lease_messages", async move |tx| {
            lease_due_messages(tx, now, until, limit).await
        })
        .await
    }

    async fn settle_message(&self, sent: SentMessage) -> StoreResult<()> {
        self.write("settle_message", async move |tx| {
            settle_message(tx, &sent).await
        })
        .await
    }
}
