//! JSON form of a subscription and its notifications.

use crate::personal_data::{PersonNotification, PersonSubscription};
use crate::records::NotificationRow;
use serde::Serialize;
use serde_json::value::RawValue;

/// A subscription, or a single notification.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PersonSubscriptionOut {
    provider: &'static str,
    /// The provider's id of the subscription, with a prefix.
    subscription: String,
    trial: Option<TrialOut>,
    notifications: Vec<NotificationOut>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TrialOut {
    due_at: String,
    state: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct NotificationOut {
    notification_id: String,
    happened_at: String,
    received_at: String,
    /// Id of the event that the notification may have caused.
    event_id: String,
    /// Other users that the notification names, who are left out.
    other_users: usize,
    /// The parsed content and the result, as they are stored.
    content: Option<Box<RawValue>>,
    /// The received body, as text.
    body: Option<String>,
}

impl From<PersonSubscription> for PersonSubscriptionOut {
    fn from(one: PersonSubscription) -> Self {
        Self {
            provider: one.chain.provider.as_str(),
            subscription: one.chain.name,
            trial: one.trial.map(|trial| TrialOut {
                due_at: trial.due_at.rfc3339(),
                state: trial.state.as_str(),
            }),
            notifications: one.notifications.into_iter().map(Into::into).collect(),
        }
    }
}

impl From<PersonNotification> for NotificationOut {
    fn from(one: PersonNotification) -> Self {
        let notification = one.notification;
        let content = NotificationRow::write(&notification).facts;
        Self {
            happened_at: notification.happened_at.rfc3339(),
            received_at: notification.received_at.rfc3339(),
            event_id: notification.event.to_string(),
            notification_id: notification.content.external_id,
            other_users: one.other_users,
            content: RawValue::from_string(content).ok(),
            body: one.body,
        }
    }
}
