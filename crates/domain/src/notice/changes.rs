//! Changes to notices, and their audit entries. URLs appear without their path, and addresses only by
//! their number: both may be secret or personal.

use super::{Notice, NoticeSettings, NoticeTopic};
use crate::app::AuditedChange;
use crate::audit::{Changes, FieldChange};
use crate::refusal::Refusal;
use crate::vocabulary::id::UserId;
use crate::vocabulary::revision::Precondition;
use crate::vocabulary::time::Timestamp;
use crate::vocabulary::timezone::Timezone;

impl Notice {
    /// Returns the audit entries for a new notice.
    pub fn creation_changes(&self) -> Vec<FieldChange> {
        let mut changes = Changes::new();
        for (field, value) in audit_values(&self.settings) {
            changes.initial(field, value);
        }
        changes.into_vec()
    }

    /// Replaces the settings. A changed notice starts from now: it sends nothing about earlier days.
    /// `by` is the acting member, who becomes the owner by changing the channel.
    pub fn changed(
        &self,
        settings: NoticeSettings,
        precondition: &Precondition,
        (zone, by): (&Timezone, Option<UserId>),
        now: Timestamp,
    ) -> Result<AuditedChange<Self>, Refusal> {
        self.admit(precondition)?;
        let mut changes = Changes::new();
        let fields = audit_values(&self.settings).into_iter();
        for ((field, before), (_, after)) in fields.zip(audit_values(&settings)) {
            changes.compare(field, before, after);
        }
        let mut changes = changes.into_vec();
        if changes.is_empty() && settings.channel != self.settings.channel {
            changes.push(FieldChange {
                field: "channel".to_owned(),
                before: Some("set".to_owned()),
                after: Some("changed".to_owned()),
            });
        }
        let mut after = self.clone();
        if !changes.is_empty() {
            let is_same = settings.topic == self.settings.topic && self.settings.active;
            if !is_same {
                after.progress = settings.topic.first_progress(zone, now);
            }
            if settings.channel != self.settings.channel {
                after.owner = by;
            }
            after.settings = settings;
            after.last_error = None;
            after.revision = self.revision.next();
            after.updated_at = now;
        }
        Ok(AuditedChange { after, changes })
    }
}

/// Returns the fields' names and values for the audit log.
fn audit_values(settings: &NoticeSettings) -> Vec<(&'static str, Option<String>)> {
    let (channel, topic) = (&settings.channel, &settings.topic);
    let recipients = channel.recipients().len();
    let (hour, weekday) = match topic {
        NoticeTopic::DailySummary { hour } => (Some(*hour), None),
        NoticeTopic::WeeklySummary { weekday, hour } => (Some(*hour), Some(*weekday)),
        NoticeTopic::Threshold(_)
        | NoticeTopic::IntegrationPaused
        | NoticeTopic::TrafficAnomaly => (None, None),
    };
    let threshold = match topic {
        NoticeTopic::Threshold(threshold) => Some(threshold),
        _ => None,
    };
    vec![
        ("name", Some(settings.name.as_str().to_owned())),
        ("active", Some(settings.active.to_string())),
        ("channel", Some(channel.kind().as_str().to_owned())),
        (
            "recipients",
            (recipients > 0).then(|| recipients.to_string()),
        ),
        ("url", channel.url().map(|url| url.origin.clone())),
        ("topic", Some(topic.kind().as_str().to_owned())),
        ("hour", hour.map(|hour| hour.to_string())),
        ("weekday", weekday.map(|day| day.as_str().to_owned())),
        ("metric", threshold.map(|one| one.metric.word.to_owned())),
        (
            "condition",
            threshold.map(|one| one.condition.as_str().to_owned()),
        ),
        ("value", threshold.map(|one| one.value.to_string())),
        (
            "window",
            threshold.map(|one| one.window.as_str().to_owned()),
        ),
        (
            "network",
            threshold.and_then(|one| Some(one.network?.as_str().to_owned())),
        ),
    ]
}
