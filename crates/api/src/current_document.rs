//! The document that a PATCH changes, as GET answers it.

use crate::error::ApiError;
use crate::json::{JsonNode, parse};
use axum::http::StatusCode;
use serde::Serialize;

/// The current document; absent when the path names nothing.
pub(crate) struct CurrentDocument(Option<JsonNode>);

impl CurrentDocument {
    /// Shapes what was found as GET does. A path that names nothing is answered after the body was read, so it is not
    /// an error here.
    pub(crate) fn of<T, D: Serialize>(
        found: Result<T, ApiError>,
        shape: impl FnOnce(T) -> D,
    ) -> Result<Self, ApiError> {
        let found = match found {
            Ok(found) => found,
            Err(error) if error.code().status() == StatusCode::NOT_FOUND => return Ok(Self(None)),
            Err(error) => return Err(error),
        };
        let text = serde_json::to_string(&shape(found)).map_err(|_| ApiError::internal())?;
        let document = parse(&text).map_err(|_| ApiError::internal())?;
        Ok(Self(Some(document)))
    }

    /// Returns the document that the body is compared with.
    pub(crate) fn document(&self) -> Option<&JsonNode> {
        self.0.as_ref()
    }
}
