//! The instance itself.

use super::fixtures::{SharedStore, app, at, new_key, organization, origin};
use crate::StoreError;
use tributary_domain::app::AppChange;
use tributary_domain::vocabulary::revision::Precondition;

/// A database is set up with one secret; a node with another one must not touch it.
pub async fn the_first_secret_is_remembered_and_another_refused(store: &SharedStore) {
    assert!(!store.has_secret().await.expect("a look"));
    assert!(!store.has_secret().await.expect("looking sets none"));
    assert!(store.secret_fits([1; 32]).await.expect("a check"));
    assert!(store.has_secret().await.expect("a look"));
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
        report.newest_record_at,
        Some(at(0)),
        "the audit log knows the newest change"
    );
}

/// Whoever keeps what was read of keys and apps learns that it may not be so any more.
pub async fn changes_of_keys_and_apps_are_counted(store: &SharedStore) {
    let caller = organization(store).await;
    let new = new_key(caller.organization());
    store
        .create_key(new.clone(), origin(0))
        .await
        .expect("a key is made");
    let app = app(store, &caller).await;
    let before = store.change_count();
    store
        .revoke_key(new.key.id, origin(1))
        .await
        .expect("a key is revoked");
    let between = store.change_count();
    assert!(between > before);
    let change = AppChange::default();
    store
        .update_app(&caller, app.id, change, Precondition::None, origin(2))
        .await
        .expect("the app is changed");
    assert!(store.change_count() > between);
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
