//! A request to be sent, relative to the network's base URL.

/// How it is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestMethod {
    /// With a body.
    Post,
    /// Without.
    Get,
}

/// A request. Its query, its headers and its body may hold secrets and personal data, so none of them prints.
#[derive(Clone, PartialEq, Eq)]
pub struct NetworkRequest {
    /// How it is sent.
    pub method: RequestMethod,
    /// With the slash in front, and everything encoded that has to be.
    pub path_and_query: String,
    /// Besides what the client adds. The `Content-Type` of a body is here, too.
    pub headers: Vec<(&'static str, String)>,
    /// The body; empty for [`Method::Get`].
    pub body: Vec<u8>,
}

impl NetworkRequest {
    /// A post of JSON.
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

    /// The path without its query: safe to log.
    pub fn path(&self) -> &str {
        let end = self.path_and_query.find('?');
        &self.path_and_query[..end.unwrap_or(self.path_and_query.len())]
    }
}

impl std::fmt::Debug for NetworkRequest {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let headers: Vec<&str> = self.headers.iter().map(|(name, _)| *name).collect();
        formatter
            .debug_struct("Request")
            .field("method", &self.method)
            .field("path", &self.path())
            .field("headers", &headers)
            .field("body_bytes", &self.body.len())
            .finish_non_exhaustive()
    }
}
