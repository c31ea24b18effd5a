//! The audit log.

use super::fixtures::{
    CLIENT, SharedStore, app, at, first_page, link, new_app, new_key, organization, origin, refusal,
};
use crate::AuditedChangesQuery;
use std::collections::BTreeMap;
use std::time::Duration;
use tributary_domain::access::key::ApiKey;
use tributary_domain::access::{Actor, AppsRead, AppsWrite, Authorized, Environment, authorize};
use tributary_domain::app::{AppChange, AppSecret};
use tributary_domain::audit::{Action, AuditContext, AuditEntry};
use tributary_domain::integration::{Credential, IntegrationChange, Network};
use tributary_domain::keyring::seal::SealedSecret;
use tributary_domain::link::LinkChange;
use tributary_domain::skan::Document;
use tributary_domain::vocabulary::change::Change;
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::page::PageRequest;
use tributary_domain::vocabulary::revision::Precondition;

async fn log(
    store: &SharedStore,
    caller: &Authorized<AppsWrite>,
    app: Option<AppId>,
) -> Vec<AuditEntry> {
    let page = store
        .audit_log(&caller.read_access(), app, first_page("500"))
        .await;
    page.expect("the log").items
}

fn new_credential() -> IntegrationChange {
    let credential = Credential {
        sealed: SealedSecret::from_bytes(b"canary-credential".to_vec()),
        hint: Some("nary".to_owned()),
    };
    IntegrationChange {
        credentials: BTreeMap::from([("accessToken", Change::Set(credential))]),
        ..IntegrationChange::default()
    }
}

/// Makes nine changes. Each adds an entry.
pub(super) async fn make_every_change(store: &SharedStore, caller: &Authorized<AppsWrite>) {
    let app = app(store, caller).await;
    let link = link(store, caller, app.id).await;
    let key = new_key(caller.organization());
    store
        .create_key(key.clone(), origin(3))
        .await
        .expect("a key is created");
    store
        .revoke_key(key.key.id, origin(4))
        .await
        .expect("a key is revoked");
    let sealed = SealedSecret::from_bytes(b"canary-secret".to_vec());
    let change = AppChange {
        web_events_enabled: Change::Set(true),
        secrets: vec![(AppSecret::SocialReferrerKey, Change::Set(sealed))],
        ..AppChange::default()
    };
    let none = || Precondition::None;
    store
        .update_app(caller, app.id, change, none(), origin(5))
        .await
        .expect("a change");
    let change = LinkChange {
        active: Change::Set(false),
        ..LinkChange::default()
    };
    store
        .update_link(caller, app.id, link.id, change, none(), origin(6))
        .await
        .expect("a change");
    store
        .delete_link(caller, app.id, link.id, none(), origin(7))
        .await
        .expect("a deletion");
    store
        .update_integration(
            caller,
            app.id,
            Network::A,
            new_credential(),
            none(),
            origin(8),
        )
        .await
        .expect("a change");
    let document = Document {
        enabled: true,
        ..Document::disabled()
    };
    store
        .put_skan(caller, app.id, document, none(), origin(9))
        .await
        .expect("a change");
}

/// Each change adds one entry with actor, action, time and origin. Entries are listed newest first.
pub async fn every_change_adds_one_entry(store: &SharedStore) {
    let caller = organization(store).await;
    make_every_change(store, &caller).await;
    let log = log(store, &caller, None).await;
    let actions: Vec<Action> = log.iter().rev().map(|entry| entry.action).collect();
    assert_eq!(
        actions,
        [
            Action::OrganizationCreated,
            Action::AppCreated,
            Action::LinkCreated,
            Action::KeyCreated,
            Action::KeyRevoked,
            Action::AppUpdated,
            Action::LinkUpdated,
            Action::LinkDeleted,
            Action::IntegrationUpdated,
            Action::SkanUpdated,
        ]
    );
    for entry in &log {
        assert_eq!(entry.organization, caller.organization());
        assert_eq!(entry.actor, Actor::Operator);
        assert_eq!(entry.address.as_deref(), Some("192.0.2.7"));
        assert_eq!(entry.request_id.as_deref(), Some("request"));
    }
    let update = log
        .iter()
        .find(|entry| entry.action == Action::AppUpdated)
        .expect("the entry");
    assert_eq!(update.at, at(5));
    assert_eq!(update.target, update.app.expect("an app").to_string());
    let fields: Vec<&str> = update
        .changes
        .iter()
        .map(|change| change.field.as_str())
        .collect();
    assert_eq!(fields, ["webEvents.enabled", "social_referrer_key"]);
}

/// A refused change adds no entry.
pub async fn a_refused_change_adds_no_entry(store: &SharedStore) {
    let caller = organization(store).await;
    let app = app(store, &caller).await;
    let before = log(store, &caller, None).await.len();
    let old = || Precondition::AnyOf(vec!["9".to_owned()]);
    let change = AppChange {
        archived: Change::Set(true),
        ..AppChange::default()
    };
    refusal(
        store
            .update_app(&caller, app.id, change, old(), origin(2))
            .await,
    );
    refusal(
        store
            .put_skan(&caller, app.id, Document::disabled(), old(), origin(2))
            .await,
    );
    let stranger = organization(store).await;
    let foreign = super::fixtures::new_link(app.id, 2);
    refusal(store.create_link(&stranger, foreign, origin(2)).await);
    let mut same_id = new_app(&caller, 3);
    same_id.id = app.id;
    assert!(
        store
            .create_app(&caller, same_id, Vec::new(), origin(3))
            .await
            .is_err()
    );
    assert_eq!(log(store, &caller, None).await.len(), before);
}

/// The entry for a creation contains the initial values, for example name and permission.
pub async fn a_creation_records_the_initial_values(store: &SharedStore) {
    let caller = organization(store).await;
    make_every_change(store, &caller).await;
    let mut app = new_app(&caller, 10);
    app.secrets.insert(AppSecret::SocialReferrerKey);
    let sealed = SealedSecret::from_bytes(b"canary-secret".to_vec());
    let secrets = vec![(AppSecret::SocialReferrerKey, sealed)];
    store
        .create_app(&caller, app, secrets, origin(10))
        .await
        .expect("an app is created");
    let log = log(store, &caller, None).await;
    let initial_values = |action: Action| -> BTreeMap<&str, &str> {
        let entry = log.iter().find(|entry| entry.action == action);
        let changes = &entry.expect("the entry").changes;
        assert!(changes.iter().all(|change| change.before.is_none()));
        assert!(changes.iter().all(|change| change.after.is_some()));
        changes
            .iter()
            .map(|change| {
                (
                    change.field.as_str(),
                    change.after.as_deref().unwrap_or_default(),
                )
            })
            .collect()
    };
    assert_eq!(
        initial_values(Action::OrganizationCreated)["name"],
        "Example"
    );
    let key = initial_values(Action::KeyCreated);
    assert_eq!((key["name"], key["environment"]), ("CI", "live"));
    assert_eq!(
        key["permission"],
        new_key(caller.organization()).key.permission.as_str()
    );
    assert_eq!(key["expiresAt"], at(1_000).as_millis().to_string());
    let app = initial_values(Action::AppCreated);
    assert_eq!((app["name"], app["timezone"]), ("Runner", "UTC"));
    assert_eq!(app["social_referrer_key"], "set");
    assert_eq!(initial_values(Action::LinkCreated)["name"], "Spring");
}

/// The log records that a secret was set, but never the secret, sealed or not.
pub async fn secrets_never_reach_the_log(store: &SharedStore) {
    let caller = organization(store).await;
    make_every_change(store, &caller).await;
    let text = format!("{:?}", log(store, &caller, None).await);
    assert!(text.contains("accessToken"));
    assert!(!text.contains("canary"), "{text}");
}

/// A test caller reads entries about test data only; a live caller reads all entries.
pub async fn a_test_caller_reads_no_live_entries(store: &SharedStore) {
    let caller = organization(store).await;
    let app = app(store, &caller).await;
    let change = |name: &str| AppChange {
        name: Some(super::fixtures::name(name)),
        ..AppChange::default()
    };
    for (name, environment) in [("One", Environment::Live), ("Two", Environment::Test)] {
        let origin = AuditContext {
            environment,
            ..origin(5)
        };
        store
            .update_app(&caller, app.id, change(name), Precondition::None, origin)
            .await
            .expect("a change");
    }
    let environments = async |environment, app| -> Vec<Environment> {
        let key = ApiKey {
            environment,
            ..new_key(caller.organization()).key
        };
        let reader = authorize::<AppsRead>(&key, CLIENT).expect("a reader");
        let page = store.audit_log(&reader, app, first_page("500")).await;
        let entries = page.expect("the log").items;
        entries.iter().map(|entry| entry.environment).collect()
    };
    let (live, test) = (Environment::Live, Environment::Test);
    assert_eq!(environments(test, None).await, [test]);
    assert_eq!(environments(test, Some(app.id)).await, [test]);
    assert_eq!(environments(live, Some(app.id)).await, [test, live, live]);
    assert_eq!(environments(live, None).await.len(), 4);
}

/// Other organizations' entries are not found.
pub async fn another_organization_reads_its_own_log_only(store: &SharedStore) {
    let (owner, stranger) = (organization(store).await, organization(store).await);
    let app = app(store, &owner).await;
    assert_eq!(
        log(store, &stranger, None).await.len(),
        1,
        "its own creation is logged"
    );
    assert!(log(store, &stranger, Some(app.id)).await.is_empty());
}

/// A filter by app omits all other entries.
pub async fn the_log_can_be_filtered_by_app(store: &SharedStore) {
    let caller = organization(store).await;
    let (one, other) = (app(store, &caller).await, app(store, &caller).await);
    link(store, &caller, one.id).await;
    assert_eq!(log(store, &caller, Some(one.id)).await.len(), 2);
    assert_eq!(log(store, &caller, Some(other.id)).await.len(), 1);
}

/// Changes are found by action and time, however many others there are.
pub async fn changes_are_found_by_action_and_time(store: &SharedStore) {
    let (caller, stranger) = (organization(store).await, organization(store).await);
    let (one, other) = (app(store, &caller).await, app(store, &caller).await);
    for app in [one.id, one.id, other.id] {
        link(store, &caller, app).await;
    }
    let logged = log(store, &caller, Some(one.id)).await;
    let created: Vec<_> = logged
        .iter()
        .filter(|entry| entry.action == Action::LinkCreated)
        .collect();
    let [newer, older] = created[..] else {
        panic!("two links were created: {created:?}");
    };
    let after = |entry: &AuditEntry| entry.at.plus(Duration::from_millis(1));
    let found = async |caller: &Authorized<AppsWrite>, actions: &[Action], until, limit| {
        let query = AuditedChangesQuery {
            actions: actions.to_vec(),
            period: (older.at, until),
            limit,
        };
        let reader = caller.read_access();
        let found = store.audited_changes(&reader, one.id, query).await;
        found.expect("changes")
    };
    let links = [Action::LinkCreated, Action::LinkDeleted];
    let all = found(&caller, &links, after(newer), 9).await;
    assert_eq!(all.iter().collect::<Vec<_>>(), created);
    let last = found(&caller, &links, after(newer), 1).await;
    assert_eq!(last.iter().collect::<Vec<_>>(), [newer]);
    let earlier = found(&caller, &links, older.at, 9).await;
    assert_eq!(earlier, [], "the end of the period is left out");
    assert_eq!(found(&caller, &links[1..], after(newer), 9).await, []);
    assert_eq!(found(&stranger, &links, after(newer), 9).await, []);
}

/// Pages have no gaps.
pub async fn the_log_is_paged_newest_first(store: &SharedStore) {
    let caller = organization(store).await;
    make_every_change(store, &caller).await;
    let whole: Vec<_> = log(store, &caller, None)
        .await
        .iter()
        .map(|entry| entry.id)
        .collect();
    let mut seen = Vec::new();
    let mut request = first_page("3");
    loop {
        let page = store
            .audit_log(&caller.read_access(), None, request)
            .await
            .expect("a page");
        seen.extend(page.items.iter().map(|entry| entry.id));
        if !page.has_more {
            break;
        }
        let last = page.items.last().map(|entry| *entry.id.as_bytes());
        request = PageRequest {
            before: last,
            ..request
        };
    }
    assert_eq!(seen, whole);
}

/// Old entries are removed across all organizations in small batches; newer entries stay.
pub async fn old_entries_are_removed(store: &SharedStore) {
    let (one, other) = (organization(store).await, organization(store).await);
    make_every_change(store, &one).await;
    let before = log(store, &one, None).await;
    let old = before.iter().filter(|entry| entry.at < at(5)).count();
    assert!(
        (3..before.len()).contains(&old),
        "some entries are old, some are not"
    );
    let remove = |limit| store.remove_audit_entries(at(5), at(9), limit);
    assert_eq!(remove(2).await.expect("a removal"), 2);
    while remove(2).await.expect("a removal") > 0 {}
    let after = log(store, &one, None).await;
    assert_eq!(after, before[..before.len() - old]);
    assert!(
        log(store, &other, None)
            .await
            .iter()
            .all(|entry| entry.at >= at(5))
    );
}
