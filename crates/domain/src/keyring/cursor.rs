//! Pagination cursors: the last id of a page with a tag that binds it to its list.

use super::{Keyring, Purpose};
use crate::vocabulary::digest::Digest;
use crate::vocabulary::page::ListScope;

/// Layout version, so that an old cursor is rejected instead of misread.
const CURSOR_VERSION: u8 = 1;
/// Length of a cursor's authentication tag in bytes.
const CURSOR_TAG_BYTES: usize = 16;

impl Keyring {
    /// Returns a cursor that continues after `last`.
    pub fn seal_cursor(&self, scope: &ListScope, last: &[u8; 16]) -> Vec<u8> {
        let filters = Digest::of(scope.filters.as_bytes());
        let tag = self.tag(Purpose::Cursor, &cursor_parts(scope, &filters, last));
        let mut bytes = vec![CURSOR_VERSION];
        bytes.extend_from_slice(last);
        bytes.extend_from_slice(&tag[..CURSOR_TAG_BYTES]);
        bytes
    }

    /// Returns the id that a cursor continues after. Rejects cursors from other lists and
    /// instances.
    pub fn open_cursor(&self, scope: &ListScope, bytes: &[u8]) -> Option<[u8; 16]> {
        let (version, rest) = bytes.split_first()?;
        let (last, tag) = rest.split_first_chunk::<16>()?;
        if *version != CURSOR_VERSION || tag.len() != CURSOR_TAG_BYTES {
            return None;
        }
        let filters = Digest::of(scope.filters.as_bytes());
        let parts = cursor_parts(scope, &filters, last);
        self.is_tag(Purpose::Cursor, &parts, tag).then_some(*last)
    }
}

/// Returns what a cursor's tag covers.
fn cursor_parts<'a>(
    scope: &'a ListScope,
    filters: &'a Digest,
    last: &'a [u8; 16],
) -> [&'a [u8]; 4] {
    let (list, organization) = (scope.list.as_bytes(), scope.organization.as_bytes());
    [list, organization, filters.as_bytes(), last]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocabulary::id::OrganizationId;

    fn scope() -> ListScope {
        ListScope {
            list: "links",
            organization: OrganizationId::from_bytes([1; 16]),
            filters: "app".to_owned(),
        }
    }

    #[test]
    fn a_cursor_is_valid_for_its_own_list_only() {
        let keyring = Keyring::new([7; 32]);
        let cursor = keyring.seal_cursor(&scope(), &[9; 16]);
        assert_eq!(keyring.open_cursor(&scope(), &cursor), Some([9; 16]));

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
                filters: "another app".to_owned(),
                ..scope()
            },
        ];
        for other in others {
            assert_eq!(keyring.open_cursor(&other, &cursor), None, "{other:?}");
        }
        assert_eq!(Keyring::new([8; 32]).open_cursor(&scope(), &cursor), None);
    }

    #[test]
    fn rejects_a_changed_cursor() {
        let keyring = Keyring::new([7; 32]);
        let cursor = keyring.seal_cursor(&scope(), &[9; 16]);
        for position in 0..cursor.len() {
            let mut changed = cursor.clone();
            changed[position] ^= 1;
            assert_eq!(
                keyring.open_cursor(&scope(), &changed),
                None,
                "byte {position}"
            );
        }
        assert_eq!(
            keyring.open_cursor(&scope(), &cursor[..cursor.len() - 1]),
            None
        );
        assert_eq!(keyring.open_cursor(&scope(), &[]), None);
    }
}
