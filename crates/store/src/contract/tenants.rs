//! Organizations, users and API keys.

use super::fixtures::{
    SharedStore, at, join3, name, new_key, new_setup_link, organization, origin, refusal, unique,
};
use crate::{NewSetupLink, Organization, Redemption};
use tributary_domain::access::Actor;
use tributary_domain::access::person::{Email, Role};
use tributary_domain::refusal::Refusal;
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::id::{KeyId, OrganizationId, UserId};
use tributary_domain::vocabulary::time::Timestamp;

fn redemption(email: &str, organization: OrganizationId) -> Redemption {
    Redemption {
        user: UserId::new(at(3), unique()),
        email: Email::parse(email).expect("an address"),
        password_hash: "$argon2id$…".to_owned(),
        passkey: None,
        recovery_codes: Vec::new(),
        first_key: Some(new_key(organization)),
    }
}

async fn stored_link(store: &SharedStore, organization: OrganizationId) -> NewSetupLink {
    let link = new_setup_link(organization);
    store
        .create_setup_link(link.clone(), origin(1))
        .await
        .expect("a link is created");
    link
}

async fn stored_invitation(
    store: &SharedStore,
    organization: OrganizationId,
    email: &str,
) -> NewSetupLink {
    let mut link = new_setup_link(organization);
    link.link.email = Email::parse(email).ok();
    store
        .create_setup_link(link.clone(), origin(1))
        .await
        .expect("a link is created");
    link
}

async fn used_at(store: &SharedStore, link: &NewSetupLink) -> Option<Timestamp> {
    let found = store.setup_link(link.digest).await.expect("a lookup");
    found.expect("the link").used_at
}

/// When several nodes start on an empty database, only one creates the organization.
pub async fn concurrent_calls_create_one_first_organization(store: &SharedStore) {
    let found = |store: SharedStore| async move {
        let id = OrganizationId::new(at(0), unique());
        let organization = Organization {
            id,
            name: name("First"),
            created_at: at(0),
        };
        store
            .create_first_organization(organization, origin(0))
            .await
            .expect("the call succeeds")
    };
    let (one, two, three) = (
        found(store.clone()),
        found(store.clone()),
        found(store.clone()),
    );
    let founded = join3(one, two, three).await;
    assert_eq!(
        founded.iter().filter(|first| **first).count(),
        1,
        "{founded:?}"
    );
    let organizations = store.organizations().await.expect("a list");
    assert_eq!(organizations.len(), 1);
    assert_eq!(organizations[0].name, name("First"));
}

/// An organization created on the command line counts as the first one.
pub async fn an_existing_organization_is_the_first_one(store: &SharedStore) {
    organization(store).await;
    let id = OrganizationId::new(at(1), unique());
    let organization = Organization {
        id,
        name: name("Second"),
        created_at: at(1),
    };
    assert!(
        !store
            .create_first_organization(organization, origin(1))
            .await
            .expect("the call succeeds")
    );
    assert_eq!(store.organizations().await.expect("a list").len(), 1);
}

/// A key is found by its digest. The caller checks whether it is valid.
pub async fn a_key_is_found_by_its_digest(store: &SharedStore) {
    let caller = organization(store).await;
    let new = new_key(caller.organization());
    store
        .create_key(new.clone(), origin(0))
        .await
        .expect("a key is created");
    assert_eq!(
        store.key_by_digest(new.digest).await.expect("a lookup"),
        Some(new.key.clone())
    );
    assert_eq!(
        store
            .key_by_digest(Digest::of(b"another"))
            .await
            .expect("a lookup"),
        None
    );
    assert_eq!(
        store.keys(caller.organization()).await.expect("a list"),
        [new.key]
    );
}

/// Revoking a key is final, and revoking it again keeps the first time.
pub async fn revoking_again_keeps_the_first_time(store: &SharedStore) {
    let caller = organization(store).await;
    let new = new_key(caller.organization());
    store
        .create_key(new.clone(), origin(0))
        .await
        .expect("a key is created");
    let revoked = store
        .revoke_key(new.key.id, origin(5))
        .await
        .expect("a key is revoked");
    assert_eq!(revoked.revoked_at, Some(at(5)));
    let again = store
        .revoke_key(new.key.id, origin(6))
        .await
        .expect("nothing changes");
    assert_eq!(again.revoked_at, Some(at(5)));
    let found = store
        .key_by_digest(new.digest)
        .await
        .expect("a lookup")
        .expect("the key");
    assert_eq!(found.revoked_at, Some(at(5)));
    let unknown = store
        .revoke_key(KeyId::new(at(0), unique()), origin(7))
        .await;
    assert_eq!(refusal(unknown), Refusal::KeyNotFound);
}

/// Nodes may record uses of a key out of order.
pub async fn the_last_use_of_a_key_never_goes_back(store: &SharedStore) {
    let caller = organization(store).await;
    let new = new_key(caller.organization());
    store
        .create_key(new.clone(), origin(0))
        .await
        .expect("a key is created");
    for seconds in [10, 70, 20] {
        store
            .note_key_use(new.key.id, at(seconds), "192.0.2.0/24".to_owned())
            .await
            .expect("a use is recorded");
    }
    let found = store
        .key_by_digest(new.digest)
        .await
        .expect("a lookup")
        .expect("the key");
    assert_eq!(found.last_used_at, Some(at(70)));
}

/// A list of keys contains one organization's keys only.
pub async fn keys_belong_to_their_organization(store: &SharedStore) {
    let (one, other) = (organization(store).await, organization(store).await);
    store
        .create_key(new_key(one.organization()), origin(0))
        .await
        .expect("a key is created");
    assert_eq!(
        store.keys(one.organization()).await.expect("a list").len(),
        1
    );
    assert!(
        store
            .keys(other.organization())
            .await
            .expect("a list")
            .is_empty()
    );
}

/// Redeeming a link creates the account and its first key, and marks the link as used.
pub async fn a_set_up_link_creates_one_account_and_one_key(store: &SharedStore) {
    let caller = organization(store).await;
    let link = stored_link(store, caller.organization()).await;
    assert_eq!(
        store.setup_link(link.digest).await.expect("a lookup"),
        Some(link.link.clone())
    );

    let redemption = redemption("you@example.com", caller.organization());
    let user = store
        .redeem_setup_link(link.digest, redemption.clone(), origin(3))
        .await;
    let user = user.expect("an account is created");
    assert_eq!(
        (user.organization, user.role),
        (caller.organization(), Role::Owner)
    );
    let stored = store
        .users_by_email(&redemption.email)
        .await
        .expect("a lookup");
    assert_eq!(stored, [(user, redemption.password_hash.clone())]);
    let first_key = redemption.first_key.expect("a key");
    let key = store.key_by_digest(first_key.digest).await;
    let key = key.expect("a lookup").expect("the key");
    assert_eq!(key.id, first_key.key.id);
    assert_eq!(key.created_by, Some(Actor::User(redemption.user)));
    assert_eq!(key.owner, Some(redemption.user));
    let used = store
        .setup_link(link.digest)
        .await
        .expect("a lookup")
        .expect("the link");
    assert_eq!(used.used_at, Some(at(3)));
}

/// Invited members create their keys themselves, even if a key is offered.
pub async fn an_invited_member_gets_no_key(store: &SharedStore) {
    let caller = organization(store).await;
    let email = "invited@example.com";
    let link = stored_invitation(store, caller.organization(), email).await;
    let redemption = redemption(email, caller.organization());
    let redeemed = store.redeem_setup_link(link.digest, redemption, origin(3));
    redeemed.await.expect("an account is created");
    let keys = store.keys(caller.organization()).await.expect("a list");
    assert_eq!(keys, []);
}

/// When two people use the same link, only one gets the account.
pub async fn concurrent_calls_redeem_a_set_up_link_once(store: &SharedStore) {
    let caller = organization(store).await;
    let link = stored_link(store, caller.organization()).await;
    let redeem = |email: &'static str| {
        let store = store.clone();
        let redemption = redemption(email, caller.organization());
        async move {
            store
                .redeem_setup_link(link.digest, redemption, origin(3))
                .await
        }
    };
    let outcomes = join3(
        redeem("a@example.com"),
        redeem("b@example.com"),
        redeem("c@example.com"),
    )
    .await;
    let mut accounts = 0;
    for outcome in outcomes {
        match outcome {
            Ok(_) => accounts += 1,
            Err(error) => assert_eq!(refusal::<()>(Err(error)), Refusal::SetupLinkInvalid),
        }
    }
    assert_eq!(accounts, 1);

    let late = new_setup_link(caller.organization());
    store
        .create_setup_link(late.clone(), origin(1))
        .await
        .expect("a link is created");
    let after_its_end = origin(8 * 24 * 3_600);
    let attempt = redemption("d@example.com", caller.organization());
    let outcome = store
        .redeem_setup_link(late.digest, attempt, after_its_end)
        .await;
    assert_eq!(refusal(outcome), Refusal::SetupLinkInvalid);
}

/// An organization does not learn which addresses have an account elsewhere: the same address gets
/// an account in each organization.
pub async fn an_email_has_one_account_per_organization(store: &SharedStore) {
    let mut accounts = Vec::new();
    for _ in 0..2 {
        let caller = organization(store).await;
        let link = stored_link(store, caller.organization()).await;
        let redemption = redemption("you@example.com", caller.organization());
        let redeemed = store.redeem_setup_link(link.digest, redemption, origin(3));
        accounts.push(redeemed.await.expect("an account is created").id);
    }
    let email = Email::parse("you@example.com").expect("an address");
    let found = store.users_by_email(&email).await.expect("a lookup");
    let found: Vec<_> = found.into_iter().map(|(user, _)| user.id).collect();
    accounts.sort_unstable();
    assert_eq!(found, accounts);
}

/// If another member has the email address, the account is refused and the link stays unused.
pub async fn a_taken_email_is_refused_and_leaves_the_link_unused(store: &SharedStore) {
    let caller = organization(store).await;
    let one = stored_link(store, caller.organization()).await;
    let taken = redemption("you@example.com", caller.organization());
    store
        .redeem_setup_link(one.digest, taken, origin(3))
        .await
        .expect("an account is created");

    let two = stored_link(store, caller.organization()).await;
    let again = redemption("YOU@example.com", caller.organization());
    let outcome = store
        .redeem_setup_link(two.digest, again.clone(), origin(4))
        .await;
    assert_eq!(refusal(outcome), Refusal::EmailTaken);
    let first_key = again.first_key.expect("a key");
    let key = store.key_by_digest(first_key.digest).await;
    let key = key.expect("a lookup");
    assert_eq!(key, None, "a refused account has no key");
    let link = store
        .setup_link(two.digest)
        .await
        .expect("a lookup")
        .expect("the link");
    assert_eq!(link.used_at, None);
}

/// After the first account is created, links for the first owner are invalid. Invitations with an
/// email address and other organizations' links stay valid.
pub async fn redeeming_a_link_invalidates_other_first_owner_links(store: &SharedStore) {
    let (ours, others) = (organization(store).await, organization(store).await);
    let first = stored_link(store, ours.organization()).await;
    let invited = stored_invitation(store, ours.organization(), "a@example.com").await;
    let waiting = stored_invitation(store, ours.organization(), "b@example.com").await;
    let foreign = stored_link(store, others.organization()).await;
    store
        .redeem_setup_link(
            invited.digest,
            redemption("a@example.com", ours.organization()),
            origin(3),
        )
        .await
        .expect("an account is created");
    assert_eq!(used_at(store, &first).await, Some(at(3)));
    assert_eq!(used_at(store, &waiting).await, None);
    assert_eq!(used_at(store, &foreign).await, None);
    let outcome = store
        .redeem_setup_link(
            first.digest,
            redemption("thief@example.com", ours.organization()),
            origin(4),
        )
        .await;
    assert_eq!(refusal(outcome), Refusal::SetupLinkInvalid);
    assert_eq!(used_at(store, &first).await, Some(at(3)), "not used again");
}

/// Only the newest link without an email address is valid, even when several are created
/// concurrently.
pub async fn a_new_first_owner_link_invalidates_earlier_ones(store: &SharedStore) {
    let (ours, others) = (organization(store).await, organization(store).await);
    let foreign = stored_link(store, others.organization()).await;
    let invited = stored_invitation(store, ours.organization(), "a@example.com").await;
    let one = stored_link(store, ours.organization()).await;
    let two = stored_link(store, ours.organization()).await;
    assert_eq!(used_at(store, &one).await, Some(at(1)));
    assert_eq!(used_at(store, &two).await, None);
    stored_invitation(store, ours.organization(), "b@example.com").await;
    assert_eq!(used_at(store, &two).await, None);
    assert_eq!(used_at(store, &invited).await, None);
    assert_eq!(used_at(store, &foreign).await, None);

    let created = join3(
        stored_link(store, ours.organization()),
        stored_link(store, ours.organization()),
        stored_link(store, ours.organization()),
    )
    .await;
    let mut good = 0;
    for link in &created {
        good += usize::from(used_at(store, link).await.is_none());
    }
    assert_eq!(good, 1);
}

/// The setup link is shown at start as long as the instance has no account.
pub async fn an_organization_awaits_its_owner_until_an_account_exists(store: &SharedStore) {
    let awaiting = async || {
        let found = store.organization_awaiting_its_owner().await;
        found.expect("a lookup").map(|found| found.id)
    };
    assert_eq!(awaiting().await, None);
    let caller = organization(store).await;
    let _newer = organization(store).await;
    assert_eq!(awaiting().await, Some(caller.organization()));
    let link = stored_link(store, caller.organization()).await;
    let redemption = redemption("you@example.com", caller.organization());
    store
        .redeem_setup_link(link.digest, redemption, origin(3))
        .await
        .expect("an account");
    assert_eq!(awaiting().await, None, "an account exists");
}
