//! Outcome of a request.

use serde_json::Value;

/// Maximum number of bytes read from a response. Classifying a response never requires more.
pub const RESPONSE_BYTES_MAX: usize = 64 * 1_024;

/// Outcome of sending a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SendOutcome {
    /// The network, or a proxy in front of it, responded.
    Response(NetworkResponse),
    /// Nothing was sent: unknown host, connection refused or TLS failure.
    NotSent,
    /// The request was sent, but no complete response arrived: timeout, reset or truncated
    /// response.
    Interrupted,
}

/// A response.
#[derive(Clone, PartialEq, Eq)]
pub struct NetworkResponse {
    /// HTTP status.
    pub status: u16,
    /// Headers with lower-case names.
    pub headers: Vec<(String, String)>,
    /// At most [`RESPONSE_BYTES_MAX`] bytes of the body.
    pub body: Vec<u8>,
    /// Whether the body was longer.
    pub truncated: bool,
}

impl NetworkResponse {
    /// Returns the first value of a header, by its lower-case name.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(key, _)| key == name);
        found.next().map(|(_, value)| value.as_str())
    }

    /// Returns the body as a JSON object; `None` if it is invalid or truncated.
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
    /// Omits the body, which may repeat what was sent.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let headers: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        formatter
            .debug_struct("NetworkResponse")
            .field("status", &self.status)
            .field("headers", &headers)
            .field("body_bytes", &self.body.len())
            .field("cut", &self.truncated)
            .finish()
    }
}
