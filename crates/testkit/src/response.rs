//! A server's response, fully read.

use reqwest::StatusCode;
use reqwest::header::HeaderMap;
use serde_json::Value;

/// A response, fully read.
#[derive(Debug, Clone)]
pub struct TestResponse {
    /// HTTP status.
    pub status: StatusCode,
    /// HTTP headers.
    pub headers: HeaderMap,
    /// Body as received.
    pub text: String,
}

impl TestResponse {
    pub(crate) async fn read(response: reqwest::Response) -> Self {
        let (status, headers) = (response.status(), response.headers().clone());
        let text = response.text().await.expect("complete body");
        Self {
            status,
            headers,
            text,
        }
    }

    /// Parses the body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text)
            .unwrap_or_else(|error| panic!("not JSON ({error}): {self:?}"))
    }

    /// Returns `data` from the JSON body.
    pub fn data(&self) -> Value {
        self.json()["data"].clone()
    }

    /// Returns `error.code` from the JSON body.
    pub fn code(&self) -> String {
        self.json()["error"]["code"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }

    /// Returns the invalid fields with their codes.
    pub fn faults(&self) -> Vec<(String, String)> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let details = self.json()["error"]["details"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        details
            .iter()
            .map(|fault| (text(&fault["field"]), text(&fault["code"])))
            .collect()
    }

    /// Returns a header as text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// Asserts the status and returns the response.
    #[track_caller]
    #[expect(
        clippy::return_self_not_must_use,
        reason = "many tests only check the status"
    )]
    pub fn expect(self, status: u16) -> Self {
        assert_eq!(self.status.as_u16(), status, "{self:?}");
        self
    }
}
