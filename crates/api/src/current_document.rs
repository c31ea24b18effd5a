//! The current document of the object that a PATCH changes, in the form that GET returns.

use crate::error::ApiError;
use crate::json::{JsonNode, parse};
use axum::http::StatusCode;
use serde::Serialize;

/// Current document; `None` if the object does not exist.
pub(crate) struct CurrentDocument(Option<JsonNode>);

impl CurrentDocument {
    /// Builds the document from the stored object, in the form that GET returns. A missing object
    /// is not an error here: the handler returns 404 after it has validated the body.
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

    /// Returns the document to compare the PATCH body with.
    pub(crate) fn document(&self) -> Option<&JsonNode> {
        self.0.as_ref()
    }
}
