//! JSON form of a notice.

use crate::body::Envelope;
use crate::decimal::number;
use crate::time_text::rfc3339;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tributary_domain::notice::{Notice, NoticeTopic, Weekday};
use utoipa::ToSchema;

/// A notice: a report or an alert that an app sends to people.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "Notice")]
pub(super) struct NoticeOut {
    #[schema(example = "ntc_01k9z3v7q8e4r9m2x5c6b7n8d1")]
    id: String,
    app_id: String,
    name: String,
    active: bool,
    /// `email`, `slack` or `webhook`.
    channel: &'static str,
    /// Addresses of `email`.
    recipients: Vec<String>,
    /// Scheme and host of the URL of `slack` and `webhook`. The URL itself is a secret.
    url_origin: Option<String>,
    /// `daily_summary`, `weekly_summary`, `threshold`, `integration_paused` or `traffic_anomaly`.
    topic: &'static str,
    hour: Option<u8>,
    weekday: Option<&'static str>,
    metric: Option<&'static str>,
    /// `over` or `under`.
    condition: Option<&'static str>,
    #[schema(value_type = Option<f64>)]
    value: Option<Box<RawValue>>,
    /// `day` or `week`.
    window: Option<&'static str>,
    network: Option<&'static str>,
    /// When the last message was accepted.
    #[schema(format = DateTime)]
    last_sent_at: Option<String>,
    /// Why the latest message was not accepted; null after a success.
    last_error: Option<String>,
    #[schema(format = DateTime)]
    created_at: String,
    #[schema(format = DateTime)]
    updated_at: String,
}

pub(super) type NoticeEnvelope = Envelope<NoticeOut>;

// A named type, because `Vec` would be the name of the schema.
/// All notices of an app.
#[derive(Debug, Serialize, ToSchema)]
#[schema(title = "Notices")]
pub(super) struct AllNotices(pub(super) Vec<NoticeOut>);

pub(super) type NoticesEnvelope = Envelope<AllNotices>;

impl NoticeOut {
    pub(super) fn of(notice: &Notice) -> Self {
        let (channel, topic) = (&notice.settings.channel, &notice.settings.topic);
        let (hour, weekday, threshold) = match topic {
            NoticeTopic::DailySummary { hour } => (Some(*hour), None, None),
            NoticeTopic::WeeklySummary { weekday, hour } => (Some(*hour), Some(*weekday), None),
            NoticeTopic::Threshold(threshold) => (None, None, Some(threshold)),
            NoticeTopic::IntegrationPaused | NoticeTopic::TrafficAnomaly => (None, None, None),
        };
        let recipients = channel.recipients().iter();
        Self {
            id: notice.id.to_string(),
            app_id: notice.app.to_string(),
            name: notice.settings.name.as_str().to_owned(),
            active: notice.settings.active,
            channel: channel.kind().as_str(),
            recipients: recipients.map(|one| one.as_str().to_owned()).collect(),
            url_origin: channel.url().map(|url| url.origin.clone()),
            topic: topic.kind().as_str(),
            hour,
            weekday: weekday.map(Weekday::as_str),
            metric: threshold.map(|one| one.metric.word),
            condition: threshold.map(|one| one.condition.as_str()),
            value: threshold.and_then(|one| number(one.value)),
            window: threshold.map(|one| one.window.as_str()),
            network: threshold.and_then(|one| Some(one.network?.as_str())),
            last_sent_at: notice.last_sent_at.map(rfc3339),
            last_error: notice.last_error.clone(),
            created_at: rfc3339(notice.created_at),
            updated_at: rfc3339(notice.updated_at),
        }
    }
}

/// Returns an example for the OpenAPI description.
pub(super) fn example() -> Value {
    json!({
        "id": "ntc_01k9z3v7q8e4r9m2x5c6b7n8d1",
        "appId": "app_01k9z3v7q8e4r9m2x5c6b7n8d1",
        "name": "Every morning",
        "active": true,
        "channel": "email",
        "recipients": ["team@example.com"],
        "urlOrigin": null,
        "topic": "daily_summary",
        "hour": 8,
        "weekday": null,
        "metric": null,
        "condition": null,
        "value": null,
        "window": null,
        "network": null,
        "lastSentAt": "2026-01-12T07:00:03.120Z",
        "lastError": null,
        "createdAt": "2026-01-02T10:00:00.000Z",
        "updatedAt": "2026-01-02T10:00:00.000Z"
    })
}
