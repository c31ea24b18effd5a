//! The instance.

use super::erasure_fixtures::billing_notification;
use super::fixtures::{SharedStore, app, at, link, new_key, organization, origin, unique};
use super::sdk_fixtures::tenant;
use super::sessions::user;
use super::skan::document;
use crate::{StoreError, StoreResult};
use std::collections::BTreeSet;
use std::time::Duration;
use tributary_domain::access::key_management::KeyRotation;
use tributary_domain::access::person::Role;
use tributary_domain::access::{Actor, AppsWrite, Authorized, KeysWrite};
use tributary_domain::app::{AppChange, BillingProvider};
use tributary_domain::audit::AuditContext;
use tributary_domain::billing::{NotificationMeaning, PaymentClaim};
use tributary_domain::link::LinkChange;
use tributary_domain::ownership::store_id::StoreIdProof;
use tributary_domain::vocabulary::change::Change;
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::id::{AppId, KeyId, LinkId, UserId};
use tributary_domain::vocabulary::revision::Precondition;
use tributary_domain::vocabulary::web_url::HostName;

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

/// A name for each change, to find the change that a failed check is about.
const CHANGES: [&str; 10] = [
    "take_over_key",
    "rotate_key",
    "revoke_key",
    "update_app",
    "put_skan",
    "patch_skan",
    "set_link_domain_verified",
    "prove_store_id",
    "update_link",
    "delete_link",
];

/// Everything that the changes in [`CHANGES`] are made to.
struct ChangedObjects {
    caller: Authorized<AppsWrite>,
    member: UserId,
    key: KeyId,
    app: AppId,
    link: LinkId,
}

impl ChangedObjects {
    async fn create(store: &SharedStore) -> Self {
        let caller = organization(store).await;
        let new = new_key(caller.organization());
        let created = store.create_key(new.clone(), origin(0)).await;
        created.expect("a key is created");
        let app = app(store, &caller).await.id;
        let link = link(store, &caller, app).await.id;
        Self {
            member: user(store, caller.organization(), Role::Owner).await.id,
            caller,
            key: new.key.id,
            app,
            link,
        }
    }

    async fn change(&self, store: &SharedStore, change: &str) -> StoreResult<()> {
        let Self {
            caller,
            member,
            key,
            app,
            link,
        } = self;
        let manager = Authorized::<KeysWrite>::operator(caller.organization());
        let (app, link, any) = (*app, *link, Precondition::None);
        let host = HostName::parse("go.example.com").expect("a host");
        match change {
            "take_over_key" => {
                let origin = AuditContext {
                    actor: Actor::User(*member),
                    ..origin(1)
                };
                drop(store.take_over_key(&manager, *key, origin).await?);
            }
            "rotate_key" => {
                let rotation = KeyRotation {
                    successor: KeyId::new(at(1), unique()),
                    hint: "wxyz".to_owned(),
                    overlap: Duration::from_hours(1),
                    expiry: Change::Keep,
                };
                let digest = Digest::of(&unique());
                let rotated = store.rotate_key(&manager, *key, rotation, digest, origin(1));
                drop(rotated.await?);
            }
            "revoke_key" => drop(store.revoke_key(*key, origin(1)).await?),
            "update_app" => {
                let change = AppChange {
                    link_domain: Change::Set(host),
                    ios_app_store_id: Change::Set("42".to_owned()),
                    ..AppChange::default()
                };
                drop(
                    store
                        .update_app(caller, app, change, any, origin(2))
                        .await?,
                );
            }
            "put_skan" => {
                let put = store.put_skan(caller, app, document(40), any, origin(2));
                drop(put.await?);
            }
            "patch_skan" => {
                let (disabled, signals) = (Change::Set(false), Change::Keep);
                let patched = store.patch_skan(caller, app, disabled, signals, any, origin(2));
                drop(patched.await?);
            }
            "set_link_domain_verified" => {
                let verified = store.set_link_domain_verified(caller, app, host, true, origin(3));
                drop(verified.await?);
            }
            "prove_store_id" => {
                let proof = StoreIdProof::Operator;
                assert!(store.prove_store_id(app, "42", proof, origin(4)).await?);
            }
            "update_link" => {
                let change = LinkChange {
                    active: Change::Set(false),
                    ..LinkChange::default()
                };
                let updated = store.update_link(caller, app, link, change, any, origin(5));
                drop(updated.await?);
            }
            _ => store.delete_link(caller, app, link, any, origin(6)).await?,
        }
        Ok(())
    }
}

/// Every change to an existing key, app, conversion-value configuration or link invalidates caches: in this process by the change
/// count, in other processes by the version.
pub async fn changes_of_keys_apps_and_links_give_a_new_version(store: &SharedStore) {
    let objects = ChangedObjects::create(store).await;
    let version = store.configuration_version().await.expect("a version");
    assert_eq!(version, None, "new objects are not cached anywhere");
    let mut versions = BTreeSet::from([version]);
    for change in CHANGES {
        let before = store.change_count();
        let changed = objects.change(store, change).await;
        changed.unwrap_or_else(|error| panic!("{change}: {error}"));
        assert!(store.change_count() > before, "{change}");
        let version = store.configuration_version().await.expect("a version");
        assert!(versions.insert(version), "{change} gives a new version");
    }
}

/// New objects and a refused change leave the version as it is, so that caches stay valid.
pub async fn other_changes_keep_the_version(store: &SharedStore) {
    let objects = ChangedObjects::create(store).await;
    let changed = objects.change(store, "update_link").await;
    changed.expect("the link is changed");
    let version = store.configuration_version().await.expect("a version");
    ChangedObjects::create(store).await;
    store
        .note_key_use(objects.key, at(7), "192.0.2.0/24".to_owned())
        .await
        .expect("a use");
    let caller = &objects.caller;
    let outdated = Precondition::AnyOf(vec!["outdated".to_owned()]);
    let refused = store
        .delete_link(caller, objects.app, objects.link, outdated, origin(8))
        .await;
    refused.expect_err("the revision is outdated");
    let after = store.configuration_version().await.expect("a version");
    assert_eq!(after, version);
}

/// A refused change and a repeated proof of an App Store id leave the caches of this process valid.
/// Every App Store notification repeats the proof.
pub async fn calls_that_change_nothing_keep_the_change_count(store: &SharedStore) {
    let objects = ChangedObjects::create(store).await;
    for change in ["update_app", "prove_store_id"] {
        let changed = objects.change(store, change).await;
        changed.unwrap_or_else(|error| panic!("{change}: {error}"));
    }
    let before = store.change_count();
    let proof = StoreIdProof::Operator;
    let proven = store.prove_store_id(objects.app, "42", proof, origin(7));
    assert!(!proven.await.expect("a proof"));
    let outdated = Precondition::AnyOf(vec!["outdated".to_owned()]);
    let refused = store
        .delete_link(
            &objects.caller,
            objects.app,
            objects.link,
            outdated,
            origin(8),
        )
        .await;
    refused.expect_err("the revision is outdated");
    assert_eq!(store.change_count(), before);
}

/// The first App Store notification gives a new version: from then on, the app's SDK revenue does
/// not count.
pub async fn a_first_notification_gives_a_new_version(store: &SharedStore) {
    let tenant = tenant(store).await;
    let version = async || store.configuration_version().await.expect("a version");
    let mut versions = vec![version().await];
    for id in ["n-1", "n-2"] {
        let meaning = NotificationMeaning::Payment(PaymentClaim::Start);
        let mut paid = billing_notification(&tenant, id, "sub", 10, meaning);
        paid.provider = BillingProvider::Appstore;
        let accepted = store.accept_notification(paid).await;
        accepted.expect("a notification is stored");
        versions.push(version().await);
    }
    assert_ne!(versions[1], versions[0]);
    assert_eq!(versions[2], versions[1]);
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
