//! Rows of deliveries, their queues and attempts.

use super::columns::row;
use super::{from_json, to_json};
use crate::{PendingDelivery, QueueRef, StatusCheck, StoreError};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tributary_domain::event::Event;
use tributary_domain::forwarding::delivery::delivery_id;
use tributary_domain::forwarding::lifecycle::expired_status;
use tributary_domain::forwarding::plan::{PlannedDelivery, SkipReason};
use tributary_domain::forwarding::queue::{Pause, QueueState};
use tributary_domain::forwarding::{AttemptVerdict, Delivery, DeliveryAttempt, DeliveryStatus};
use tributary_domain::integration::Network;
use tributary_domain::vocabulary::id::{AlertId, AppId, DeliveryId, EventId};
use tributary_domain::vocabulary::time::Timestamp;

#[derive(Serialize, Deserialize)]
struct AttemptJson {
    at: i64,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    status: Option<u16>,
    ms: u32,
    verdict: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    answer: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    refusal: Option<String>,
}

/// Converts attempts to JSON. Most deliveries have one attempt, and all attempts are read and
/// written together.
pub fn attempts_to_json(attempts: &[DeliveryAttempt]) -> String {
    let json = |attempt: &DeliveryAttempt| AttemptJson {
        at: attempt.at.as_millis(),
        status: attempt.status,
        ms: attempt.duration_ms,
        verdict: attempt.verdict.as_str().to_owned(),
        answer: attempt.answer.clone(),
        refusal: attempt.refusal.clone(),
    };
    to_json(&attempts.iter().map(json).collect::<Vec<_>>())
}

fn attempts_from_json(
    table: &'static str,
    id: DeliveryId,
    text: &str,
) -> Result<Vec<DeliveryAttempt>, StoreError> {
    let attempts: Vec<AttemptJson> = from_json(table, "attempts", id, text)?;
    let read = |attempt: AttemptJson| {
        let verdict = AttemptVerdict::parse(&attempt.verdict);
        Ok(DeliveryAttempt {
            at: Timestamp::from_millis(attempt.at),
            status: attempt.status,
            duration_ms: attempt.ms,
            verdict: verdict.ok_or_else(|| StoreError::corrupt(table, "attempts", id))?,
            answer: attempt.answer,
            refusal: attempt.refusal,
        })
    };
    attempts.into_iter().map(read).collect()
}

/// Converts an event's skipped networks to JSON. Returns `None` when no network is skipped.
pub fn skipped_to_json(skipped: &[(Network, SkipReason)]) -> Option<String> {
    if skipped.is_empty() {
        return None;
    }
    let pairs: BTreeMap<&str, &str> = skipped
        .iter()
        .map(|(network, skip)| (network.as_str(), skip.as_str()))
        .collect();
    Some(to_json(&pairs))
}

/// Reads the networks skipped for events, for counting. Omits unknown reasons.
pub fn skipped_from_json_lossy(text: Option<&str>) -> Vec<(Network, SkipReason)> {
    let pairs: Option<BTreeMap<String, String>> =
        text.and_then(|text| serde_json::from_str(text).ok());
    let parse = |(network, skip): (String, String)| {
        Some((Network::parse(&network)?, SkipReason::parse(&skip)?))
    };
    pairs
        .unwrap_or_default()
        .into_iter()
        .filter_map(parse)
        .collect()
}

/// SQL for the name of a delivery's event. The table with the delivery has the alias `found`.
pub const EVENT_NAME: &str = "(select named.name from events as named
     where named.app_id = found.app_id and named.environment = 'live'
         and named.event_id = found.event_id)";

/// Returns the pattern for SQL's `like`, with `\` as the escape character, that finds the events
/// not sent to a network for any reason.
pub fn skipped_network_pattern(network: Network) -> String {
    let name = network.as_str().replace('_', "\\_");
    format!("%\"{name}\":%")
}

/// Returns the pattern for SQL's `like`, with `\` as the escape character, that finds the events
/// not sent to a network for a reason.
pub fn skipped_pattern(network: Network, reason: SkipReason) -> String {
    let pair = to_json(&BTreeMap::from([(network.as_str(), reason.as_str())]));
    let pair = pair.trim_matches(['{', '}']).replace('_', "\\_");
    format!("%{pair}%")
}

pub(super) fn skipped_from_json(
    id: EventId,
    text: Option<&str>,
) -> Result<Vec<(Network, SkipReason)>, StoreError> {
    let Some(text) = text else {
        return Ok(Vec::new());
    };
    let pairs: BTreeMap<String, String> = from_json("events", "skipped", id, text)?;
    let read = |(network, skip): (String, String)| {
        Network::parse(&network)
            .zip(SkipReason::parse(&skip))
            .ok_or_else(|| StoreError::corrupt("events", "skipped", id))
    };
    pairs.into_iter().map(read).collect()
}

/// A new row of `outbox`. The other columns have defaults.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "columns")]
pub struct PlannedRow {
    pub app_id: [u8; 16],
    pub delivery_id: [u8; 16],
    pub network: String,
    pub event_id: [u8; 16],
    pub network_event: String,
    pub dedup_id: String,
    pub planned_at: i64,
    pub due_at: i64,
    pub expires_at: i64,
}

impl PlannedRow {
    /// Converts a newly planned delivery to columns.
    pub fn write(event: &Event, planned: &PlannedDelivery, at: Timestamp) -> Self {
        Self {
            app_id: *event.app.as_bytes(),
            delivery_id: *delivery_id(event.id, planned.network).as_bytes(),
            network: planned.network.as_str().to_owned(),
            event_id: *event.id.as_bytes(),
            network_event: planned.network_event.clone(),
            dedup_id: planned.dedup_id.clone(),
            planned_at: at.as_millis(),
            due_at: planned.due_at.as_millis(),
            expires_at: planned.expires_at.as_millis(),
        }
    }
}

row! {
    /// A row of `outbox`.
    #[derive(Debug, Clone)]
    #[expect(missing_docs, reason = "columns")]
    pub struct OutboxRow {
        pub app_id: [u8; 16],
        pub delivery_id: [u8; 16],
        pub network: String,
        pub event_id: [u8; 16],
        pub network_event: String,
        pub dedup_id: String,
        pub planned_at: i64,
        pub due_at: i64,
        pub attempts_made: i64,
        pub ambiguous_since: Option<i64>,
        pub sending_at: Option<i64>,
        pub attempts: String,
    }
}

impl OutboxRow {
    /// Reads the delivery for sending.
    pub fn read_pending(self) -> Result<PendingDelivery, StoreError> {
        let id = DeliveryId::from_bytes(self.delivery_id);
        Ok(PendingDelivery {
            id,
            event: EventId::from_bytes(self.event_id),
            network_event: self.network_event,
            dedup_id: self.dedup_id,
            planned_at: Timestamp::from_millis(self.planned_at),
            attempts_made: u32::try_from(self.attempts_made).unwrap_or(0),
            attempts: attempts_from_json("outbox", id, &self.attempts)?,
            ambiguous_since: self.ambiguous_since.map(Timestamp::from_millis),
            interrupted_at: self.sending_at.map(Timestamp::from_millis),
        })
    }

    /// Reads the delivery for display.
    pub fn read(self) -> Result<Delivery, StoreError> {
        let id = DeliveryId::from_bytes(self.delivery_id);
        let network = Network::parse(&self.network);
        Ok(Delivery {
            id,
            app: AppId::from_bytes(self.app_id),
            event: EventId::from_bytes(self.event_id),
            network: network.ok_or_else(|| StoreError::corrupt("outbox", "network", id))?,
            network_event: self.network_event,
            dedup_id: self.dedup_id,
            status: DeliveryStatus::Pending,
            reason: None,
            planned_at: Timestamp::from_millis(self.planned_at),
            settled_at: None,
            next_attempt_at: Some(Timestamp::from_millis(self.due_at)),
            attempts_made: u32::try_from(self.attempts_made).unwrap_or(0),
            attempts: attempts_from_json("outbox", id, &self.attempts)?,
        })
    }
}

row! {
    /// A row of `deliveries`.
    #[derive(Debug, Clone)]
    #[expect(missing_docs, reason = "columns")]
    pub struct DeliveryRow {
        pub app_id: [u8; 16],
        pub delivery_id: [u8; 16],
        pub network: String,
        pub event_id: [u8; 16],
        pub network_event: String,
        pub dedup_id: String,
        pub planned_at: i64,
        pub expires_at: i64,
        pub settled_at: i64,
        pub status: String,
        pub reason: Option<String>,
        pub attempts_made: i64,
        pub attempts: String,
    }
}

impl DeliveryRow {
    /// Reads the delivery for display.
    pub fn read(self) -> Result<Delivery, StoreError> {
        let id = DeliveryId::from_bytes(self.delivery_id);
        let corrupt = |column| StoreError::corrupt("deliveries", column, id);
        Ok(Delivery {
            id,
            app: AppId::from_bytes(self.app_id),
            event: EventId::from_bytes(self.event_id),
            network: Network::parse(&self.network).ok_or_else(|| corrupt("network"))?,
            network_event: self.network_event,
            dedup_id: self.dedup_id,
            status: DeliveryStatus::parse(&self.status).ok_or_else(|| corrupt("status"))?,
            reason: self.reason,
            planned_at: Timestamp::from_millis(self.planned_at),
            settled_at: Some(Timestamp::from_millis(self.settled_at)),
            next_attempt_at: None,
            attempts_made: u32::try_from(self.attempts_made).unwrap_or(0),
            attempts: attempts_from_json("deliveries", id, &self.attempts)?,
        })
    }
}

row! {
    /// A row of `queues`, without key and lease.
    #[derive(Debug, Clone, Default)]
    #[expect(missing_docs, reason = "columns")]
    pub struct QueueRow {
        pub paused_at: Option<i64>,
        pub pause_code: Option<String>,
        pub pause_words: Option<String>,
        pub failures: i64,
        pub not_before: Option<i64>,
        pub probing: bool,
        pub rejection_code: Option<String>,
        pub rejections: i64,
        pub last_delivered_at: Option<i64>,
        pub resumed_at: Option<i64>,
    }
}

impl QueueRow {
    /// Converts a queue state to columns.
    pub fn write(state: &QueueState) -> Self {
        let pause = state.pause.as_ref();
        let rejections = state.rejections.as_ref();
        Self {
            paused_at: pause.map(|pause| pause.at.as_millis()),
            pause_code: pause.map(|pause| pause.code.clone()),
            pause_words: pause.and_then(|pause| pause.message.clone()),
            failures: i64::from(state.failures),
            not_before: state.not_before.map(Timestamp::as_millis),
            probing: state.is_probing,
            rejection_code: rejections.map(|(code, _)| code.clone()),
            rejections: rejections.map_or(0, |(_, count)| i64::from(*count)),
            last_delivered_at: state.last_delivered_at.map(Timestamp::as_millis),
            resumed_at: state.resumed_at.map(Timestamp::as_millis),
        }
    }

    /// Reads the queue state.
    pub fn read(self) -> QueueState {
        let pause = self.paused_at.map(|at| Pause {
            at: Timestamp::from_millis(at),
            code: self.pause_code.unwrap_or_default(),
            message: self.pause_words,
        });
        let rejections = u32::try_from(self.rejections).unwrap_or(0);
        QueueState {
            pause,
            failures: u32::try_from(self.failures).unwrap_or(0),
            not_before: self.not_before.map(Timestamp::from_millis),
            is_probing: self.probing,
            rejections: self.rejection_code.map(|code| (code, rejections)),
            last_delivered_at: self.last_delivered_at.map(Timestamp::from_millis),
            resumed_at: self.resumed_at.map(Timestamp::from_millis),
        }
    }
}

/// Reads a queue reference.
pub fn queue_ref(app: [u8; 16], network: &str) -> Result<QueueRef, StoreError> {
    let app = AppId::from_bytes(app);
    let network = Network::parse(network);
    Ok(QueueRef {
        app,
        network: network.ok_or_else(|| StoreError::corrupt("queues", "network", app))?,
    })
}

/// The columns of an expired delivery.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "columns")]
pub struct ExpiredRow {
    pub app_id: [u8; 16],
    pub network: String,
    pub delivery_id: [u8; 16],
    pub ambiguous_since: Option<i64>,
    pub sending_at: Option<i64>,
}

/// An expired delivery with its final status.
#[derive(Debug, Clone)]
pub struct ExpiredDelivery {
    /// Queue of the delivery.
    pub queue: QueueRef,
    /// Delivery id.
    pub id: DeliveryId,
    /// Final status.
    pub status: DeliveryStatus,
    /// Reason code.
    pub reason: &'static str,
}

impl ExpiredRow {
    /// Column list, in the order of the fields.
    pub const COLUMNS: &'static str = "app_id, network, delivery_id, ambiguous_since, sending_at";

    /// Reads the delivery.
    pub fn read(self) -> Result<ExpiredDelivery, StoreError> {
        let queue = queue_ref(self.app_id, &self.network)?;
        let (status, reason) = expired_status(
            queue.network,
            self.ambiguous_since.map(Timestamp::from_millis),
            self.sending_at.map(Timestamp::from_millis),
        );
        Ok(ExpiredDelivery {
            queue,
            id: DeliveryId::from_bytes(self.delivery_id),
            status,
            reason,
        })
    }
}

/// A row of `status_checks`, without its queue.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "columns")]
pub struct StatusCheckRow {
    pub request_id: String,
    pub sent_at: i64,
    pub step: i64,
    pub due_at: i64,
    pub deliveries: String,
}

impl StatusCheckRow {
    /// Column list, in the order of the fields.
    pub const COLUMNS: &'static str = "request_id, sent_at, step, due_at, deliveries";

    /// Converts a status check to columns.
    pub fn write(check: &StatusCheck) -> Self {
        let ids: Vec<String> = check.deliveries.iter().map(ToString::to_string).collect();
        Self {
            request_id: check.request.clone(),
            sent_at: check.sent_at.as_millis(),
            step: i64::from(check.step),
            due_at: check.due_at.as_millis(),
            deliveries: to_json(&ids),
        }
    }

    /// Reads the status check.
    pub fn read(self, queue: QueueRef) -> Result<StatusCheck, StoreError> {
        let corrupt = |column| StoreError::corrupt("status_checks", column, queue.app);
        let ids: Vec<String> =
            from_json("status_checks", "deliveries", queue.app, &self.deliveries)?;
        let id = |id: &String| DeliveryId::parse(id).map_err(|_| corrupt("deliveries"));
        Ok(StatusCheck {
            request: self.request_id,
            sent_at: Timestamp::from_millis(self.sent_at),
            step: u32::try_from(self.step).map_err(|_| corrupt("step"))?,
            due_at: Timestamp::from_millis(self.due_at),
            deliveries: ids.iter().map(id).collect::<Result<_, _>>()?,
        })
    }
}

/// Generates the id of one of several alerts that are raised together.
pub fn alert_id(at: Timestamp, random: [u8; 8], number: u64) -> AlertId {
    let mut bytes = [0; 10];
    bytes[..8].copy_from_slice(&random);
    bytes[8..].copy_from_slice(&number.to_be_bytes()[6..]);
    AlertId::new(at, bytes)
}
