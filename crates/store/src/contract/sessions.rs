//! Dashboard sessions.

use super::fixtures::{
    SharedStore, at, first_page, new_setup_link, organization, origin, refusal, unique,
};
use crate::{NewSession, Redemption};
use tributary_domain::access::credential::SignInCredential;
use tributary_domain::access::person::{Email, Role, User};
use tributary_domain::access::session::{SESSIONS_LISTED_MAX, Session};
use tributary_domain::access::session_client::SessionClient;
use tributary_domain::audit::Action;
use tributary_domain::refusal::Refusal;
use tributary_domain::vocabulary::digest::{Digest, hex};
use tributary_domain::vocabulary::id::{AuditId, OrganizationId, UserId};
use tributary_domain::vocabulary::time::Timestamp;

/// Password hash of the users of this module.
pub const PASSWORD_HASH: &str = "first";

/// Creates a user.
pub async fn user(store: &SharedStore, organization: OrganizationId, role: Role) -> User {
    let mut new = new_setup_link(organization);
    new.link.role = role;
    let email = format!("{}@example.com", hex(&unique()));
    new.link.email = Email::parse(&email).ok();
    let digest = new.digest;
    let created = store.create_setup_link(new, origin(1)).await;
    created.expect("a link is created");
    let redemption = Redemption {
        user: UserId::new(at(2), unique()),
        email: Email::parse(&email).expect("an address"),
        password_hash: PASSWORD_HASH.to_owned(),
        passkey: None,
        recovery_codes: Vec::new(),
        first_key: None,
    };
    let redeemed = store.redeem_setup_link(digest, redemption, origin(2)).await;
    redeemed.expect("an account is created")
}

fn client(browser: &str) -> SessionClient {
    SessionClient {
        browser: Some(browser.to_owned()),
        network: Some("192.0.2.0/24".to_owned()),
    }
}

/// A password that was checked without a second step.
pub fn password(hash: &str) -> SignInCredential {
    SignInCredential::Password {
        hash: hash.to_owned(),
        has_second_step: false,
    }
}

/// Builds a new session of a user without factors whose password was not changed.
pub fn new_session(user: UserId, begins_at: Timestamp) -> NewSession {
    NewSession {
        session: Session::begin(user, begins_at, client("Firefox on Linux")),
        digest: Digest::of(&unique()),
        credential: password(PASSWORD_HASH),
    }
}

async fn begin(store: &SharedStore, user: &User, seconds: i64) -> NewSession {
    let new = new_session(user.id, at(seconds));
    let begun = store.begin_session(new.clone(), origin(seconds)).await;
    begun.expect("a session starts");
    new
}

async fn is_there(store: &SharedStore, session: &NewSession) -> bool {
    let found = store.session(session.digest).await;
    found.expect("a lookup").is_some()
}

/// A session is found with its user and organization until it ends.
pub async fn a_session_is_found_by_its_digest_until_it_ends(store: &SharedStore) {
    let caller = organization(store).await;
    let user = user(store, caller.organization(), Role::Analyst).await;
    let (one, two) = (begin(store, &user, 3).await, begin(store, &user, 4).await);
    let found = store.session(one.digest).await.expect("a lookup");
    let found = found.expect("a session");
    assert_eq!(found.session, one.session);
    assert_eq!(found.user, user);
    assert_eq!(found.organization.id, caller.organization());
    store
        .end_session(one.digest, origin(5))
        .await
        .expect("the session ends");
    store
        .end_session(one.digest, origin(6))
        .await
        .expect("nothing changes");
    let reader = caller.read_access();
    let log = store.audit_log(&reader, None, first_page("2")).await;
    let log = log.expect("the log").items;
    let actions: Vec<Action> = log.iter().map(|entry| entry.action).collect();
    assert_eq!(actions, [Action::UserSignedOut, Action::UserSignedIn]);
    assert_eq!(log[0].target, user.id.to_string());
    assert!(!is_there(store, &one).await);
    assert!(is_there(store, &two).await);
}

/// Uses of a session may be recorded in any order.
pub async fn the_last_use_of_a_session_never_goes_back(store: &SharedStore) {
    let caller = organization(store).await;
    let user = user(store, caller.organization(), Role::Viewer).await;
    let session = begin(store, &user, 3).await;
    for seconds in [20, 10] {
        let recorded = store
            .note_session_use(session.digest, at(seconds), client("Safari on iOS"))
            .await;
        recorded.expect("the use is recorded");
    }
    let found = store.session(session.digest).await.expect("a lookup");
    assert_eq!(found.expect("a session").session.last_seen_at, at(20));
}

/// A session begins with a proof of who the user is; a later one replaces it.
pub async fn a_session_keeps_the_last_proof(store: &SharedStore) {
    let caller = organization(store).await;
    let user = user(store, caller.organization(), Role::Viewer).await;
    let (one, two) = (begin(store, &user, 3).await, begin(store, &user, 3).await);
    let proved_at = async |session: &NewSession| {
        let found = store.session(session.digest).await.expect("a lookup");
        found.expect("a session").session.proved_at
    };
    assert_eq!(proved_at(&one).await, at(3));
    let noted = store.note_session_proof(one.digest, at(700));
    noted.await.expect("a write");
    assert_eq!(proved_at(&one).await, at(700));
    assert_eq!(proved_at(&two).await, at(3), "another session");
}

/// A password change signs out all other sessions of the user.
pub async fn a_password_change_ends_all_other_sessions(store: &SharedStore) {
    let caller = organization(store).await;
    let organization = caller.organization();
    let one = user(store, organization, Role::Owner).await;
    let other = user(store, organization, Role::Owner).await;
    let (old, others) = (begin(store, &one, 3).await, begin(store, &other, 3).await);
    let new = new_session(one.id, at(5));
    let changed = store.change_password(new.clone(), "second".to_owned(), origin(5));
    changed.await.expect("the password is changed");
    assert!(!is_there(store, &old).await);
    assert!(is_there(store, &new).await);
    assert!(is_there(store, &others).await);
    let found = store.users_by_email(&one.email).await.expect("a lookup");
    assert_eq!(found.first().expect("the user").1, "second");
}

/// A password that was replaced while it was checked starts no session, and replaces no password.
pub async fn a_replaced_password_starts_no_session(store: &SharedStore) {
    let caller = organization(store).await;
    let user = user(store, caller.organization(), Role::Owner).await;
    let [old, late, new] = [5, 6, 7].map(|seconds| new_session(user.id, at(seconds)));
    let changed = store.change_password(old.clone(), "second".to_owned(), origin(5));
    changed.await.expect("the password is changed");
    let begun = store.begin_session(late.clone(), origin(6)).await;
    assert_eq!(refusal(begun), Refusal::CredentialChanged);
    let changed = store.change_password(late, "stolen".to_owned(), origin(6));
    assert_eq!(refusal(changed.await), Refusal::CredentialChanged);
    assert!(is_there(store, &old).await);
    let found = store.users_by_email(&user.email).await.expect("a lookup");
    assert_eq!(found.first().expect("the user").1, "second");
    let new = NewSession {
        credential: password("second"),
        ..new
    };
    let begun = store.begin_session(new, origin(7)).await;
    begun.expect("a session starts");
}

/// Expired sessions do not accumulate.
pub async fn signing_in_removes_expired_sessions(store: &SharedStore) {
    let caller = organization(store).await;
    let user = user(store, caller.organization(), Role::Owner).await;
    let old = begin(store, &user, 3).await;
    let end = old.session.expires_at;
    let before = new_session(user.id, end);
    let mut late = origin(0);
    late.at = Timestamp::from_millis(end.as_millis() - 1);
    store
        .begin_session(before, late.clone())
        .await
        .expect("a session starts");
    assert!(is_there(store, &old).await);
    late.at = end;
    late.audit_id = AuditId::new(end, unique());
    let after = new_session(user.id, end);
    store
        .begin_session(after, late)
        .await
        .expect("a session starts");
    assert!(!is_there(store, &old).await);
}

/// An account may be removed while its password is being checked.
pub async fn a_removed_user_cannot_sign_in(store: &SharedStore) {
    organization(store).await;
    let new = new_session(UserId::new(at(0), unique()), at(3));
    let begun = store.begin_session(new.clone(), origin(3)).await;
    assert_eq!(refusal(begun), Refusal::MemberNotFound);
    let changed = store.change_password(new, "x".to_owned(), origin(4)).await;
    assert_eq!(refusal(changed), Refusal::MemberNotFound);
}

/// All other sessions of a user end, more than a page lists.
pub async fn a_user_ends_all_other_sessions(store: &SharedStore) {
    let caller = organization(store).await;
    let one = user(store, caller.organization(), Role::Analyst).await;
    let other = user(store, caller.organization(), Role::Analyst).await;
    let (kept, foreign) = (begin(store, &one, 3).await, begin(store, &other, 3).await);
    for _ in 0..=SESSIONS_LISTED_MAX {
        begin(store, &one, 4).await;
    }
    let listed = store.sessions_of(one.id).await.expect("sessions");
    assert_eq!(listed.len(), SESSIONS_LISTED_MAX as usize);
    let end = async |seconds| {
        let ended = store.end_other_sessions(one.id, kept.digest, origin(seconds));
        ended.await.expect("a write")
    };
    assert_eq!(end(10).await, u64::from(SESSIONS_LISTED_MAX) + 1);
    let left = store.sessions_of(one.id).await.expect("sessions");
    assert_eq!(left, [(kept.digest, kept.session.clone())]);
    assert!(is_there(store, &foreign).await);
    assert_eq!(end(11).await, 0);
    let reader = caller.read_access();
    let log = store.audit_log(&reader, None, first_page("1")).await;
    let entry = log.expect("a page").items.remove(0);
    assert_eq!(entry.action, Action::UserSessionsEnded);
    assert_eq!((entry.target, entry.at), (one.id.to_string(), at(10)));
}

/// A user sees the own sessions, the last used one first, and ends some of them.
pub async fn a_user_ends_own_sessions(store: &SharedStore) {
    let caller = organization(store).await;
    let one = user(store, caller.organization(), Role::Analyst).await;
    let other = user(store, caller.organization(), Role::Analyst).await;
    let (first, second) = (begin(store, &one, 3).await, begin(store, &one, 4).await);
    let third = begin(store, &one, 5).await;
    let foreign = begin(store, &other, 6).await;
    let used = store.note_session_use(first.digest, at(9), client("Safari on iOS"));
    used.await.expect("a write");
    let listed = async || {
        let found = store.sessions_of(one.id).await.expect("sessions");
        found
            .into_iter()
            .map(|(digest, _)| digest)
            .collect::<Vec<_>>()
    };
    assert_eq!(listed().await, [first.digest, third.digest, second.digest]);
    let sessions = store.sessions_of(one.id).await.expect("sessions");
    assert_eq!(sessions[0].1.client, client("Safari on iOS"));
    assert_eq!(sessions[1].1, third.session);

    let ended = vec![first.digest, second.digest, foreign.digest];
    let count = store.end_sessions_of(one.id, ended.clone(), origin(10));
    assert_eq!(count.await.expect("a write"), 2);
    assert_eq!(listed().await, [third.digest]);
    assert!(is_there(store, &foreign).await);
    let again = store.end_sessions_of(one.id, ended, origin(11)).await;
    assert_eq!(again.expect("a write"), 0);
    let reader = caller.read_access();
    let log = store.audit_log(&reader, None, first_page("100"));
    let log = log.await.expect("a page").items;
    let ends = log
        .iter()
        .filter(|entry| entry.action == Action::UserSessionsEnded);
    assert_eq!(ends.count(), 1, "ending nothing is not an action");
}
