//! An organization's members.

use super::fixtures::{
    SharedStore, at, first_page, join3, new_setup_link, organization, origin, refusal,
};
use super::keys::by;
use super::sessions::{new_session, user};
use crate::TakeOver;
use std::collections::BTreeSet;
use tributary_domain::access::person::{Email, Role};
use tributary_domain::access::{Actor, AppsWrite, Authorized, MembersWrite};
use tributary_domain::audit::Action;
use tributary_domain::refusal::Refusal;

fn owner_of(caller: &Authorized<AppsWrite>) -> Authorized<MembersWrite> {
    Authorized::operator(caller.organization())
}

/// A changed role applies to the member's next request.
pub async fn a_changed_role_applies_to_the_next_request(store: &SharedStore) {
    let caller = organization(store).await;
    let owner = owner_of(&caller);
    let member = user(store, caller.organization(), Role::Admin).await;
    let session = new_session(member.id, at(3));
    store
        .begin_session(session.clone(), origin(3))
        .await
        .expect("a session starts");
    let changed = store
        .change_member_role(&owner, member.id, Role::Viewer, BTreeSet::new(), origin(4))
        .await
        .expect("the role changes");
    assert_eq!(changed.role, Role::Viewer);
    let found = store.session(session.digest).await.expect("a lookup");
    assert_eq!(found.expect("a session").user.role, Role::Viewer);
    let members = store.members(&caller.read_access()).await.expect("a list");
    assert_eq!(members, [changed]);
}

/// The last owner can be neither demoted nor removed.
pub async fn the_last_owner_cannot_be_removed_or_demoted(store: &SharedStore) {
    let caller = organization(store).await;
    let owner = owner_of(&caller);
    let last = user(store, caller.organization(), Role::Owner).await;
    let demoted = store
        .change_member_role(&owner, last.id, Role::Admin, BTreeSet::new(), origin(3))
        .await;
    assert_eq!(refusal(demoted), Refusal::LastOwner);
    let removed = store
        .remove_member(&owner, last.id, TakeOver::default(), origin(3))
        .await;
    assert_eq!(refusal(removed), Refusal::LastOwner);
}

/// When owners remove each other concurrently, one owner remains.
pub async fn owners_who_remove_each_other_leave_one(store: &SharedStore) {
    let caller = organization(store).await;
    let organization = caller.organization();
    let mut owners = Vec::new();
    for _ in 0..3 {
        owners.push(user(store, organization, Role::Owner).await.id);
    }
    let remove = async |member| {
        let owner = owner_of(&caller);
        store
            .remove_member(&owner, member, TakeOver::default(), origin(3))
            .await
    };
    let removed = join3(remove(owners[0]), remove(owners[1]), remove(owners[2])).await;
    let left = store.members(&caller.read_access()).await.expect("a list");
    assert_eq!(left.len(), 1, "{removed:?}");
    assert_eq!(removed.iter().filter(|one| one.is_ok()).count(), 2);
}

/// Removing a member deletes the account and its sessions, and the email address can be used again.
pub async fn a_removed_member_is_signed_out(store: &SharedStore) {
    let caller = organization(store).await;
    let member = user(store, caller.organization(), Role::Viewer).await;
    let session = new_session(member.id, at(3));
    store
        .begin_session(session.clone(), origin(3))
        .await
        .expect("a session starts");
    store
        .remove_member(
            &owner_of(&caller),
            member.id,
            TakeOver::default(),
            origin(4),
        )
        .await
        .expect("the member is removed");
    let found = store.session(session.digest).await.expect("a lookup");
    assert_eq!(found, None);
    let found = store.users_by_email(&member.email).await.expect("a lookup");
    assert_eq!(found, []);
    let again = store
        .remove_member(
            &owner_of(&caller),
            member.id,
            TakeOver::default(),
            origin(5),
        )
        .await;
    assert_eq!(refusal(again), Refusal::MemberNotFound);
}

/// Removing a member withdraws further invitations of theirs, but not those of others or elsewhere.
pub async fn a_removed_member_has_no_invitation_left(store: &SharedStore) {
    let (caller, elsewhere) = (organization(store).await, organization(store).await);
    let owner = owner_of(&caller);
    let member = user(store, caller.organization(), Role::Viewer).await;
    let invite = async |organization, email: &Email| {
        let mut new = new_setup_link(organization);
        new.link.email = Some(email.clone());
        let created = store.create_setup_link(new.clone(), origin(3)).await;
        created.expect("an invitation");
        new.digest
    };
    let (id, other) = (caller.organization(), Email::parse("you@example.com"));
    let other = other.expect("an address");
    let again = invite(id, &member.email).await;
    let colleague = invite(id, &other).await;
    let foreign = invite(elsewhere.organization(), &member.email).await;
    let removed = store.remove_member(&owner, member.id, TakeOver::default(), origin(4));
    removed.await.expect("the member is removed");
    for (digest, used_at) in [(again, Some(at(4))), (colleague, None), (foreign, None)] {
        let link = store.setup_link(digest).await.expect("a lookup");
        assert_eq!(link.expect("the link").used_at, used_at);
    }
    let reader = caller.read_access();
    let log = store.audit_log(&reader, None, first_page("100")).await;
    let entries = log.expect("a page").items.into_iter();
    let revoked = entries.filter(|entry| entry.action == Action::SetupLinkRevoked);
    assert_eq!(revoked.count(), 1);
}

/// A member who is removed, or may no longer invite, loses the invitations that they sent.
pub async fn a_former_owner_loses_the_invitations_that_they_sent(store: &SharedStore) {
    for (new_role, is_withdrawn) in [
        (None, true),
        (Some(Role::Admin), true),
        (Some(Role::Owner), false),
    ] {
        let caller = organization(store).await;
        let (owner, id) = (owner_of(&caller), caller.organization());
        let (member, colleague) = (
            user(store, id, Role::Owner).await,
            user(store, id, Role::Owner).await,
        );
        let mut sent = Vec::new();
        for sender in [&member, &colleague] {
            let mut new = new_setup_link(id);
            new.link.email = Email::parse("private@example.net").ok();
            let origin = by(Actor::User(sender.id), 3);
            let created = store.create_setup_link(new.clone(), origin).await;
            created.expect("an invitation");
            sent.push(new.digest);
        }
        let creators = store.invitations(&owner).await.expect("a list").into_iter();
        let creators: BTreeSet<_> = creators.map(|one| one.link.created_by).collect();
        assert_eq!(
            creators,
            BTreeSet::from([Some(member.id), Some(colleague.id)])
        );
        match new_role {
            None => {
                let nothing = TakeOver::default();
                let removed = store.remove_member(&owner, member.id, nothing, origin(4));
                removed.await.expect("removed");
            }
            Some(role) => {
                let nothing = BTreeSet::new();
                let changed = store.change_member_role(&owner, member.id, role, nothing, origin(4));
                changed.await.expect("the role changes");
            }
        }
        let left = store.invitations(&owner).await.expect("a list").into_iter();
        let left: Vec<_> = left.map(|one| one.digest).collect();
        assert_eq!(left.contains(&sent[0]), !is_withdrawn, "{new_role:?}");
        assert!(left.contains(&sent[1]), "{new_role:?}");
        let reader = caller.read_access();
        let log = store.audit_log(&reader, None, first_page("100"));
        let entries = log.await.expect("a page").items.into_iter();
        let revoked = entries.filter(|entry| entry.action == Action::SetupLinkRevoked);
        assert_eq!(revoked.count(), usize::from(is_withdrawn), "{new_role:?}");
    }
}

/// While an owner is removed, invitations that they send concurrently are refused or withdrawn.
pub async fn no_invitation_survives_a_concurrent_removal(store: &SharedStore) {
    let caller = organization(store).await;
    let (owner, id) = (owner_of(&caller), caller.organization());
    let member = user(store, id, Role::Owner).await;
    user(store, id, Role::Owner).await;
    let invite = async || {
        let mut new = new_setup_link(id);
        new.link.email = Email::parse("private@example.net").ok();
        let origin = by(Actor::User(member.id), 3);
        drop(store.create_setup_link(new, origin).await);
    };
    let remove = async || {
        let removed = store.remove_member(&owner, member.id, TakeOver::default(), origin(4));
        removed.await.expect("removed");
    };
    tokio::join!(invite(), remove(), invite());
    assert_eq!(store.invitations(&owner).await.expect("a list"), []);
    let late = store.create_setup_link(new_setup_link(id), by(Actor::User(member.id), 5));
    assert_eq!(refusal(late.await), Refusal::MemberNotFound);
}

/// Only the member's sessions end, and only for their own organization.
pub async fn an_owner_ends_the_sessions_of_a_member(store: &SharedStore) {
    let (caller, foreign) = (organization(store).await, organization(store).await);
    let member = user(store, caller.organization(), Role::Viewer).await;
    let other = user(store, caller.organization(), Role::Admin).await;
    let mut sessions = Vec::new();
    for account in [&member, &member, &other] {
        let session = new_session(account.id, at(3));
        let begun = store.begin_session(session.clone(), origin(3)).await;
        begun.expect("a session starts");
        sessions.push(session.digest);
    }
    let refused = store
        .end_member_sessions(&owner_of(&foreign), member.id, origin(4))
        .await;
    assert_eq!(refusal(refused), Refusal::MemberNotFound);
    let owner = owner_of(&caller);
    let mut counts = Vec::new();
    for seconds in [5, 6] {
        let ended = store.end_member_sessions(&owner, member.id, origin(seconds));
        counts.push(ended.await.expect("the sessions end"));
    }
    assert_eq!(counts, [2, 0]);
    let mut left = Vec::new();
    for digest in sessions {
        let found = store.session(digest).await.expect("a lookup");
        left.push(found.is_some());
    }
    assert_eq!(left, [false, false, true]);
    let log = store
        .audit_log(&caller.read_access(), None, first_page("100"))
        .await;
    let entries = log.expect("a page").items.into_iter();
    let ended: Vec<String> = entries
        .filter(|entry| entry.action == Action::UserSessionsEnded)
        .map(|entry| entry.target)
        .collect();
    assert_eq!(ended, [member.id.to_string()]);
}

/// Used and withdrawn invitations are not listed, and a withdrawn one cannot be used.
pub async fn an_invitation_is_listed_until_it_is_used_or_withdrawn(store: &SharedStore) {
    let caller = organization(store).await;
    let owner = owner_of(&caller);
    user(store, caller.organization(), Role::Viewer).await;
    let mut new = new_setup_link(caller.organization());
    new.link.email = Email::parse("you@example.com").ok();
    store
        .create_setup_link(new.clone(), origin(3))
        .await
        .expect("a link is created");
    let listed = store.invitations(&owner).await.expect("a list");
    assert_eq!(listed.len(), 1);
    assert_eq!((listed[0].digest, &listed[0].link), (new.digest, &new.link));
    for seconds in [4, 5] {
        store
            .withdraw_invitation(&owner, new.digest, origin(seconds))
            .await
            .expect("the invitation is withdrawn");
    }
    assert_eq!(store.invitations(&owner).await.expect("a list"), []);
    let found = store.setup_link(new.digest).await.expect("a lookup");
    assert_eq!(found.expect("the link").used_at, Some(at(4)));
}

/// Members and invitations of other organizations cannot be changed.
pub async fn another_organization_cannot_manage_members(store: &SharedStore) {
    let (caller, stranger) = (organization(store).await, organization(store).await);
    let member = user(store, caller.organization(), Role::Viewer).await;
    let new = new_setup_link(caller.organization());
    store
        .create_setup_link(new.clone(), origin(3))
        .await
        .expect("a link is created");
    let other = owner_of(&stranger);
    let removed = store
        .remove_member(&other, member.id, TakeOver::default(), origin(4))
        .await;
    assert_eq!(refusal(removed), Refusal::MemberNotFound);
    let promoted = store
        .change_member_role(&other, member.id, Role::Owner, BTreeSet::new(), origin(4))
        .await;
    assert_eq!(refusal(promoted), Refusal::MemberNotFound);
    store
        .withdraw_invitation(&other, new.digest, origin(4))
        .await
        .expect("nothing happens");
    assert_eq!(store.invitations(&other).await.expect("a list"), []);
    let left = store.invitations(&owner_of(&caller)).await.expect("a list");
    assert_eq!(left.len(), 1);
    assert_eq!(
        store
            .members(&stranger.read_access())
            .await
            .expect("a list"),
        []
    );
}
