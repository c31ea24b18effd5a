//! Looks at due notices, and sends due messages.

use super::NoticeService;
use std::time::Duration;
use tributary_domain::app::App;
use tributary_domain::notice::{
    DueCheck, MessageOutcome, Notice, NoticeProgress, NoticeTopic, Occasion, retry_after,
};
use tributary_domain::vocabulary::id::OrganizationId;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::{CheckedNotice, DueMessage, DueNotice, SentMessage, StoreResult};

/// Duration of a lease: the longest attempt, and as long again for the database.
const LEASE: Duration = Duration::from_mins(1);
/// Longest time between two looks, so that a new time zone of the app takes effect.
const LOOK_MAX: Duration = Duration::from_hours(1);
/// When to look again at a notice whose figures could not be read. Other notices come first.
const LOOK_RETRY: Duration = Duration::from_mins(5);
/// Leased at a time: the one that is handled next, so that a shutdown leaves none leased.
const BATCH: u32 = 1;

impl NoticeService {
    /// Looks at one due notice. Returns whether there was one. If its figures cannot be read, it is
    /// due later, so that it does not hold up others.
    pub async fn check_due(&self) -> anyhow::Result<bool> {
        let now = self.runtime.now();
        let due = self
            .store
            .lease_notices(now, now.plus(LEASE), BATCH)
            .await?;
        for one in &due {
            let checked = self.check(one, now).await.unwrap_or_else(|error| {
                let notice = &one.notice;
                tracing::warn!(app = %notice.app, notice = %notice.id, %error, "cannot look at notice");
                CheckedNotice {
                    notice: notice.clone(),
                    progress: notice.progress,
                    due_at: Some(now.plus(LOOK_RETRY)),
                    occasion: None,
                    at: now,
                }
            });
            self.store.settle_notice(checked).await?;
        }
        Ok(!due.is_empty())
    }

    async fn check(&self, due: &DueNotice, now: Timestamp) -> StoreResult<CheckedNotice> {
        let notice = &due.notice;
        let app = self.app(due.organization, notice.app).await?;
        let (topic, progress) = (&notice.settings.topic, notice.progress);
        let plan = topic.plan(progress, &app.timezone, now);
        let found = match plan.due.filter(|_| !app.archived) {
            Some(check) => self.judge(due.organization, &app, notice, &check).await?,
            None => (None, progress),
        };
        let (occasion, progress) = found;
        let next = topic.plan(progress, &app.timezone, now).next_at;
        Ok(CheckedNotice {
            notice: notice.clone(),
            progress,
            due_at: next.map(|at| at.min(now.plus(LOOK_MAX))),
            occasion,
            at: now,
        })
    }

    /// Decides what a due check sends.
    async fn judge(
        &self,
        organization: OrganizationId,
        app: &App,
        notice: &Notice,
        check: &DueCheck,
    ) -> StoreResult<(Option<Occasion>, NoticeProgress)> {
        let (from, to) = (check.range.from, check.range.to);
        if let NoticeTopic::Threshold(threshold) = &notice.settings.topic {
            let figures = self
                .total(organization, app, &check.range, threshold)
                .await?;
            let (fired, progress) = threshold.judge(check, &figures, notice.progress);
            let occasion = fired.map(|micros| Occasion::Threshold {
                from,
                to,
                is_running: check.is_running,
                micros,
            });
            return Ok((occasion, progress));
        }
        let progress = NoticeProgress {
            done_until: Some(to),
            ..notice.progress
        };
        Ok((Some(Occasion::Summary { from, to }), progress))
    }

    /// Sends one due message. Returns whether there was one. If its figures cannot be read, it is
    /// tried again like one that was not accepted.
    pub async fn send_due(&self) -> anyhow::Result<bool> {
        let now = self.runtime.now();
        let due = self
            .store
            .lease_messages(now, now.plus(LEASE), BATCH)
            .await?;
        for one in &due {
            let outcome = self.attempt(one).await.unwrap_or_else(|error| {
                tracing::warn!(app = %one.app, notice = %one.notice_id, %error, "cannot write message");
                MessageOutcome::Failed("The figures could not be read.".to_owned())
            });
            let at = self.runtime.now();
            let wait = match &outcome {
                MessageOutcome::Sent | MessageOutcome::Skipped => None,
                MessageOutcome::Failed(error) => {
                    let wait = retry_after(one.attempts);
                    if wait.is_none() {
                        tracing::warn!(app = %one.app, notice = %one.notice_id, error, "giving up on message");
                    }
                    wait
                }
            };
            let sent = SentMessage {
                app: one.app,
                notice: one.notice_id,
                message: one.id,
                attempts: one.attempts,
                outcome,
                retry_at: wait.map(|wait| at.plus(wait)),
                at,
            };
            self.store.settle_message(sent).await?;
        }
        Ok(!due.is_empty())
    }

    /// Sends a message. A notice that was deleted, switched off or given another topic meanwhile sends
    /// nothing.
    async fn attempt(&self, due: &DueMessage) -> StoreResult<MessageOutcome> {
        let app = self.app(due.organization, due.app).await?;
        let notice = due.notice.as_ref().filter(|one| one.settings.active);
        let Some(notice) = notice.filter(|_| !app.archived) else {
            return Ok(MessageOutcome::Skipped);
        };
        let (organization, topic) = (due.organization, &notice.settings.topic);
        let message = self
            .message(organization, &app, topic, &due.occasion)
            .await?;
        let Some(message) = message else {
            return Ok(MessageOutcome::Skipped);
        };
        let sending = self.send(organization, notice, &message, due.id, &due.occasion);
        Ok(match sending.await {
            Ok(()) => MessageOutcome::Sent,
            Err(error) => MessageOutcome::Failed(error),
        })
    }
}
