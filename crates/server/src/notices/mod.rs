//! Notices: looks at those that are due, writes their messages and sends them.
//!
//! A message is queued in the transaction that records the look, and removed from the queue after the
//! channel accepted it. It is therefore sent at least once. Every attempt has the same id: the
//! Message-ID of an e-mail, the `webhook-id` of a webhook.

mod channel;
mod figures;

use crate::mail::{Mail, Mailer};
use crate::outbound::{AddressPolicy, Outbound, OutboundError};
use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use channel::{slack_body, webhook_body};
use figures::NoticeFigures;
use reqwest::Method;
use reqwest::header::CONTENT_TYPE;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tributary_api::NoticeSender;
use tributary_domain::access::{AnalyticsRead, AppsRead, Authorized};
use tributary_domain::app::App;
use tributary_domain::forwarding::alert::AlertKind;
use tributary_domain::keyring::Keyring;
use tributary_domain::keyring::secret_scope::{NOTICE_SECRET_SCOPE, SecretScope};
use tributary_domain::notice::{
    ChannelUrl, DueCheck, Message, Notice, NoticeChannel, NoticePreview, NoticeProgress,
    NoticeTopic, Occasion, SummaryFacts, Threshold, ThresholdWindow, admit_test, alert_message,
    example_alert, retry_after, summary_message, threshold_message,
};
use tributary_domain::report::ReportFigures;
use tributary_domain::report::range::{DayRange, days_before};
use tributary_domain::runtime::Runtime;
use tributary_domain::vocabulary::calendar::today;
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::id::{AppId, MessageId, OrganizationId};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::{
    CheckedNotice, DueMessage, DueNotice, SentMessage, Store, StoreError, StoreResult,
};
use url::Url;

/// Timeout for a request to Slack or a webhook.
const REQUEST_MAX: Duration = Duration::from_secs(10);
/// Duration of a lease: the longest attempt, and as long again for the database.
const LEASE: Duration = Duration::from_mins(1);
/// Longest time between two looks, so that a new time zone of the app takes effect.
const LOOK_MAX: Duration = Duration::from_hours(1);
/// Leased at a time: the one that is handled next, so that a shutdown leaves none leased.
const BATCH: u32 = 1;

/// Looks at due notices and sends their messages.
#[derive(Clone)]
pub struct NoticeService {
    store: Arc<dyn Store>,
    runtime: Runtime,
    keyring: Keyring,
    mailer: Mailer,
    outbound: Outbound,
    base_url: Arc<str>,
    /// Times of recent tests by app.
    tests: Arc<Mutex<BTreeMap<AppId, Vec<Timestamp>>>>,
}

fn last_days(to: Day, days: i32, app: &App) -> DayRange {
    DayRange {
        from: days_before(to, days - 1),
        to,
        zone: app.timezone.clone(),
    }
}

impl NoticeService {
    /// Creates the service. Requests to Slack and webhooks follow the policy.
    pub fn new(
        store: Arc<dyn Store>,
        runtime: Runtime,
        keyring: Keyring,
        mailer: Mailer,
        policy: AddressPolicy,
        base_url: &str,
    ) -> anyhow::Result<Self> {
        Ok(Self {
            store,
            runtime,
            keyring,
            mailer,
            outbound: Outbound::new(policy, REQUEST_MAX)?,
            base_url: base_url.trim_end_matches('/').into(),
            tests: Arc::default(),
        })
    }

    /// Looks at one due notice. Returns whether there was one.
    pub async fn check_due(&self) -> anyhow::Result<bool> {
        let now = self.runtime.now();
        let due = self
            .store
            .lease_notices(now, now.plus(LEASE), BATCH)
            .await?;
        for one in &due {
            let checked = self.check(one, now).await?;
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

    /// Sends one due message. Returns whether there was one.
    pub async fn send_due(&self) -> anyhow::Result<bool> {
        let now = self.runtime.now();
        let due = self
            .store
            .lease_messages(now, now.plus(LEASE), BATCH)
            .await?;
        for one in &due {
            let outcome = self.attempt(one).await?;
            let at = self.runtime.now();
            let wait = outcome.as_ref().err().and(retry_after(one.attempts));
            if let (Err(error), None) = (&outcome, wait) {
                tracing::warn!(app = %one.app, notice = %one.notice_id, error, "giving up on message");
            }
            let sent = SentMessage {
                app: one.app,
                notice: one.notice_id,
                message: one.id,
                error: outcome.err(),
                retry_at: wait.map(|wait| at.plus(wait)),
                at,
            };
            self.store.settle_message(sent).await?;
        }
        Ok(!due.is_empty())
    }

    /// Sends a message. A notice that was deleted or switched off meanwhile sends nothing.
    async fn attempt(&self, due: &DueMessage) -> StoreResult<Result<(), String>> {
        let app = self.app(due.organization, due.app).await?;
        let notice = due.notice.as_ref().filter(|one| one.settings.active);
        let Some(notice) = notice.filter(|_| !app.archived) else {
            return Ok(Ok(()));
        };
        let (organization, topic) = (due.organization, &notice.settings.topic);
        let message = self
            .message(organization, &app, topic, &due.occasion)
            .await?;
        let Some(message) = message else {
            return Ok(Ok(()));
        };
        let sending = self.send(organization, notice, &message, due.id, &due.occasion);
        Ok(sending.await)
    }

    async fn app(&self, organization: OrganizationId, app: AppId) -> StoreResult<App> {
        let reader = Authorized::<AppsRead>::operator(organization);
        self.store.app(&reader, app).await
    }

    async fn total(
        &self,
        organization: OrganizationId,
        app: &App,
        range: &DayRange,
        threshold: &Threshold,
    ) -> StoreResult<ReportFigures> {
        let reader = Authorized::<AnalyticsRead>::operator(organization);
        let figures = NoticeFigures {
            store: &*self.store,
            reader: &reader,
            app: app.id,
        };
        figures.total(range, threshold.network).await
    }

    /// Writes the message about an occasion; `None` if the notice has another topic by now.
    async fn message(
        &self,
        organization: OrganizationId,
        app: &App,
        topic: &NoticeTopic,
        occasion: &Occasion,
    ) -> StoreResult<Option<Message>> {
        let base_url = &self.base_url;
        let range = |from: &Day, to: &Day| DayRange {
            from: *from,
            to: *to,
            zone: app.timezone.clone(),
        };
        Ok(match (occasion, topic) {
            (Occasion::Summary { from, to }, _) => {
                let range = range(from, to);
                let reader = Authorized::<AnalyticsRead>::operator(organization);
                let figures = NoticeFigures {
                    store: &*self.store,
                    reader: &reader,
                    app: app.id,
                };
                let preceding = range.preceding();
                let (now, before, networks) = tokio::try_join!(
                    figures.total(&range, None),
                    figures.total(&preceding, None),
                    figures.networks(&range),
                )?;
                let facts = SummaryFacts {
                    range: &range,
                    now: &now,
                    before: &before,
                    networks: &networks,
                };
                Some(summary_message(base_url, app, &facts))
            }
            (
                Occasion::Threshold {
                    from,
                    to,
                    is_running,
                    micros,
                },
                NoticeTopic::Threshold(threshold),
            ) => {
                let range = range(from, to);
                let (is_running, micros) = (*is_running, *micros);
                let message =
                    threshold_message(base_url, app, threshold, &range, is_running, micros);
                Some(message)
            }
            (Occasion::Threshold { .. }, _) => None,
            (Occasion::Alert(alert), _) => Some(alert_message(base_url, app, alert)),
        })
    }

    /// Returns an occasion for previews and tests: the latest days, or an example.
    async fn example(
        &self,
        organization: OrganizationId,
        app: &App,
        topic: &NoticeTopic,
    ) -> StoreResult<Occasion> {
        let now = self.runtime.now();
        let yesterday = days_before(today(now, &app.timezone), 1);
        let week = last_days(yesterday, 7, app);
        Ok(match topic {
            NoticeTopic::DailySummary { .. } => Occasion::Summary {
                from: yesterday,
                to: yesterday,
            },
            NoticeTopic::WeeklySummary { .. } => Occasion::Summary {
                from: week.from,
                to: week.to,
            },
            NoticeTopic::Threshold(threshold) => {
                let range = match threshold.window {
                    ThresholdWindow::Day => last_days(yesterday, 1, app),
                    ThresholdWindow::Week => week,
                };
                let figures = self.total(organization, app, &range, threshold).await?;
                Occasion::Threshold {
                    from: range.from,
                    to: range.to,
                    is_running: false,
                    micros: threshold.metric.micros(&figures).unwrap_or(0),
                }
            }
            NoticeTopic::IntegrationPaused => {
                Occasion::Alert(example_alert(app.id, AlertKind::IntegrationPaused, now))
            }
            NoticeTopic::TrafficAnomaly => {
                Occasion::Alert(example_alert(app.id, AlertKind::TrafficAnomaly, now))
            }
        })
    }

    async fn example_message(
        &self,
        organization: OrganizationId,
        notice: &Notice,
    ) -> StoreResult<(Occasion, Message)> {
        let app = self.app(organization, notice.app).await?;
        let topic = &notice.settings.topic;
        let occasion = self.example(organization, &app, topic).await?;
        let message = self.message(organization, &app, topic, &occasion).await?;
        let message = message.ok_or_else(|| {
            StoreError::unavailable("preview", "bug: the example has another topic")
        })?;
        Ok((occasion, message))
    }

    /// Returns the message that the notice would send, with the latest figures or an example.
    pub async fn preview(
        &self,
        organization: OrganizationId,
        notice: &Notice,
    ) -> StoreResult<NoticePreview> {
        let (occasion, message) = self.example_message(organization, notice).await?;
        let (body, html) = match notice.settings.channel {
            NoticeChannel::Email(_) => (message.text(), Some(message.html())),
            NoticeChannel::Slack(_) => (slack_body(&message), None),
            NoticeChannel::Webhook(_) => {
                let id = MessageId::from_bytes([0; 16]).to_string();
                let at = self.runtime.now();
                (webhook_body(&id, notice.app, &occasion, &message, at), None)
            }
        };
        Ok(NoticePreview {
            subject: message.subject,
            body,
            html,
        })
    }

    /// Sends the preview now, marked as a test. The inner error says why it was not accepted.
    pub async fn send_test(
        &self,
        organization: OrganizationId,
        notice: &Notice,
    ) -> StoreResult<Result<(), String>> {
        let now = self.runtime.now();
        let is_admitted = {
            let mut tests = self.tests.lock().unwrap_or_else(PoisonError::into_inner);
            admit_test(tests.entry(notice.app).or_default(), now)
        };
        if !is_admitted {
            return Ok(Err("Too many tests. Try again in an hour.".to_owned()));
        }
        let (occasion, mut message) = self.example_message(organization, notice).await?;
        message.lines.insert(0, "This is a test.".to_owned());
        let id = MessageId::new(now, self.runtime.random_bytes());
        Ok(self
            .send(organization, notice, &message, id, &occasion)
            .await)
    }

    /// Sends a message through the notice's channel. The error is for people.
    async fn send(
        &self,
        organization: OrganizationId,
        notice: &Notice,
        message: &Message,
        id: MessageId,
        occasion: &Occasion,
    ) -> Result<(), String> {
        let id = id.to_string();
        match &notice.settings.channel {
            NoticeChannel::Email(recipients) => {
                let mail = Mail {
                    to: recipients.clone(),
                    subject: message.subject.clone(),
                    text: message.text(),
                    html: message.html(),
                    id,
                };
                let sent = self.mailer.send(&mail).await;
                sent.map_err(|error| error.to_string())
            }
            NoticeChannel::Slack(url) => {
                let url = self.open(organization, notice, url)?;
                self.post(&url, slack_body(message), &[]).await
            }
            NoticeChannel::Webhook(url) => {
                let url = self.open(organization, notice, url)?;
                let now = self.runtime.now();
                let body = webhook_body(&id, notice.app, occasion, message, now);
                let seconds = now.as_millis().div_euclid(1_000);
                let signed = self
                    .keyring
                    .sign_alert(notice.app, &id, seconds, body.as_bytes());
                let headers = [
                    ("webhook-id", id),
                    ("webhook-timestamp", seconds.to_string()),
                    ("webhook-signature", format!("v1,{}", BASE64.encode(signed))),
                ];
                self.post(&url, body, &headers).await
            }
        }
    }

    fn open(
        &self,
        organization: OrganizationId,
        notice: &Notice,
        url: &ChannelUrl,
    ) -> Result<String, String> {
        let field = notice.id.to_string();
        let scope = SecretScope::new(organization, notice.app, NOTICE_SECRET_SCOPE, &field);
        let opened = self.keyring.open(&scope.parts(), &url.sealed).ok();
        let opened = opened.and_then(|bytes| String::from_utf8(bytes).ok());
        opened.ok_or_else(|| "The stored URL cannot be decrypted. Enter it again.".to_owned())
    }

    /// Posts JSON to a URL.
    pub(crate) async fn post(
        &self,
        url: &str,
        body: String,
        headers: &[(&str, String)],
    ) -> Result<(), String> {
        let url = Url::parse(url).map_err(|_| "The stored URL is invalid.".to_owned())?;
        let mut request = self.outbound.request(Method::POST, &url);
        request = request.header(CONTENT_TYPE, "application/json").body(body);
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        match self.outbound.send(request).await {
            Ok(response) if response.status().is_success() => Ok(()),
            Ok(response) => {
                let status = response.status().as_u16();
                Err(format!("The receiver answered with status {status}."))
            }
            Err(error @ (OutboundError::Private(_) | OutboundError::TimedOut)) => {
                Err(format!("Nothing was sent: {error}."))
            }
            Err(OutboundError::NotConnected(_)) => {
                Err("The receiver cannot be reached.".to_owned())
            }
            Err(_) => Err("The request failed.".to_owned()),
        }
    }
}

#[async_trait]
impl NoticeSender for NoticeService {
    async fn preview(
        &self,
        organization: OrganizationId,
        notice: &Notice,
    ) -> StoreResult<NoticePreview> {
        Self::preview(self, organization, notice).await
    }

    async fn send_test(
        &self,
        organization: OrganizationId,
        notice: &Notice,
    ) -> StoreResult<Result<(), String>> {
        Self::send_test(self, organization, notice).await
    }
}
