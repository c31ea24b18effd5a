//! The hash chains of the audit log.

use super::audit_log::make_every_change;
use super::fixtures::{SharedStore, app, at, join_all, link, organization};
use crate::{ChainReport, verify_audit_chain};
use tributary_domain::access::{AppsWrite, Authorized};
use tributary_domain::audit::chain::ChainBreak;

async fn verify(store: &SharedStore, caller: &Authorized<AppsWrite>) -> ChainReport {
    let report = verify_audit_chain(&**store, caller.organization()).await;
    report.expect("a report").expect("a chain")
}

/// Every entry gets the next number of its organization's chain, and the chain verifies.
pub async fn every_entry_is_chained(store: &SharedStore) {
    let (one, other) = (organization(store).await, organization(store).await);
    make_every_change(store, &one).await;
    for (caller, entries) in [(&one, 10), (&other, 1)] {
        let report = verify(store, caller).await;
        assert_eq!(report.broken, None);
        assert_eq!((report.verified, report.end.sequence), (entries, entries));
        assert_eq!(report.chain.end, report.end);
    }
    assert_ne!(
        verify(store, &one).await.end.hash,
        verify(store, &other).await.end.hash
    );
}

/// Changes that are made at the same time get consecutive places.
pub async fn concurrent_entries_are_one_chain(store: &SharedStore) {
    let caller = organization(store).await;
    let app = app(store, &caller).await;
    let links = (0..20).map(|_| link(store, &caller, app.id));
    join_all(links.collect()).await;
    let report = verify(store, &caller).await;
    assert_eq!(report.broken, None);
    assert_eq!((report.verified, report.end.sequence), (22, 22));
}

/// Retention leaves an anchor, from which the rest of the chain continues.
pub async fn removed_entries_leave_an_anchor(store: &SharedStore) {
    let (one, other) = (organization(store).await, organization(store).await);
    make_every_change(store, &one).await;
    let before = verify(store, &one).await;
    let mut removed = 0;
    loop {
        let batch = store.remove_audit_entries(at(5), at(99), 2).await;
        let batch = batch.expect("a removal");
        removed += batch;
        if batch < 2 {
            break;
        }
    }
    let after = verify(store, &one).await;
    assert_eq!(after.broken, None);
    let anchor = after.chain.anchor;
    assert!(anchor.end.sequence >= 3, "{anchor:?}");
    assert_eq!((anchor.at, anchor.missing), (Some(at(99)), 0));
    assert_eq!(after.verified, before.verified - anchor.end.sequence);
    assert_eq!(after.end, before.end);
    let untouched = verify(store, &other).await;
    assert_eq!(untouched.broken, None);
    assert_eq!(
        removed,
        anchor.end.sequence + untouched.chain.anchor.end.sequence
    );
    // New entries continue the chain, also if all others are removed.
    while store
        .remove_audit_entries(at(9_999), at(99), 100)
        .await
        .expect("a removal")
        > 0
    {}
    app(store, &one).await;
    let last = verify(store, &one).await;
    assert_eq!((last.broken, last.verified), (None, 1));
    assert_eq!(last.end.sequence, before.end.sequence + 1);
}

/// Pages begin after a number and after the anchor.
pub async fn a_chain_is_read_in_pages(store: &SharedStore) {
    let caller = organization(store).await;
    make_every_change(store, &caller).await;
    let page = async |after, limit| {
        let page = store.audit_chain_page(caller.organization(), after, limit);
        let page = page.await.expect("a page").expect("a chain");
        let numbers = page.entries.iter().map(|one| one.place.sequence);
        (numbers.collect::<Vec<u64>>(), page.has_more)
    };
    assert_eq!(page(0, 2).await, (vec![1, 2], true));
    assert_eq!(page(8, 2).await, (vec![9, 10], true));
    assert_eq!(page(10, 2).await, (vec![], false));
    while store
        .remove_audit_entries(at(5), at(99), 100)
        .await
        .expect("a removal")
        > 0
    {}
    let (numbers, _) = page(0, 1).await;
    assert!(numbers[0] > 3, "{numbers:?}");
    let organizations = store.audited_organizations(None, 100).await;
    assert!(
        organizations
            .expect("a list")
            .contains(&caller.organization())
    );
    let after = Some(caller.organization());
    let following = store.audited_organizations(after, 100).await;
    assert!(!following.expect("a list").contains(&caller.organization()));
}

/// Statements that change the rows of the only organization from outside, and what the verification
/// then finds. Each one is earlier in the chain than the ones before it.
pub const TAMPERINGS: [(&str, ChainBreak); 8] = [
    (
        "delete from audit_log where sequence = 10",
        ChainBreak::Missing(10, 10),
    ),
    (
        "update audit_log set hash = (select last_hash from audit_chains) where sequence = 9",
        ChainBreak::Changed(9),
    ),
    (
        "update audit_log set target = 'another' where sequence = 8",
        ChainBreak::Changed(8),
    ),
    (
        "delete from audit_log where sequence = 6",
        ChainBreak::Missing(6, 6),
    ),
    (
        "update audit_log set sequence = 9 - sequence where sequence in (4, 5)",
        ChainBreak::Changed(4),
    ),
    (
        "update audit_log set changes = 'not json' where sequence = 3",
        ChainBreak::Changed(3),
    ),
    (
        "delete from audit_log where sequence = 1",
        ChainBreak::Missing(1, 1),
    ),
    (
        "update audit_chains set removed_sequence = 1",
        ChainBreak::Changed(2),
    ),
];

/// Statements that remove the row of a chain from outside, and put it back.
const WITHOUT_CHAIN_ROW: [[&str; 2]; 2] = [
    [
        "create table kept as select * from audit_chains",
        "delete from audit_chains",
    ],
    [
        "insert into audit_chains select * from kept",
        "drop table kept",
    ],
];

/// Checks that tampering is found. `execute` runs a statement on the database of an empty store.
pub async fn tampering_is_found(store: &SharedStore, execute: impl AsyncFn(&'static str)) {
    let caller = organization(store).await;
    make_every_change(store, &caller).await;
    assert_eq!(verify(store, &caller).await.broken, None);
    let [remove, restore] = WITHOUT_CHAIN_ROW;
    for statement in remove {
        execute(statement).await;
    }
    let broken = verify(store, &caller).await.broken;
    assert_eq!(broken.map(|(found, _)| found), Some(ChainBreak::End(0)));
    let listed = store.audited_organizations(None, 100).await;
    assert_eq!(listed.expect("a list"), [caller.organization()]);
    for statement in restore {
        execute(statement).await;
    }
    for (statement, expected) in TAMPERINGS {
        execute(statement).await;
        let broken = verify(store, &caller).await.broken;
        assert_eq!(
            broken.map(|(found, _)| found),
            Some(expected),
            "{statement}"
        );
    }
    // Retention still removes what is old, and what was missing stays reported.
    while store
        .remove_audit_entries(at(9_999), at(99), 3)
        .await
        .expect("a removal")
        > 0
    {}
    let report = verify(store, &caller).await;
    let broken = report.broken.map(|(found, _)| found);
    assert_eq!(broken, Some(ChainBreak::Missing(10, 10)));
    assert_eq!((report.verified, report.chain.anchor.missing), (0, 1));
}

/// Statements that turn the log of the only organization into one of the earlier version.
pub const WITHOUT_CHAIN: [&str; 2] = [
    "update audit_log set sequence = null, hash = null",
    "update audit_chains set last_sequence = 0, last_hash = removed_hash, is_waiting = (1 = 1)",
];

/// Checks that entries of earlier versions get their place in the order of time, except those that
/// retention removes soon. `execute` runs a statement on the database of an empty store.
pub async fn earlier_entries_get_a_place(store: &SharedStore, execute: impl AsyncFn(&'static str)) {
    let caller = organization(store).await;
    make_every_change(store, &caller).await;
    for statement in WITHOUT_CHAIN {
        execute(statement).await;
    }
    // New entries wait, so that they do not come before the earlier ones.
    app(store, &caller).await;
    assert_eq!(verify(store, &caller).await.verified, 0);
    while store.chain_audit_entries(at(5), 3).await.expect("places") > 0 {}
    let report = verify(store, &caller).await;
    assert_eq!(report.broken, None);
    let chained = report.verified;
    assert!((3..11).contains(&chained), "{chained} of 11");
    assert!(!report.chain.is_waiting);
    app(store, &caller).await;
    assert_eq!(verify(store, &caller).await.verified, chained + 1);
    // Entries without a place need no anchor.
    let removed = store.remove_audit_entries(at(5), at(99), 100).await;
    assert_eq!(removed.expect("a removal"), 11 - chained);
    let report = verify(store, &caller).await;
    assert_eq!((report.broken, report.verified), (None, chained + 1));
    assert_eq!(report.chain.anchor.end.sequence, 0);
}
