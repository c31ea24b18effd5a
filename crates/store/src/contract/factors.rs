//! Second factors and recovery codes.

use super::fixtures::{SharedStore, at, first_page, name, organization, origin, refusal, unique};
use super::passkeys::passkey;
use super::sessions::{PASSWORD_HASH, new_session, user};
use crate::{NewSession, TakeOver};
use tributary_domain::access::credential::SignInCredential;
use tributary_domain::access::factor::{Factor, FactorState, FactorVerifier};
use tributary_domain::access::person::{Role, User};
use tributary_domain::access::session::SignInMethod;
use tributary_domain::access::{
    AppsRead, AppsWrite, Authorized, Environment, MembersWrite, authorize_person,
};
use tributary_domain::audit::Action;
use tributary_domain::keyring::seal::SealedSecret;
use tributary_domain::refusal::Refusal;
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::id::{FactorId, UserId};

fn app(user: &User) -> Factor {
    Factor {
        id: FactorId::new(at(5), unique()),
        user: user.id,
        name: name("Phone"),
        created_at: at(5),
        last_used_at: None,
        verifier: FactorVerifier::Totp {
            sealed: SealedSecret::from_bytes(vec![1, 2, 3]),
            last_step: Some(7),
        },
    }
}

fn codes(words: &[&str]) -> Vec<Digest> {
    words
        .iter()
        .map(|word| Digest::of(word.as_bytes()))
        .collect()
}

fn owner_access(user: &User) -> Authorized<MembersWrite> {
    authorize_person(user, Environment::Live).expect("an owner")
}

async fn add(store: &SharedStore, factor: &Factor, words: &[&str]) -> bool {
    let added = store.add_factor(factor.clone(), no_session(), codes(words), origin(6));
    added.await.expect("a factor is added")
}

/// The session of a user who has no other.
fn no_session() -> Digest {
    Digest::of(b"no session")
}

/// Builds a new session that begins with password and second factor.
fn session_with_both_steps(user: UserId, seconds: i64) -> NewSession {
    NewSession {
        credential: SignInCredential::Password {
            hash: PASSWORD_HASH.to_owned(),
            has_second_step: true,
        },
        ..new_session(user, at(seconds))
    }
}

async fn is_there(store: &SharedStore, session: &NewSession) -> bool {
    let found = store.session(session.digest).await;
    found.expect("a lookup").is_some()
}

async fn state(store: &SharedStore, user: UserId) -> FactorState {
    let session = session_with_both_steps(user, 9);
    let begun = store.begin_session(session.clone(), origin(9)).await;
    begun.expect("a session starts");
    let found = store.session(session.digest).await.expect("a lookup");
    found.expect("a session").factors
}

async fn actions(store: &SharedStore, caller: &Authorized<AppsWrite>) -> Vec<Action> {
    let reader: Authorized<AppsRead> = caller.read_access();
    let log = store.audit_log(&reader, None, first_page("100")).await;
    let mut actions: Vec<Action> = log
        .expect("a page")
        .items
        .iter()
        .map(|entry| entry.action)
        .filter(|action| {
            !matches!(
                action,
                Action::OrganizationCreated
                    | Action::SetupLinkCreated
                    | Action::UserCreated
                    | Action::UserSignedIn
            )
        })
        .collect();
    actions.reverse();
    actions
}

/// A factor is stored with its user, and appears in the user's sessions.
pub async fn a_factor_belongs_to_its_user(store: &SharedStore) {
    let caller = organization(store).await;
    let one = user(store, caller.organization(), Role::Owner).await;
    let other = user(store, caller.organization(), Role::Owner).await;
    let factor = app(&one);
    assert!(add(store, &factor, &["a", "b"]).await, "the first factor");
    let stored = store.factors_of(one.id).await.expect("factors");
    assert_eq!(stored, vec![factor.clone()]);
    assert!(
        store
            .factors_of(other.id)
            .await
            .expect("factors")
            .is_empty()
    );
    assert!(state(store, one.id).await.is_set_up);
    assert_eq!(state(store, other.id).await, FactorState::default());
    let listed = store.members_with_factors(&owner_access(&other)).await;
    assert_eq!(listed.expect("members"), [one.id].into());
    let foreign = organization(store).await;
    let stranger = user(store, foreign.organization(), Role::Owner).await;
    let listed = store.members_with_factors(&owner_access(&stranger)).await;
    assert!(listed.expect("members").is_empty());

    let second = store.add_factor(app(&one), no_session(), codes(&["c"]), origin(7));
    assert_eq!(refusal(second.await), Refusal::AuthenticatorExists);
    let nobody = User {
        id: UserId::new(at(0), unique()),
        ..one
    };
    let missing = store.add_factor(app(&nobody), no_session(), codes(&[]), origin(7));
    assert_eq!(refusal(missing.await), Refusal::MemberNotFound);
    assert_eq!(actions(store, &caller).await, [Action::FactorAdded]);
}

/// The first factor ends the user's other sessions. A sign-in that looked for factors before starts no
/// session, and replaces no password.
pub async fn the_first_factor_ends_sign_ins_without_it(store: &SharedStore) {
    let caller = organization(store).await;
    let one = user(store, caller.organization(), Role::Viewer).await;
    let other = user(store, caller.organization(), Role::Viewer).await;
    let [own, old, late] = [1, 2, 3].map(|_| new_session(one.id, at(3)));
    let foreign = new_session(other.id, at(3));
    for session in [&own, &old, &foreign] {
        let begun = store.begin_session(session.clone(), origin(3)).await;
        begun.expect("a session starts");
    }
    let added = store.add_factor(app(&one), own.digest, codes(&["a"]), origin(4));
    assert!(added.await.expect("the first factor"));
    assert!(is_there(store, &own).await && is_there(store, &foreign).await);
    assert!(!is_there(store, &old).await);
    let begun = store.begin_session(late.clone(), origin(5)).await;
    assert_eq!(refusal(begun), Refusal::CredentialChanged);
    let changed = store.change_password(late, "stolen".to_owned(), origin(5));
    assert_eq!(refusal(changed.await), Refusal::CredentialChanged);

    let both = session_with_both_steps(one.id, 6);
    let begun = store.begin_session(both.clone(), origin(6)).await;
    begun.expect("a session starts");
    let added = store.add_factor(passkey(one.id), own.digest, Vec::new(), origin(7));
    assert!(!added.await.expect("a second factor"));
    assert!(is_there(store, &both).await, "it began with a second step");
    let expected = [
        Action::FactorAdded,
        Action::UserSessionsEnded,
        Action::FactorAdded,
    ];
    assert_eq!(actions(store, &caller).await, expected);

    // At the same time, one of the two comes first, and no session is left either way.
    let racing = new_session(other.id, at(8));
    let (begun, added) = tokio::join!(
        store.begin_session(racing.clone(), origin(8)),
        store.add_factor(app(&other), foreign.digest, codes(&["b"]), origin(8)),
    );
    assert!(added.expect("the first factor"));
    if begun.is_err() {
        assert_eq!(refusal(begun), Refusal::CredentialChanged);
    }
    assert!(!is_there(store, &racing).await);
}

/// The code of a step is accepted once, even by two nodes at the same time.
pub async fn a_code_is_accepted_once(store: &SharedStore) {
    let caller = organization(store).await;
    let user = user(store, caller.organization(), Role::Viewer).await;
    let factor = app(&user);
    add(store, &factor, &[]).await;
    let accept = async |step: i64| {
        let used = store.use_totp(user.id, factor.id, step, at(step)).await;
        used.expect("a write")
    };
    assert!(!accept(7).await, "the code of the set-up");
    let (one, two) = tokio::join!(accept(8), accept(8));
    assert_eq!(u8::from(one) + u8::from(two), 1);
    assert!(!accept(6).await, "an earlier code");
    assert!(accept(9).await);
    let stored = store.factors_of(user.id).await.expect("factors");
    assert_eq!(stored[0].last_used_at, Some(at(9)));
    let other = FactorId::new(at(0), unique());
    let unknown = store.use_totp(user.id, other, 20, at(20)).await;
    assert!(!unknown.expect("a write"));
}

/// A recovery code works once, for its user.
pub async fn a_recovery_code_works_once(store: &SharedStore) {
    let caller = organization(store).await;
    let one = user(store, caller.organization(), Role::Viewer).await;
    let other = user(store, caller.organization(), Role::Viewer).await;
    add(store, &app(&one), &["a", "b"]).await;
    add(store, &app(&other), &["c"]).await;
    let spend = async |user: &User, word: &str, seconds: i64| {
        let code = Digest::of(word.as_bytes());
        let used = store.use_recovery_code(user.id, code, origin(seconds));
        used.await.expect("a write")
    };
    let left = async |user: &User| store.unused_recovery_codes(user.id).await.expect("a count");
    assert_eq!(left(&one).await, 2);
    assert!(!spend(&other, "a", 10).await, "of another user");
    let (first, second) = tokio::join!(spend(&one, "a", 11), spend(&one, "a", 12));
    assert_eq!(u8::from(first) + u8::from(second), 1);
    assert!(!spend(&one, "x", 13).await);
    assert_eq!(left(&one).await, 1);
    let replaced = store.replace_recovery_codes(one.id, codes(&["d", "e", "f"]), origin(14));
    replaced.await.expect("a write");
    assert!(!spend(&one, "b", 15).await, "replaced");
    assert!(spend(&one, "d", 16).await);
    assert_eq!((left(&one).await, left(&other).await), (2, 1));
    let log = actions(store, &caller).await;
    let uses = log.iter().filter(|one| **one == Action::RecoveryCodeUsed);
    assert_eq!(uses.count(), 2);
    assert!(log.contains(&Action::RecoveryCodesReplaced));
}

/// The last factor takes the recovery codes with it, and stays while the organization requires one.
pub async fn a_required_factor_stays(store: &SharedStore) {
    let caller = organization(store).await;
    let owner = user(store, caller.organization(), Role::Owner).await;
    let access = owner_access(&owner);
    let require = async |is_required: bool, seconds: i64| {
        let required = store.require_second_factor(&access, owner.id, is_required, origin(seconds));
        required.await
    };
    assert_eq!(refusal(require(true, 10).await), Refusal::OwnFactorMissing);
    let factor = app(&owner);
    add(store, &factor, &["a"]).await;
    require(true, 11).await.expect("a write");
    require(true, 12).await.expect("nothing changes");
    let member = user(store, caller.organization(), Role::Viewer).await;
    assert!(
        state(store, member.id)
            .await
            .must_set_up(SignInMethod::Password)
    );
    let remove = async |seconds: i64| {
        let removed = store.remove_factor(owner.id, factor.id, origin(seconds));
        removed.await
    };
    assert_eq!(refusal(remove(13).await), Refusal::LastFactor);
    require(false, 14).await.expect("a write");
    let foreign = store.remove_factor(member.id, factor.id, origin(15)).await;
    assert_eq!(refusal(foreign), Refusal::FactorNotFound);
    remove(16).await.expect("a write");
    let left = store.unused_recovery_codes(owner.id).await;
    assert_eq!(left.expect("a count"), 0);
    let none = store.replace_recovery_codes(owner.id, codes(&["b"]), origin(17));
    assert_eq!(refusal(none.await), Refusal::FactorNotFound);
    let expected = [
        Action::FactorAdded,
        Action::OrganizationUpdated,
        Action::OrganizationUpdated,
        Action::FactorRemoved,
    ];
    assert_eq!(actions(store, &caller).await, expected);
}

/// The operator removes the factors of a person who lost them, even required ones. Removing the person
/// removes them as well.
pub async fn the_operator_removes_factors(store: &SharedStore) {
    let caller = organization(store).await;
    let owner = user(store, caller.organization(), Role::Owner).await;
    let member = user(store, caller.organization(), Role::Viewer).await;
    for one in [&owner, &member] {
        add(store, &app(one), &["a"]).await;
    }
    let access = owner_access(&owner);
    let required = store.require_second_factor(&access, owner.id, true, origin(10));
    required.await.expect("a write");
    let removed =
        async |user: UserId, seconds: i64| store.remove_factors(user, origin(seconds)).await;
    let session = session_with_both_steps(member.id, 10);
    let begun = store.begin_session(session.clone(), origin(10)).await;
    begun.expect("a session starts");
    assert_eq!(removed(member.id, 11).await.expect("a write"), 1);
    let found = store.session(session.digest).await.expect("a lookup");
    assert_eq!(found, None, "a lost device may have begun it");
    assert_eq!(removed(member.id, 12).await.expect("a write"), 0);
    assert!(
        state(store, member.id)
            .await
            .must_set_up(SignInMethod::Password)
    );
    assert!(
        !state(store, owner.id)
            .await
            .must_set_up(SignInMethod::Password)
    );
    add(store, &app(&member), &["b"]).await;
    let gone = store
        .remove_member(&access, member.id, TakeOver::default(), origin(20))
        .await;
    gone.expect("the member is removed");
    assert!(
        store
            .factors_of(member.id)
            .await
            .expect("factors")
            .is_empty()
    );
    assert_eq!(
        refusal(removed(member.id, 21).await),
        Refusal::MemberNotFound
    );
}
