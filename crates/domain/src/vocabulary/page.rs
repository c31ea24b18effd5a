//! Pagination of lists.
//!
//! Lists are newest first and use keyset pagination: a page starts after the last id of the
//! previous page, so items added meanwhile neither shift nor repeat those on later pages.

use crate::vocabulary::fault::{FaultCode, Problem};
use crate::vocabulary::id::OrganizationId;

/// Default number of items per page.
pub const PAGE_ITEMS_DEFAULT: u16 = 50;
/// Maximum number of items per page.
pub const PAGE_ITEMS_MAX: u16 = 500;
const _: () = assert!(PAGE_ITEMS_DEFAULT <= PAGE_ITEMS_MAX);

/// Number of items per page: 1–500.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit(u16);

impl Limit {
    /// Default limit.
    pub const DEFAULT: Self = Self(PAGE_ITEMS_DEFAULT);
    /// Maximum limit.
    pub const MAX: Self = Self(PAGE_ITEMS_MAX);

    /// Parses a limit.
    pub fn parse(text: &str) -> Result<Self, Problem> {
        let number = text
            .parse::<u16>()
            .ok()
            .filter(|_| text.bytes().all(|b| b.is_ascii_digit()));
        number
            .filter(|number| (1..=PAGE_ITEMS_MAX).contains(number))
            .map(Self)
            .ok_or_else(|| {
                let message = format!("Must be a whole number from 1 to {PAGE_ITEMS_MAX}.");
                Problem::new(FaultCode::OutOfRange, message)
            })
    }

    /// Returns the number of items.
    pub const fn items(self) -> usize {
        self.0 as usize
    }

    /// Returns the number of rows to query: one more than the items, to show whether there is a
    /// next page.
    pub const fn rows(self) -> i64 {
        self.0 as i64 + 1
    }
}

/// A request for a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageRequest {
    /// Number of items.
    pub limit: Limit,
    /// Last id of the previous page, if any.
    pub before: Option<[u8; 16]>,
}

/// One page of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// The items, newest first.
    pub items: Vec<T>,
    /// Whether older items exist.
    pub has_more: bool,
}

impl<T> Page<T> {
    /// Builds a page from the rows queried with [`Limit::rows`].
    pub fn from_rows(mut rows: Vec<T>, limit: Limit) -> Self {
        let has_more = rows.len() > limit.items();
        rows.truncate(limit.items());
        Self {
            items: rows,
            has_more,
        }
    }
}

/// The list that a cursor belongs to. A cursor is not valid for another list, organization, app or
/// filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListScope {
    /// Name of the list.
    pub list: &'static str,
    /// Organization that owns the list.
    pub organization: OrganizationId,
    /// App and filters of the list.
    pub filters: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("1", Some(1))]
    #[case("500", Some(500))]
    #[case("0", None)]
    #[case("501", None)]
    #[case("-1", None)]
    #[case("+5", None)]
    #[case("", None)]
    #[case("5.0", None)]
    #[case("99999999999999999999", None)]
    fn parses_limits(#[case] text: &str, #[case] expected: Option<usize>) {
        assert_eq!(Limit::parse(text).ok().map(Limit::items), expected);
    }

    #[test]
    fn an_extra_row_means_that_there_is_more() {
        let limit = Limit::parse("2").unwrap();
        assert_eq!(
            Page::from_rows(vec![1, 2], limit),
            Page {
                items: vec![1, 2],
                has_more: false
            }
        );
        assert_eq!(
            Page::from_rows(vec![1, 2, 3], limit),
            Page {
                items: vec![1, 2],
                has_more: true
            }
        );
    }
}
