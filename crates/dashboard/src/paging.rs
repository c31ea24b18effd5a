//! Pagination for lists: newest first, with a link to older entries.

use crate::query::UrlQuery;
use tributary_domain::vocabulary::page::{Limit, PageRequest};

/// Returns the request for one page of a list.
pub(crate) const fn request(before: Option<[u8; 16]>) -> PageRequest {
    PageRequest {
        limit: Limit::DEFAULT,
        before,
    }
}

/// Returns the query string for the next, older page if there is one.
pub(crate) fn older(query: &UrlQuery, has_more: bool, last: Option<String>) -> Option<String> {
    let last = last.filter(|_| has_more)?;
    Some(format!("?{}", query.with(&[("before", Some(&last))])))
}
