//! Apps.

use super::fixtures::{
    SharedStore, app, at, first_page, join3, name, new_app, organization, origin, refusal,
};
use tributary_domain::access::{AppsWrite, Authorized};
use tributary_domain::app::{AppChange, AppSecret, BillingProvider, FraudPolicy, SdkRevenue};
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
        revenue_events: Change::Set(vec!["coins".to_owned()]),
        click_window_hours: Change::Set(24),
        probabilistic_ios: Change::Set(true),
        probabilistic_android: Change::Set(false),
        probabilistic_window_hours: Change::Set(6),
        fraud: Change::Set(FraudPolicy::Hold),
        qualified_trial_enabled: Change::Set(true),
        qualified_trial_delay_hours: Change::Set(48),
        skan_test_signals: Change::Set(true),
        alert_webhook_url: Change::Set(HttpsUrl::parse("https://example.com/a").expect("a URL")),
        keeps_previous_secret: false,
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

/// Every field survives storing, when it is made and when it is changed.
pub async fn an_app_comes_back_as_it_was_stored(store: &SharedStore) {
    let caller = organization(store).await;
    let new = new_app(&caller, 1);
    let made = store
        .create_app(&caller, new.clone(), Vec::new(), origin(1))
        .await;
    assert_eq!(made.expect("an app is made"), new);
    assert_eq!(
        store
            .app(&caller.read_access(), new.id)
            .await
            .expect("the app"),
        new
    );

    let changed = store
        .update_app(&caller, new.id, everything(), Precondition::None, origin(9))
        .await
        .expect("the app is changed");
    assert_eq!(changed.updated_at, at(9));
    assert_eq!(changed.created_at, at(1));
    assert_eq!(changed.timezone.as_str(), "Asia/Kathmandu");
    assert_eq!(
        store
            .app(&caller.read_access(), new.id)
            .await
            .expect("the app"),
        changed
    );
}

/// Two changes of different fields add up.
pub async fn a_change_is_decided_on_what_is_stored(store: &SharedStore) {
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
    let stored = store
        .app(&caller.read_access(), app.id)
        .await
        .expect("the app");
    assert!(stored.web_events_enabled);
    assert!(!stored.sdk.enabled);
    assert_eq!(stored.tag(), "3");
}

/// `If-Match` is obeyed.
pub async fn an_old_version_is_not_changed(store: &SharedStore) {
    let caller = organization(store).await;
    let app = app(store, &caller).await;
    let old = Precondition::AnyOf(vec!["7".to_owned()]);
    let outcome = store
        .update_app(&caller, app.id, everything(), old, origin(2))
        .await;
    assert_eq!(refusal(outcome), Refusal::VersionConflict);
    assert_eq!(
        store
            .app(&caller.read_access(), app.id)
            .await
            .expect("the app"),
        app
    );
}

/// Saying the same again is no change: no new version, no line in the log.
pub async fn an_unchanged_app_is_not_written(store: &SharedStore) {
    let caller = organization(store).await;
    let app = app(store, &caller).await;
    let lines = async || {
        let log = store
            .audit_log(&caller.read_access(), None, first_page("500"))
            .await;
        log.expect("the log").items.len()
    };
    let before = lines().await;
    let same = AppChange {
        archived: Change::Set(false),
        ..AppChange::default()
    };
    let outcome = store
        .update_app(&caller, app.id, same, Precondition::None, origin(5))
        .await;
    assert_eq!(outcome.expect("nothing to do"), app);
    assert_eq!(lines().await, before);
}

/// Postbacks name nothing but the App Store id, so it can lead to one app only.
pub async fn an_app_store_id_belongs_to_one_app_of_the_instance(store: &SharedStore) {
    let (one, other) = (organization(store).await, organization(store).await);
    let first = app(store, &one).await;
    let second = app(store, &other).await;
    let take = |caller, app, id| {
        store.update_app(caller, app, app_store_id(id), Precondition::None, origin(2))
    };
    take(&one, first.id, "42").await.expect("the id is free");
    assert_eq!(
        refusal(take(&other, second.id, "42").await),
        Refusal::StoreIdTaken
    );
    assert_eq!(
        store
            .app(&other.read_access(), second.id)
            .await
            .expect("the app"),
        second
    );
    take(&one, first.id, "42")
        .await
        .expect("it is its own already");
}

/// A host's links and association files are one app's.
pub async fn a_link_domain_belongs_to_one_app_of_the_instance(store: &SharedStore) {
    let (one, other) = (organization(store).await, organization(store).await);
    let first = app(store, &one).await;
    let second = app(store, &other).await;
    let take = |caller, app| {
        store.update_app(
            caller,
            app,
            link_domain("go.example.com"),
            Precondition::None,
            origin(2),
        )
    };
    take(&one, first.id).await.expect("the domain is free");
    assert_eq!(refusal(take(&other, second.id).await), Refusal::DomainTaken);
}

/// Giving a name up frees it for others.
pub async fn a_name_given_up_is_free_again(store: &SharedStore) {
    let caller = organization(store).await;
    let (one, two) = (app(store, &caller).await, app(store, &caller).await);
    let update =
        |app, change| store.update_app(&caller, app, change, Precondition::None, origin(2));
    update(one.id, app_store_id("42"))
        .await
        .expect("the id is free");
    update(one.id, link_domain("go.example.com"))
        .await
        .expect("the domain is free");
    update(one.id, app_store_id("43"))
        .await
        .expect("another id");
    let none = AppChange {
        link_domain: Change::Reset,
        ..AppChange::default()
    };
    update(one.id, none).await.expect("no domain");
    update(two.id, app_store_id("42"))
        .await
        .expect("the id is free again");
    update(two.id, link_domain("go.example.com"))
        .await
        .expect("the domain is free again");
}

/// A creation that is refused half way leaves no half.
pub async fn a_refused_creation_leaves_nothing(store: &SharedStore) {
    let caller = organization(store).await;
    let first = app(store, &caller).await;
    let change = app_store_id("42");
    let outcome = store
        .update_app(&caller, first.id, change, Precondition::None, origin(2))
        .await;
    outcome.expect("the id is free");
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

/// Foreign and missing are the same.
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
    assert_eq!(
        store
            .app(&owner.read_access(), app.id)
            .await
            .expect("the app"),
        app
    );
}

/// Newest first, every app once.
pub async fn apps_are_paged_newest_first(store: &SharedStore) {
    let caller = organization(store).await;
    let mut made = Vec::new();
    for seconds in 0..5 {
        let app = new_app(&caller, seconds);
        made.push(app.id);
        store
            .create_app(&caller, app, Vec::new(), origin(seconds))
            .await
            .expect("an app");
    }
    made.reverse();
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
    assert_eq!(seen, made);
}

/// Archived apps are listed only when they are asked for.
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

/// A secret is stored as it was sealed; what the app shows is that it is set.
pub async fn secrets_are_kept_sealed_and_removed_by_null(store: &SharedStore) {
    const SECRET: AppSecret = AppSecret::Billing(BillingProvider::Revenuecat);
    let caller = organization(store).await;
    let sealed = SealedSecret::from_bytes(vec![1, 2, 3]);
    let mut new = new_app(&caller, 1);
    new.secrets.insert(AppSecret::SocialReferrerKey);
    let secrets = vec![(AppSecret::SocialReferrerKey, sealed.clone())];
    let app = store
        .create_app(&caller, new, secrets, origin(1))
        .await
        .expect("an app is made");
    let stored = store
        .app_secret(&caller.read_access(), app.id, AppSecret::SocialReferrerKey)
        .await;
    assert_eq!(stored.expect("a look-up"), Some(sealed));

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
        .expect("a look-up");
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
            .expect("a look-up"),
        None
    );
    let app = store
        .app(&caller.read_access(), app.id)
        .await
        .expect("the app");
    assert_eq!(app.secrets.len(), 1);
}

/// The secret of a foreign app is that of no app.
pub async fn another_organization_reads_no_secret(store: &SharedStore) {
    const SECRET: AppSecret = AppSecret::SocialReferrerKey;
    let (owner, stranger) = (organization(store).await, organization(store).await);
    let mut new = new_app(&owner, 1);
    new.secrets.insert(SECRET);
    let secrets = vec![(SECRET, SealedSecret::from_bytes(vec![1]))];
    let app = store
        .create_app(&owner, new, secrets, origin(1))
        .await
        .expect("an app is made");
    let outcome = store
        .app_secret(&stranger.read_access(), app.id, SECRET)
        .await;
    assert_eq!(refusal(outcome), Refusal::AppNotFound);
}

/// What was stored under an older list of zones stays readable.
pub async fn a_zone_that_is_no_longer_listed_comes_back(store: &SharedStore) {
    let caller = organization(store).await;
    let mut new = new_app(&caller, 1);
    new.timezone = Timezone::from_stored("Mars/Olympus").expect("a well-formed name");
    let made = store
        .create_app(&caller, new, Vec::new(), origin(1))
        .await
        .expect("an app is made");
    let found = store.app(&caller.read_access(), made.id).await;
    assert_eq!(found.expect("the app").timezone.as_str(), "Mars/Olympus");
}

/// Who reads figures learns the zone of their days, and of no other organization's.
pub async fn the_zone_of_an_apps_days_is_known_to_readers_of_figures(store: &SharedStore) {
    let (owner, stranger) = (organization(store).await, organization(store).await);
    let mut new = new_app(&owner, 1);
    new.timezone = Timezone::parse("Europe/Berlin").expect("a zone");
    let made = store
        .create_app(&owner, new, Vec::new(), origin(1))
        .await
        .expect("an app is made");
    let zone = async |caller: &Authorized<AppsWrite>| {
        let reader = caller.read_access().analytics_access();
        store.app_timezone(&reader, made.id).await
    };
    assert_eq!(
        zone(&owner).await.expect("a zone").as_str(),
        "Europe/Berlin"
    );
    assert_eq!(refusal(zone(&stranger).await), Refusal::AppNotFound);
}

/// Three changes of three fields at the same moment: all three are there afterwards.
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
    let stored = store
        .app(&caller.read_access(), app.id)
        .await
        .expect("the app");
    assert!(stored.web_events_enabled && !stored.sdk.enabled && stored.skan_test_signals);
    assert_eq!(stored.tag(), "4");
}

/// Who reads figures knows whose they are, newest first, and nobody else's.
pub async fn the_names_of_apps_are_known_to_readers_of_figures(store: &SharedStore) {
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
