//! Exporting everything about a person: complete, and nothing of other people.

use super::erasure_fixtures::{
    DEVICE, PERSON, PersonScenario, billing_notification, device, person, person_scenario,
    personal_texts,
};
use super::fixtures::{CLIENT, SharedStore, at, first_page, new_key, origin, rebuild, refusal};
use super::personal_data_fixtures::{
    ExportedDocument, NAMES, RandomPeople, eraser, export, exporter, read_document,
};
use super::sdk_fixtures::{event, tenant};
use crate::personal_data::{PersonExport, SECTIONS};
use tributary_domain::access::{AccessDenied, Authorized, Environment, PeopleExport, Permission};
use tributary_domain::access::{Actor, authorize};
use tributary_domain::billing::{NotificationMeaning, PaymentClaim, Subscriber};
use tributary_domain::device::{ClaimProof, IdentityClaim};
use tributary_domain::erasure::pseudonym;
use tributary_domain::personal_data::DataSubject;
use tributary_domain::refusal::Refusal;

/// Number of random histories. Each has five people with facts from every source.
const HISTORIES: u64 = 6;

impl PersonScenario {
    async fn export(&self, subject: DataSubject) -> ExportedDocument {
        export(self.tenant(), subject).await.expect("an export")
    }
}

fn of_device(name: &str) -> DataSubject {
    DataSubject::Device(device(name))
}

fn of_user(name: &str) -> DataSubject {
    DataSubject::User(person(name))
}

/// Every text about the person that any table contains is in the document, except the token that
/// Apple issued, which is a secret of the device.
pub async fn an_export_contains_everything_about_a_device(store: &SharedStore) {
    let scenario = person_scenario(store).await;
    // Merges the counts, which stores the device's cohort.
    rebuild(store).await;
    let document = scenario.export(of_device(DEVICE)).await;
    let text = document.text.to_lowercase();
    for known in personal_texts() {
        let is_secret = known == "token-to-erase";
        assert_eq!(text.contains(&known), !is_secret, "{known}");
    }
    for section in SECTIONS {
        assert!(!document.items(section.name).is_empty(), "{}", section.name);
    }
    let device = &document.items("devices")[0];
    assert_eq!(device["hasEraseToken"], true);
    assert_eq!(device["adServicesToken"]["attempts"], 0);
    assert!(device["cohort"]["activeDays"].is_array());
    let deliveries = document.items("events").iter();
    let deliveries = deliveries.filter_map(|one| one["deliveries"].as_array().cloned());
    assert!(deliveries.flatten().count() > 1, "deliveries are included");
    assert_eq!(document.json["data"]["complete"], true);
}

/// After events from every source for several people, an export contains each fact of its person
/// once, and no fact of another person. After an erasure, it is refused, and the exports of the
/// others are unchanged.
pub async fn an_export_contains_each_fact_of_its_person_once(store: &SharedStore) {
    for seed in 1..=HISTORIES {
        let people = RandomPeople::create(store, seed).await;
        let tenant = people.tenant();
        let mut before = Vec::new();
        for name in NAMES {
            let of_one = export(tenant, of_device(&people.device(name))).await;
            let of_one = of_one.expect("an export of a device");
            people.assert_facts_of(name, &of_one);
            let by_user = export(tenant, of_user(&people.user(name))).await;
            let by_user = by_user.expect("an export of a user");
            people.assert_facts_of(name, &by_user);
            assert_eq!(by_user.sections(), of_one.sections(), "seed {seed}: {name}");
            before.push(of_one);
        }
        for (position, name) in NAMES.into_iter().enumerate() {
            let key = device(&people.device(name));
            let number = u8::try_from(position).expect("few people");
            let pseudonym = pseudonym([number; 16]);
            let eraser = eraser(tenant);
            let erased = store.erase_device(
                &eraser,
                tenant.app.id,
                key.clone(),
                pseudonym.clone(),
                origin(9_000),
            );
            erased.await.expect("a device is erased");
            for gone in [DataSubject::Device(key), DataSubject::Device(pseudonym)] {
                assert_eq!(refusal(export(tenant, gone).await), Refusal::DeviceNotFound);
            }
            let user = of_user(&people.user(name));
            assert_eq!(
                refusal(export(tenant, user).await),
                Refusal::AppUserNotFound
            );
            for (other, before) in NAMES.into_iter().zip(&before).skip(position + 1) {
                let now = export(tenant, of_device(&people.device(other))).await;
                let now = now.expect("another device's export");
                assert_eq!(now.sections(), before.sections(), "seed {seed}: {other}");
            }
        }
    }
}

/// If several devices have a user, only those with a signed claim are included.
pub async fn a_users_export_includes_proven_devices_only(store: &SharedStore) {
    let tenant = tenant(store).await;
    let claim = async |device_id: &str, user: &str, proof: ClaimProof, second: i64| {
        let claim = IdentityClaim {
            user: Some(person(user)),
            proof,
            ..IdentityClaim::default()
        };
        let (app, live) = (tenant.app.id, Environment::Live);
        let claimed = store.identify(app, live, device(device_id), claim, at(second));
        claimed.await.expect("a claim is stored");
        let id = format!("{device_id}-{user}");
        let events = vec![event(&id, "sign_up", second)];
        let accepted = store.accept_sdk_events(tenant.arrival(device_id, second), events);
        accepted.await.expect("events are accepted");
    };
    claim("handset", "ann", ClaimProof::Unsigned, 10).await;
    let alone = export(&tenant, of_user("ann")).await.expect("an export");
    assert_eq!(
        alone.ids("devices", "deviceId"),
        ["handset"],
        "the only device"
    );
    claim("tablet", "ann", ClaimProof::Signed, 20).await;
    claim("tablet", "bobby", ClaimProof::Unsigned, 30).await;
    claim("other", "bobby", ClaimProof::Unsigned, 40).await;
    // Both buy on the tablet. The provider adds ids of its own.
    for (user, second) in [("ann", 50), ("bobby", 60)] {
        let first = NotificationMeaning::Payment(PaymentClaim::Start);
        let (id, chain) = (format!("bought-by-{user}"), format!("chain-{second}"));
        let mut bought = billing_notification(&tenant, &id, &chain, second, first);
        bought.content.subscriber = Subscriber {
            device: Some(device("tablet")),
            people: vec![person(user), person(&format!("anonymous-{second}"))],
            ..Subscriber::default()
        };
        bought.body = format!("{{\"user\":\"{user}\"}}");
        let accepted = store.accept_notification(bought).await;
        accepted.expect("a notification is stored");
    }
    let document = export(&tenant, of_user("ann")).await.expect("an export");
    assert_eq!(document.ids("devices", "deviceId"), ["tablet"]);
    let mut events = document.ids("events", "eventId");
    events.sort();
    assert_eq!(events, ["bought-by-ann", "tablet-ann"]);
    let data = document.data();
    for foreign in [
        "handset",
        "bobby",
        "anonymous-50",
        "anonymous-60",
        "chain-60",
    ] {
        assert!(!data.contains(foreign), "{foreign}: {data}");
    }
    let subscriptions = document.items("subscriptions");
    assert_eq!(subscriptions.len(), 1, "{data}");
    let notifications = subscriptions[0]["notifications"].as_array();
    let notifications = notifications.expect("a list");
    assert_eq!(notifications.len(), 1, "{data}");
    assert_eq!(notifications[0]["notificationId"], "bought-by-ann");
    assert_eq!(notifications[0]["otherUsers"], 1);
    let left_out = &document.json["meta"]["otherDevices"];
    assert_eq!(left_out[0]["deviceId"], "handset");
    assert_eq!(left_out[0]["reason"], "unsigned");
    assert_eq!(document.json["data"]["subject"]["otherDevices"], 1);
    let of_handset = export(&tenant, of_device("handset"))
        .await
        .expect("an export");
    assert_eq!(of_handset.ids("events", "eventId"), ["handset-ann"]);
    assert_eq!(of_handset.ids("devices", "userId"), ["ann"]);
}

/// An export stays within its tenant and environment, and is audited without ids of the person.
pub async fn an_export_is_audited_and_stays_in_its_environment(store: &SharedStore) {
    let scenario = person_scenario(store).await;
    let tenant_of_person = scenario.tenant();
    for subject in [of_device("never-seen"), of_user("never-seen")] {
        let expected = match subject {
            DataSubject::Device(_) => Refusal::DeviceNotFound,
            DataSubject::User(_) => Refusal::AppUserNotFound,
        };
        assert_eq!(refusal(export(tenant_of_person, subject).await), expected);
    }
    let app = tenant_of_person.app.id;
    let begin = async |caller: &Authorized<PeopleExport>| {
        let of = (app, of_device(DEVICE));
        PersonExport::begin(store.as_ref(), caller, of, origin(500)).await
    };
    let of_tests = exporter(tenant_of_person, Environment::Test);
    assert_eq!(refusal(begin(&of_tests).await), Refusal::DeviceNotFound);
    let stranger = Authorized::operator(tenant(store).await.writer.organization());
    assert_eq!(refusal(begin(&stranger).await), Refusal::AppNotFound);
    for permission in [Permission::ReadOnly, Permission::Analytics] {
        let mut key = new_key(tenant_of_person.writer.organization()).key;
        key.permission = permission;
        let denied =
            authorize::<PeopleExport>(&key, CLIENT).expect_err("a key that may not export");
        assert_eq!(denied, AccessDenied::InsufficientPermission);
    }
    scenario.export(of_device(DEVICE)).await;
    scenario.export(of_user(PERSON)).await;
    let caller = tenant_of_person.writer.read_access();
    let log = store.audit_log(&caller, Some(app), first_page("2")).await;
    let entries = log.expect("the log is read").items;
    let actions: Vec<&str> = entries.iter().map(|one| one.action.as_str()).collect();
    assert_eq!(actions, ["app_user.exported", "device.exported"]);
    for entry in &entries {
        let text = format!("{entry:?}").to_lowercase();
        assert!(!text.contains(&DEVICE.to_lowercase()) && !text.contains(PERSON));
        assert!(text.contains("att_"), "{text}");
        assert_eq!(entry.actor, Actor::Operator);
    }
}

/// An export during which the device is erased fails, so that the file is not taken for complete.
pub async fn an_export_fails_if_the_device_is_erased_meanwhile(store: &SharedStore) {
    let scenario = person_scenario(store).await;
    let tenant = scenario.tenant();
    let caller = exporter(tenant, Environment::Live);
    let of = (tenant.app.id, of_device(DEVICE));
    let mut running = PersonExport::begin(store.as_ref(), &caller, of, origin(500))
        .await
        .expect("an export begins");
    assert!(
        running
            .next(store.as_ref())
            .await
            .expect("a part")
            .is_some()
    );
    scenario.erase(501).await;
    let outcome = read_document(store, running).await;
    assert_eq!(refusal(outcome), Refusal::DeviceNotFound);
}

/// A claim that is no longer used leaves the user's id on another device. The erasure of the user
/// removes it.
pub async fn an_erasure_removes_the_user_from_other_devices(store: &SharedStore) {
    let scenario = person_scenario(store).await;
    let tenant = scenario.tenant();
    let (app, live) = (tenant.app.id, Environment::Live);
    for (user, second) in [("u30", 30), ("u31", 31), (PERSON, 32), ("u33", 33)] {
        let claim = IdentityClaim {
            user: Some(person(user)),
            ..IdentityClaim::default()
        };
        let claimed = store.identify(app, live, device("stranger"), claim, at(second));
        claimed.await.expect("a claim is stored");
        let sent = vec![event(&format!("s-{second}"), "sign_up", second)];
        let accepted = store.accept_sdk_events(tenant.arrival("stranger", second), sent);
        accepted.await.expect("events are accepted");
    }
    let named = async || {
        let document = scenario.export(of_device("stranger")).await;
        document.data().matches(PERSON).count()
    };
    assert!(named().await > 1, "the stranger claimed the person");
    scenario.erase(400).await;
    assert_eq!(named().await, 0);
    let events = scenario.events_of_device(device("stranger")).await;
    assert_eq!(events.len(), 4, "the stranger's events stay");
    scenario.assert_rebuild_keeps_figures().await;
}

/// Payments that stayed with a pseudonym, because the user id was not signed when the device's user
/// erased the device, are the user's: they are exported and erased with the user.
pub async fn payments_of_an_erased_device_belong_to_the_user(store: &SharedStore) {
    let scenario = person_scenario(store).await;
    let tenant = scenario.tenant();
    let request = crate::EraseRequest {
        organization: tenant.writer.organization(),
        app: tenant.app.id,
        environment: Environment::Live,
        device: device(DEVICE),
        proof: super::erasure_fixtures::person_proof(),
        pseudonym: pseudonym([5; 16]),
        origin: origin(400),
    };
    store
        .erase_own_device(request)
        .await
        .expect("an own erasure");
    let document = scenario.export(of_user(PERSON)).await;
    assert!(document.items("devices").is_empty());
    let payments = document.ids("events", "eventId");
    assert!(payments.contains(&"first".to_owned()), "{payments:?}");
    // A second phone of the same user, and its erasure by the operator.
    let claim = IdentityClaim {
        user: Some(person(PERSON)),
        ..IdentityClaim::default()
    };
    let (app, live) = (tenant.app.id, Environment::Live);
    let claimed = store.identify(app, live, device("second"), claim, at(500));
    claimed.await.expect("a claim is stored");
    let first = NotificationMeaning::Payment(PaymentClaim::Start);
    let paid = billing_notification(tenant, "second-pay", "sub-9", 510, first);
    scenario.notify(&paid).await;
    let eraser = eraser(tenant);
    let erased = store.erase_device(
        &eraser,
        app,
        device("second"),
        pseudonym([6; 16]),
        origin(600),
    );
    erased.await.expect("a device is erased");
    let gone = export(tenant, of_user(PERSON)).await;
    assert_eq!(refusal(gone), Refusal::AppUserNotFound);
}
