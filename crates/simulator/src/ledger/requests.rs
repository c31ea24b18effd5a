//! A network's recent requests and refusals, with their bodies.

use crate::clock;
use bytes::Bytes;
use serde_json::{Value, json};
use std::collections::VecDeque;

/// Maximum number of requests kept.
const REQUESTS_MAX: usize = 200;
/// Maximum number of refusals kept.
const REFUSALS_MAX: usize = 50;
/// Larger bodies are not kept, to limit memory.
const BODY_BYTES_MAX: usize = 256 * 1024;
/// Fields with credentials.
const SECRET_FIELDS: &[&str] = &[
    "access_token",
    "appsecret_proof",
    "client_secret",
    "refresh_token",
    "assertion",
    "code",
];
const HIDDEN: &str = "***";

/// A recorded body. JSON is parsed when it is displayed, not when it arrives.
#[derive(Debug, Clone)]
pub(crate) enum RecordedBody {
    Absent,
    Json(Bytes),
    Form(Vec<(String, String)>),
    /// Length of a body that is too large or has an unknown type.
    Length(usize),
}

impl RecordedBody {
    pub(crate) fn json(bytes: Bytes) -> Self {
        if bytes.len() > BODY_BYTES_MAX {
            return Self::Length(bytes.len());
        }
        Self::Json(bytes)
    }

    /// Records a form without its credentials.
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

/// A request and its result.
#[derive(Debug)]
pub(crate) struct RequestRecord {
    pub(crate) received: i64,
    /// HTTP status; `None` without a response.
    pub(crate) status: Option<u16>,
    pub(crate) method: String,
    /// Path without the query, which may contain a credential.
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

/// A rejected request.
#[derive(Debug, Clone)]
pub(crate) struct RefusalRecord {
    pub(crate) received: i64,
    pub(crate) account: Option<String>,
    /// The network's code.
    pub(crate) reason: String,
    /// The network's message.
    pub(crate) message: String,
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
