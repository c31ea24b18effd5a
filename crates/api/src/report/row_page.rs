//! Paging of computed rows. Report rows have no ids, so a row is identified by its dimension
//! values.

use crate::error::{ApiError, Code};
use crate::page::{List, PageMeta, PageQuery};
use crate::state::ApiState;
use serde::Serialize;
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::page::ListScope;

/// Key that identifies a row in a cursor.
pub(crate) type RowKey = [u8; 16];

/// Returns the key of a row with these dimension values.
pub(crate) fn row_key<'a>(values: impl IntoIterator<Item = &'a str>) -> RowKey {
    let mut bytes = Vec::new();
    for value in values {
        bytes.extend_from_slice(value.as_bytes());
        // Recorded texts contain no NUL, so NUL can separate the values.
        bytes.push(0);
    }
    let digest = Digest::of(&bytes);
    let mut key = [0; 16];
    key.copy_from_slice(&digest.as_bytes()[..16]);
    key
}

/// One page of rows, with the cursor for the next page.
pub(crate) struct RowPage<T> {
    rows: Vec<T>,
    cursor: Option<String>,
}

impl<T> RowPage<T> {
    /// Returns the requested page from all rows, starting after the cursor's row.
    pub(crate) fn of(
        all: Vec<(RowKey, T)>,
        query: &PageQuery,
        state: &ApiState,
        scope: &ListScope,
    ) -> Result<Self, ApiError> {
        let request = query.open(state, scope)?;
        let start = match request.before {
            None => 0,
            Some(last) => {
                let index = all.iter().position(|(key, _)| *key == last);
                1 + index.ok_or_else(|| {
                    let message = "The row that this cursor points to no longer exists. Start over \
                                   without a cursor.";
                    ApiError::new(Code::InvalidCursor, message)
                })?
            }
        };
        let items = request.limit.items();
        let has_more = all.len() > start + items;
        let page: Vec<(RowKey, T)> = all.into_iter().skip(start).take(items).collect();
        let last = page.last().filter(|_| has_more);
        let cursor = last.map(|(key, _)| PageQuery::seal(state, scope, key));
        Ok(Self {
            rows: page.into_iter().map(|(_, row)| row).collect(),
            cursor,
        })
    }

    /// Returns the response without totals.
    pub(crate) fn into_list(self) -> List<T> {
        self.into_list_with(|page| page)
    }

    /// Returns the response with other metadata besides that about the page.
    pub(crate) fn into_list_with<M>(self, meta: impl FnOnce(PageMeta) -> M) -> List<T, M> {
        List {
            meta: meta(PageMeta {
                has_more: self.cursor.is_some(),
                cursor: self.cursor,
            }),
            data: self.rows,
        }
    }

    /// Returns the response with the totals over all pages.
    pub(crate) fn into_list_with_totals<F>(self, totals: F) -> List<T, TotalsMeta<F>> {
        List {
            meta: TotalsMeta {
                has_more: self.cursor.is_some(),
                cursor: self.cursor,
                totals,
                complete_from: None,
            },
            data: self.rows,
        }
    }
}

/// Metadata about a page with totals.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TotalsMeta<F> {
    has_more: bool,
    cursor: Option<String>,
    totals: F,
    /// Time from which the figures are complete, if they lack earlier ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) complete_from: Option<String>,
}
