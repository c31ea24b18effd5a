//! A subscriber's user ids.

use crate::device::UserKey;

/// Maximum number of ids per user. Providers keep every anonymous id that a user ever had.
pub const PERSON_IDS_MAX: usize = 50;

/// Returns the first [`PERSON_IDS_MAX`] distinct ids, in order. Invalid ids are left out.
pub fn person_ids(ids: impl IntoIterator<Item = String>) -> Vec<UserKey> {
    let mut people: Vec<UserKey> = Vec::new();
    for id in ids.into_iter().filter_map(|id| UserKey::parse(&id).ok()) {
        if people.len() == PERSON_IDS_MAX {
            break;
        }
        if !people.contains(&id) {
            people.push(id);
        }
    }
    people
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::in_their_order(&["b", "a"], &["b", "a"])]
    #[case::each_once(&["a", "b", "a"], &["a", "b"])]
    #[case::without_invalid_ones(&["", "a", "b\0"], &["a"])]
    #[case::none(&[], &[])]
    fn keeps_distinct_valid_ids_in_order(#[case] ids: &[&str], #[case] expected: &[&str]) {
        let found = person_ids(ids.iter().map(|id| (*id).to_owned()));
        let found: Vec<&str> = found.iter().map(UserKey::as_str).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn stops_at_the_limit() {
        let ids = (0..=PERSON_IDS_MAX).map(|number| number.to_string());
        let found = person_ids(ids.flat_map(|id| [id.clone(), id]));
        assert_eq!(found.len(), PERSON_IDS_MAX);
        assert_eq!(found.last().map(UserKey::as_str), Some("49"));
    }
}
