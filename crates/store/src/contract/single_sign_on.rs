//! Single sign-on, with two organizations whose providers claim the same addresses.

use super::fixtures::{
    SharedStore, at, first_page, new_setup_link, organization, origin, refusal, unique,
};
use super::sessions::{new_session, password, user};
use crate::{LastOwner, NewSession, SignOn, StoreResult, TakeOver};
use std::collections::BTreeSet;
use tributary_domain::access::credential::SignInCredential;
use tributary_domain::access::person::{Email, Role, User};
use tributary_domain::access::session::SignInMethod;
use tributary_domain::access::single_sign_on::{
    Issuer, ProvenIdentity, SignOnRefusal, SingleSignOn, SingleSignOnDraft, no_password_hash,
    parse_email_domains,
};
use tributary_domain::access::{Authorized, MembersWrite};
use tributary_domain::audit::Action;
use tributary_domain::keyring::seal::SealedSecret;
use tributary_domain::refusal::Refusal;
use tributary_domain::vocabulary::digest::{Digest, hex};
use tributary_domain::vocabulary::id::{OrganizationId, UserId};
use tributary_domain::vocabulary::revision::Precondition;

const ISSUER: &str = "https://login.example.com";
const OTHER_ISSUER: &str = "https://other.example.com";

fn issuer(text: &str) -> Issuer {
    Issuer::parse(text, false).expect("an issuer")
}

fn draft(text: &str) -> SingleSignOnDraft {
    SingleSignOnDraft {
        issuer: issuer(text),
        client_id: "client".to_owned(),
        client_secret: Some(SealedSecret::from_bytes(vec![1, 2, 3])),
        email_domains: parse_email_domains("example.com example.org").expect("domains"),
        default_role: Role::Viewer,
        allows_passwords: true,
    }
}

fn owner_of(organization: OrganizationId) -> Authorized<MembersWrite> {
    Authorized::operator(organization)
}

async fn replace(
    store: &SharedStore,
    organization: OrganizationId,
    draft: SingleSignOnDraft,
) -> StoreResult<SingleSignOn> {
    let caller = owner_of(organization);
    store
        .replace_single_sign_on(&caller, draft, Precondition::None, origin(2))
        .await
}

/// Creates an organization with an owner and a provider.
async fn with_provider(store: &SharedStore) -> (OrganizationId, User) {
    let id = organization(store).await.organization();
    let owner = user(store, id, Role::Owner).await;
    replace(store, id, draft(ISSUER)).await.expect("settings");
    (id, owner)
}

fn some_email() -> Email {
    Email::parse(&format!("{}@example.com", hex(&unique()))).expect("an address")
}

fn sign_on(organization: OrganizationId, subject: &str, email: &Email) -> SignOn {
    SignOn {
        organization,
        issuer: issuer(ISSUER),
        identity: ProvenIdentity {
            digest: ProvenIdentity::digest_of(&issuer(ISSUER), subject),
            email: Some(email.clone()),
            is_email_verified: true,
            hosted_domain: None,
        },
        connecting: None,
        attempt: Digest::of(&unique()),
        new_user: UserId::new(at(3), unique()),
        no_password: no_password_hash([1; 16]),
    }
}

async fn enter(store: &SharedStore, one: SignOn) -> StoreResult<User> {
    store.sign_on(one, origin(3)).await
}

fn refused(outcome: StoreResult<User>) -> SignOnRefusal {
    match refusal(outcome) {
        Refusal::SignOnRefused(why) => why,
        other => panic!("expected a refused sign-in, got {other:?}"),
    }
}

async fn actions(store: &SharedStore, organization: OrganizationId) -> Vec<Action> {
    let caller = Authorized::operator(organization);
    let page = store.audit_log(&caller, None, first_page("100"));
    let entries = page.await.expect("a page").items.into_iter();
    entries.map(|entry| entry.action).collect()
}

/// Settings are stored, replaced, and removed.
pub async fn settings_are_stored_per_organization(store: &SharedStore) {
    let (one, other) = (
        organization(store).await.organization(),
        organization(store).await.organization(),
    );
    user(store, one, Role::Owner).await;
    let stored = replace(store, one, draft(ISSUER)).await.expect("settings");
    let found = store.single_sign_on(one).await.expect("a lookup");
    assert_eq!(found, Some(stored.clone()));
    assert_eq!(store.single_sign_on(other).await.expect("a lookup"), None);
    let changed = SingleSignOnDraft {
        client_secret: None,
        allows_passwords: false,
        ..draft(ISSUER)
    };
    let changed = replace(store, one, changed).await.expect("settings");
    assert_eq!(changed.client_secret, stored.client_secret);
    assert_eq!(changed.revision, stored.revision.next());
    let found = store.single_sign_on(one).await.expect("a lookup");
    assert_eq!(found, Some(changed));
    let outdated = Precondition::AnyOf(vec![stored.tag()]);
    let (caller, stranger) = (owner_of(one), owner_of(other));
    let late = store.replace_single_sign_on(&caller, draft(ISSUER), outdated, origin(4));
    assert_eq!(refusal(late.await), Refusal::VersionConflict);
    let removed = store.remove_single_sign_on(&stranger, origin(4)).await;
    assert_eq!(refusal(removed), Refusal::SingleSignOnNotFound);
    let removed = store.remove_single_sign_on(&owner_of(one), origin(5)).await;
    removed.expect("the settings are removed");
    assert_eq!(store.single_sign_on(one).await.expect("a lookup"), None);
    let actions = actions(store, one).await;
    let of = |action| actions.iter().filter(|one| **one == action).count();
    assert_eq!(of(Action::SingleSignOnUpdated), 2);
    assert_eq!(of(Action::SingleSignOnRemoved), 1);
}

/// A new person becomes a member once, under the same identity with any address.
pub async fn a_new_person_becomes_a_member(store: &SharedStore) {
    let (id, _) = with_provider(store).await;
    let email = some_email();
    let created = enter(store, sign_on(id, "1", &email)).await;
    let created = created.expect("an account");
    assert_eq!((created.role, &created.email), (Role::Viewer, &email));
    let again = enter(store, sign_on(id, "1", &some_email())).await;
    assert_eq!(again.expect("the account"), created);
    let taken = enter(store, sign_on(id, "2", &email)).await;
    assert_eq!(refused(taken), SignOnRefusal::AccountTaken);
    let actions = actions(store, id).await;
    let created = actions
        .iter()
        .filter(|action| **action == Action::UserCreated);
    assert_eq!(created.count(), 2, "the owner and the new member");
}

/// A provider signs in members of its own organization only, whatever address it claims.
pub async fn a_provider_reaches_no_other_organization(store: &SharedStore) {
    let ((one, _), (other, owner)) = (with_provider(store).await, with_provider(store).await);
    let member = user(store, other, Role::Admin).await;
    for victim in [&owner, &member] {
        let created = enter(store, sign_on(one, victim.email.as_str(), &victim.email)).await;
        let created = created.expect("an account of the provider's organization");
        assert_eq!(created.organization, one);
        assert_ne!(created.id, victim.id);
        let connecting = SignOn {
            connecting: Some(victim.id),
            ..sign_on(one, "connecting", &victim.email)
        };
        let refused = refusal(enter(store, connecting).await);
        assert_eq!(refused, Refusal::MemberNotFound);
    }
    let caller = Authorized::operator(other);
    let members = store.members(&caller).await.expect("a list");
    assert_eq!(members, [owner, member.clone()]);
    // The same subject at the same issuer is another account there.
    let linked = enter(store, sign_on(other, member.email.as_str(), &member.email)).await;
    assert_eq!(linked.expect("the account"), member);
}

/// Owners connect their accounts while they are signed in. Others are linked by address.
pub async fn accounts_are_linked(store: &SharedStore) {
    let (id, owner) = with_provider(store).await;
    let member = user(store, id, Role::Admin).await;
    let linked = enter(store, sign_on(id, "member", &member.email)).await;
    assert_eq!(linked.expect("the account"), member);
    let stranger = enter(store, sign_on(id, "owner", &owner.email)).await;
    assert_eq!(refused(stranger), SignOnRefusal::OwnerNotConnected);
    let connecting = |subject: &str| SignOn {
        connecting: Some(owner.id),
        ..sign_on(id, subject, &some_email())
    };
    let taken = enter(store, connecting("member")).await;
    assert_eq!(refused(taken), SignOnRefusal::IdentityTaken);
    for subject in ["owner", "owner", "owner's other identity"] {
        let connected = enter(store, connecting(subject)).await;
        assert_eq!(connected.expect("the account"), owner);
    }
    let signed_in = enter(store, sign_on(id, "owner's other identity", &some_email())).await;
    assert_eq!(signed_in.expect("the account"), owner);
    let replaced = enter(store, sign_on(id, "owner", &owner.email)).await;
    assert_eq!(refused(replaced), SignOnRefusal::AccountTaken);
    let linked = actions(store, id).await;
    let linked = linked.iter().filter(|one| **one == Action::UserLinked);
    assert_eq!(linked.count(), 3);
}

/// A removed member does not come back without an invitation.
pub async fn a_removed_member_stays_removed(store: &SharedStore) {
    let (id, _) = with_provider(store).await;
    let by_password = user(store, id, Role::Admin).await;
    let email = some_email();
    let created = enter(store, sign_on(id, "1", &email)).await;
    let created = created.expect("an account");
    for member in [&by_password, &created] {
        let caller = owner_of(id);
        let removed = store.remove_member(&caller, member.id, TakeOver::default(), origin(4));
        removed.await.expect("the member is removed");
    }
    let by_operator = some_email();
    let created = enter(store, sign_on(id, "4", &by_operator)).await;
    created.expect("an account");
    let removed = store.remove_accounts(by_operator.clone(), LastOwner::Stays, origin(4));
    removed.await.expect("the person is removed");
    for (subject, email) in [
        ("4", &by_operator),
        ("1", &email),
        ("1", &some_email()),
        ("2", &email),
        ("3", &by_password.email),
    ] {
        let back = enter(store, sign_on(id, subject, email)).await;
        assert_eq!(refused(back), SignOnRefusal::Removed, "{subject}");
    }
    let mut invitation = new_setup_link(id);
    (invitation.link.role, invitation.link.email) = (Role::Analyst, Some(email.clone()));
    let invited = store.create_setup_link(invitation.clone(), origin(5)).await;
    invited.expect("an invitation");
    let back = enter(store, sign_on(id, "1", &email)).await;
    let back = back.expect("an account");
    assert_eq!(back.role, Role::Analyst);
    let link = store.setup_link(invitation.digest).await.expect("a lookup");
    assert_eq!(link.expect("the link").used_at, Some(at(3)));
    // Removed and invited again: without the mark, a later identity is linked as usual.
    let again = enter(store, sign_on(id, "1", &some_email())).await;
    assert_eq!(again.expect("the account"), back);
}

/// An attempt counts once, and only for the provider that was asked.
pub async fn an_attempt_counts_once(store: &SharedStore) {
    let (id, _) = with_provider(store).await;
    let one = sign_on(id, "1", &some_email());
    enter(store, one.clone()).await.expect("an account");
    assert_eq!(
        refused(enter(store, one.clone()).await),
        SignOnRefusal::UsedBefore
    );
    replace(store, id, draft(OTHER_ISSUER))
        .await
        .expect("settings");
    let late = SignOn {
        attempt: Digest::of(&unique()),
        ..one
    };
    assert_eq!(
        refused(enter(store, late).await),
        SignOnRefusal::SettingsChanged
    );
    let none = organization(store).await.organization();
    let without = enter(store, sign_on(none, "1", &some_email())).await;
    assert_eq!(refused(without), SignOnRefusal::SettingsChanged);
}

/// Concurrent sign-ins of a new person create one account.
pub async fn concurrent_sign_ins_create_one_account(store: &SharedStore) {
    let (id, _) = with_provider(store).await;
    let email = some_email();
    let tasks = (0..4).map(|_| {
        let (store, one) = (store.clone(), sign_on(id, "1", &email));
        tokio::spawn(async move { store.sign_on(one, origin(3)).await })
    });
    let tasks: Vec<_> = tasks.collect();
    let mut accounts = BTreeSet::new();
    for task in tasks {
        let user = task.await.expect("no panic").expect("an account");
        accounts.insert(*user.id.as_bytes());
    }
    assert_eq!(accounts.len(), 1);
}

/// Builds a session that began in this way, at the first provider or with the password.
fn session_by(user: &User, method: SignInMethod) -> NewSession {
    let mut new = new_session(user.id, at(3));
    new.session.method = method;
    if method == SignInMethod::SingleSignOn {
        new.credential = SignInCredential::Provider(issuer(ISSUER));
    }
    new
}

async fn begin(store: &SharedStore, user: &User, method: SignInMethod) -> Digest {
    let new = session_by(user, method);
    let begun = store.begin_session(new.clone(), origin(3)).await;
    begun.expect("a session starts");
    let found = store.session(new.digest).await.expect("a lookup");
    assert_eq!(found.expect("the session").session, new.session);
    new.digest
}

async fn exist(store: &SharedStore, sessions: &[Digest]) -> Vec<bool> {
    let mut exist = Vec::new();
    for digest in sessions {
        let found = store.session(*digest).await.expect("a lookup");
        exist.push(found.is_some());
    }
    exist
}

/// A sign-in that was checked before the settings changed starts no session afterwards.
pub async fn a_sign_in_follows_the_settings(store: &SharedStore) {
    let (id, owner) = with_provider(store).await;
    let member = user(store, id, Role::Admin).await;
    let begins = async |user: &User, method| {
        let new = session_by(user, method);
        match store.begin_session(new, origin(5)).await {
            Ok(()) => true,
            refused => {
                assert_eq!(refusal(refused), Refusal::CredentialChanged);
                false
            }
        }
    };
    let (password, provider) = (SignInMethod::Password, SignInMethod::SingleSignOn);
    let without_passwords = SingleSignOnDraft {
        allows_passwords: false,
        ..draft(ISSUER)
    };
    let replaced = replace(store, id, without_passwords).await;
    replaced.expect("settings");
    assert!(begins(&member, provider).await);
    assert!(!begins(&member, password).await);
    assert!(begins(&owner, password).await, "owners keep their password");
    let replaced = replace(store, id, draft(OTHER_ISSUER)).await;
    replaced.expect("settings");
    assert!(!begins(&member, provider).await);
    assert!(begins(&member, password).await);
}

/// Sessions end when the settings no longer allow how they began. Owners keep their passwords.
pub async fn sessions_follow_the_settings(store: &SharedStore) {
    let (id, owner) = with_provider(store).await;
    let member = user(store, id, Role::Admin).await;
    let stranger = user(store, with_provider(store).await.0, Role::Admin).await;
    let mut sessions = Vec::new();
    for one in [&owner, &member, &stranger] {
        for method in [SignInMethod::Password, SignInMethod::SingleSignOn] {
            sessions.push(begin(store, one, method).await);
        }
    }
    assert_eq!(exist(store, &sessions).await, [true; 6]);
    let strict = SingleSignOnDraft {
        allows_passwords: false,
        ..draft(ISSUER)
    };
    replace(store, id, strict).await.expect("settings");
    let expected = [true, true, false, true, true, true];
    assert_eq!(exist(store, &sessions).await, expected);
    let former = user(store, id, Role::Owner).await;
    let session = begin(store, &former, SignInMethod::Password).await;
    let caller = owner_of(id);
    let demoted =
        store.change_member_role(&caller, former.id, Role::Admin, BTreeSet::new(), origin(4));
    demoted.await.expect("the role changes");
    assert_eq!(exist(store, &[session]).await, [false], "a former owner");
    assert_eq!(exist(store, &sessions).await, expected);
    replace(store, id, draft(OTHER_ISSUER))
        .await
        .expect("settings");
    let expected = [true, false, false, false, true, true];
    assert_eq!(exist(store, &sessions).await, expected);
}

/// The provider stays while it is the owners' only way in.
pub async fn owners_keep_a_way_in(store: &SharedStore) {
    let (id, owner) = with_provider(store).await;
    let created = enter(store, sign_on(id, "1", &some_email())).await;
    let created = created.expect("an account");
    let caller = owner_of(id);
    let promoted =
        store.change_member_role(&caller, created.id, Role::Owner, BTreeSet::new(), origin(4));
    promoted.await.expect("the member becomes an owner");
    let removed = store.remove_member(&caller, owner.id, TakeOver::default(), origin(4));
    removed.await.expect("the owner with a password is removed");
    let removed = store.remove_single_sign_on(&caller, origin(5)).await;
    assert_eq!(refusal(removed), Refusal::OwnerNeedsPassword);
    let replaced = replace(store, id, draft(OTHER_ISSUER)).await;
    assert_eq!(refusal(replaced), Refusal::OwnerNeedsPassword);
    let found = store.account(created.id).await.expect("a lookup");
    let (_, no_password) = found.expect("the account");
    let (mut session, hash) = (new_session(created.id, at(6)), "a hash".to_owned());
    session.credential = password(&no_password);
    let changed = store.change_password(session, hash, origin(6)).await;
    changed.expect("the owner chooses a password");
    let removed = store.remove_single_sign_on(&caller, origin(7)).await;
    removed.expect("the settings are removed");
}

/// A failed sign-in is in the audit log of its organization.
pub async fn a_failed_single_sign_on_is_audited(store: &SharedStore) {
    let (id, _) = with_provider(store).await;
    let audited = store.audit_failed_sign_on(id, "token_nonce".to_owned(), origin(9));
    audited.await.expect("an entry");
    let caller = Authorized::operator(id);
    let page = store.audit_log(&caller, None, first_page("1")).await;
    let entry = page.expect("a page").items.remove(0);
    assert_eq!(entry.action, Action::UserSignInFailed);
    assert_eq!(entry.changes[0].after.as_deref(), Some("token_nonce"));
}
