//! Looks at due notices, and sends due messages.

use super::NoticeService;
use super::send::destination;
use crate::metrics::count_unreadable_notices;
use std::sync::PoisonError;
use std::time::Duration;
use tokio::task::JoinSet;
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
/// Notices leased at a time: the one that is handled next, so that a shutdown leaves none leased.
const NOTICES_LEASED: u32 = 1;
/// Messages leased and sent at a time, so that a receiver that does not answer delays few others. At
/// most as many as there are connections to the mail server.
const MESSAGES_SENT_AT_ONCE: u32 = 4;
/// Maximum number of unreadable rows that are logged. All of them are counted.
const LOGGED_MAX: usize = 100;

impl NoticeService {
    /// Looks at one due notice. Returns whether there was one. If its figures cannot be read, it is
    /// due later, so that it does not hold up others.
    pub async fn check_due(&self) -> anyhow::Result<bool> {
        let now = self.runtime.now();
        let due = self
            .store
            .lease_notices(now, now.plus(LEASE), NOTICES_LEASED)
            .await?;
        self.report_unreadable("notices", &due.unreadable);
        for one in &due.due {
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

    /// Counts unreadable rows, and logs each of them once.
    fn report_unreadable(&self, table: &'static str, ids: &[String]) {
        count_unreadable_notices(ids.len());
        let mut logged = self.logged.lock().unwrap_or_else(PoisonError::into_inner);
        for id in ids {
            if logged.len() < LOGGED_MAX && logged.insert(id.clone()) {
                tracing::error!(table, id, "skipping unreadable row");
            }
        }
    }

    /// Sends some due messages. Returns whether there were any.
    pub async fn send_due(&self) -> anyhow::Result<bool> {
        let now = self.runtime.now();
        let leased = self
            .store
            .lease_messages(now, now.plus(LEASE), MESSAGES_SENT_AT_ONCE)
            .await?;
        self.report_unreadable("notice_messages", &leased.unreadable);
        let had_work = !leased.is_empty();
        let mut sending = JoinSet::new();
        for one in leased.due {
            let service = self.clone();
            sending.spawn(async move { service.send_one(&one).await });
        }
        let mut result = Ok(had_work);
        // All messages are settled, even if one of them cannot be.
        while let Some(sent) = sending.join_next().await {
            let sent = sent.map_err(anyhow::Error::from);
            if let Err(error) = sent.and_then(|sent| Ok(sent?)) {
                result = Err(error);
            }
        }
        result
    }

    /// Sends a message and stores the outcome. If its figures cannot be read, it is tried again like
    /// one that was not accepted.
    async fn send_one(&self, one: &DueMessage) -> StoreResult<()> {
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
        self.store.settle_message(sent).await
    }

    /// Sends a message. A notice that was deleted, switched off or given another topic meanwhile sends
    /// nothing. A message to a destination that did not answer a moment ago fails at once.
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
        let destination = destination(&notice.settings.channel);
        let down = || self.down.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(reason) = down().reason(destination, self.runtime.now()) {
            return Ok(MessageOutcome::Failed(reason));
        }
        let sending = self.send(organization, notice, &message, due.id, &due.occasion);
        let Err(failure) = sending.await else {
            return Ok(MessageOutcome::Sent);
        };
        if failure.is_down {
            down().add(destination, &failure.reason, self.runtime.now());
        }
        Ok(MessageOutcome::Failed(failure.reason))
    }
}
