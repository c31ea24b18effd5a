//! What came back.

use serde_json::Value;

/// Bytes of an answer that are read. The rest says nothing that a ruling needs.
pub const RESPONSE_BYTES_MAX: usize = 64 * 1_024;

/// What came of sending a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SendOutcome {
    /// The network, or something in front of it, answered.
    Response(NetworkResponse),
    /// Nothing was sent: no such host, connection refused, TLS failed.
    NotSent,
    /// Bytes were written, and then no whole answer came: timeout, reset, an answer that broke off.
    Interrupted,
}

/// An answer.
#[derive(Clone, PartialEq, Eq)]
pub struct NetworkResponse {
    /// The status.
    pub status: u16,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// At most [`ANSWER_BYTES_MAX`] of it.
    pub body: Vec<u8>,
    /// Whether there was more of it.
    pub truncated: bool,
}

impl NetworkResponse {
    /// The first value of a header, by its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(key, _)| key == name);
        found.next().map(|(_, value)| value.as_str())
    }

    /// The body as a JSON object; nothing where it is none, or there was more of it.
    pub(crate) fn object(&self) -> Option<Value> {
        if self.truncated {
            return None;
        }
        let value = serde_json::from_slice::<Value>(&self.body).ok();
        value.filter(Value::is_object)
    }

    pub(crate) fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

impl std::fmt::Debug for NetworkResponse {
    /// Answers may repeat what was sent, so their bodies do not print.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let headers: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        formatter
            .debug_struct("Answer")
            .field("status", &self.status)
            .field("headers", &headers)
            .field("body_bytes", &self.body.len())
            .field("cut", &self.truncated)
            .finish()
    }
}
