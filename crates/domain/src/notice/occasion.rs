//! What a message is about, and how long it is retried.

use super::Notice;
use crate::forwarding::alert::{Alert, AlertKind, RETRY_WAITS};
use crate::integration::Network;
use crate::vocabulary::day::Day;
use crate::vocabulary::id::{AlertId, AppId, MessageId};
use crate::vocabulary::time::Timestamp;
use sha2::{Digest as _, Sha256};
use std::time::Duration;

/// What a message is about. The figures of a summary are read when it is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Occasion {
    /// The figures of these days.
    Summary {
        /// First day.
        from: Day,
        /// Last day.
        to: Day,
    },
    /// A metric beyond its limit.
    Threshold {
        /// First day.
        from: Day,
        /// Last day.
        to: Day,
        /// Whether the last day was not over, or its figures could still grow.
        is_running: bool,
        /// The value, in millionths.
        micros: i64,
    },
    /// An alert.
    Alert(Alert),
}

impl Occasion {
    /// Returns the type in webhook messages.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Summary { from, to } if from.as_days() == to.as_days() => "summary.daily",
            Self::Summary { .. } => "summary.weekly",
            Self::Threshold { .. } => "threshold.crossed",
            Self::Alert(alert) => alert.kind.as_str(),
        }
    }
}

/// Result of an attempt to send a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MessageOutcome {
    /// The channel accepted the message.
    Sent,
    /// The notice no longer wants the message, so nothing was sent.
    Skipped,
    /// The message was not accepted. The text is for people.
    Failed(String),
}

/// Returns the id of a notice's message about an occasion. It is always the same, so that a message
/// is queued once, and a receiver recognises a repeat.
pub fn message_id(notice: &Notice, occasion: &Occasion) -> MessageId {
    let mut hash = Sha256::new();
    hash.update(notice.id.as_bytes());
    match occasion {
        Occasion::Summary { from, to } | Occasion::Threshold { from, to, .. } => {
            // A changed notice may report the same days again.
            hash.update(notice.revision.number().to_be_bytes());
            hash.update(from.as_days().to_be_bytes());
            hash.update(to.as_days().to_be_bytes());
        }
        Occasion::Alert(alert) => hash.update(alert.id.as_bytes()),
    }
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash.finalize()[..16]);
    MessageId::from_bytes(bytes)
}

/// Returns how long to wait after a failed attempt; `None` after the last one. Attempts count from 1.
pub fn retry_after(attempts: u32) -> Option<Duration> {
    let tries = usize::try_from(attempts).unwrap_or(usize::MAX);
    RETRY_WAITS.get(tries.saturating_sub(1)).copied()
}

/// Tests that an app's members may send per hour. Recipients are chosen freely, so that a test must
/// not become a way to send mail in bulk.
const TESTS_PER_HOUR: usize = 20;

/// Returns whether another test may be sent now, and remembers it. `recent` has the times of earlier
/// ones.
pub fn admit_test(recent: &mut Vec<Timestamp>, now: Timestamp) -> bool {
    let hour_ago = now.minus(Duration::from_hours(1));
    recent.retain(|at| *at > hour_ago);
    let is_admitted = recent.len() < TESTS_PER_HOUR;
    if is_admitted {
        recent.push(now);
    }
    is_admitted
}

/// Returns an alert for previews and tests.
pub fn example_alert(app: AppId, kind: AlertKind, at: Timestamp) -> Alert {
    let (network, message) = match kind {
        AlertKind::IntegrationPaused => (
            Some(Network::A),
            "Example: the network rejects the access token. Enter a new one and resume the \
             integration.",
        ),
        AlertKind::TrafficAnomaly => (
            None,
            "Example: unusual installs of the app in one hour: 480. Usual: 60.",
        ),
        AlertKind::DeliveriesFailing => (Some(Network::A), "Example: many deliveries failed."),
        AlertKind::RatesStale => (None, "Example: the exchange rates are old."),
    };
    Alert {
        id: AlertId::from_bytes([0; 16]),
        app,
        kind,
        network,
        at,
        message: message.to_owned(),
    }
}
