//! Pages of a list: how many items, and where the next page begins.
//!
//! Lists are newest first and keyset-based: a page begins behind the last id of the page before it, so
//! items that arrive meanwhile neither move nor repeat anything.

use crate::keyring::Keyring;
use crate::vocabulary::digest::Digest;
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
    pub const MOST: Self = Self(PAGE_ITEMS_MAX);

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
    pub narrowed_by: String,
}

/// Bumped when the layout of a cursor changes, so that an old one is refused and not misread.
const CURSOR_VERSION: u8 = 1;
/// Bytes of the authentication tag that a cursor carries.
const CURSOR_TAG_BYTES: usize = 16;

fn cursor_tag(keyring: &Keyring, scope: &ListScope, last: &[u8; 16]) -> [u8; 32] {
    let narrowed = Digest::of(scope.narrowed_by.as_bytes());
    keyring.tag(
        "cursor/1",
        &[
            scope.list.as_bytes(),
            scope.organization.as_bytes(),
            narrowed.as_bytes(),
            last,
        ],
    )
}

/// The bytes of a cursor that continues behind `last`.
pub fn seal_cursor(keyring: &Keyring, scope: &ListScope, last: &[u8; 16]) -> Vec<u8> {
    let tag = cursor_tag(keyring, scope, last);
    let mut bytes = vec![CURSOR_VERSION];
    bytes.extend_from_slice(last);
    bytes.extend_from_slice(&tag[..CURSOR_TAG_BYTES]);
    bytes
}

/// The id that a cursor continues behind; nothing when it is not one of ours for this very list.
pub fn open_cursor(keyring: &Keyring, scope: &ListScope, bytes: &[u8]) -> Option<[u8; 16]> {
    let (version, rest) = bytes.split_first()?;
    let (last, tag) = rest.split_first_chunk::<16>()?;
    if *version != CURSOR_VERSION || tag.len() != CURSOR_TAG_BYTES {
        return None;
    }
    let expected = cursor_tag(keyring, scope, last);
    crate::keyring::same(tag, &expected[..CURSOR_TAG_BYTES]).then_some(*last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn scope() -> ListScope {
        ListScope {
            list: "links",
            organization: OrganizationId::from_bytes([1; 16]),
            narrowed_by: "app".to_owned(),
        }
    }

    #[test]
    fn a_cursor_opens_the_list_it_was_made_for_and_no_other() {
        let keyring = Keyring::new([7; 32]);
        let cursor = seal_cursor(&keyring, &scope(), &[9; 16]);
        assert_eq!(open_cursor(&keyring, &scope(), &cursor), Some([9; 16]));

        let others = [
            ListScope {
                list: "apps",
                ..scope()
            },
            ListScope {
                organization: OrganizationId::from_bytes([2; 16]),
                ..scope()
            },
            ListScope {
                narrowed_by: "another app".to_owned(),
                ..scope()
            },
        ];
        for other in others {
            assert_eq!(open_cursor(&keyring, &other, &cursor), None, "{other:?}");
        }
        assert_eq!(open_cursor(&Keyring::new([8; 32]), &scope(), &cursor), None);
    }

    #[test]
    fn a_changed_cursor_is_refused_whatever_was_changed() {
        let keyring = Keyring::new([7; 32]);
        let cursor = seal_cursor(&keyring, &scope(), &[9; 16]);
        for position in 0..cursor.len() {
            let mut changed = cursor.clone();
            changed[position] ^= 1;
            assert_eq!(
                open_cursor(&keyring, &scope(), &changed),
                None,
                "byte {position}"
            );
        }
        assert_eq!(
            open_cursor(&keyring, &scope(), &cursor[..cursor.len() - 1]),
            None
        );
        assert_eq!(open_cursor(&keyring, &scope(), &[]), None);
    }

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
