//! What happens to a member's API keys when the member is removed or gets another role.

use super::fixtures::{SharedStore, at, first_page, organization, origin, unique};
use super::keys::{by, created, full_key, manager, rotation, stored};
use super::sessions::user;
use crate::TakeOver;
use std::collections::BTreeSet;
use tributary_domain::access::key::ApiKey;
use tributary_domain::access::person::{Role, User};
use tributary_domain::access::{Actor, Authorized, MembersWrite, Permission};
use tributary_domain::audit::Action;
use tributary_domain::vocabulary::digest::Digest;

fn taking(key: &ApiKey) -> TakeOver {
    TakeOver {
        keys: BTreeSet::from([key.id]),
        ..TakeOver::default()
    }
}

/// Creates three keys of a member: full, read-only, and full by the first key.
async fn keys_of(store: &SharedStore, member: &User) -> [ApiKey; 3] {
    let organization = member.organization;
    let actor = Actor::User(member.id);
    let full = created(store, full_key(organization), actor.clone()).await;
    let mut reading = full_key(organization);
    reading.key.permission = Permission::ReadOnly;
    let reading = created(store, reading, actor).await;
    let made_by_key = created(store, full_key(organization), Actor::Key(full.id)).await;
    [full, reading, made_by_key]
}

async fn validity(store: &SharedStore, keys: &[ApiKey]) -> Vec<bool> {
    let mut valid = Vec::new();
    for key in keys {
        valid.push(stored(store, key).await.is_valid(at(100)));
    }
    valid
}

/// Removing a member revokes their keys, also those that their keys created.
pub async fn a_removed_member_loses_all_keys(store: &SharedStore) {
    let caller = organization(store).await;
    let id = caller.organization();
    let (member, other) = (
        user(store, id, Role::Admin).await,
        user(store, id, Role::Admin).await,
    );
    let keys = keys_of(store, &member).await;
    let others = keys_of(store, &other).await;
    let (version, changes) = (
        store.configuration_version().await.expect("a version"),
        store.change_count(),
    );
    let owner = Authorized::<MembersWrite>::operator(id);
    let removed = store.remove_member(&owner, member.id, taking(&keys[0]), origin(20));
    removed.await.expect("removed");
    // The command line takes nothing over.
    assert_eq!(validity(store, &keys).await, [false, false, false]);
    assert_eq!(validity(store, &others).await, [true, true, true]);
    assert!(store.change_count() > changes);
    assert_ne!(
        store.configuration_version().await.expect("a version"),
        version
    );
    let reader = caller.read_access();
    let log = store.audit_log(&reader, None, first_page("50"));
    let log = log.await.expect("the log").items;
    let actions: Vec<Action> = log.iter().take(4).map(|entry| entry.action).collect();
    let revoked = [Action::KeyRevoked; 3];
    assert_eq!(
        (&actions[..3], actions[3]),
        (&revoked[..], Action::UserRemoved)
    );
}

/// A lower role revokes the keys that exceed it; a higher one revokes none.
pub async fn a_demoted_member_loses_keys_that_exceed_the_role(store: &SharedStore) {
    let caller = organization(store).await;
    let id = caller.organization();
    let member = user(store, id, Role::Admin).await;
    let keys = keys_of(store, &member).await;
    let owner = Authorized::<MembersWrite>::operator(id);
    for (role, expected) in [
        (Role::Owner, [true, true, true]),
        (Role::Admin, [true, true, true]),
        (Role::Analyst, [false, true, false]),
        (Role::Viewer, [false, false, false]),
    ] {
        // Another owner, so that the member can lose the role.
        user(store, id, Role::Owner).await;
        let changed =
            store.change_member_role(&owner, member.id, role, BTreeSet::new(), origin(20));
        changed.await.expect("the role changes");
        assert_eq!(validity(store, &keys).await, expected, "{role:?}");
    }
}

/// The member who removes another one keeps the keys that they take over.
pub async fn keys_that_are_taken_over_keep_working(store: &SharedStore) {
    let caller = organization(store).await;
    let id = caller.organization();
    let (member, owner) = (
        user(store, id, Role::Admin).await,
        user(store, id, Role::Owner).await,
    );
    let keys = keys_of(store, &member).await;
    let managing = Authorized::<MembersWrite>::operator(id);
    let origin = by(Actor::User(owner.id), 20);
    let removed = store.remove_member(&managing, member.id, taking(&keys[0]), origin);
    removed.await.expect("removed");
    assert_eq!(validity(store, &keys).await, [true, false, false]);
    assert_eq!(stored(store, &keys[0]).await.owner, Some(owner.id));
}

/// While a member is removed, keys that are created concurrently are either refused or revoked.
pub async fn no_key_survives_a_concurrent_removal(store: &SharedStore) {
    let caller = organization(store).await;
    let id = caller.organization();
    let member = user(store, id, Role::Admin).await;
    let first = created(store, full_key(id), Actor::User(member.id)).await;
    let create = async |actor: Actor| {
        drop(store.create_key(full_key(id), by(actor, 20)).await);
    };
    let rotate = async || {
        let origin = by(Actor::Key(first.id), 20);
        let digest = Digest::of(&unique());
        let managing = manager(id);
        let rotated = store.rotate_key(&managing, first.id, rotation(60), digest, origin);
        drop(rotated.await);
    };
    let remove = async || {
        let owner = Authorized::<MembersWrite>::operator(id);
        let removed = store.remove_member(&owner, member.id, TakeOver::default(), origin(20));
        removed.await.expect("removed");
    };
    let (user, key) = (Actor::User(member.id), Actor::Key(first.id));
    tokio::join!(
        create(user.clone()),
        create(key.clone()),
        remove(),
        rotate(),
        create(user),
        create(key),
    );
    for key in store.keys(id).await.expect("a list") {
        assert!(!key.is_valid(at(21)), "{key:?}");
    }
}
