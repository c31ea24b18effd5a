//! An answer of a server, read whole.

use reqwest::StatusCode;
use reqwest::header::HeaderMap;
use serde_json::Value;

/// An answer, read whole.
#[derive(Debug, Clone)]
pub struct TestResponse {
    /// Its status.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body as it came.
    pub text: String,
}

impl TestResponse {
    pub(crate) async fn read(response: reqwest::Response) -> Self {
        let (status, headers) = (response.status(), response.headers().clone());
        let text = response.text().await.expect("the body arrives");
        Self {
            status,
            headers,
            text,
        }
    }

    /// The body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text)
            .unwrap_or_else(|error| panic!("not JSON ({error}): {self:?}"))
    }

    /// `data` of the body.
    pub fn data(&self) -> Value {
        self.json()["data"].clone()
    }

    /// `error.code` of the body.
    pub fn code(&self) -> String {
        self.json()["error"]["code"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }

    /// The fields that are at fault, with their codes.
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

    /// A header as text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// The answer, which has to have this status.
    #[track_caller]
    #[expect(
        clippy::return_self_not_must_use,
        reason = "often the status is all a test asks for"
    )]
    pub fn expect(self, status: u16) -> Self {
        assert_eq!(self.status.as_u16(), status, "{self:?}");
        self
    }
}
