//! Paged lists: `limit` and `cursor` in, `data` and `meta` out.

use crate::error::{ApiError, Code};
use crate::query::QueryParameters;
use crate::state::ApiState;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64URL;
use serde::Serialize;
use tributary_domain::vocabulary::page::{Limit, ListScope, Page, PageRequest};
use utoipa::ToSchema;

/// Requested page, before its cursor is verified.
#[derive(Debug)]
pub(crate) struct PageQuery {
    limit: Limit,
    cursor: Option<String>,
}

impl PageQuery {
    /// Reads `limit` and `cursor`.
    pub(crate) fn read(parameters: &mut QueryParameters<'_>) -> Self {
        Self {
            limit: parameters
                .optional("limit", Limit::parse)
                .unwrap_or(Limit::DEFAULT),
            cursor: parameters.optional("cursor", |text| Ok(text.to_owned())),
        }
    }

    /// Verifies the cursor, which must have been issued for this list.
    pub(crate) fn open(
        &self,
        state: &ApiState,
        scope: &ListScope,
    ) -> Result<PageRequest, ApiError> {
        let Some(cursor) = &self.cursor else {
            return Ok(PageRequest {
                limit: self.limit,
                before: None,
            });
        };
        let bytes = BASE64URL.decode(cursor).ok();
        let before = bytes.and_then(|bytes| state.keyring.open_cursor(scope, &bytes));
        if before.is_none() {
            return Err(ApiError::new(
                Code::InvalidCursor,
                "Invalid cursor. Pass meta.cursor from the previous page with the same filters, or \
                 omit the cursor to start over.",
            ));
        }
        Ok(PageRequest {
            limit: self.limit,
            before,
        })
    }
}

impl PageQuery {
    /// Returns the cursor for the page that starts after the item with the id `last`.
    pub(crate) fn seal(state: &ApiState, scope: &ListScope, last: &[u8; 16]) -> String {
        BASE64URL.encode(state.keyring.seal_cursor(scope, last))
    }
}

/// Metadata about a page.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PageMeta {
    /// True when more items exist.
    pub(crate) has_more: bool,
    /// Cursor for the next page; null on the last page.
    pub(crate) cursor: Option<String>,
}

/// Body of a response with one page. The OpenAPI schema is in `openapi::envelopes`.
#[derive(Debug, Serialize)]
pub(crate) struct List<T, M = PageMeta> {
    pub(crate) data: Vec<T>,
    pub(crate) meta: M,
}

impl<T: Serialize> List<T> {
    /// Builds the response for a page. `id` returns an item's id, which the cursor for the next
    /// page contains.
    pub(crate) fn of<E>(
        page: Page<E>,
        state: &ApiState,
        scope: &ListScope,
        id: impl Fn(&E) -> [u8; 16],
        shape: impl FnMut(E) -> T,
    ) -> Self {
        let last = page.items.last().filter(|_| page.has_more).map(id);
        let cursor = last.map(|last| PageQuery::seal(state, scope, &last));
        let meta = PageMeta {
            has_more: page.has_more,
            cursor,
        };
        Self {
            data: page.items.into_iter().map(shape).collect(),
            meta,
        }
    }
}

impl<T: Serialize, M: Serialize> IntoResponse for List<T, M> {
    fn into_response(self) -> Response {
        match serde_json::to_vec(&self) {
            Ok(body) => {
                let json = HeaderValue::from_static("application/json");
                ([(header::CONTENT_TYPE, json)], body).into_response()
            }
            Err(error) => {
                tracing::error!(%error, "failed to serialize list");
                ApiError::internal().into_response()
            }
        }
    }
}
