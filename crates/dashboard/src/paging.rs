//! Lists, page by page: newest first, and a link to what is older.

use crate::query::UrlQuery;
use tributary_domain::vocabulary::page::{Limit, PageRequest};

/// What a list is asked for.
pub(crate) const fn request(before: Option<[u8; 16]>) -> PageRequest {
    PageRequest {
        limit: Limit::DEFAULT,
        before,
    }
}

/// The query of the page of what is older, where there is any.
pub(crate) fn older(query: &UrlQuery, has_more: bool, last: Option<String>) -> Option<String> {
    let last = last.filter(|_| has_more)?;
    Some(format!("?{}", query.with(&[("before", Some(&last))])))
}
