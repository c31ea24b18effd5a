//! People who are signed in.

use super::fixtures::{
    SharedStore, at, new_key, new_setup_link, organization, origin, refusal, unique,
};
use crate::{NewSession, Redemption};
use tributary_domain::access::person::{Email, Role, User};
use tributary_domain::access::session::Session;
use tributary_domain::refusal::Refusal;
use tributary_domain::vocabulary::digest::{Digest, hex};
use tributary_domain::vocabulary::id::{AuditId, OrganizationId, UserId};
use tributary_domain::vocabulary::time::Timestamp;

/// Somebody with an account.
pub async fn user(store: &SharedStore, organization: OrganizationId, role: Role) -> User {
    let mut new = new_setup_link(organization);
    new.link.role = role;
    let email = format!("{}@example.com", hex(&unique()));
    new.link.email = Email::parse(&email).ok();
    let digest = new.digest;
    let made = store.create_setup_link(new, origin(1)).await;
    made.expect("a link is made");
    let redemption = Redemption {
        user: UserId::new(at(2), unique()),
        email: Email::parse(&email).expect("an address"),
        password_hash: "first".to_owned(),
        first_key: new_key(organization),
        first_key_audit_id: AuditId::new(at(2), unique()),
    };
    let redeemed = store.redeem_setup_link(digest, redemption, origin(2)).await;
    redeemed.expect("an account is made")
}

/// A session that begins.
pub fn new_session(user: UserId, begins_at: Timestamp) -> NewSession {
    NewSession {
        session: Session::begin(user, begins_at),
        digest: Digest::of(&unique()),
    }
}

async fn begin(store: &SharedStore, user: &User, seconds: i64) -> NewSession {
    let new = new_session(user.id, at(seconds));
    let begun = store.begin_session(new.clone(), origin(seconds)).await;
    begun.expect("a session begins");
    new
}

async fn is_there(store: &SharedStore, session: &NewSession) -> bool {
    let found = store.session(session.digest).await;
    found.expect("a look-up").is_some()
}

/// Found with its person and their organization; gone when it was ended.
pub async fn a_session_is_found_by_its_digest_until_it_ends(store: &SharedStore) {
    let caller = organization(store).await;
    let user = user(store, caller.organization(), Role::Analyst).await;
    let (one, two) = (begin(store, &user, 3).await, begin(store, &user, 4).await);
    let found = store.session(one.digest).await.expect("a look-up");
    let found = found.expect("a session");
    assert_eq!(found.session, one.session);
    assert_eq!(found.user, user);
    assert_eq!(found.organization.id, caller.organization());
    store.end_session(one.digest).await.expect("it ends");
    store
        .end_session(one.digest)
        .await
        .expect("nothing changes");
    assert!(!is_there(store, &one).await);
    assert!(is_there(store, &two).await);
}

/// Notes arrive in any order.
pub async fn the_last_use_of_a_session_never_goes_back(store: &SharedStore) {
    let caller = organization(store).await;
    let user = user(store, caller.organization(), Role::Viewer).await;
    let session = begin(store, &user, 3).await;
    for seconds in [20, 10] {
        let noted = store.note_session_use(session.digest, at(seconds)).await;
        noted.expect("it is noted");
    }
    let found = store.session(session.digest).await.expect("a look-up");
    assert_eq!(found.expect("a session").session.last_seen_at, at(20));
}

/// Whoever else knew the password is out.
pub async fn another_password_ends_every_session_but_the_new_one(store: &SharedStore) {
    let caller = organization(store).await;
    let organization = caller.organization();
    let one = user(store, organization, Role::Owner).await;
    let other = user(store, organization, Role::Owner).await;
    let (old, others) = (begin(store, &one, 3).await, begin(store, &other, 3).await);
    let new = new_session(one.id, at(5));
    let changed = store.change_password(new.clone(), "second".to_owned(), origin(5));
    changed.await.expect("it is changed");
    assert!(!is_there(store, &old).await);
    assert!(is_there(store, &new).await);
    assert!(is_there(store, &others).await);
    let found = store.user_by_email(&one.email).await.expect("a look-up");
    assert_eq!(found.expect("the person").1, "second");
}

/// Sessions that are over do not pile up.
pub async fn what_is_over_is_forgotten_when_somebody_signs_in(store: &SharedStore) {
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
        .expect("it begins");
    assert!(is_there(store, &old).await);
    late.at = end;
    late.audit_id = AuditId::new(end, unique());
    let after = new_session(user.id, end);
    store.begin_session(after, late).await.expect("it begins");
    assert!(!is_there(store, &old).await);
}

/// An account that was removed while its password was being checked.
pub async fn nobody_who_is_gone_signs_in(store: &SharedStore) {
    organization(store).await;
    let new = new_session(UserId::new(at(0), unique()), at(3));
    let begun = store.begin_session(new.clone(), origin(3)).await;
    assert_eq!(refusal(begun), Refusal::MemberNotFound);
    let changed = store.change_password(new, "x".to_owned(), origin(4)).await;
    assert_eq!(refusal(changed), Refusal::MemberNotFound);
}
