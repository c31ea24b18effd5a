//! Pages of rows that are made anew for every page: figures have no ids, so a row is known by what it is about.

use crate::error::{ApiError, Code};
use crate::page::{List, PageMeta, PageQuery};
use crate::state::ApiState;
use serde::Serialize;
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::page::ListScope;

/// What stands for a row.
pub(crate) type RowKey = [u8; 16];

/// The key of a row that is about these values.
pub(crate) fn row_key<'a>(values: impl IntoIterator<Item = &'a str>) -> RowKey {
    let mut bytes = Vec::new();
    for value in values {
        bytes.extend_from_slice(value.as_bytes());
        // No text that is recorded holds it.
        bytes.push(0);
    }
    let digest = Digest::of(&bytes);
    let mut key = [0; 16];
    key.copy_from_slice(&digest.as_bytes()[..16]);
    key
}

/// One page of rows, and what stands beside it.
pub(crate) struct RowPage<T> {
    rows: Vec<T>,
    cursor: Option<String>,
}

impl<T> RowPage<T> {
    /// The page that was asked for, behind the row that the cursor names.
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
                let place = all.iter().position(|(key, _)| *key == last);
                1 + place.ok_or_else(|| {
                    let message = "What this page continues behind is not there any more; begin again \
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

    /// The answer, without sums.
    pub(crate) fn into_list(self) -> List<T> {
        List {
            meta: PageMeta {
                has_more: self.cursor.is_some(),
                cursor: self.cursor,
            },
            data: self.rows,
        }
    }

    /// The answer, with the sums over all pages.
    pub(crate) fn into_list_with_totals<F>(self, totals: F) -> List<T, TotalsMeta<F>> {
        List {
            meta: TotalsMeta {
                has_more: self.cursor.is_some(),
                cursor: self.cursor,
                totals,
            },
            data: self.rows,
        }
    }
}

/// What stands beside rows that have sums.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TotalsMeta<F> {
    has_more: bool,
    cursor: Option<String>,
    totals: F,
}
