//! Notices: looks at those that are due, writes their messages and sends them.
//!
//! A message is queued in the transaction that records the look, and removed from the queue after the
//! channel accepted it. It is therefore sent at least once. Every attempt has the same id: the
//! Message-ID of an e-mail, the `webhook-id` of a webhook.

mod channel;
mod down;
mod due;
mod figures;
mod send;

use crate::mail::Mailer;
use crate::outbound::{AddressPolicy, Outbound};
use async_trait::async_trait;
use channel::{slack_body, webhook_body};
use down::DownDestinations;
use figures::NoticeFigures;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tributary_api::NoticeSender;
use tributary_domain::access::{AnalyticsRead, AppsRead, Authorized};
use tributary_domain::app::App;
use tributary_domain::forwarding::alert::AlertKind;
use tributary_domain::keyring::Keyring;
use tributary_domain::notice::{
    Message, Notice, NoticeChannel, NoticePreview, NoticeTopic, Occasion, SummaryFacts, Threshold,
    ThresholdWindow, admit_test, alert_message, example_alert, summary_message, threshold_message,
};
use tributary_domain::report::ReportFigures;
use tributary_domain::report::range::{DayRange, days_before};
use tributary_domain::runtime::Runtime;
use tributary_domain::vocabulary::calendar::today;
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::id::{AppId, MessageId, OrganizationId};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::{Store, StoreError, StoreResult};

/// Timeout for a request to Slack or a webhook.
const REQUEST_MAX: Duration = Duration::from_secs(10);

/// Looks at due notices and sends their messages.
#[derive(Clone)]
pub struct NoticeService {
    store: Arc<dyn Store>,
    runtime: Runtime,
    keyring: Keyring,
    mailer: Mailer,
    outbound: Outbound,
    base_url: Arc<str>,
    down: Arc<Mutex<DownDestinations>>,
    /// Ids of unreadable rows that were logged already.
    logged: Arc<Mutex<BTreeSet<String>>>,
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
            down: Arc::default(),
            logged: Arc::default(),
            tests: Arc::default(),
        })
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
            (
                Occasion::Summary { from, to },
                NoticeTopic::DailySummary { .. } | NoticeTopic::WeeklySummary { .. },
            ) => {
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
            (Occasion::Alert(alert), _) if topic.alert_kind() == Some(alert.kind) => {
                Some(alert_message(base_url, app, alert))
            }
            _ => None,
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

    /// Returns the mailer, for e-mails that are no notices.
    pub const fn mailer(&self) -> &Mailer {
        &self.mailer
    }

    /// Returns whether e-mail is set up on this server.
    pub const fn sends_mail(&self) -> bool {
        self.mailer.is_set_up()
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
        let sent = self.send(organization, notice, &message, id, &occasion);
        Ok(sent.await.map_err(|failure| failure.reason))
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
