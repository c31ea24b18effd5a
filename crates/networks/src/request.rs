//! A request to a network, relative to its base URL.

/// HTTP method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestMethod {
    /// With a body.
    Post,
    /// Without a body.
    Get,
}

/// A request. Query, headers and body may contain secrets and personal data, so `Debug` omits them.
#[derive(Clone, PartialEq, Eq)]
pub struct NetworkRequest {
    /// HTTP method.
    pub method: RequestMethod,
    /// Encoded path and query, with the leading slash.
    pub path_and_query: String,
    /// Headers in addition to the HTTP client's own, including the `Content-Type`.
    pub headers: Vec<(&'static str, String)>,
    /// The body; empty for [`RequestMethod::Get`].
    pub body: Vec<u8>,
}

impl NetworkRequest {
    /// Creates a POST request with a JSON body.
    pub(crate) fn json(
        path_and_query: String,
        authorization: Option<(&'static str, String)>,
        body: Vec<u8>,
    ) -> Self {
        let content_type = ("content-type", "application/json".to_owned());
        Self {
            method: RequestMethod::Post,
            path_and_query,
            headers: authorization.into_iter().chain([content_type]).collect(),
            body,
        }
    }

    /// Returns the path without its query, which is safe to log.
    pub fn path(&self) -> &str {
        let end = self.path_and_query.find('?');
        &self.path_and_query[..end.unwrap_or(self.path_and_query.len())]
    }
}

impl std::fmt::Debug for NetworkRequest {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let headers: Vec<&str> = self.headers.iter().map(|(name, _)| *name).collect();
        formatter
            .debug_struct("NetworkRequest")
            .field("method", &self.method)
            .field("path", &self.path())
            .field("headers", &headers)
            .field("body_bytes", &self.body.len())
            .finish_non_exhaustive()
    }
}
