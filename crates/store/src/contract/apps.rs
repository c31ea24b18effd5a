//! Apps.

use super::fixtures::{
    SharedStore, app, at, first_page, join3, name, new_app, organization, origin, refusal,
};
use std::time::Duration;
use tributary_domain::access::{AppsWrite, Authorized, Environment};
use tributary_domain::app::{
    App, AppChange, AppSecret, BillingProvider, ENDED_SDK_KEYS_KEPT_MAX, FraudPolicy, SdkKey,
    SdkKeyRotation, SdkRevenue,
};
use tributary_domain::attestation::AttestationPolicy;
use tributary_domain::audit::Action;
use tributary_domain::device::IdentityMode;
use tributary_domain::keyring::seal::SealedSecret;
use tributary_domain::refusal::Refusal;
use tributary_domain::vocabulary::change::Change;
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::page::PageRequest;
use tributary_domain::vocabulary::revision::Precondition;
use tributary_domain::vocabulary::timezone::Timezone;
use tributary_domain::vocabulary::web_url::{HostName, HttpsUrl};

fn everything() -> AppChange {
    AppChange {
        name: Some(name("Läufer 走る ✓")),
        timezone: Change::Set(Timezone::parse("Asia/Kathmandu").expect("a zone")),
        archived: Change::Set(true),
        ios_bundle_id: Change::Set("com.example.runner".to_owned()),
        ios_app_store_id: Change::Set("123456789".to_owned()),
        ios_team_id: Change::Set("ABCDE12345".to_owned()),
        android_package_name: Change::Set("com.example.runner".to_owned()),
        android_sha256_cert_fingerprints: Change::Set(vec!["AB".to_owned()]),
        web_events_enabled: Change::Set(true),
        link_domain: Change::Set(HostName::parse("go.example.com").expect("a host")),
        sdk_enabled: Change::Set(false),
        sdk_revenue: Change::Set(SdkRevenue::Ignore),
        sdk_attestation: Change::Set(AttestationPolicy::Require),
        sdk_identity: Change::Set(IdentityMode::Signed),
        revenue_events: Change::Set(vec!["coins".to_owned()]),
        deep_link_schemes: Change::Set(vec!["runner".to_owned()]),
        click_window_hours: Change::Set(24),
        probabilistic_ios: Change::Set(true),
        probabilistic_android: Change::Set(false),
        probabilistic_window_hours: Change::Set(6),
        fraud: Change::Set(FraudPolicy::Hold),
        qualified_trial_enabled: Change::Set(true),
        qualified_trial_delay_hours: Change::Set(48),
        skan_test_signals: Change::Set(true),
        alert_webhook_url: Change::Set(HttpsUrl::parse("https://example.com/a").expect("a URL")),
        kept_secrets: Vec::new(),
        secrets: Vec::new(),
    }
}

fn app_store_id(id: &str) -> AppChange {
    AppChange {
        ios_app_store_id: Change::Set(id.to_owned()),
        ..AppChange::default()
    }
}

fn link_domain(host: &str) -> AppChange {
    let host = HostName::parse(host).expect("a host");
    AppChange {
        link_domain: Change::Set(host),
        ..AppChange::default()
    }
}

async fn read_app(store: &SharedStore, caller: &Authorized<AppsWrite>, id: AppId) -> App {
    let app = store.app(&caller.read_access(), id).await;
    app.expect("the app")
}

/// Every field is stored, both on creation and on update.
pub async fn an_app_is_read_as_it_was_stored(store: &SharedStore) {
    let caller = organization(store).await;
    let new = new_app(&caller, 1);
    let created = store
        .create_app(&caller, new.clone(), Vec::new(), origin(1))
        .await;
    assert_eq!(created.expect("an app is created"), new);
    assert_eq!(read_app(store, &caller, new.id).await, new);

    let changed = store
        .update_app(&caller, new.id, everything(), Precondition::None, origin(9))
        .await
        .expect("the app is changed");
    assert_eq!(changed.updated_at, at(9));
    assert_eq!(changed.created_at, at(1));
    assert_eq!(changed.timezone.as_str(), "Asia/Kathmandu");
    assert_eq!(read_app(store, &caller, new.id).await, changed);
}

/// A change affects only the fields it contains, so changes to different fields do not undo each
/// other.
pub async fn changes_of_different_fields_add_up(store: &SharedStore) {
    let caller = organization(store).await;
    let app = app(store, &caller).await;
    let one = AppChange {
        web_events_enabled: Change::Set(true),
        ..AppChange::default()
    };
    let two = AppChange {
        sdk_enabled: Change::Set(false),
        ..AppChange::default()
    };
    for change in [one, two] {
        let outcome = store
            .update_app(&caller, app.id, change, Precondition::None, origin(2))
            .await;
        outcome.expect("the app is changed");
    }
    let stored = read_app(store, &caller, app.id).await;
    assert!(stored.web_events_enabled);
    assert!(!stored.sdk.enabled);
    assert_eq!(stored.tag(), "3");
}

/// A change with an outdated `If-Match` is refused.
pub async fn an_outdated_version_is_refused(store: &SharedStore) {
    let caller = organization(store).await;
    let app = app(store, &caller).await;
    let old = Precondition::AnyOf(vec!["7".to_owned()]);
    let outcome = store
        .update_app(&caller, app.id, everything(), old, origin(2))
        .await;
    assert_eq!(refusal(outcome), Refusal::VersionConflict);
    assert_eq!(read_app(store, &caller, app.id).await, app);
}

/// A change that leaves the app as it is creates no new version and no audit log entry.
pub async fn an_unchanged_app_is_not_written(store: &SharedStore) {
    let caller = organization(store).await;
    let app = app(store, &caller).await;
    let entry_count = async || {
        let log = store
            .audit_log(&caller.read_access(), None, first_page("500"))
            .await;
        log.expect("the log").items.len()
    };
    let before = entry_count().await;
    let same = AppChange {
        archived: Change::Set(false),
        ..AppChange::default()
    };
    let outcome = store
        .update_app(&caller, app.id, same, Precondition::None, origin(5))
        .await;
    assert_eq!(outcome.expect("nothing to do"), app);
    assert_eq!(entry_count().await, before);
}

/// A released name can be claimed by another app.
pub async fn a_released_name_is_free_again(store: &SharedStore) {
    let caller = organization(store).await;
    let (one, two) = (app(store, &caller).await, app(store, &caller).await);
    let update =
        |app, change| store.update_app(&caller, app, change, Precondition::None, origin(2));
    update(one.id, app_store_id("42"))
        .await
        .expect("the id is available");
    update(one.id, app_store_id("43"))
        .await
        .expect("another id");
    update(two.id, app_store_id("42"))
        .await
        .expect("the id is available again");
    let host = HostName::parse("go.example.com").expect("a host");
    for app in [one.id, two.id] {
        update(app, link_domain("go.example.com"))
            .await
            .expect("a claim");
        let host = host.clone();
        let verified = store.set_link_domain_verified(&caller, app, host, true, origin(2));
        verified.await.expect("the domain is available");
        let none = AppChange {
            link_domain: Change::Reset,
            ..AppChange::default()
        };
        update(app, none).await.expect("no domain");
    }
}

/// A creation that is refused halfway stores nothing.
pub async fn a_refused_creation_stores_nothing(store: &SharedStore) {
    let caller = organization(store).await;
    let first = app(store, &caller).await;
    let change = app_store_id("42");
    let outcome = store
        .update_app(&caller, first.id, change, Precondition::None, origin(2))
        .await;
    outcome.expect("the id is available");
    let mut second = new_app(&caller, 3);
    second.apply(app_store_id("42"));
    let outcome = store
        .create_app(&caller, second.clone(), Vec::new(), origin(3))
        .await;
    assert_eq!(refusal(outcome), Refusal::StoreIdTaken);
    let outcome = store.app(&caller.read_access(), second.id).await;
    assert_eq!(refusal(outcome), Refusal::AppNotFound);
    let apps = store
        .apps(&caller.read_access(), true, first_page("50"))
        .await
        .expect("a list");
    assert_eq!(apps.items.len(), 1);
}

/// Apps of other organizations are not found.
pub async fn another_organization_sees_and_changes_nothing(store: &SharedStore) {
    let (owner, stranger) = (organization(store).await, organization(store).await);
    let app = app(store, &owner).await;
    assert_eq!(
        refusal(store.app(&stranger.read_access(), app.id).await),
        Refusal::AppNotFound
    );
    let outcome = store
        .update_app(
            &stranger,
            app.id,
            everything(),
            Precondition::None,
            origin(2),
        )
        .await;
    assert_eq!(refusal(outcome), Refusal::AppNotFound);
    let list = store
        .apps(&stranger.read_access(), true, first_page("50"))
        .await
        .expect("a list");
    assert!(list.items.is_empty());
    assert_eq!(read_app(store, &owner, app.id).await, app);
}

/// Pages list every app once, newest first.
pub async fn apps_are_paged_newest_first(store: &SharedStore) {
    let caller = organization(store).await;
    let mut created = Vec::new();
    for seconds in 0..5 {
        let app = new_app(&caller, seconds);
        created.push(app.id);
        store
            .create_app(&caller, app, Vec::new(), origin(seconds))
            .await
            .expect("an app");
    }
    created.reverse();
    let mut seen = Vec::new();
    let mut request = first_page("2");
    loop {
        let page = store
            .apps(&caller.read_access(), true, request)
            .await
            .expect("a page");
        seen.extend(page.items.iter().map(|app| app.id));
        if !page.has_more {
            break;
        }
        let last = page.items.last().map(|app| *app.id.as_bytes());
        request = PageRequest {
            before: last,
            ..request
        };
    }
    assert_eq!(seen, created);
}

/// Archived apps are listed only on request.
pub async fn archived_apps_are_left_out(store: &SharedStore) {
    let caller = organization(store).await;
    let (present, archived) = (new_app(&caller, 1), new_app(&caller, 2));
    let ids = [archived.id, present.id];
    for app in [present, archived] {
        let created = store.create_app(&caller, app, Vec::new(), origin(1)).await;
        created.expect("an app");
    }
    let archive = AppChange {
        archived: Change::Set(true),
        ..AppChange::default()
    };
    store
        .update_app(&caller, ids[0], archive, Precondition::None, origin(3))
        .await
        .expect("an archived app");
    for (with_archived, expected) in [(true, &ids[..]), (false, &ids[1..])] {
        let page = store
            .apps(&caller.read_access(), with_archived, first_page("50"))
            .await
            .expect("a page");
        let found: Vec<AppId> = page.items.iter().map(|app| app.id).collect();
        assert_eq!(found, expected);
    }
}

/// A secret is stored sealed. The app only shows that the secret is set.
pub async fn secrets_are_stored_sealed_and_can_be_removed(store: &SharedStore) {
    const SECRET: AppSecret = AppSecret::Billing(BillingProvider::Revenuecat);
    let caller = organization(store).await;
    let sealed = SealedSecret::from_bytes(vec![1, 2, 3]);
    let mut new = new_app(&caller, 1);
    new.secrets.insert(AppSecret::SocialReferrerKey);
    let secrets = vec![(AppSecret::SocialReferrerKey, sealed.clone())];
    let app = store
        .create_app(&caller, new, secrets, origin(1))
        .await
        .expect("an app is created");
    let stored = store
        .app_secret(&caller.read_access(), app.id, AppSecret::SocialReferrerKey)
        .await;
    assert_eq!(stored.expect("a lookup"), Some(sealed));

    let change = |change| AppChange {
        secrets: vec![(SECRET, change)],
        ..AppChange::default()
    };
    for bytes in [vec![4], vec![5]] {
        let set = change(Change::Set(SealedSecret::from_bytes(bytes)));
        let outcome = store
            .update_app(&caller, app.id, set, Precondition::None, origin(2))
            .await;
        assert!(outcome.expect("a secret is set").secrets.contains(&SECRET));
    }
    let stored = store
        .app_secret(&caller.read_access(), app.id, SECRET)
        .await
        .expect("a lookup");
    assert_eq!(stored, Some(SealedSecret::from_bytes(vec![5])));

    let reset = change(Change::Reset);
    let outcome = store
        .update_app(&caller, app.id, reset, Precondition::None, origin(3))
        .await;
    assert!(
        !outcome
            .expect("a secret is removed")
            .secrets
            .contains(&SECRET)
    );
    assert_eq!(
        store
            .app_secret(&caller.read_access(), app.id, SECRET)
            .await
            .expect("a lookup"),
        None
    );
    let app = read_app(store, &caller, app.id).await;
    assert_eq!(app.secrets.len(), 1);
}

/// Secrets of another organization's app are not found.
pub async fn another_organization_reads_no_secret(store: &SharedStore) {
    const SECRET: AppSecret = AppSecret::SocialReferrerKey;
    let (owner, stranger) = (organization(store).await, organization(store).await);
    let mut new = new_app(&owner, 1);
    new.secrets.insert(SECRET);
    let secrets = vec![(SECRET, SealedSecret::from_bytes(vec![1]))];
    let app = store
        .create_app(&owner, new, secrets, origin(1))
        .await
        .expect("an app is created");
    let outcome = store
        .app_secret(&stranger.read_access(), app.id, SECRET)
        .await;
    assert_eq!(refusal(outcome), Refusal::AppNotFound);
}

/// A time zone from an older time zone list stays readable.
pub async fn an_unlisted_time_zone_is_still_readable(store: &SharedStore) {
    let caller = organization(store).await;
    let mut new = new_app(&caller, 1);
    new.timezone = Timezone::from_stored("Mars/Olympus").expect("a well-formed name");
    let created = store
        .create_app(&caller, new, Vec::new(), origin(1))
        .await
        .expect("an app is created");
    let found = store.app(&caller.read_access(), created.id).await;
    assert_eq!(found.expect("the app").timezone.as_str(), "Mars/Olympus");
}

/// Callers with analytics read access can read the time zones of their own organization's apps
/// only.
pub async fn analytics_readers_can_read_the_time_zone(store: &SharedStore) {
    let (owner, stranger) = (organization(store).await, organization(store).await);
    let mut new = new_app(&owner, 1);
    new.timezone = Timezone::parse("Europe/Berlin").expect("a zone");
    let created = store
        .create_app(&owner, new, Vec::new(), origin(1))
        .await
        .expect("an app is created");
    let zone = async |caller: &Authorized<AppsWrite>| {
        let reader = caller.read_access().analytics_access();
        store.app_timezone(&reader, created.id).await
    };
    assert_eq!(
        zone(&owner).await.expect("a zone").as_str(),
        "Europe/Berlin"
    );
    assert_eq!(refusal(zone(&stranger).await), Refusal::AppNotFound);
}

/// Three concurrent changes to three fields are all stored.
pub async fn concurrent_changes_lose_nothing(store: &SharedStore) {
    let caller = organization(store).await;
    let app = app(store, &caller).await;
    let changes = [
        AppChange {
            web_events_enabled: Change::Set(true),
            ..AppChange::default()
        },
        AppChange {
            sdk_enabled: Change::Set(false),
            ..AppChange::default()
        },
        AppChange {
            skan_test_signals: Change::Set(true),
            ..AppChange::default()
        },
    ];
    let update = |change: &AppChange| {
        store.update_app(
            &caller,
            app.id,
            change.clone(),
            Precondition::None,
            origin(2),
        )
    };
    let outcomes = join3(
        update(&changes[0]),
        update(&changes[1]),
        update(&changes[2]),
    )
    .await;
    assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
    let stored = read_app(store, &caller, app.id).await;
    assert!(stored.web_events_enabled && !stored.sdk.enabled && stored.skan_test_signals);
    assert_eq!(stored.tag(), "4");
}

/// Callers with analytics read access can list their organization's app names, newest first.
pub async fn analytics_readers_can_list_app_names(store: &SharedStore) {
    let (caller, other) = (organization(store).await, organization(store).await);
    let (first, second) = (app(store, &caller).await, app(store, &caller).await);
    app(store, &other).await;
    let reader = caller.read_access().analytics_access();
    let names = store.app_names(&reader).await.expect("a list");
    let ids: Vec<_> = names.iter().map(|app| app.id).collect();
    assert_eq!(ids, [second.id, first.id]);
    assert_eq!(names[1].name, first.name);
    assert_eq!(names[1].timezone, first.timezone);
}

fn rotation(environment: Environment, successor: &str, days: u64) -> SdkKeyRotation {
    SdkKeyRotation {
        environment,
        successor: successor.to_owned(),
        overlap: Duration::from_hours(24 * days),
    }
}

async fn sdk_keys(store: &SharedStore, caller: &Authorized<AppsWrite>, app: &App) -> Vec<SdkKey> {
    let keys = store.sdk_keys(&caller.read_access(), app.id).await;
    keys.expect("the keys")
}

/// A replaced key names the same app until its end, and can be revoked earlier.
pub async fn an_sdk_key_is_replaced_with_an_overlap(store: &SharedStore) {
    let caller = organization(store).await;
    let created = app(store, &caller).await;
    let old = created.sdk.live_key.clone();
    let first = format!("{old}_first");
    let rotated = store
        .rotate_sdk_key(
            &caller,
            created.id,
            rotation(Environment::Live, &first, 2),
            origin(10),
        )
        .await
        .expect("the key is rotated");
    assert_eq!(rotated.sdk.live_key, first);
    assert_eq!(rotated.sdk.test_key, created.sdk.test_key);
    assert_eq!(read_app(store, &caller, created.id).await, rotated);
    for (key, end) in [(&first, None), (&old, Some(at(10 + 2 * 86_400)))] {
        let found = store.sdk_app(key).await.expect("a lookup");
        let found = found.expect("both keys are known");
        assert_eq!((found.app.id, found.key.expires_at), (created.id, end));
    }
    for (seconds, expected) in [(20, 20), (15, 20)] {
        let noted = store.note_sdk_key_use(created.id, &old, at(seconds)).await;
        noted.expect("the use is recorded");
        let keys = sdk_keys(store, &caller, &created).await;
        let texts: Vec<&str> = keys.iter().map(|key| key.text.as_str()).collect();
        assert_eq!(texts, [&first, &old, &created.sdk.test_key]);
        assert_eq!(keys[1].last_used_at, Some(at(expected)));
        assert_eq!(keys[0].last_used_at, None);
    }
    for seconds in [30, 31] {
        let revoked = store.revoke_sdk_key(&caller, created.id, old.clone(), origin(seconds));
        revoked.await.expect("a replaced key ends");
    }
    let keys = sdk_keys(store, &caller, &created).await;
    assert_eq!(keys[1].expires_at, Some(at(30)), "revoked once");
    let refused = store.revoke_sdk_key(&caller, created.id, first, origin(32));
    assert_eq!(refusal(refused.await), Refusal::SdkKeyNotFound);
    let log = store
        .audit_log(&caller.read_access(), Some(created.id), first_page("100"))
        .await;
    let entries = log.expect("a page").items.into_iter();
    let fields: Vec<String> = entries
        .filter(|entry| entry.action == Action::AppUpdated)
        .flat_map(|entry| entry.changes)
        .map(|change| change.field)
        .collect();
    assert_eq!(fields, ["sdk.liveKey.replaced", "sdk.liveKey"]);
}

/// Rotations at the same time follow each other, up to the limit of valid keys.
pub async fn valid_sdk_keys_are_limited(store: &SharedStore) {
    let caller = organization(store).await;
    let created = app(store, &caller).await;
    let key = |name: &str| format!("{}_{name}", created.sdk.test_key);
    let rotate = async |name: &str, days| {
        let rotation = rotation(Environment::Test, &key(name), days);
        let rotated = store.rotate_sdk_key(&caller, created.id, rotation, origin(10));
        rotated.await
    };
    let together = join3(rotate("a", 9), rotate("b", 9), rotate("c", 9)).await;
    assert!(together.iter().all(Result::is_ok), "{together:?}");
    rotate("d", 9).await.expect("the fifth valid key");
    assert_eq!(refusal(rotate("e", 9).await), Refusal::TooManySdkKeys);
    rotate("f", 0).await.expect("the replaced key ends at once");
    let keys = sdk_keys(store, &caller, &created).await;
    let tests: Vec<_> = keys
        .iter()
        .filter(|one| one.environment == Environment::Test)
        .collect();
    assert_eq!(tests.len(), 6);
    let current: Vec<_> = tests
        .iter()
        .filter(|one| one.expires_at.is_none())
        .collect();
    assert_eq!(current.len(), 1);
    assert_eq!(current[0].text, key("f"));
    for (number, seconds) in (0..ENDED_SDK_KEYS_KEPT_MAX + 3).zip(20..) {
        let rotation = rotation(Environment::Test, &key(&format!("g{number}")), 0);
        let rotated = store.rotate_sdk_key(&caller, created.id, rotation, origin(seconds));
        rotated.await.expect("a rotation");
    }
    let keys = sdk_keys(store, &caller, &created).await;
    let is_kept = |name: &str| keys.iter().any(|one| one.text == key(name));
    assert!(!is_kept("d") && !is_kept("g0") && is_kept("g4"), "{keys:?}");
    assert!(is_kept("a") && is_kept("b") && is_kept("c"), "still valid");
}

/// Another organization neither sees nor changes the keys.
pub async fn sdk_keys_of_another_organization_are_not_found(store: &SharedStore) {
    let (caller, foreign) = (organization(store).await, organization(store).await);
    let created = app(store, &caller).await;
    let listed = store.sdk_keys(&foreign.read_access(), created.id).await;
    assert_eq!(refusal(listed), Refusal::AppNotFound);
    let rotation = rotation(Environment::Live, "pk_live_foreign", 1);
    let rotated = store.rotate_sdk_key(&foreign, created.id, rotation, origin(3));
    assert_eq!(refusal(rotated.await), Refusal::AppNotFound);
    let own = created.sdk.live_key.clone();
    let revoked = store.revoke_sdk_key(&foreign, created.id, own, origin(4));
    assert_eq!(refusal(revoked.await), Refusal::AppNotFound);
    assert_eq!(sdk_keys(store, &caller, &created).await.len(), 2);
}
