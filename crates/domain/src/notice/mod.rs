//! Notices: reports and alerts that an app sends by e-mail, to Slack or to a webhook.
//!
//! A notice says what to send (its topic) and where to (its channel). Everything that it sends is a
//! message.

mod address;
mod changes;
mod draft;
mod message;
mod occasion;
mod ownership;
mod schedule;
mod summary;
mod threshold;

pub use address::{MailAddress, RECIPIENTS_MAX, distinct_recipients};
pub use draft::{DraftChannel, HOURS, NoticeDraft, NoticeInput};
pub(crate) use message::one_line;
pub use message::{Message, MessageTable, MessageValue, NoticePreview, SUBJECT_CHARS_MAX};
pub use occasion::{MessageOutcome, Occasion, admit_test, example_alert, message_id, retry_after};
pub use ownership::notices_of_removed_member;
pub use schedule::{DueCheck, NoticePlan, NoticeProgress, Weekday};
pub use summary::{SummaryFacts, alert_message, summary_message, threshold_message};
pub use threshold::{Threshold, ThresholdCondition, ThresholdWindow};

use crate::forwarding::alert::{Alert, AlertKind};
use crate::keyring::seal::SealedSecret;
use crate::refusal::Refusal;
use crate::vocabulary::id::{AppId, NoticeId, UserId};
use crate::vocabulary::revision::{Precondition, Revision};
use crate::vocabulary::text::Name;
use crate::vocabulary::time::Timestamp;

/// Notices per app. More would hardly be read, and each one costs a report a day.
pub const NOTICES_MAX: usize = 50;

/// Kind of channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChannelKind {
    /// E-mail to one or more people.
    Email,
    /// A Slack channel, through an incoming webhook.
    Slack,
    /// A signed POST request, like the app's alert webhook.
    Webhook,
}

crate::keywords! { ChannelKind[3] { Email => "email", Slack => "slack", Webhook => "webhook" } }

/// What a notice is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TopicKind {
    /// The figures of the day before.
    DailySummary,
    /// The figures of the seven days before.
    WeeklySummary,
    /// A metric above or below a value.
    Threshold,
    /// An integration that paused.
    IntegrationPaused,
    /// An hour with far more traffic than usual.
    TrafficAnomaly,
}

crate::keywords! {
    TopicKind[5] {
        DailySummary => "daily_summary",
        WeeklySummary => "weekly_summary",
        Threshold => "threshold",
        IntegrationPaused => "integration_paused",
        TrafficAnomaly => "traffic_anomaly",
    }
}

/// A URL that receives messages. It is a secret: everyone who knows it can post.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChannelUrl {
    /// The encrypted URL.
    pub sealed: SealedSecret,
    /// Scheme and host, which may be shown.
    pub origin: String,
}

/// Where a notice is sent to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoticeChannel {
    /// These addresses.
    Email(Vec<MailAddress>),
    /// Slack's incoming webhook.
    Slack(ChannelUrl),
    /// A webhook.
    Webhook(ChannelUrl),
}

impl NoticeChannel {
    /// Returns the kind.
    pub const fn kind(&self) -> ChannelKind {
        match self {
            Self::Email(_) => ChannelKind::Email,
            Self::Slack(_) => ChannelKind::Slack,
            Self::Webhook(_) => ChannelKind::Webhook,
        }
    }

    /// Returns the addresses of an e-mail channel.
    pub fn recipients(&self) -> &[MailAddress] {
        match self {
            Self::Email(recipients) => recipients,
            Self::Slack(_) | Self::Webhook(_) => &[],
        }
    }

    /// Returns the URL of the other channels.
    pub const fn url(&self) -> Option<&ChannelUrl> {
        match self {
            Self::Email(_) => None,
            Self::Slack(url) | Self::Webhook(url) => Some(url),
        }
    }
}

/// What a notice sends, and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoticeTopic {
    /// Every day at this hour of the app's time zone.
    DailySummary {
        /// Hour, 0–23.
        hour: u8,
    },
    /// Every week on this day, at this hour of the app's time zone.
    WeeklySummary {
        /// Day of the week.
        weekday: Weekday,
        /// Hour, 0–23.
        hour: u8,
    },
    /// When a metric is above or below a value.
    Threshold(Threshold),
    /// When an integration pauses.
    IntegrationPaused,
    /// When an hour has far more traffic than usual.
    TrafficAnomaly,
}

impl NoticeTopic {
    /// Returns the kind.
    pub const fn kind(&self) -> TopicKind {
        match self {
            Self::DailySummary { .. } => TopicKind::DailySummary,
            Self::WeeklySummary { .. } => TopicKind::WeeklySummary,
            Self::Threshold(_) => TopicKind::Threshold,
            Self::IntegrationPaused => TopicKind::IntegrationPaused,
            Self::TrafficAnomaly => TopicKind::TrafficAnomaly,
        }
    }

    /// Returns the alerts that the topic is about, if any.
    pub const fn alert_kind(&self) -> Option<AlertKind> {
        match self {
            Self::IntegrationPaused => Some(AlertKind::IntegrationPaused),
            Self::TrafficAnomaly => Some(AlertKind::TrafficAnomaly),
            Self::DailySummary { .. } | Self::WeeklySummary { .. } | Self::Threshold(_) => None,
        }
    }
}

/// What people choose for a notice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoticeSettings {
    /// Name for people.
    pub name: Name,
    /// Whether it sends messages.
    pub active: bool,
    /// Where it sends to.
    pub channel: NoticeChannel,
    /// What it sends.
    pub topic: NoticeTopic,
}

/// A notice of an app.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// Id.
    pub id: NoticeId,
    /// App.
    pub app: AppId,
    /// What people chose.
    pub settings: NoticeSettings,
    /// Member who chose the channel: the creator, or the last one to change it. `None` if the operator
    /// did, or an earlier version.
    pub owner: Option<UserId>,
    /// What it has checked and sent already.
    pub progress: NoticeProgress,
    /// When the last message was accepted.
    pub last_sent_at: Option<Timestamp>,
    /// Why the latest message was not accepted; `None` after a success.
    pub last_error: Option<String>,
    /// Creation time.
    pub created_at: Timestamp,
    /// Time of the last change of the settings.
    pub updated_at: Timestamp,
    /// Number of changes of the settings.
    pub revision: Revision,
}

impl Notice {
    /// Returns the entity tag for `If-Match`.
    pub fn tag(&self) -> String {
        self.revision.number().to_string()
    }

    /// Rejects a change that is based on another version.
    pub fn admit(&self, precondition: &Precondition) -> Result<(), Refusal> {
        if precondition.admits(&self.tag()) {
            Ok(())
        } else {
            Err(Refusal::VersionConflict)
        }
    }

    /// Returns when to look at a notice that was just stored; `None` if it follows alerts or is off.
    pub fn first_look(&self) -> Option<Timestamp> {
        let is_scheduled = self.settings.active && self.settings.topic.alert_kind().is_none();
        is_scheduled.then_some(self.updated_at)
    }

    /// Returns whether the notice sends a message about an alert.
    pub fn wants(&self, alert: &Alert) -> bool {
        self.settings.active && self.settings.topic.alert_kind() == Some(alert.kind)
    }
}

/// Refuses a further notice of an app that has [`NOTICES_MAX`].
pub const fn admit_another(stored: usize) -> Result<(), Refusal> {
    if stored < NOTICES_MAX {
        Ok(())
    } else {
        Err(Refusal::TooManyNotices)
    }
}

#[cfg(test)]
mod samples;
#[cfg(test)]
mod tests;
