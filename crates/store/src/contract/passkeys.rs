//! Passkeys: factors that replace the password as well.

use super::fixtures::{
    SharedStore, at, first_page, name, new_setup_link, organization, origin, refusal, unique,
};
use super::sessions::user;
use crate::{NewSetupLink, Redemption, StoreResult, TakeOver};
use tributary_domain::access::factor::passkey::{CredentialId, Passkey, PasskeyKey, PasskeyUse};
use tributary_domain::access::factor::{Factor, FactorVerifier};
use tributary_domain::access::person::{Email, Role, User};
use tributary_domain::access::single_sign_on::no_password_hash;
use tributary_domain::access::{AppsRead, Authorized, Environment, MembersWrite, authorize_person};
use tributary_domain::audit::Action;
use tributary_domain::keyring::seal::SealedSecret;
use tributary_domain::refusal::Refusal;
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::id::{FactorId, OrganizationId, UserId};

/// An Ed25519 key as a COSE key, except for the key itself.
const COSE_HEAD: [u8; 10] = [0xa4, 1, 1, 3, 0x27, 0x20, 6, 0x21, 0x58, 32];

/// Builds a passkey of a user.
pub fn passkey(user: UserId) -> Factor {
    let random = unique();
    let cose = [COSE_HEAD.as_slice(), &[7; 22], &random].concat();
    Factor {
        id: FactorId::new(at(5), unique()),
        user,
        name: name("Laptop"),
        created_at: at(5),
        last_used_at: None,
        verifier: FactorVerifier::Passkey(Passkey {
            credential: CredentialId::from_bytes(random.to_vec()).expect("an id"),
            key: PasskeyKey::parse(&cose).expect("a key"),
            counter: 3,
            can_sync: true,
            is_synced: false,
            last_challenge_at: Some(at(5)),
        }),
    }
}

fn credential(factor: &Factor) -> CredentialId {
    factor.passkey().expect("a passkey").credential.clone()
}

async fn add(store: &SharedStore, factor: &Factor, seconds: i64) -> StoreResult<bool> {
    let session = Digest::of(b"no session");
    let added = store.add_factor(factor.clone(), session, Vec::new(), origin(seconds));
    added.await
}

async fn find(store: &SharedStore, factor: &Factor) -> Option<(User, Factor)> {
    let found = store.passkey(&credential(factor)).await;
    found.expect("a lookup")
}

async fn invitation(store: &SharedStore, organization: OrganizationId) -> NewSetupLink {
    let mut new = new_setup_link(organization);
    new.link.email = Email::parse("guest@example.com").ok();
    let created = store.create_setup_link(new.clone(), origin(1)).await;
    created.expect("a link is created");
    new
}

fn redemption(passkey: &Factor) -> Redemption {
    Redemption {
        user: passkey.user,
        email: Email::parse("guest@example.com").expect("an address"),
        password_hash: no_password_hash([1; 16]),
        passkey: Some(passkey.clone()),
        recovery_codes: vec![Digest::of(b"a"), Digest::of(b"b")],
        first_key: None,
    }
}

/// A passkey is found by its id, with its user, and no other account can register it.
pub async fn a_passkey_belongs_to_one_user(store: &SharedStore) {
    let caller = organization(store).await;
    let one = user(store, caller.organization(), Role::Owner).await;
    let other = user(store, caller.organization(), Role::Viewer).await;
    let factor = passkey(other.id);
    assert_eq!(find(store, &factor).await, None);
    assert!(add(store, &factor, 6).await.expect("the first factor"));
    assert_eq!(
        find(store, &factor).await,
        Some((other.clone(), factor.clone()))
    );
    let stored = store.factors_of(other.id).await.expect("factors");
    assert_eq!(stored, vec![factor.clone()]);

    for user in [one.id, other.id] {
        let same = Factor {
            id: FactorId::new(at(6), unique()),
            user,
            ..factor.clone()
        };
        let refused = add(store, &same, 7).await;
        assert_eq!(refusal(refused), Refusal::PasskeyExists);
    }
    assert!(store.factors_of(one.id).await.expect("factors").is_empty());
    assert!(!add(store, &passkey(other.id), 8).await.expect("a second"));

    let access: Authorized<MembersWrite> =
        authorize_person(&one, Environment::Live).expect("an owner");
    let removed = store.remove_member(&access, other.id, TakeOver::default(), origin(9));
    removed.await.expect("the member is removed");
    assert_eq!(find(store, &factor).await, None);
}

/// A challenge is accepted once, even by two nodes at the same time, and counters grow.
pub async fn a_challenge_is_accepted_once(store: &SharedStore) {
    let caller = organization(store).await;
    let user = user(store, caller.organization(), Role::Viewer).await;
    let factor = passkey(user.id);
    add(store, &factor, 6).await.expect("a factor");
    let accept = async |challenged: i64, counter: u32| {
        let used = PasskeyUse {
            counter,
            is_synced: true,
            challenged_at: at(challenged),
        };
        let accepted = store.use_passkey(user.id, factor.id, used, at(challenged + 1));
        accepted.await.expect("a write")
    };
    assert!(!accept(5, 4).await, "the challenge of the set-up");
    let (one, two) = tokio::join!(accept(8, 4), accept(8, 5));
    assert_eq!(u8::from(one) + u8::from(two), 1);
    assert!(!accept(7, 9).await, "an earlier challenge");
    assert!(!accept(9, 3).await, "an earlier count");
    assert!(accept(10, 8).await);
    let (_, stored) = find(store, &factor).await.expect("a passkey");
    assert_eq!(stored.last_used_at, Some(at(11)));
    let expected = Passkey {
        counter: 8,
        is_synced: true,
        last_challenge_at: Some(at(10)),
        ..factor.passkey().expect("a passkey").clone()
    };
    assert_eq!(stored.passkey(), Some(&expected));

    let code = store.use_totp(user.id, factor.id, 99, at(12)).await;
    assert!(!code.expect("a write"), "a passkey has no codes");
    let app = Factor {
        id: FactorId::new(at(6), unique()),
        verifier: FactorVerifier::Totp {
            sealed: SealedSecret::from_bytes(vec![1]),
            last_step: None,
        },
        ..factor
    };
    add(store, &app, 13).await.expect("an app");
    let used = PasskeyUse {
        counter: 99,
        is_synced: false,
        challenged_at: at(14),
    };
    for unknown in [app.id, FactorId::new(at(0), unique())] {
        let used = store.use_passkey(user.id, unknown, used, at(14)).await;
        assert!(!used.expect("a write"));
    }
}

/// An account can be set up with a passkey and no password. Its last passkey stays.
pub async fn a_passkey_replaces_the_password(store: &SharedStore) {
    let caller = organization(store).await;
    let taken = user(store, caller.organization(), Role::Viewer).await;
    let other = passkey(taken.id);
    add(store, &other, 6).await.expect("a factor");
    let link = invitation(store, caller.organization()).await;
    let guest = UserId::new(at(2), unique());
    let copied = Factor {
        user: guest,
        ..other.clone()
    };
    let refused = store.redeem_setup_link(link.digest, redemption(&copied), origin(7));
    assert_eq!(refusal(refused.await), Refusal::PasskeyExists);
    let unused = store.setup_link(link.digest).await.expect("a lookup");
    assert_eq!(unused.expect("the link").used_at, None);

    let factor = passkey(guest);
    let redeemed = store.redeem_setup_link(link.digest, redemption(&factor), origin(8));
    let created = redeemed.await.expect("an account is created");
    assert_eq!(created.id, guest);
    assert_eq!(
        find(store, &factor).await,
        Some((created.clone(), factor.clone()))
    );
    let codes = store.unused_recovery_codes(guest).await;
    assert_eq!(codes.expect("a count"), 2);
    let spent = store.use_recovery_code(guest, Digest::of(b"b"), origin(9));
    assert!(spent.await.expect("a write"));

    let remove = async |user: UserId, factor: &Factor, seconds: i64| {
        let removed = store.remove_factor(user, factor.id, origin(seconds));
        removed.await
    };
    let last = remove(guest, &factor, 9).await;
    assert_eq!(refusal(last), Refusal::LastPasskey);
    let second = passkey(guest);
    add(store, &second, 10).await.expect("a second passkey");
    remove(guest, &factor, 11).await.expect("one is left");
    let last = remove(guest, &second, 12).await;
    assert_eq!(refusal(last), Refusal::LastPasskey);
    let removed = remove(taken.id, &other, 13).await;
    removed.expect("a password is left");
    let removed = store.remove_factors(guest, origin(14)).await;
    assert_eq!(removed.expect("a write"), 1, "the operator may");

    let reader: Authorized<AppsRead> = caller.read_access();
    let log = store.audit_log(&reader, None, first_page("100")).await;
    let entries = log.expect("a page").items;
    let of_guest = entries
        .iter()
        .rev()
        .filter(|entry| entry.target == guest.to_string());
    let actions: Vec<Action> = of_guest.map(|entry| entry.action).collect();
    let expected = [
        Action::UserCreated,
        Action::FactorAdded,
        Action::RecoveryCodeUsed,
        Action::FactorAdded,
        Action::FactorRemoved,
        Action::FactorRemoved,
    ];
    assert_eq!(actions, expected);
}
