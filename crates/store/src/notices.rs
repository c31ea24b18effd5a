//! Notices: reports and alerts that apps send to people, and their messages.

use crate::{StoreError, StoreResult};
use async_trait::async_trait;
use std::time::Duration;
use tributary_domain::access::{AppsRead, AppsWrite, Authorized};
use tributary_domain::audit::AuditContext;
use tributary_domain::forwarding::alert::Alert;
use tributary_domain::notice::{MessageOutcome, Notice, NoticeProgress, NoticeSettings, Occasion};
use tributary_domain::vocabulary::id::{AppId, MessageId, NoticeId, OrganizationId};
use tributary_domain::vocabulary::revision::Precondition;
use tributary_domain::vocabulary::time::Timestamp;

/// How long a finished message is remembered, so that it is not queued again. Longer than any alert
/// is retried.
pub const FINISHED_MESSAGES_KEPT: Duration = Duration::from_hours(7 * 24);

/// A notice that is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueNotice {
    /// Organization of the app.
    pub organization: OrganizationId,
    /// The notice.
    pub notice: Notice,
}

/// Rows that a node leased. An unreadable row, for example of a later version, is left out and does
/// not hold up others. It is due again when the lease ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeasedRows<T> {
    /// Readable rows.
    pub due: Vec<T>,
    /// Ids of unreadable rows.
    pub unreadable: Vec<String>,
}

impl<T> Default for LeasedRows<T> {
    fn default() -> Self {
        Self {
            due: Vec::new(),
            unreadable: Vec::new(),
        }
    }
}

impl<T> LeasedRows<T> {
    /// Adds a row. Returns errors that do not concern this row alone.
    pub fn add(
        &mut self,
        id: impl ToString,
        read: Result<T, StoreError>,
    ) -> Result<(), StoreError> {
        match read {
            Ok(row) => self.due.push(row),
            Err(StoreError::Corrupt { .. }) => self.unreadable.push(id.to_string()),
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Returns whether nothing was leased.
    pub const fn is_empty(&self) -> bool {
        self.due.is_empty() && self.unreadable.is_empty()
    }
}

/// Result of a look at a due notice.
#[derive(Debug, Clone)]
pub struct CheckedNotice {
    /// The notice as it was leased. A notice that changed since is looked at again instead.
    pub notice: Notice,
    /// New progress.
    pub progress: NoticeProgress,
    /// When to look again.
    pub due_at: Option<Timestamp>,
    /// Message to send, if any.
    pub occasion: Option<Occasion>,
    /// Time of the look.
    pub at: Timestamp,
}

/// A message that is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueMessage {
    /// Organization of the app.
    pub organization: OrganizationId,
    /// Id. The same for every attempt.
    pub id: MessageId,
    /// Id of the notice.
    pub notice_id: NoticeId,
    /// The notice as it is now; `None` if it was deleted.
    pub notice: Option<Notice>,
    /// App.
    pub app: AppId,
    /// What the message is about.
    pub occasion: Occasion,
    /// Number of attempts, including this one.
    pub attempts: u32,
}

/// Result of an attempt to send a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentMessage {
    /// App.
    pub app: AppId,
    /// Notice.
    pub notice: NoticeId,
    /// Message.
    pub message: MessageId,
    /// Number of the attempt, as it was leased.
    pub attempts: u32,
    /// Whether it was sent.
    pub outcome: MessageOutcome,
    /// When to try again; `None` if the message is finished.
    pub retry_at: Option<Timestamp>,
    /// Time of the attempt.
    pub at: Timestamp,
}

/// Notices. Notices of other apps or organizations are not found.
#[async_trait]
pub trait Notices: Send + Sync {
    /// Stores a new notice. Refused if the app has too many.
    async fn create_notice(
        &self,
        caller: &Authorized<AppsWrite>,
        notice: Notice,
        origin: AuditContext,
    ) -> StoreResult<Notice>;

    /// Returns a notice.
    async fn notice(
        &self,
        caller: &Authorized<AppsRead>,
        app: AppId,
        notice: NoticeId,
    ) -> StoreResult<Notice>;

    /// Lists an app's notices, oldest first. They are few, so there are no pages.
    async fn notices(&self, caller: &Authorized<AppsRead>, app: AppId) -> StoreResult<Vec<Notice>>;

    /// Replaces the settings of a notice.
    async fn replace_notice(
        &self,
        caller: &Authorized<AppsWrite>,
        (app, notice): (AppId, NoticeId),
        settings: NoticeSettings,
        precondition: Precondition,
        origin: AuditContext,
    ) -> StoreResult<Notice>;

    /// Deletes a notice. Its pending messages are not sent.
    async fn delete_notice(
        &self,
        caller: &Authorized<AppsWrite>,
        app: AppId,
        notice: NoticeId,
        precondition: Precondition,
        origin: AuditContext,
    ) -> StoreResult<()>;

    /// Leases due notices until `until`. A notice that is not settled by then is due again.
    async fn lease_notices(
        &self,
        now: Timestamp,
        until: Timestamp,
        limit: u32,
    ) -> StoreResult<LeasedRows<DueNotice>>;

    /// Stores the result of a look, and queues the message, unless the notice changed meanwhile.
    async fn settle_notice(&self, checked: CheckedNotice) -> StoreResult<()>;

    /// Queues a message for every notice that wants the alert. Queuing again does nothing.
    async fn queue_alert_messages(&self, alert: Alert, now: Timestamp) -> StoreResult<()>;

    /// Leases due messages until `until`. A message that is not settled by then is due again.
    async fn lease_messages(
        &self,
        now: Timestamp,
        until: Timestamp,
        limit: u32,
    ) -> StoreResult<LeasedRows<DueMessage>>;

    /// Stores the result of an attempt, in the message and in its notice. Does nothing if the message
    /// was leased again meanwhile, because its lease had ended. A skipped message does not change the
    /// notice.
    async fn settle_message(&self, sent: SentMessage) -> StoreResult<()>;
}
