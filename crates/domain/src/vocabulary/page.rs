//! Pages of a list: how many items, and where the next page begins.
//!
//! Lists are newest first and keyset-based: a page begins behind the last id of the page before it, so
//! items that arrive meanwhile neither move nor repeat anything.

use crate::vocabulary::fault::{FaultCode, Problem};
use crate::vocabulary::id::OrganizationId;

/// Items of a page when nothing is asked for.
pub const PAGE_ITEMS_DEFAULT: u16 = 50;
/// Items of a page at most.
pub const PAGE_ITEMS_MAX: u16 = 500;
const _: () = assert!(PAGE_ITEMS_DEFAULT <= PAGE_ITEMS_MAX);

/// How many items a page holds: 1–500.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit(u16);

impl Limit {
    /// When nothing is asked for.
    pub const DEFAULT: Self = Self(PAGE_ITEMS_DEFAULT);
    /// As many as there can be.
    pub const MAX: Self = Self(PAGE_ITEMS_MAX);

    /// Reads a limit.
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

    /// The number of items.
    pub const fn items(self) -> usize {
        self.0 as usize
    }

    /// The number of rows to ask the database for: one more tells whether there is a next page.
    pub const fn rows(self) -> i64 {
        self.0 as i64 + 1
    }
}

/// What is asked of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageRequest {
    /// How many items.
    pub limit: Limit,
    /// The last id of the page before, if there was one.
    pub before: Option<[u8; 16]>,
}

/// One page of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// The items, newest first.
    pub items: Vec<T>,
    /// True when older items exist.
    pub has_more: bool,
}

impl<T> Page<T> {
    /// Makes a page of the rows that [`Limit::rows`] asked for.
    pub fn from_rows(mut rows: Vec<T>, limit: Limit) -> Self {
        let has_more = rows.len() > limit.items();
        rows.truncate(limit.items());
        Self {
            items: rows,
            has_more,
        }
    }
}

/// Which list a cursor belongs to. A cursor of one list, organization, app or filter opens no other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListScope {
    /// The list, by name.
    pub list: &'static str,
    /// Whose list.
    pub organization: OrganizationId,
    /// Whatever else narrows it: the app, filters.
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
    fn limits(#[case] text: &str, #[case] expected: Option<usize>) {
        assert_eq!(Limit::parse(text).ok().map(Limit::items), expected);
    }

    #[test]
    fn one_row_too_many_tells_that_there_is_more() {
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
