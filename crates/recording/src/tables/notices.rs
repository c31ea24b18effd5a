//! Tables of notices.

use super::EngineTransaction;
use tributary_domain::notice::{Notice, NoticeProgress};
use tributary_domain::vocabulary::id::{AppId, NoticeId};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::SentMessage;
use tributary_store::records::{NoticeMessageRow, NoticeRow};

/// Notices and their messages.
pub trait NoticeTable: EngineTransaction {
    /// Returns the rows of an app's notices, oldest first.
    async fn notice_rows(&self, app: AppId) -> Result<Vec<NoticeRow>, Self::Failure>;

    /// Returns an app's notices, oldest first.
    async fn notices_of(&self, app: AppId) -> Result<Vec<Notice>, Self::Failure> {
        let rows = self.notice_rows(app).await?.into_iter();
        let notices = rows.map(NoticeRow::read);
        Ok(notices.collect::<Result<_, _>>()?)
    }

    /// Stores or replaces a notice. `due_at` is when to look at it.
    async fn write_notice(
        &self,
        notice: &Notice,
        due_at: Option<Timestamp>,
    ) -> Result<(), Self::Failure>;

    /// Stores the progress of a notice and when to look at it again. Returns false if the notice has
    /// another revision, or was removed.
    async fn write_progress(
        &self,
        notice: &Notice,
        progress: NoticeProgress,
        due_at: Option<Timestamp>,
    ) -> Result<bool, Self::Failure>;

    /// Removes a notice and its messages.
    async fn remove_notice(&self, app: AppId, notice: NoticeId) -> Result<(), Self::Failure>;

    /// Stores a message, unless it is stored already.
    async fn insert_message(&self, row: &NoticeMessageRow) -> Result<(), Self::Failure>;

    /// Stores the result of an attempt in the message and in its notice, unless there was another
    /// attempt since. A skipped message does not change the notice.
    async fn write_attempt(&self, sent: &SentMessage) -> Result<(), Self::Failure>;

    /// Removes an app's finished messages from before a time.
    async fn forget_messages(&self, app: AppId, before: Timestamp) -> Result<(), Self::Failure>;
}
