//! The instance.

use super::fixtures::{SharedStore, app, at, new_key, organization, origin};
use crate::StoreError;
use tributary_domain::app::AppChange;
use tributary_domain::vocabulary::revision::Precondition;

/// The first secret is stored. A node with a different secret is refused.
pub async fn the_first_secret_is_stored_and_another_is_refused(store: &SharedStore) {
    assert!(!store.has_secret().await.expect("a lookup"));
    assert!(!store.has_secret().await.expect("reading stores none"));
    assert!(store.secret_fits([1; 32]).await.expect("a check"));
    assert!(store.has_secret().await.expect("a lookup"));
    assert!(store.secret_fits([1; 32]).await.expect("a check"));
    assert!(!store.secret_fits([2; 32]).await.expect("a check"));
}

/// The readiness probe commits. The report contains the engine and the schema version.
pub async fn the_probe_commits_and_the_report_names_engine_and_schema(store: &SharedStore) {
    store.commit_probe(at(5)).await.expect("a commit");
    store.commit_probe(at(6)).await.expect("a commit");
    organization(store).await;
    let report = store.report().await.expect("a report");
    assert!(report.schema >= 1, "{report:?}");
    assert!(report.engine.contains("SQL"), "{report:?}");
    assert_eq!(
        report.newest_record_at,
        Some(at(0)),
        "the newest record is in the audit log"
    );
}

/// The change count increases, so that caches of keys and apps can be invalidated.
pub async fn changes_of_keys_and_apps_are_counted(store: &SharedStore) {
    let caller = organization(store).await;
    let new = new_key(caller.organization());
    store
        .create_key(new.clone(), origin(0))
        .await
        .expect("a key is created");
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

/// After closing, calls return unavailable instead of hanging.
pub async fn a_closed_store_is_unavailable(store: &SharedStore) {
    store.close().await;
    let outcome = store.commit_probe(at(0)).await;
    assert!(
        matches!(outcome, Err(StoreError::Unavailable { .. })),
        "{outcome:?}"
    );
}
