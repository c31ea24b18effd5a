//! The accounts of an email address, and links for setting a new password.

use super::fixtures::{
    SharedStore, at, first_page, join3, new_key, new_setup_link, organization, origin, refusal,
    unique,
};
use super::sessions::{PASSWORD_HASH, new_session, password, user};
use crate::{LastOwner, NewPasswordReset, NewSession, Redemption};
use tributary_domain::access::password_reset::PasswordReset;
use tributary_domain::access::person::{Email, Role, User};
use tributary_domain::access::{Actor, AppsWrite, Authorized, MembersWrite};
use tributary_domain::audit::{Action, AuditContext};
use tributary_domain::refusal::Refusal;
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::id::{OrganizationId, UserId};

/// Creates an account for the same person in another organization.
async fn same_person(store: &SharedStore, organization: OrganizationId, person: &User) -> User {
    let mut new = new_setup_link(organization);
    new.link.email = Some(person.email.clone());
    new.link.role = Role::Admin;
    let digest = new.digest;
    let created = store.create_setup_link(new, origin(1)).await;
    created.expect("a link is created");
    let redemption = Redemption {
        user: UserId::new(at(2), unique()),
        email: person.email.clone(),
        password_hash: PASSWORD_HASH.to_owned(),
        passkey: None,
        recovery_codes: Vec::new(),
        first_key: None,
    };
    let redeemed = store.redeem_setup_link(digest, redemption, origin(2)).await;
    redeemed.expect("an account is created")
}

fn new_reset(email: &Email, expires: i64) -> NewPasswordReset {
    NewPasswordReset {
        reset: PasswordReset {
            email: email.clone(),
            expires_at: at(expires),
        },
        digest: Digest::of(&unique()),
    }
}

async fn reset(store: &SharedStore, email: &Email, seconds: i64) -> NewPasswordReset {
    let new = new_reset(email, seconds + 100);
    let locked = "locked".to_owned();
    let done = store.reset_accounts(new.clone(), locked, origin(seconds));
    done.await.expect("the accounts are reset");
    new
}

async fn hashes(store: &SharedStore, email: &Email) -> Vec<String> {
    let found = store.users_by_email(email).await.expect("a lookup");
    found.into_iter().map(|(_, hash)| hash).collect()
}

async fn entries(
    store: &SharedStore,
    caller: &Authorized<AppsWrite>,
    action: Action,
) -> Vec<(Actor, String)> {
    let log = store
        .audit_log(&caller.read_access(), None, first_page("100"))
        .await;
    let found = log.expect("a page").items.into_iter();
    found
        .filter(|entry| entry.action == action)
        .map(|entry| (entry.actor, entry.target))
        .collect()
}

/// A reset locks all accounts of the person, and no other, and ends sessions and known browsers.
pub async fn a_reset_locks_all_accounts_of_a_person(store: &SharedStore) {
    let (one, two) = (organization(store).await, organization(store).await);
    let person = user(store, one.organization(), Role::Owner).await;
    let elsewhere = same_person(store, two.organization(), &person).await;
    let other = user(store, one.organization(), Role::Owner).await;
    let mut sessions = Vec::new();
    for account in [&person, &elsewhere, &other] {
        let session = new_session(account.id, at(3));
        let begun = store.begin_session(session.clone(), origin(3)).await;
        begun.expect("a session starts");
        sessions.push(session.digest);
    }
    let new = reset(store, &person.email, 10).await;
    assert_eq!(hashes(store, &person.email).await, ["locked", "locked"]);
    assert_eq!(hashes(store, &other.email).await, ["first"]);
    let mut left = Vec::new();
    for digest in sessions {
        let found = store.session(digest).await.expect("a lookup");
        left.push(found.is_some());
    }
    assert_eq!(left, [false, false, true]);
    for (user, expected) in [(person.id, Some(at(10))), (other.id, None)] {
        let forgotten = store.browsers_forgotten_at(user).await;
        assert_eq!(forgotten.expect("a lookup"), expected);
    }
    let stored = store.password_reset(new.digest).await.expect("a lookup");
    assert_eq!(stored, Some(new.reset));
    for (caller, account) in [(&one, &person), (&two, &elsewhere)] {
        let written = entries(store, caller, Action::PasswordResetCreated).await;
        assert_eq!(written, [(Actor::Operator, account.id.to_string())]);
    }
    let nobody = Email::parse("nobody@example.com").expect("an address");
    let refused = store
        .reset_accounts(new_reset(&nobody, 100), "locked".to_owned(), origin(10))
        .await;
    assert_eq!(refusal(refused), Refusal::AccountNotFound);
}

/// A link sets the password of all accounts, as themselves, and works once.
pub async fn a_reset_link_works_once(store: &SharedStore) {
    let (one, two) = (organization(store).await, organization(store).await);
    let person = user(store, one.organization(), Role::Viewer).await;
    same_person(store, two.organization(), &person).await;
    let new = reset(store, &person.email, 10).await;
    let session = NewSession {
        credential: password("locked"),
        ..new_session(person.id, at(11))
    };
    let begun = store.begin_session(session.clone(), origin(11)).await;
    begun.expect("a session starts");
    let origin = || AuditContext {
        actor: Actor::Service,
        ..origin(12)
    };
    let redeem = || store.redeem_password_reset(new.digest, "new".to_owned(), origin());
    let redeemed = join3(redeem(), redeem(), redeem()).await;
    let accounts: Vec<usize> = redeemed.iter().flatten().map(Vec::len).collect();
    assert_eq!(accounts, [2], "{redeemed:?}");
    assert_eq!(refusal(redeem().await), Refusal::ResetLinkInvalid);
    assert_eq!(hashes(store, &person.email).await, ["new", "new"]);
    let found = store.session(session.digest).await.expect("a lookup");
    assert_eq!(found, None, "the session ended");
    let written = entries(store, &one, Action::UserPasswordReset).await;
    assert_eq!(written, [(Actor::User(person.id), person.id.to_string())]);
}

/// Expired, replaced and unknown links set nothing.
pub async fn only_the_last_reset_link_works_until_it_expires(store: &SharedStore) {
    let caller = organization(store).await;
    let person = user(store, caller.organization(), Role::Viewer).await;
    let replaced = reset(store, &person.email, 10).await;
    let last = reset(store, &person.email, 20).await;
    let unknown = Digest::of(&unique());
    for (digest, seconds) in [(replaced.digest, 21), (unknown, 21), (last.digest, 120)] {
        let password = "new".to_owned();
        let redeemed = store.redeem_password_reset(digest, password, origin(seconds));
        assert_eq!(refusal(redeemed.await), Refusal::ResetLinkInvalid);
    }
    assert_eq!(hashes(store, &person.email).await, ["locked"]);
    let redeemed = store.redeem_password_reset(last.digest, "new".to_owned(), origin(119));
    redeemed.await.expect("the link works");
}

/// A link that a person asked for changes nothing until it is used, and ends no other link. The
/// operator's reset ends it.
pub async fn an_own_reset_link_locks_nobody_out(store: &SharedStore) {
    let (one, two) = (organization(store).await, organization(store).await);
    let person = user(store, one.organization(), Role::Owner).await;
    same_person(store, two.organization(), &person).await;
    let session = new_session(person.id, at(3));
    let begun = store.begin_session(session.clone(), origin(3)).await;
    begun.expect("a session starts");
    let mut links = Vec::new();
    for seconds in [10, 11, 12] {
        let new = new_reset(&person.email, 100 + seconds);
        let created = store.create_password_reset(new.clone(), origin(seconds));
        created.await.expect("a link is stored");
        links.push(new);
    }
    assert_eq!(hashes(store, &person.email).await, [PASSWORD_HASH; 2]);
    let found = store.session(session.digest).await.expect("a lookup");
    assert!(found.is_some(), "the session goes on");
    for link in &links {
        let stored = store.password_reset(link.digest).await.expect("a lookup");
        assert_eq!(stored.as_ref(), Some(&link.reset));
    }
    for caller in [&one, &two] {
        let written = entries(store, caller, Action::PasswordResetCreated).await;
        assert_eq!(written.len(), 3);
    }
    let used = store.redeem_password_reset(links[1].digest, "new".to_owned(), origin(20));
    assert_eq!(used.await.expect("the link works").len(), 2);
    for link in &links {
        let stored = store.password_reset(link.digest).await.expect("a lookup");
        assert_eq!(stored, None, "a used link ends all of them");
    }
    let found = store.session(session.digest).await.expect("a lookup");
    assert_eq!(found, None, "the session ended");

    let asked = new_reset(&person.email, 200);
    let created = store.create_password_reset(asked.clone(), origin(30)).await;
    created.expect("a link is stored");
    reset(store, &person.email, 31).await;
    let stored = store.password_reset(asked.digest).await.expect("a lookup");
    assert_eq!(stored, None, "the operator's reset ended it");
    let unknown = Email::parse("nobody@example.com").expect("an address");
    let refused = store.create_password_reset(new_reset(&unknown, 200), origin(32));
    assert_eq!(refusal(refused.await), Refusal::AccountNotFound);
}

/// The list shows all accounts with their last sign-in.
pub async fn accounts_are_listed_with_their_last_sign_in(store: &SharedStore) {
    let (one, two) = (organization(store).await, organization(store).await);
    let person = user(store, one.organization(), Role::Owner).await;
    let elsewhere = same_person(store, two.organization(), &person).await;
    for seconds in [3, 9] {
        let session = new_session(person.id, at(seconds));
        let begun = store.begin_session(session, origin(seconds)).await;
        begun.expect("a session starts");
    }
    let listed = store.accounts().await.expect("a list");
    let emails: Vec<&str> = listed.iter().map(|one| one.user.email.as_str()).collect();
    assert!(emails.is_sorted());
    let mut found: Vec<_> = listed
        .iter()
        .filter(|account| account.user.email == person.email)
        .map(|account| {
            (
                &account.user,
                account.organization.id,
                account.last_sign_in_at,
            )
        })
        .collect();
    found.sort_by_key(|(user, ..)| user.created_at != person.created_at || user.id != person.id);
    let expected = [
        (&person, one.organization(), Some(at(9))),
        (&elsewhere, two.organization(), None),
    ];
    assert_eq!(found, expected);
}

/// Removing a person removes all accounts with their keys, invitations and links.
pub async fn a_removed_person_keeps_nothing(store: &SharedStore) {
    let (one, two) = (organization(store).await, organization(store).await);
    user(store, one.organization(), Role::Owner).await;
    let person = user(store, one.organization(), Role::Owner).await;
    let elsewhere = same_person(store, two.organization(), &person).await;
    let mut keys = Vec::new();
    for account in [&person, &elsewhere] {
        let mut key = new_key(account.organization);
        key.key.created_by = Some(Actor::User(account.id));
        let origin = AuditContext {
            actor: Actor::User(account.id),
            ..origin(4)
        };
        let created = store.create_key(key.clone(), origin).await;
        created.expect("a key is created");
        keys.push(key.digest);
    }
    let link = reset(store, &person.email, 10).await;
    let third = organization(store).await;
    let mut invitation = new_setup_link(third.organization());
    invitation.link.email = Some(person.email.clone());
    let invited = store.create_setup_link(invitation, origin(11)).await;
    invited.expect("a link is created");

    let removed = store.remove_accounts(person.email.clone(), LastOwner::Stays, origin(20));
    assert_eq!(removed.await.expect("removed").len(), 2);
    assert_eq!(hashes(store, &person.email).await, [""; 0]);
    for digest in keys {
        let key = store.key_by_digest(digest).await.expect("a lookup");
        assert_eq!(key.expect("the key").revoked_at, Some(at(20)));
    }
    let stored = store.password_reset(link.digest).await.expect("a lookup");
    assert_eq!(stored, None);
    let inviting = Authorized::<MembersWrite>::operator(third.organization());
    let pending = store.invitations(&inviting).await.expect("a list");
    assert_eq!(pending, []);
    for (caller, account) in [(&one, &person), (&two, &elsewhere)] {
        let written = entries(store, caller, Action::UserRemoved).await;
        assert_eq!(written, [(Actor::Operator, account.id.to_string())]);
        assert_eq!(entries(store, caller, Action::KeyRevoked).await.len(), 1);
    }
    let written = entries(store, &third, Action::SetupLinkRevoked).await;
    assert_eq!(written.len(), 1);
    let again = store.remove_accounts(person.email, LastOwner::Stays, origin(21));
    assert_eq!(refusal(again.await), Refusal::AccountNotFound);
}

/// The last owner of any organization keeps all accounts, unless the operator insists.
pub async fn a_last_owner_is_removed_only_on_demand(store: &SharedStore) {
    let (one, two) = (organization(store).await, organization(store).await);
    let person = user(store, one.organization(), Role::Owner).await;
    same_person(store, two.organization(), &person).await;
    let remove = |rule| store.remove_accounts(person.email.clone(), rule, origin(20));
    assert_eq!(refusal(remove(LastOwner::Stays).await), Refusal::LastOwner);
    assert_eq!(hashes(store, &person.email).await.len(), 2);
    let removed = remove(LastOwner::Goes).await.expect("removed");
    assert_eq!(removed.len(), 2);
    assert_eq!(hashes(store, &person.email).await.len(), 0);
}
