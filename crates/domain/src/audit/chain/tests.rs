use super::*;
use crate::audit::FieldChange;
use crate::vocabulary::id::OrganizationId;
use proptest::prelude::*;
use rstest::rstest;

/// A stored entry: its content and its place.
#[derive(Debug, Clone, PartialEq)]
struct Stored {
    entry: HashedEntry,
    place: ChainEnd,
}

fn entry(number: u8) -> HashedEntry {
    HashedEntry {
        organization: OrganizationId::from_bytes([1; 16]),
        id: AuditId::new(Timestamp::from_millis(1_000 * i64::from(number)), [0; 10]),
        at: Timestamp::from_millis(1_000 * i64::from(number)),
        actor_kind: "operator".to_owned(),
        actor: None,
        action: "app.updated".to_owned(),
        app: None,
        target: format!("target {number}"),
        changes: Vec::new(),
        environment: "live".to_owned(),
        address: None,
        request_id: None,
    }
}

/// Builds a chain of entries 1 to `last`.
fn chain(last: u8) -> Vec<Stored> {
    let mut end = ChainEnd::START;
    let append = |number| {
        let entry = entry(number);
        end = end.after(&entry);
        Stored { entry, place: end }
    };
    (1..=last).map(append).collect()
}

/// Verifies stored entries like a reader of the database: the previous hash is the stored one.
fn verify(stored: &[Stored], anchor: &Anchor, end: ChainEnd) -> Result<u64, ChainBreak> {
    let mut verifier = ChainVerifier::new(ChainEnd::START);
    verifier.continue_from(anchor)?;
    for one in stored {
        let line = one
            .entry
            .hashed_line(one.place.sequence, verifier.end().hash);
        verifier.check(one.place, &line)?;
    }
    verifier.finish(&AuditChain {
        end,
        anchor: *anchor,
        is_waiting: false,
    })?;
    Ok(verifier.verified())
}

fn changed(entry: &mut HashedEntry, field: usize) {
    match field {
        0 => entry.target.push('x'),
        1 => entry.action = "app.created".to_owned(),
        2 => entry.at = Timestamp::from_millis(entry.at.as_millis() + 1),
        3 => entry.actor_kind = "service".to_owned(),
        4 => entry.actor = Some([9; 16]),
        5 => entry.app = Some(crate::vocabulary::id::AppId::from_bytes([9; 16])),
        6 => entry.environment = "test".to_owned(),
        7 => entry.address = Some("192.0.2.1".to_owned()),
        8 => entry.request_id = Some("req_1".to_owned()),
        9 => entry.id = entry.id.following(),
        10 => entry.organization = OrganizationId::from_bytes([2; 16]),
        _ => entry.changes.push(FieldChange {
            field: "name".to_owned(),
            before: None,
            after: None,
        }),
    }
}

const FIELDS: usize = 12;

proptest! {
    #[test]
    fn a_changed_entry_is_named(last in 1_u8..9, place in 0_usize..9, field in 0..FIELDS) {
        let mut stored = chain(last);
        let (place, end) = (place % stored.len(), stored[stored.len() - 1].place);
        changed(&mut stored[place].entry, field);
        let sequence = stored[place].place.sequence;
        let found = verify(&stored, &Anchor::NONE, end);
        prop_assert_eq!(found, Err(ChainBreak::Changed(sequence)));
    }

    #[test]
    fn an_entry_that_was_changed_with_its_hash_is_found_at_the_next_one_or_at_the_end(
        last in 1_u8..9, place in 0_usize..9, field in 0..FIELDS,
    ) {
        let mut stored = chain(last);
        let (place, end) = (place % stored.len(), stored[stored.len() - 1].place);
        changed(&mut stored[place].entry, field);
        let before = place.checked_sub(1).map_or(ChainEnd::START, |before| stored[before].place);
        stored[place].place = before.after(&stored[place].entry);
        let sequence = stored[place].place.sequence;
        let expected = if place + 1 == stored.len() {
            ChainBreak::End(sequence)
        } else {
            ChainBreak::Changed(sequence + 1)
        };
        prop_assert_eq!(verify(&stored, &Anchor::NONE, end), Err(expected));
    }

    #[test]
    fn removed_entries_are_named(last in 1_u8..9, from in 0_usize..9, count in 1_usize..9) {
        let mut stored = chain(last);
        let end = stored[stored.len() - 1].place;
        let from = from % stored.len();
        let until = (from + count).min(stored.len());
        let removed: Vec<u64> = stored.drain(from..until).map(|one| one.place.sequence).collect();
        let expected = ChainBreak::Missing(removed[0], removed[removed.len() - 1]);
        prop_assert_eq!(verify(&stored, &Anchor::NONE, end), Err(expected));
    }

    #[test]
    fn swapped_entries_are_named(last in 2_u8..9, one in 0_usize..9, other in 0_usize..9) {
        let mut stored = chain(last);
        let end = stored[stored.len() - 1].place;
        let (one, other) = (one % stored.len(), other % stored.len());
        prop_assume!(one != other);
        let (one, other) = (one.min(other), one.max(other));
        // Swapped contents and swapped rows.
        let mut contents = stored.clone();
        contents[one].entry = stored[other].entry.clone();
        contents[other].entry = stored[one].entry.clone();
        let first = stored[one].place.sequence;
        prop_assert_eq!(verify(&contents, &Anchor::NONE, end), Err(ChainBreak::Changed(first)));
        let moved = stored[other].place.sequence;
        stored.swap(one, other);
        let expected = ChainBreak::Missing(first, moved - 1);
        prop_assert_eq!(verify(&stored, &Anchor::NONE, end), Err(expected));
    }

    #[test]
    fn a_chain_verifies_after_any_cuts(last in 1_u8..9, cuts in prop::collection::vec(0_u8..10, 0..4)) {
        let mut stored = chain(last);
        let end = stored[stored.len() - 1].place;
        let mut anchor = Anchor::NONE;
        for before in cuts {
            let ids: Vec<ChainedId> = stored.iter()
                .map(|one| ChainedId { id: one.entry.id, place: one.place })
                .collect();
            let before = Timestamp::from_millis(1_000 * i64::from(before));
            if let Some(moved) = cut(&anchor, &ids, before, before) {
                anchor = moved;
                stored.retain(|one| one.place.sequence > anchor.end.sequence);
            }
        }
        prop_assert_eq!(anchor.missing, 0);
        prop_assert_eq!(verify(&stored, &anchor, end), Ok(stored.len() as u64));
    }
}

#[rstest]
#[case::nothing_is_old(1_000, None)]
#[case::the_first(1_001, Some(1))]
#[case::two(2_500, Some(2))]
#[case::all(9_000, Some(4))]
fn cuts_the_old_start(#[case] before: i64, #[case] expected: Option<u64>) {
    let ids = chain(4).into_iter().map(|one| ChainedId {
        id: one.entry.id,
        place: one.place,
    });
    let ids: Vec<ChainedId> = ids.collect();
    let now = Timestamp::from_millis(10_000);
    let found = cut(&Anchor::NONE, &ids, Timestamp::from_millis(before), now);
    assert_eq!(found.map(|anchor| anchor.end.sequence), expected);
    assert_eq!(found.and_then(|anchor| anchor.at), expected.map(|_| now));
}

#[test]
fn an_old_entry_after_a_newer_one_waits() {
    let mut ids: Vec<ChainedId> = Vec::new();
    for (sequence, number) in [(1, 5), (2, 1)] {
        let place = ChainEnd {
            sequence,
            ..ChainEnd::START
        };
        let id = entry(number).id;
        ids.push(ChainedId { id, place });
    }
    let (before, now) = (Timestamp::from_millis(3_000), Timestamp::from_millis(9_000));
    assert_eq!(cut(&Anchor::NONE, &ids, before, now), None);
}

#[test]
fn entries_that_were_missing_before_the_cut_stay_reported() {
    let stored = chain(5);
    let end = stored[4].place;
    let left = |one: &&Stored| one.place.sequence != 1 && one.place.sequence != 3;
    let left: Vec<Stored> = stored.iter().filter(left).cloned().collect();
    let ids = left.iter().map(|one| ChainedId {
        id: one.entry.id,
        place: one.place,
    });
    let ids: Vec<ChainedId> = ids.collect();
    let now = Timestamp::from_millis(9_000);
    let anchor = cut(&Anchor::NONE, &ids, Timestamp::from_millis(4_500), now);
    let anchor = anchor.expect("a cut");
    assert_eq!((anchor.end.sequence, anchor.missing), (4, 2));
    let found = verify(&stored[4..], &anchor, end);
    assert_eq!(found, Err(ChainBreak::MissingBeforeAnchor(2, 4)));
}

#[test]
fn a_forged_anchor_or_end_is_found() {
    let stored = chain(3);
    let end = stored[2].place;
    let forged = ChainEnd {
        sequence: 1,
        ..ChainEnd::START
    };
    let anchor = Anchor {
        end: forged,
        ..Anchor::NONE
    };
    let found = verify(&stored[1..], &anchor, end);
    assert_eq!(found, Err(ChainBreak::Changed(2)));
    let found = verify(&stored, &Anchor::NONE, stored[1].place);
    assert_eq!(found, Err(ChainBreak::End(2)));
    let mut verifier = ChainVerifier::new(stored[0].place);
    let found = verifier.continue_from(&anchor);
    assert_eq!(found, Err(ChainBreak::Anchor(1)));
}

#[rstest]
#[case::one(ChainBreak::Missing(3, 3), "entry 3 is missing")]
#[case::several(ChainBreak::Missing(3, 5), "entries 3 to 5 are missing")]
#[case::first(ChainBreak::Changed(1), "entry 1 was changed")]
#[case::later(
    ChainBreak::Changed(2),
    "entry 2 was changed, or entry 1 together with its hash"
)]
#[case::place(ChainBreak::Misplaced(2), "entry 2 is not in its place")]
fn a_break_names_its_entry(#[case] found: ChainBreak, #[case] text: &str) {
    assert_eq!(found.to_string(), text);
    assert!(text.contains(&found.sequence().to_string()));
}
