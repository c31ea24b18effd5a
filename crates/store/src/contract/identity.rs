//! Claims of user ids: a stranger's device does not get a customer's purchases.

use super::erasure_fixtures::{billing_notification, device, person};
use super::fixtures::{
    SharedStore, assert_rebuild_changes_nothing, at, first_page, join_all, origin,
};
use super::sdk_fixtures::{Tenant, address_hash, tenant};
use tributary_domain::access::{Authorized, Environment};
use tributary_domain::app::{AppChange, AppSecret, FraudPolicy};
use tributary_domain::attribution::HoldDecision;
use tributary_domain::billing::{NotificationMeaning, PERSON_IDS_MAX, PaymentClaim};
use tributary_domain::device::{
    ADDRESS_CLAIMS_MAX, ClaimProof, ContactHashes, DEVICE_CLAIMS_MAX, DEVICE_USERS_MAX, Identity,
    IdentityClaim, IdentityFlag, IdentityMode, USER_LINKS_MAX,
};
use tributary_domain::erasure::pseudonym;
use tributary_domain::event::{Event, EventFilter, EventSource};
use tributary_domain::install::ConfigureCommand;
use tributary_domain::keyring::seal::SealedSecret;
use tributary_domain::vocabulary::revision::Precondition;

impl Tenant {
    async fn identify(&self, name: &str, claim: IdentityClaim, second: i64) {
        let (app, live) = (self.app.id, Environment::Live);
        let identified = self
            .store
            .identify(app, live, device(name), claim, at(second));
        identified.await.expect("a user is identified");
    }

    async fn claim_user(&self, name: &str, user: &str, second: i64) {
        self.identify(name, of_user(user), second).await;
    }

    /// Stores a payment of a user, in a separate subscription.
    async fn pay(&self, user: &str, id: &str, second: i64) {
        let meaning = NotificationMeaning::Payment(PaymentClaim::Start);
        let mut paid = billing_notification(self, id, &format!("sub-{user}"), second, meaning);
        paid.content.subscriber.people = vec![person(user)];
        let accepted = self.store.accept_notification(paid).await;
        accepted.expect("a notification is stored");
    }

    /// Returns the billing events, oldest first.
    async fn payments(&self) -> Vec<Event> {
        let (filter, page) = (EventFilter::default(), first_page("500"));
        let events = self.store.events(&self.reader, self.app.id, filter, page);
        let mut events = events.await.expect("the log is read").items;
        events.retain(|event| event.source == EventSource::Billing);
        events.reverse();
        events
    }

    /// Returns the devices of the payments, oldest first.
    async fn paying_devices(&self) -> Vec<Option<String>> {
        let payments = self.payments().await.into_iter();
        payments
            .map(|event| event.device.map(|device| device.as_str().to_owned()))
            .collect()
    }

    async fn identity_of(&self, name: &str) -> Identity {
        self.device_details(name).await.state.identity
    }
}

fn of_user(user: &str) -> IdentityClaim {
    IdentityClaim {
        user: Some(person(user)),
        ..IdentityClaim::default()
    }
}

fn some(names: &[&str]) -> Vec<Option<String>> {
    names.iter().map(|name| Some((*name).to_owned())).collect()
}

/// The first device that identified a user keeps the purchases. Later devices are linked to the
/// user and do not take over.
pub async fn a_later_device_does_not_take_over_a_user(store: &SharedStore) {
    let tenant = tenant(store).await;
    for (name, second) in [("phone", 10), ("thief", 20)] {
        tenant.call_configure(tenant.configure(name, second)).await;
    }
    tenant.claim_user("phone", "ann", 100).await;
    tenant.pay("ann", "n-1", 200).await;
    tenant.claim_user("thief", "ann", 300).await;
    tenant.pay("ann", "n-2", 400).await;
    assert_eq!(tenant.paying_devices().await, some(&["phone", "phone"]));
    assert_eq!(tenant.identity_of("thief").await.user, Some(person("ann")));
    // Claiming the user again does not change the time of the first claim.
    tenant.claim_user("phone", "bob", 500).await;
    tenant.claim_user("phone", "ann", 600).await;
    tenant.pay("ann", "n-3", 700).await;
    let all = some(&["phone", "phone", "phone"]);
    assert_eq!(tenant.paying_devices().await, all);
    assert_rebuild_changes_nothing(store).await;
}

/// Invented devices cannot make a user's settlements slow: a user has a limited number of links.
/// The device that was first keeps the purchases, and one with a signature is still linked.
pub async fn a_user_of_many_devices_gets_no_further_links(store: &SharedStore) {
    let tenant = tenant(store).await;
    tenant.claim_user("phone", "ann", 10).await;
    let names: Vec<String> = (1..USER_LINKS_MAX)
        .map(|number| format!("fake-{number}"))
        .collect();
    for names in names.chunks(50) {
        let claims = names.iter().map(|name| tenant.claim_user(name, "ann", 20));
        join_all(claims.collect()).await;
    }
    tenant.claim_user("late", "ann", 30).await;
    let late = tenant.identity_of("late").await;
    assert_eq!(late.user, None);
    assert_eq!(late.flags, [IdentityFlag::CrowdedUser].into());
    assert!(tenant.identity_of("fake-999").await.flags.is_empty());
    tenant.pay("ann", "n-1", 40).await;
    assert_eq!(tenant.paying_devices().await, some(&["phone"]));
    let signed = IdentityClaim {
        proof: ClaimProof::Signed,
        ..of_user("ann")
    };
    tenant.identify("tablet", signed, 50).await;
    assert_eq!(tenant.paying_devices().await, some(&["tablet"]));
}

/// A device that claims many users gets the purchases of none of them, not even of those that were
/// settled before.
pub async fn a_device_that_claims_many_users_gets_none(store: &SharedStore) {
    let tenant = tenant(store).await;
    tenant.call_configure(tenant.configure("fake", 10)).await;
    tenant.call_configure(tenant.configure("phone", 11)).await;
    for number in 0..DEVICE_USERS_MAX {
        tenant
            .claim_user("fake", &format!("user-{number}"), 20)
            .await;
    }
    tenant.pay("user-0", "n-0", 30).await;
    assert_eq!(
        tenant.paying_devices().await,
        some(&["fake"]),
        "three users"
    );
    for number in DEVICE_USERS_MAX..DEVICE_CLAIMS_MAX + 5 {
        tenant
            .claim_user("fake", &format!("user-{number}"), 40)
            .await;
    }
    assert_eq!(tenant.paying_devices().await, [None]);
    tenant.pay("user-9", "n-9", 50).await;
    tenant.claim_user("phone", "user-0", 60).await;
    tenant.claim_user("phone", "user-9", 60).await;
    let devices = tenant.paying_devices().await;
    assert_eq!(devices, some(&["phone", "phone"]));
    let fake = tenant.identity_of("fake").await;
    assert_eq!(fake.user, Some(person("user-2")), "the last used claim");
    assert!(fake.flags.contains(&IdentityFlag::TooManyUsers));
    assert!(tenant.identity_of("phone").await.flags.is_empty());
    assert_rebuild_changes_nothing(store).await;
}

/// A device whose install is flagged loses the user to a later device without flags.
pub async fn a_flagged_install_never_outranks_another(store: &SharedStore) {
    let tenant = tenant(store).await;
    let mut fake = tenant.configure("fake", 10);
    fake.traits.model = Some("iPhone15,2".to_owned());
    let outcome = tenant.call_configure(fake).await;
    assert!(outcome.attribution.is_flagged(), "an impossible device");
    tenant.claim_user("fake", "ann", 20).await;
    tenant.pay("ann", "n-1", 30).await;
    assert_eq!(tenant.paying_devices().await, some(&["fake"]));
    tenant.call_configure(tenant.configure("phone", 40)).await;
    tenant.claim_user("phone", "ann", 50).await;
    assert_eq!(tenant.paying_devices().await, some(&["phone"]));
    // A device that identified its user before its first call and turns out to be flagged.
    tenant.claim_user("early", "bob", 60).await;
    tenant.claim_user("phone", "bob", 70).await;
    tenant.pay("bob", "n-2", 80).await;
    assert_eq!(tenant.paying_devices().await, some(&["phone", "early"]));
    let mut early = tenant.configure("early", 90);
    early.traits.model = Some("iPhone15,2".to_owned());
    tenant.call_configure(early).await;
    assert_eq!(tenant.paying_devices().await, some(&["phone", "phone"]));
    assert_rebuild_changes_nothing(store).await;
}

/// Any number of flagged devices that claim a user first do not crowd out a device without flags.
pub async fn flagged_installs_do_not_crowd_out_another(store: &SharedStore) {
    let tenant = tenant(store).await;
    for number in 0..=PERSON_IDS_MAX {
        let name = format!("fake-{number}");
        let mut fake = tenant.configure(&name, 10);
        fake.traits.model = Some("iPhone15,2".to_owned());
        tenant.call_configure(fake).await;
        tenant.claim_user(&name, "ann", 20).await;
    }
    tenant.call_configure(tenant.configure("phone", 30)).await;
    tenant.claim_user("phone", "ann", 40).await;
    tenant.pay("ann", "n-1", 50).await;
    assert_eq!(tenant.paying_devices().await, some(&["phone"]));
}

/// An install that a reviewer released no longer counts as flagged.
pub async fn a_released_install_does_not_count_as_flagged(store: &SharedStore) {
    let mut tenant = tenant(store).await;
    tenant.app.attribution.fraud = FraudPolicy::Hold;
    let mut first = tenant.configure("first", 10);
    first.traits.model = Some("iPhone15,2".to_owned());
    tenant.call_configure(first).await;
    tenant.call_configure(tenant.configure("later", 11)).await;
    tenant.claim_user("first", "ann", 20).await;
    tenant.claim_user("later", "ann", 30).await;
    tenant.pay("ann", "n-1", 40).await;
    assert_eq!(tenant.paying_devices().await, some(&["later"]));
    let reviewer = Authorized::operator(tenant.writer.organization());
    let released = store.review_install(
        &reviewer,
        tenant.app.id,
        device("first"),
        HoldDecision::Release,
        origin(50),
    );
    released.await.expect("an install is released");
    tenant.pay("ann", "n-2", 60).await;
    assert_eq!(tenant.paying_devices().await, some(&["first", "first"]));
    assert_rebuild_changes_nothing(store).await;
}

/// Many claims from one address are flagged and still used, because carriers share addresses.
pub async fn many_claims_from_one_address_are_only_flagged(store: &SharedStore) {
    let tenant = tenant(store).await;
    let claim = |number: usize| IdentityClaim {
        address_hash: Some(address_hash(9)),
        ..of_user(&format!("user-{number}"))
    };
    for number in 0..=ADDRESS_CLAIMS_MAX {
        tenant
            .identify(&format!("device-{number}"), claim(number), 100)
            .await;
    }
    let burst = IdentityFlag::ClaimBurst;
    let last = format!("device-{ADDRESS_CLAIMS_MAX}");
    assert!(tenant.identity_of(&last).await.flags.contains(&burst));
    assert!(tenant.identity_of("device-19").await.flags.is_empty());
    let user = format!("user-{ADDRESS_CLAIMS_MAX}");
    tenant.pay(&user, "n-1", 200).await;
    assert_eq!(tenant.paying_devices().await, some(&[&last]));
    tenant.identify("an-hour-later", claim(99), 3_701).await;
    assert!(tenant.identity_of("an-hour-later").await.flags.is_empty());
    // The hashes are deleted with the addresses of clicks.
    let forgotten = store.forget_addresses(at(0), at(3_000), 100).await;
    let expected = u64::try_from(ADDRESS_CLAIMS_MAX + 1).expect("a small number");
    assert_eq!(forgotten.expect("addresses are deleted"), expected);
}

/// A signed claim outranks an earlier unsigned one. If the app requires signatures, an unsigned
/// claim is recorded and not used.
pub async fn a_signed_claim_outranks_an_unsigned_one(store: &SharedStore) {
    let tenant = tenant(store).await;
    let signed = |mode| IdentityClaim {
        proof: ClaimProof::Signed,
        mode,
        ..of_user("ann")
    };
    tenant.claim_user("stranger", "ann", 10).await;
    tenant.pay("ann", "n-1", 20).await;
    assert_eq!(tenant.paying_devices().await, some(&["stranger"]));
    tenant.claim_user("phone", "ann", 30).await;
    tenant
        .identify("phone", signed(IdentityMode::Open), 40)
        .await;
    assert_eq!(tenant.paying_devices().await, some(&["phone"]));
    // Required signatures.
    for (proof, second) in [(ClaimProof::Unsigned, 50), (ClaimProof::Wrong, 51)] {
        let claim = IdentityClaim {
            proof,
            mode: IdentityMode::Signed,
            ..of_user("bob")
        };
        tenant.identify("stranger-2", claim, second).await;
    }
    tenant.pay("bob", "n-2", 60).await;
    assert_eq!(
        tenant.paying_devices().await,
        [Some("phone".to_owned()), None]
    );
    let stranger = tenant.identity_of("stranger-2").await;
    assert_eq!(stranger.user, None);
    let flags = [IdentityFlag::UnsignedUser, IdentityFlag::WrongSignature];
    assert_eq!(stranger.flags, flags.into_iter().collect());
    assert_rebuild_changes_nothing(store).await;
}

/// A stranger's claims that are not used neither keep a customer's data from being erased, nor are
/// the customers erased with the stranger's device.
pub async fn unused_claims_do_not_affect_erasure(store: &SharedStore) {
    let tenant = tenant(store).await;
    for user in ["ann", "bob", "cat", "dan"] {
        tenant.claim_user("fake", user, 10).await;
    }
    tenant.claim_user("phone", "ann", 20).await;
    tenant.pay("ann", "n-1", 30).await;
    tenant.pay("bob", "n-2", 40).await;
    let eraser = Authorized::operator(tenant.writer.organization());
    let users = async || -> Vec<bool> {
        let payments = tenant.payments().await;
        payments.iter().map(|event| event.user.is_some()).collect()
    };
    for (name, expected) in [("fake", [true, true]), ("phone", [false, true])] {
        let number = if name == "fake" { 1 } else { 2 };
        let erased = store.erase_device(
            &eraser,
            tenant.app.id,
            device(name),
            pseudonym([number; 16]),
            origin(50),
        );
        erased.await.expect("the device is erased");
        assert_eq!(users().await, expected, "{name}");
    }
}

/// Matching values change three times. Later ones are flagged and not stored.
pub async fn matching_values_change_three_times(store: &SharedStore) {
    let tenant = tenant(store).await;
    for number in 0..6 {
        let claim = IdentityClaim {
            contact_hashes: ContactHashes {
                email: Some(number.to_string()),
                ..ContactHashes::default()
            },
            ..IdentityClaim::default()
        };
        tenant.identify("phone", claim, 10 + number).await;
        let identity = tenant.identity_of("phone").await;
        let stored = number.min(3).to_string();
        assert_eq!(identity.contact_hashes.email, Some(stored));
        assert_eq!(identity.flags.is_empty(), number <= 3, "{number}");
    }
}

/// Each call adds to the identity, even before the device is configured.
pub async fn identities_accumulate_over_calls(store: &SharedStore) {
    let tenant = tenant(store).await;
    let claim = |user: Option<&str>, email: Option<&str>, phone: Option<&str>| IdentityClaim {
        user: user.map(person),
        contact_hashes: ContactHashes {
            email: email.map(str::to_owned),
            phone: phone.map(str::to_owned),
            ..ContactHashes::default()
        },
        ..IdentityClaim::default()
    };
    let identity = |user, email, phone| {
        let IdentityClaim {
            user,
            contact_hashes,
            ..
        } = claim(user, email, phone);
        Identity {
            user,
            contact_hashes,
            ..Identity::default()
        }
    };
    let first = claim(Some("u1"), Some("e1"), None);
    tenant.identify("device-1", first, 5).await;
    let second = claim(None, None, Some("p1"));
    tenant.identify("device-1", second, 5).await;
    let before = tenant.device_details("device-1").await.state;
    assert_eq!(before.device, None);
    assert_eq!(
        before.identity,
        identity(Some("u1"), Some("e1"), Some("p1"))
    );
    let command = ConfigureCommand {
        identity: claim(Some("u2"), None, None),
        ..tenant.configure("device-1", 60)
    };
    tenant.call_configure(command).await;
    let after = tenant.device_details("device-1").await;
    assert_eq!(
        after.state.identity,
        identity(Some("u2"), Some("e1"), Some("p1"))
    );
    assert_eq!(after.events[0].user, Some(person("u2")));
}

/// The app of an SDK key comes with the current and the previous identity secret.
pub async fn two_identity_secrets_are_valid(store: &SharedStore) {
    let tenant = tenant(store).await;
    let sealed = |number: u8| SealedSecret::from_bytes(vec![number]);
    for number in [1, 2, 3] {
        let rotation = AppChange::rotation(AppSecret::Identity, sealed(number));
        let (writer, app) = (&tenant.writer, tenant.app.id);
        let second = 10 + i64::from(number);
        let rotated = store.update_app(writer, app, rotation, Precondition::None, origin(second));
        rotated.await.expect("the secret is stored");
    }
    let found = store.sdk_app(&tenant.app.sdk.live_key).await;
    let found = found.expect("keys are read").expect("the key is known");
    assert_eq!(found.identity_secrets, [sealed(3), sealed(2)]);
}
