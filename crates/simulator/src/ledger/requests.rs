//! The last requests of a network and the last refusals, with what was sent.

use crate::clock;
use bytes::Bytes;
use serde_json::{Value, json};
use std::collections::VecDeque;

/// Requests that are kept.
const REQUESTS_MAX: usize = 200;
/// Refusals that are kept.
const REFUSALS_MAX: usize = 50;
/// Longer bodies are not kept: two hundred of them would be too much.
const BODY_BYTES_MAX: usize = 256 * 1024;
/// Fields that hold credentials, wherever they stand.
const SECRET_FIELDS: &[&str] = &[
    "access_token",
    "appsecret_proof",
    "client_secret",
    "refresh_token",
    "assertion",
    "code",
];
const HIDDEN: &str = "***";

/// What was sent, as far as it is kept. Bytes are parsed when somebody looks, not when they arrive.
#[derive(Debug, Clone)]
pub(crate) enum RecordedBody {
    Absent,
    Json(Bytes),
    Form(Vec<(String, String)>),
    /// Too long, or of no known type; only its length.
    Length(usize),
}

impl RecordedBody {
    pub(crate) fn json(bytes: Bytes) -> Self {
        if bytes.len() > BODY_BYTES_MAX {
            return Self::Length(bytes.len());
        }
        Self::Json(bytes)
    }

    /// A form without its credentials.
    pub(crate) fn form(pairs: &[(String, String)]) -> Self {
        let length = pairs.iter().map(|(_, value)| value.len()).sum();
        if length > BODY_BYTES_MAX {
            return Self::Length(length);
        }
        let hidden = |(name, value): &(String, String)| {
            let is_secret = SECRET_FIELDS.contains(&name.as_str());
            let shown = if is_secret { HIDDEN } else { value };
            (name.clone(), shown.to_owned())
        };
        Self::Form(pairs.iter().map(hidden).collect())
    }

    fn value(&self) -> Value {
        match self {
            Self::Absent => Value::Null,
            Self::Json(bytes) => {
                let mut value = serde_json::from_slice(bytes).unwrap_or_else(
                    |_| json!({"unreadable": String::from_utf8_lossy(bytes).as_ref()}),
                );
                if let Value::Object(fields) = &mut value {
                    for (_, secret) in fields
                        .iter_mut()
                        .filter(|(name, _)| SECRET_FIELDS.contains(&name.as_str()))
                    {
                        *secret = json!(HIDDEN);
                    }
                }
                value
            }
            Self::Form(pairs) => pairs
                .iter()
                .map(|(name, value)| (name.clone(), json!(value)))
                .collect(),
            Self::Length(length) => json!({"bytes": length}),
        }
    }
}

/// A request and how it was answered.
#[derive(Debug)]
pub(crate) struct RequestRecord {
    pub(crate) received: i64,
    /// Nothing when no answer was given.
    pub(crate) status: Option<u16>,
    pub(crate) method: String,
    /// Without its query, which may hold a credential.
    pub(crate) path: String,
    pub(crate) account: Option<String>,
    pub(crate) events: usize,
    pub(crate) fault: Option<&'static str>,
    pub(crate) body: RecordedBody,
}

impl RequestRecord {
    pub(crate) fn to_json(&self) -> Value {
        json!({
            "receivedAt": clock::format_time(self.received),
            "receivedMs": self.received,
            "status": self.status,
            "method": self.method,
            "path": self.path,
            "account": self.account,
            "events": self.events,
            "fault": self.fault,
            "body": self.body.value(),
        })
    }
}

/// A refused request.
#[derive(Debug, Clone)]
pub(crate) struct RefusalRecord {
    pub(crate) received: i64,
    pub(crate) account: Option<String>,
    /// The network's code.
    pub(crate) reason: String,
    /// The network's words.
    pub(crate) words: String,
    pub(crate) events: u64,
}

#[derive(Debug, Default)]
pub(super) struct RecentRequests {
    requests: VecDeque<RequestRecord>,
    refusals: VecDeque<RefusalRecord>,
}

impl RecentRequests {
    pub(super) fn note(&mut self, line: RequestRecord) {
        self.requests.push_front(line);
        self.requests.truncate(REQUESTS_MAX);
    }

    pub(super) fn refuse(&mut self, refusal: RefusalRecord) {
        self.refusals.push_front(refusal);
        self.refusals.truncate(REFUSALS_MAX);
    }

    pub(super) fn requests(&self) -> impl Iterator<Item = &RequestRecord> {
        self.requests.iter()
    }

    pub(super) fn refusals(&self) -> impl Iterator<Item = &RefusalRecord> {
        self.refusals.iter()
    }
}
