//! API keys: owners, limits, rotation, and what happens to a member's keys.

use super::fixtures::{
    CLIENT, SharedStore, app, at, first_page, join_all, link, new_app, new_key, organization,
    origin, refusal, unique,
};
use super::sessions::user;
use crate::{KeyFilter, NewKey, TakeOver};
use std::time::Duration;
use tributary_domain::access::key::ApiKey;
use tributary_domain::access::key_limits::{AddressLimit, AppLimit, KeyLimits};
use tributary_domain::access::key_management::{KEYS_MAX, KeyRotation};
use tributary_domain::access::person::{Role, User};
use tributary_domain::access::{
    Actor, AppsRead, AppsWrite, Authorized, Environment, KeysWrite, MembersWrite, Permission,
    Scope, authorize,
};
use tributary_domain::audit::{Action, AuditContext};
use tributary_domain::refusal::Refusal;
use tributary_domain::vocabulary::address_range::AddressRange;
use tributary_domain::vocabulary::change::Change;
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::id::{AppId, KeyId, OrganizationId};

/// Returns the origin of a change by this actor.
pub(super) fn by(actor: Actor, seconds: i64) -> AuditContext {
    AuditContext {
        actor,
        ..origin(seconds)
    }
}

/// Returns a full key without an expiry.
pub(super) fn full_key(organization: OrganizationId) -> NewKey {
    let new = new_key(organization);
    NewKey {
        key: ApiKey {
            permission: Permission::Full,
            expires_at: None,
            ..new.key
        },
        digest: new.digest,
    }
}

pub(super) async fn created(store: &SharedStore, new: NewKey, actor: Actor) -> ApiKey {
    let created = store.create_key(new, by(actor, 10)).await;
    created.expect("a key is created")
}

pub(super) async fn stored(store: &SharedStore, key: &ApiKey) -> ApiKey {
    let keys = store.keys(key.organization).await.expect("a list");
    let found = keys.into_iter().find(|one| one.id == key.id);
    found.expect("the key")
}

/// Returns what a key may do.
fn using<S: Scope>(key: &ApiKey) -> Authorized<S> {
    authorize(key, CLIENT).expect("the key may")
}

pub(super) fn manager(organization: OrganizationId) -> Authorized<KeysWrite> {
    Authorized::operator(organization)
}

pub(super) fn rotation(overlap: u64) -> KeyRotation {
    KeyRotation {
        successor: KeyId::new(at(20), unique()),
        hint: "wxyz".to_owned(),
        overlap: Duration::from_secs(overlap),
        expiry: Change::Keep,
    }
}

/// A key keeps its limits, and gets its creator and owner from the actor.
pub async fn a_key_stores_its_limits_creator_and_owner(store: &SharedStore) {
    let caller = organization(store).await;
    let (one, two) = (app(store, &caller).await.id, app(store, &caller).await.id);
    let member = user(store, caller.organization(), Role::Admin).await;
    let range = |text| AddressRange::parse(text).expect("a range");
    let mut new = full_key(caller.organization());
    new.key.limits = KeyLimits {
        apps: AppLimit::only([two, one]),
        addresses: AddressLimit::only([range("192.0.2.0/24"), range("2001:db8::/48")]),
    };
    let key = created(store, new.clone(), Actor::User(member.id)).await;
    assert_eq!(key.limits, new.key.limits);
    assert_eq!(key.created_by, Some(Actor::User(member.id)));
    assert_eq!(key.owner, Some(member.id));
    assert_eq!(stored(store, &key).await, key);
    let found = store.key_by_digest(new.digest).await.expect("a lookup");
    assert_eq!(found, Some(key.clone()));

    let child = NewKey {
        key: ApiKey {
            limits: key.limits.clone(),
            ..full_key(caller.organization()).key
        },
        digest: Digest::of(&unique()),
    };
    let child = created(store, child, Actor::Key(key.id)).await;
    assert_eq!(child.created_by, Some(Actor::Key(key.id)));
    assert_eq!(child.owner, Some(member.id), "the owner of its creator");
    let operators = full_key(caller.organization());
    let operators = created(store, operators, Actor::Operator).await;
    assert_eq!(
        (operators.created_by, operators.owner),
        (Some(Actor::Operator), None)
    );
    let used = store.note_key_use(key.id, at(60), "192.0.2.0/24".to_owned());
    used.await.expect("a use is recorded");
    let used = stored(store, &key).await;
    assert_eq!(used.last_used_at, Some(at(60)));
    assert_eq!(used.last_used_from.as_deref(), Some("192.0.2.0/24"));
}

/// A key creates none that can do more, even if the caller was authorized before it was revoked.
pub async fn a_key_creates_no_more_powerful_one(store: &SharedStore) {
    let (caller, stranger) = (organization(store).await, organization(store).await);
    let (one, two) = (app(store, &caller).await.id, app(store, &caller).await.id);
    let foreign = app(store, &stranger).await.id;
    let limited = |apps: &[AppId]| {
        let mut new = full_key(caller.organization());
        new.key.limits.apps = AppLimit::only(apps.iter().copied());
        new
    };
    let key = created(store, limited(&[one]), Actor::Operator).await;
    let create = async |new, actor| store.create_key(new, by(actor, 11)).await;
    let own = || Actor::Key(key.id);
    for wider in [limited(&[one, two]), full_key(caller.organization())] {
        let refused = refusal(create(wider, own()).await);
        assert!(
            matches!(refused, Refusal::KeyExceedsManager(_)),
            "{refused:?}"
        );
    }
    let unknown = refusal(create(limited(&[foreign]), Actor::Operator).await);
    assert!(matches!(unknown, Refusal::Invalid(_)), "{unknown:?}");
    let elsewhere = full_key(stranger.organization());
    assert_eq!(
        refusal(create(elsewhere, own()).await),
        Refusal::KeyManagerInvalid
    );
    create(limited(&[one]), own()).await.expect("an equal key");
    store.revoke_key(key.id, origin(12)).await.expect("revoked");
    let late = create(limited(&[one]), own()).await;
    assert_eq!(refusal(late), Refusal::KeyManagerInvalid);
    let mut expired = full_key(caller.organization());
    expired.key.expires_at = Some(at(11));
    let expired = refusal(create(expired, Actor::Operator).await);
    assert!(matches!(expired, Refusal::Invalid(_)), "{expired:?}");
}

/// Analysts and removed members create no keys.
pub async fn only_members_with_the_scope_create_keys(store: &SharedStore) {
    let caller = organization(store).await;
    let analyst = user(store, caller.organization(), Role::Analyst).await;
    let admin = user(store, caller.organization(), Role::Admin).await;
    let create = async |member: &User| {
        let new = full_key(caller.organization());
        store.create_key(new, by(Actor::User(member.id), 10)).await
    };
    assert_eq!(refusal(create(&analyst).await), Refusal::KeyManagerInvalid);
    create(&admin).await.expect("a key");
    let owner = Authorized::<MembersWrite>::operator(caller.organization());
    let removed = store.remove_member(&owner, admin.id, TakeOver::default(), origin(11));
    removed.await.expect("removed");
    assert_eq!(refusal(create(&admin).await), Refusal::KeyManagerInvalid);
}

/// An organization has a limited number of valid keys, even if they are created concurrently.
pub async fn an_organization_has_a_limited_number_of_valid_keys(store: &SharedStore) {
    let caller = organization(store).await;
    for _ in 0..KEYS_MAX - 2 {
        created(store, full_key(caller.organization()), Actor::Operator).await;
    }
    let create = || store.create_key(full_key(caller.organization()), origin(10));
    let outcomes = join_all((0..4).map(|_| create()).collect()).await;
    let mut last = None;
    for outcome in outcomes {
        match outcome {
            Ok(key) => last = Some(key),
            Err(error) => assert_eq!(refusal::<()>(Err(error)), Refusal::TooManyKeys),
        }
    }
    let last = last.expect("two keys fit");
    assert_eq!(refusal(create().await), Refusal::TooManyKeys);
    let revoked = store.revoke_key(last.id, origin(11)).await;
    revoked.expect("revoked");
    create().await.expect("there is room again");
}

/// The old key expires after the overlap, and its successor has the same permission and limits.
pub async fn a_rotated_key_ends_after_the_overlap(store: &SharedStore) {
    let caller = organization(store).await;
    let member = user(store, caller.organization(), Role::Owner).await;
    let app = app(store, &caller).await.id;
    let mut new = full_key(caller.organization());
    new.key.limits.apps = AppLimit::only([app]);
    let old = created(store, new.clone(), Actor::User(member.id)).await;
    let (caller, digest) = (manager(old.organization), Digest::of(&unique()));
    let rotate = async |key, rotation, seconds| {
        let origin = by(Actor::Key(old.id), seconds);
        store
            .rotate_key(&caller, key, rotation, digest, origin)
            .await
    };
    let next = rotate(old.id, rotation(30), 20).await.expect("a successor");
    let found = store.key_by_digest(digest).await.expect("a lookup");
    assert_eq!(found, Some(next.clone()));
    assert_eq!(
        (next.permission, &next.limits),
        (old.permission, &old.limits)
    );
    assert_eq!(next.owner, Some(member.id));
    assert_eq!(next.expires_at, None);
    let ending = store.key_by_digest(new.digest).await.expect("a lookup");
    let ending = ending.expect("the old key");
    assert_eq!(ending.successor, Some(next.id));
    assert!(ending.is_valid(at(49)) && !ending.is_valid(at(50)));
    let again = rotate(old.id, rotation(9_000), 21).await;
    assert_eq!(refusal(again), Refusal::KeyRotated);
    let late = rotate(next.id, rotation(30), 50).await;
    assert_eq!(
        refusal(late),
        Refusal::KeyManagerInvalid,
        "the old key ended"
    );
}

/// No change revives a revoked or expired key.
pub async fn an_ended_key_stays_ended(store: &SharedStore) {
    let caller = organization(store).await;
    let member = user(store, caller.organization(), Role::Owner).await;
    let id = caller.organization();
    let revoked = created(store, full_key(id), Actor::Operator).await;
    let done = store.revoke_key(revoked.id, origin(11)).await;
    let revoked = done.expect("revoked");
    let mut expiring = full_key(id);
    expiring.key.expires_at = Some(at(15));
    let expired = created(store, expiring, Actor::Operator).await;
    for key in [&revoked, &expired] {
        let rotated = store
            .rotate_key(
                &manager(id),
                key.id,
                rotation(60),
                Digest::of(&unique()),
                origin(20),
            )
            .await;
        assert_eq!(refusal(rotated), Refusal::KeyEnded);
        let actor = Actor::User(member.id);
        let managing = manager(id);
        let taken = store.take_over_key(&managing, key.id, by(actor, 20));
        assert_eq!(refusal(taken.await), Refusal::KeyEnded);
        assert_eq!(stored(store, key).await, *key);
    }
}

/// A member takes over a key; keys and the command line own nothing.
pub async fn a_member_takes_over_a_key(store: &SharedStore) {
    let caller = organization(store).await;
    let id = caller.organization();
    let member = user(store, id, Role::Admin).await;
    let key = created(store, full_key(id), Actor::Operator).await;
    let take = async |actor| {
        let origin = by(actor, 20);
        store.take_over_key(&manager(id), key.id, origin).await
    };
    for actor in [Actor::Operator, Actor::Key(key.id)] {
        assert_eq!(refusal(take(actor).await), Refusal::KeyManagerInvalid);
    }
    for _ in 0..2 {
        let taken = take(Actor::User(member.id)).await.expect("taken over");
        assert_eq!(taken.owner, Some(member.id));
    }
    let reader = caller.read_access();
    let log = store.audit_log(&reader, None, first_page("50"));
    let log = log.await.expect("the log").items;
    let entries = log
        .iter()
        .filter(|entry| entry.action == Action::KeyTakenOver);
    assert_eq!(entries.count(), 1);
}

/// Lists show a caller the keys that it sees, and pages are complete.
pub async fn lists_show_the_keys_that_the_caller_sees(store: &SharedStore) {
    let (caller, stranger) = (organization(store).await, organization(store).await);
    let id = caller.organization();
    let (one, two) = (app(store, &caller).await.id, app(store, &caller).await.id);
    let member = user(store, id, Role::Admin).await;
    created(store, full_key(stranger.organization()), Actor::Operator).await;
    let limited = |apps: &[AppId], environment| {
        let mut new = full_key(id);
        new.key.environment = environment;
        new.key.limits.apps = AppLimit::only(apps.iter().copied());
        new
    };
    let all = created(store, full_key(id), Actor::User(member.id)).await;
    let first = created(store, limited(&[one], Environment::Live), Actor::Operator).await;
    let both = created(
        store,
        limited(&[one, two], Environment::Live),
        Actor::Operator,
    )
    .await;
    let test = created(store, limited(&[one], Environment::Test), Actor::Operator).await;
    let ended = created(store, limited(&[one], Environment::Live), Actor::Operator).await;
    store
        .revoke_key(ended.id, origin(11))
        .await
        .expect("revoked");
    let list = async |key: &ApiKey, filter: KeyFilter| {
        let (caller, mut page, mut ids) = (using::<AppsRead>(key), first_page("1"), Vec::new());
        loop {
            let found = store.key_page(&caller, filter, page).await.expect("a page");
            ids.extend(found.items.iter().map(|key| key.id));
            if !found.has_more {
                return ids;
            }
            page.before = ids.last().map(|id| *id.as_bytes());
        }
    };
    let valid = KeyFilter {
        valid_at: Some(at(20)),
        owner: None,
    };
    let any = KeyFilter::default();
    assert_eq!(
        list(&all, any).await,
        [ended.id, test.id, both.id, first.id, all.id]
    );
    assert_eq!(
        list(&all, valid).await,
        [test.id, both.id, first.id, all.id]
    );
    assert_eq!(list(&first, any).await, [ended.id, test.id, first.id]);
    assert_eq!(list(&both, valid).await, [test.id, both.id, first.id]);
    assert_eq!(list(&test, any).await, [test.id]);
    let owned = KeyFilter {
        owner: Some(member.id),
        ..any
    };
    assert_eq!(list(&all, owned).await, [all.id]);
    for (key, visible) in [(&first, true), (&test, true), (&both, false), (&all, false)] {
        let found = store.key(&using(&first), key.id).await;
        assert_eq!(found.is_ok(), visible, "{found:?}");
    }
    let foreign = store.key(&stranger.read_access(), first.id).await;
    assert_eq!(refusal(foreign), Refusal::KeyNotFound);
    let managed = store
        .revoke_managed_key(&using(&first), both.id, by(Actor::Key(first.id), 21))
        .await;
    assert_eq!(refusal(managed), Refusal::KeyNotFound);
    let foreign = manager(stranger.organization());
    let managed = store.revoke_managed_key(&foreign, first.id, origin(21));
    assert_eq!(refusal(managed.await), Refusal::KeyNotFound);
    let itself = store
        .revoke_managed_key(&using(&first), first.id, by(Actor::Key(first.id), 21))
        .await;
    itself.expect("a key revokes itself");
}

/// A caller that is limited to apps finds no others, and changes nothing of the whole organization.
pub async fn a_limited_caller_finds_only_its_apps(store: &SharedStore) {
    let caller = organization(store).await;
    let (one, two) = (app(store, &caller).await, app(store, &caller).await);
    let (own, foreign) = (
        link(store, &caller, one.id).await,
        link(store, &caller, two.id).await,
    );
    let mut key = full_key(caller.organization()).key;
    key.limits.apps = AppLimit::only([one.id]);
    let (reader, writer) = (using::<AppsRead>(&key), using::<AppsWrite>(&key));
    let apps = store.apps(&reader, true, first_page("50")).await;
    let apps: Vec<AppId> = apps
        .expect("a list")
        .items
        .iter()
        .map(|app| app.id)
        .collect();
    assert_eq!(apps, [one.id]);
    let names = store.app_names(&reader.analytics_access()).await;
    let names: Vec<AppId> = names.expect("a list").iter().map(|app| app.id).collect();
    assert_eq!(names, [one.id]);
    store.app(&reader, one.id).await.expect("the own app");
    assert_eq!(
        refusal(store.app(&reader, two.id).await),
        Refusal::AppNotFound
    );
    store
        .link(&reader, one.id, own.id)
        .await
        .expect("the own link");
    let link = store.link(&reader, two.id, foreign.id).await;
    assert_eq!(refusal(link), Refusal::AppNotFound);
    let totals = store.totals(&reader, vec![(one.id, Vec::new()), (two.id, Vec::new())]);
    assert_eq!(refusal(totals.await), Refusal::AppNotFound);
    let new = new_app(&caller, 30);
    let refused = store.create_app(&writer, new, Vec::new(), origin(30)).await;
    assert_eq!(refusal(refused), Refusal::AppNotAllowed);
    let log = async |app| {
        let page = store.audit_log(&reader, app, first_page("50")).await;
        let entries = page.expect("the log").items.into_iter();
        entries.map(|entry| entry.app).collect::<Vec<_>>()
    };
    assert_eq!(log(None).await, [Some(one.id); 2], "the app and its link");
    assert_eq!(log(Some(one.id)).await, [Some(one.id); 2]);
    assert_eq!(log(Some(two.id)).await, []);
}
