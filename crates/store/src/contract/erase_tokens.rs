//! Erasing a device at its user's request.

use super::erasure_fixtures::{DEVICE, PERSON, device, person, person_proof, person_scenario};
use super::fixtures::{SharedStore, first_page, origin, refusal};
use super::sdk_fixtures::{Tenant, tenant};
use crate::{EraseRequest, StoreResult};
use std::collections::{BTreeMap, BTreeSet};
use tributary_domain::access::{Actor, Authorized, Environment};
use tributary_domain::audit::AuditContext;
use tributary_domain::device::DeviceKey;
use tributary_domain::erasure::{EraseToken, pseudonym};
use tributary_domain::event::{Event, EventFilter, EventSource};
use tributary_domain::refusal::Refusal;

const PHONE: &str = "phone";
const TOKEN: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8";
const OTHER_TOKEN: &str = "BAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8";

fn token(text: &str) -> EraseToken {
    EraseToken::parse(text).expect("a token")
}

impl Tenant {
    /// Calls `configure` with an erase token.
    async fn configure_with_token(&self, text: Option<&str>, seconds: i64) {
        let mut command = self.configure(PHONE, seconds);
        command.erase_proof = text.map(|text| token(text).proof(&command.device));
        self.call_configure(command).await;
    }

    fn erase_request(&self, text: &str, device: DeviceKey, number: u8) -> EraseRequest {
        EraseRequest {
            organization: self.writer.organization(),
            app: self.app.id,
            environment: Environment::Live,
            proof: token(text).proof(&device),
            device,
            pseudonym: pseudonym([number; 16]),
            origin: AuditContext {
                actor: Actor::DeviceUser,
                address: None,
                ..origin(100 + i64::from(number))
            },
        }
    }

    async fn erase_phone(&self, text: &str, number: u8) -> StoreResult<()> {
        let request = self.erase_request(text, device(PHONE), number);
        self.store.erase_own_device(request).await
    }

    async fn is_phone_known(&self) -> bool {
        let found = self
            .store
            .device(&self.reader, self.app.id, device(PHONE))
            .await;
        found.is_ok()
    }
}

/// The first token that a device sends holds; later ones are ignored.
pub async fn the_first_token_of_a_device_holds(store: &SharedStore) {
    let one = tenant(store).await;
    for (text, seconds) in [
        (None, 10),
        (Some(TOKEN), 11),
        (Some(OTHER_TOKEN), 12),
        (None, 13),
    ] {
        one.configure_with_token(text, seconds).await;
    }
    let wrong = one.erase_phone(OTHER_TOKEN, 1).await;
    assert_eq!(refusal(wrong), Refusal::InvalidEraseToken);
    assert!(one.is_phone_known().await, "nothing was erased");
    one.erase_phone(TOKEN, 2)
        .await
        .expect("the device is erased");
    assert!(!one.is_phone_known().await);
}

/// A token is valid for one device of one app and environment. A device without a token cannot be
/// erased by its user.
pub async fn a_token_is_for_one_device(store: &SharedStore) {
    let one = tenant(store).await;
    let other = tenant(store).await;
    one.configure_with_token(Some(TOKEN), 10).await;
    other.configure_with_token(None, 10).await;
    one.call_configure(one.configure("tablet", 11)).await;
    let of_tests = EraseRequest {
        environment: Environment::Test,
        ..one.erase_request(TOKEN, device(PHONE), 1)
    };
    let requests = [
        of_tests,
        one.erase_request(TOKEN, device("tablet"), 1),
        one.erase_request(TOKEN, device("unknown"), 1),
        other.erase_request(TOKEN, device(PHONE), 1),
    ];
    for request in requests {
        let refused = store.erase_own_device(request).await;
        assert_eq!(refusal(refused), Refusal::InvalidEraseToken);
    }
    assert!(one.is_phone_known().await && other.is_phone_known().await);
}

/// A repeated request is recognised, and erases what the device sent meanwhile.
pub async fn an_erased_device_keeps_its_proof(store: &SharedStore) {
    let one = tenant(store).await;
    one.configure_with_token(Some(TOKEN), 10).await;
    one.erase_phone(TOKEN, 1)
        .await
        .expect("the device is erased");
    for number in [2, 3] {
        let again = one.erase_phone(TOKEN, number).await;
        assert_eq!(refusal(again), Refusal::DeviceNotFound);
    }
    let wrong = one.erase_phone(OTHER_TOKEN, 4).await;
    assert_eq!(refusal(wrong), Refusal::InvalidEraseToken);
    one.configure_with_token(Some(OTHER_TOKEN), 200).await;
    one.erase_phone(TOKEN, 5)
        .await
        .expect("the device is erased again");
    assert!(!one.is_phone_known().await);
}

/// An operator's erasure does not take the right from the user, whose app keeps its token.
pub async fn a_token_survives_an_operators_erasure(store: &SharedStore) {
    let one = tenant(store).await;
    one.configure_with_token(Some(TOKEN), 10).await;
    let eraser = Authorized::operator(one.writer.organization());
    let name = pseudonym([9; 16]);
    let erased = store.erase_device(&eraser, one.app.id, device(PHONE), name, origin(50));
    erased.await.expect("the device is erased");
    // The app goes on under the same id, and does not send its confirmed token again.
    one.configure_with_token(None, 60).await;
    assert!(one.is_phone_known().await);
    one.erase_phone(TOKEN, 1)
        .await
        .expect("the device is erased");
    assert!(!one.is_phone_known().await);
}

/// The audit log names the user as the actor, without an address or the device id.
pub async fn an_own_erasure_is_audited(store: &SharedStore) {
    let scenario = person_scenario(store).await;
    let tenant = scenario.tenant();
    let before = scenario.figures().await;
    let request = EraseRequest {
        proof: person_proof(),
        ..tenant.erase_request(TOKEN, device(DEVICE), 7)
    };
    let name = request.pseudonym.clone();
    let erased = store.erase_own_device(request).await;
    erased.expect("the device is erased");
    assert_eq!(scenario.figures().await, before);
    let reader = tenant.writer.read_access();
    let log = store.audit_log(&reader, Some(tenant.app.id), first_page("10"));
    let latest = log.await.expect("the log is read").items.remove(0);
    assert_eq!(
        (latest.action.as_str(), latest.actor, latest.address),
        ("device.erased", Actor::DeviceUser, None)
    );
    assert_eq!(latest.target, name.as_str());
}

/// Anyone can claim a user id, so a device's token erases neither the payments that a provider
/// reported for that user nor the figures.
pub async fn an_own_erasure_spares_users_with_unsigned_claims(store: &SharedStore) {
    let scenario = person_scenario(store).await;
    let tenant = scenario.tenant();
    let of_person = || EventFilter {
        user: Some(person(PERSON)),
        ..EventFilter::default()
    };
    let payments = |log: BTreeMap<String, Event>| -> BTreeSet<String> {
        let billed = log.into_iter();
        let billed = billed.filter(|(_, event)| event.source == EventSource::Billing);
        billed.map(|(id, _)| id).collect()
    };
    let (before, figures) = (
        payments(scenario.log(of_person()).await),
        scenario.figures().await,
    );
    assert!(
        !before.is_empty(),
        "a provider reported payments of the user"
    );
    let request = EraseRequest {
        proof: person_proof(),
        ..tenant.erase_request(TOKEN, device(DEVICE), 7)
    };
    let erased = store.erase_own_device(request).await;
    erased.expect("the device is erased");
    assert_eq!(payments(scenario.log(of_person()).await), before);
    assert_eq!(scenario.figures().await, figures);
    let of_device = EventFilter {
        device: Some(device(DEVICE)),
        ..EventFilter::default()
    };
    assert!(scenario.log(of_device).await.is_empty());
}
