//! The instance itself.

use super::fixtures::{SharedStore, at, organization};
use crate::StoreError;

/// A database is set up with one secret; a node with another one must not touch it.
pub async fn the_first_secret_is_remembered_and_another_refused(store: &SharedStore) {
    assert!(store.secret_fits([1; 32]).await.expect("a check"));
    assert!(store.secret_fits([1; 32]).await.expect("a check"));
    assert!(!store.secret_fits([2; 32]).await.expect("a check"));
}

/// Readiness is a commit; the report names engine and schema.
pub async fn a_probe_commits_and_the_report_is_true(store: &SharedStore) {
    store.commit_probe(at(5)).await.expect("a commit");
    store.commit_probe(at(6)).await.expect("a commit");
    organization(store).await;
    let report = store.report().await.expect("a report");
    assert!(report.schema >= 1, "{report:?}");
    assert!(report.engine.contains("SQL"), "{report:?}");
    assert_eq!(
        report.newest,
        Some(at(0)),
        "the audit log knows the newest change"
    );
}

/// After closing, everything is unavailable rather than hanging.
pub async fn a_closed_store_is_unavailable(store: &SharedStore) {
    store.close().await;
    let outcome = store.commit_probe(at(0)).await;
    assert!(
        matches!(outcome, Err(StoreError::Unavailable { .. })),
        "{outcome:?}"
    );
}
