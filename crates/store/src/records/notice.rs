//! Rows of notices and their messages.

use super::columns::row;
use super::{from_json, to_json};
use crate::{DueMessage, StoreError};
use serde::{Deserialize, Serialize};
use tributary_domain::attribution::CreditedNetwork;
use tributary_domain::forwarding::alert::{Alert, AlertKind};
use tributary_domain::integration::Network;
use tributary_domain::keyring::seal::SealedSecret;
use tributary_domain::notice::{
    ChannelKind, ChannelUrl, MailAddress, Notice, NoticeChannel, NoticeProgress, NoticeSettings,
    NoticeTopic, Occasion, Threshold, ThresholdCondition, ThresholdWindow, TopicKind, Weekday,
    message_id,
};
use tributary_domain::report::metric::Metric;
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::id::{
    AlertId, AppId, MessageId, NoticeId, OrganizationId, UserId,
};
use tributary_domain::vocabulary::money::Amount;
use tributary_domain::vocabulary::revision::Revision;
use tributary_domain::vocabulary::text::Name;
use tributary_domain::vocabulary::time::Timestamp;

row! {
    /// A row of `notices`, without `due_at`.
    #[derive(Debug, Clone)]
    #[expect(missing_docs, reason = "columns")]
    pub struct NoticeRow {
        pub app_id: [u8; 16],
        pub notice_id: [u8; 16],
        pub name: String,
        pub active: bool,
        pub topic: String,
        pub settings: String,
        pub url: Option<Vec<u8>>,
        pub done_until: Option<i64>,
        pub is_beyond: bool,
        pub last_sent_at: Option<i64>,
        pub last_error: Option<String>,
        pub created_at: i64,
        pub updated_at: i64,
        pub revision: i64,
        pub owner_id: Option<[u8; 16]>,
    }
}

#[derive(Serialize, Deserialize)]
struct StoredThreshold {
    metric: String,
    condition: String,
    value_micros: i64,
    window: String,
    network: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct StoredSettings {
    channel: String,
    recipients: Vec<String>,
    url_origin: Option<String>,
    hour: Option<u8>,
    weekday: Option<String>,
    threshold: Option<StoredThreshold>,
}

impl StoredSettings {
    fn of(settings: &NoticeSettings) -> Self {
        let channel = &settings.channel;
        let recipients = channel.recipients().iter();
        let (hour, weekday, threshold) = match &settings.topic {
            NoticeTopic::DailySummary { hour } => (Some(*hour), None, None),
            NoticeTopic::WeeklySummary { weekday, hour } => (Some(*hour), Some(*weekday), None),
            NoticeTopic::Threshold(threshold) => (None, None, Some(threshold)),
            NoticeTopic::IntegrationPaused | NoticeTopic::TrafficAnomaly => (None, None, None),
        };
        let threshold = threshold.map(|one| StoredThreshold {
            metric: one.metric.word.to_owned(),
            condition: one.condition.as_str().to_owned(),
            value_micros: one.value.micros(),
            window: one.window.as_str().to_owned(),
            network: one.network.map(|network| network.as_str().to_owned()),
        });
        Self {
            channel: channel.kind().as_str().to_owned(),
            recipients: recipients.map(|one| one.as_str().to_owned()).collect(),
            url_origin: channel.url().map(|url| url.origin.clone()),
            hour,
            weekday: weekday.map(|day| day.as_str().to_owned()),
            threshold,
        }
    }

    fn channel(&self, url: Option<Vec<u8>>) -> Option<NoticeChannel> {
        let url = || {
            Some(ChannelUrl {
                sealed: SealedSecret::from_bytes(url?),
                origin: self.url_origin.clone()?,
            })
        };
        Some(match ChannelKind::parse(&self.channel)? {
            ChannelKind::Email => {
                let parsed = self
                    .recipients
                    .iter()
                    .map(|text| MailAddress::parse(text).ok());
                NoticeChannel::Email(parsed.collect::<Option<_>>()?)
            }
            ChannelKind::Slack => NoticeChannel::Slack(url()?),
            ChannelKind::Webhook => NoticeChannel::Webhook(url()?),
        })
    }

    fn topic(&self, kind: &str) -> Option<NoticeTopic> {
        Some(match TopicKind::parse(kind)? {
            TopicKind::DailySummary => NoticeTopic::DailySummary { hour: self.hour? },
            TopicKind::WeeklySummary => NoticeTopic::WeeklySummary {
                weekday: Weekday::parse(self.weekday.as_deref()?)?,
                hour: self.hour?,
            },
            TopicKind::Threshold => {
                let stored = self.threshold.as_ref()?;
                let network = stored.network.as_deref();
                NoticeTopic::Threshold(Threshold {
                    metric: Metric::find(&stored.metric)?,
                    condition: ThresholdCondition::parse(&stored.condition)?,
                    value: Amount::from_micros(stored.value_micros),
                    window: ThresholdWindow::parse(&stored.window)?,
                    network: match network {
                        Some(network) => Some(CreditedNetwork::parse(network)?),
                        None => None,
                    },
                })
            }
            TopicKind::IntegrationPaused => NoticeTopic::IntegrationPaused,
            TopicKind::TrafficAnomaly => NoticeTopic::TrafficAnomaly,
        })
    }
}

impl NoticeRow {
    /// Converts a notice to columns.
    pub fn write(notice: &Notice) -> Self {
        let settings = &notice.settings;
        let url = settings
            .channel
            .url()
            .map(|url| url.sealed.as_bytes().to_vec());
        let done_until = notice.progress.done_until;
        Self {
            app_id: *notice.app.as_bytes(),
            notice_id: *notice.id.as_bytes(),
            name: settings.name.as_str().to_owned(),
            active: settings.active,
            topic: settings.topic.kind().as_str().to_owned(),
            settings: to_json(&StoredSettings::of(settings)),
            url,
            done_until: done_until.map(|day| i64::from(day.as_days())),
            is_beyond: notice.progress.is_beyond,
            last_sent_at: notice.last_sent_at.map(Timestamp::as_millis),
            last_error: notice.last_error.clone(),
            created_at: notice.created_at.as_millis(),
            updated_at: notice.updated_at.as_millis(),
            revision: notice.revision.number(),
            owner_id: notice.owner.map(|owner| *owner.as_bytes()),
        }
    }

    /// Reads the notice.
    pub fn read(self) -> Result<Notice, StoreError> {
        let id = NoticeId::from_bytes(self.notice_id);
        let corrupt = |column| StoreError::corrupt("notices", column, id);
        let stored: StoredSettings = from_json("notices", "settings", id, &self.settings)?;
        let day = |days: i64| i32::try_from(days).map(Day::from_days);
        let done_until = self.done_until.map(day).transpose();
        Ok(Notice {
            id,
            app: AppId::from_bytes(self.app_id),
            settings: NoticeSettings {
                name: Name::parse(&self.name).map_err(|_| corrupt("name"))?,
                active: self.active,
                channel: stored
                    .channel(self.url)
                    .ok_or_else(|| corrupt("settings"))?,
                topic: stored.topic(&self.topic).ok_or_else(|| corrupt("topic"))?,
            },
            progress: NoticeProgress {
                done_until: done_until.map_err(|_| corrupt("done_until"))?,
                is_beyond: self.is_beyond,
            },
            owner: self.owner_id.map(UserId::from_bytes),
            last_sent_at: self.last_sent_at.map(Timestamp::from_millis),
            last_error: self.last_error,
            created_at: Timestamp::from_millis(self.created_at),
            updated_at: Timestamp::from_millis(self.updated_at),
            revision: Revision::from_number(self.revision),
        })
    }
}

row! {
    /// A row of `notice_messages`.
    #[derive(Debug, Clone)]
    #[expect(missing_docs, reason = "columns")]
    pub struct NoticeMessageRow {
        pub app_id: [u8; 16],
        pub message_id: [u8; 16],
        pub notice_id: [u8; 16],
        pub occasion: String,
        pub at: i64,
        pub attempts: i64,
        pub due_at: Option<i64>,
    }
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum StoredOccasion {
    Summary {
        from: i32,
        to: i32,
    },
    Threshold {
        from: i32,
        to: i32,
        is_running: bool,
        micros: i64,
    },
    Alert {
        id: String,
        alert: String,
        network: Option<String>,
        at: i64,
        message: String,
    },
}

impl StoredOccasion {
    fn of(occasion: &Occasion) -> Self {
        match occasion {
            Occasion::Summary { from, to } => Self::Summary {
                from: from.as_days(),
                to: to.as_days(),
            },
            Occasion::Threshold {
                from,
                to,
                is_running,
                micros,
            } => Self::Threshold {
                from: from.as_days(),
                to: to.as_days(),
                is_running: *is_running,
                micros: *micros,
            },
            Occasion::Alert(alert) => Self::Alert {
                id: alert.id.to_string(),
                alert: alert.kind.as_str().to_owned(),
                network: alert.network.map(|network| network.as_str().to_owned()),
                at: alert.at.as_millis(),
                message: alert.message.clone(),
            },
        }
    }

    fn read(self, app: AppId) -> Option<Occasion> {
        Some(match self {
            Self::Summary { from, to } => Occasion::Summary {
                from: Day::from_days(from),
                to: Day::from_days(to),
            },
            Self::Threshold {
                from,
                to,
                is_running,
                micros,
            } => Occasion::Threshold {
                from: Day::from_days(from),
                to: Day::from_days(to),
                is_running,
                micros,
            },
            Self::Alert {
                id,
                alert,
                network,
                at,
                message,
            } => Occasion::Alert(Alert {
                id: AlertId::parse(&id).ok()?,
                app,
                kind: AlertKind::parse(&alert)?,
                network: match network {
                    Some(network) => Some(Network::parse(&network)?),
                    None => None,
                },
                at: Timestamp::from_millis(at),
                message,
            }),
        })
    }
}

impl NoticeMessageRow {
    /// Converts a new message to columns. It is due at once.
    pub fn write(notice: &Notice, occasion: &Occasion, at: Timestamp) -> Self {
        Self {
            app_id: *notice.app.as_bytes(),
            message_id: *message_id(notice, occasion).as_bytes(),
            notice_id: *notice.id.as_bytes(),
            occasion: to_json(&StoredOccasion::of(occasion)),
            at: at.as_millis(),
            attempts: 0,
            due_at: Some(at.as_millis()),
        }
    }

    /// Reads the message together with its notice, which is one of the app's.
    pub fn read(
        &self,
        organization: OrganizationId,
        notices: Vec<NoticeRow>,
    ) -> Result<DueMessage, StoreError> {
        let mut notices = notices.into_iter();
        let notice = notices.find(|one| one.notice_id == self.notice_id);
        Ok(DueMessage {
            organization,
            id: MessageId::from_bytes(self.message_id),
            notice_id: NoticeId::from_bytes(self.notice_id),
            notice: notice.map(NoticeRow::read).transpose()?,
            app: AppId::from_bytes(self.app_id),
            occasion: self.occasion()?,
            attempts: u32::try_from(self.attempts).unwrap_or(u32::MAX),
        })
    }

    /// Reads what the message is about.
    fn occasion(&self) -> Result<Occasion, StoreError> {
        let id = MessageId::from_bytes(self.message_id);
        let stored: StoredOccasion = from_json("notice_messages", "occasion", id, &self.occasion)?;
        let read = stored.read(AppId::from_bytes(self.app_id));
        read.ok_or_else(|| StoreError::corrupt("notice_messages", "occasion", id))
    }
}
