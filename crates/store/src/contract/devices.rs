//! Devices and the attribution of their installs.

use super::fixtures::{SharedStore, at, join3, organization, refusal};
use super::sdk_fixtures::{event, payment, tenant};
use tributary_domain::access::{AnalyticsRead, Authorized, Environment};
use tributary_domain::attribution::{MatchState, MatchType};
use tributary_domain::device::{
    AdvertisingId, Consent, DeviceKey, Platform, Screen, Tracking, Traits,
};
use tributary_domain::install::ConfigureCommand;
use tributary_domain::refusal::Refusal;

fn device(text: &str) -> DeviceKey {
    DeviceKey::parse(text).expect("a device id")
}

/// An SDK key identifies its app and environment; an unknown key identifies none.
pub async fn an_sdk_key_names_its_app(store: &SharedStore) {
    let tenant = tenant(store).await;
    let sdk = tenant.app.sdk.clone();
    for (key, environment) in [
        (sdk.live_key, Environment::Live),
        (sdk.test_key, Environment::Test),
    ] {
        let found = store.sdk_app(&key).await.expect("keys are read");
        let found = found.expect("the key is known");
        assert_eq!(
            (found.app, found.environment),
            (tenant.app.clone(), environment)
        );
        assert!(found.social_referrer_key.is_none());
    }
    assert!(
        store
            .sdk_app("pk_live_unknown")
            .await
            .expect("keys are read")
            .is_none()
    );
}

/// The first `configure` call records an install; later calls do not.
pub async fn the_first_call_records_one_install(store: &SharedStore) {
    let tenant = tenant(store).await;
    let click = tenant.record_click(10).await;
    let first = tenant
        .call_configure(tenant.configure_with_click("device-1", &click, 60))
        .await;
    assert!(first.is_first_open);
    assert_eq!(first.attribution.decision.match_type, MatchType::ClickId);
    let again = tenant
        .call_configure(tenant.configure("device-1", 90))
        .await;
    assert!(!again.is_first_open);
    assert_eq!(again.attribution, first.attribution, "the decision stays");
    let expected = [("install".to_owned(), Some("network_a".to_owned()))];
    assert_eq!(tenant.log("device-1").await, expected);
    let figures = tenant.figures_of("network_a").await;
    assert_eq!(
        (figures.clicks, figures.installs, figures.organic_installs),
        (1, 1, 0)
    );
}

/// Identical concurrent calls record one install.
pub async fn concurrent_calls_record_one_install(store: &SharedStore) {
    let tenant = tenant(store).await;
    for round in 0..10 {
        let click = tenant.record_click(10 + round).await;
        let key = format!("device-{round}");
        let call = || store.configure(tenant.configure_with_click(&key, &click, 60 + round));
        let outcomes = join3(call(), call(), call()).await;
        let first_opens = outcomes
            .into_iter()
            .map(|outcome| outcome.expect("a call succeeds"))
            .filter(|configured| {
                assert_eq!(configured.attribution.decision.click, Some(click.id));
                configured.is_first_open
            })
            .count();
        assert_eq!(first_opens, 1);
    }
    let figures = tenant.figures_of("network_a").await;
    assert_eq!((figures.installs, figures.events), (10, 10));
}

/// When several installs claim one click concurrently, only one of them gets it.
pub async fn a_click_is_given_to_one_install(store: &SharedStore) {
    let tenant = tenant(store).await;
    let click = tenant.record_click(10).await;
    let call = |key: &'static str| store.configure(tenant.configure_with_click(key, &click, 60));
    let outcomes = join3(call("device-1"), call("device-2"), call("device-3")).await;
    let winners = outcomes
        .into_iter()
        .map(|outcome| outcome.expect("a call succeeds").attribution.decision)
        .filter(|decision| {
            if decision.click.is_none() {
                assert_eq!(decision.state, MatchState::DuplicateClick);
            }
            decision.click == Some(click.id)
        })
        .count();
    assert_eq!(winners, 1);
    let all = tenant.figures().await;
    let installs: i64 = all.iter().map(|(_, figures)| figures.installs).sum();
    assert_eq!(
        installs, 3,
        "an install that did not get the click still counts"
    );
}

/// A test device may match any click but claims none. Its figures are separate.
pub async fn a_test_device_claims_no_click(store: &SharedStore) {
    let tenant = tenant(store).await;
    let click = tenant.record_click(10).await;
    let in_test = |key: &str| ConfigureCommand {
        environment: Environment::Test,
        ..tenant.configure_with_click(key, &click, 60)
    };
    let live = |key: &str| tenant.configure_with_click(key, &click, 60);
    for command in [
        in_test("device-1"),
        live("device-2"),
        in_test("device-3"),
        in_test("device-2"),
    ] {
        let configured = tenant.call_configure(command).await;
        assert!(configured.is_first_open);
        assert_eq!(configured.attribution.decision.click, Some(click.id));
    }
    assert_eq!(tenant.figures_of("network_a").await.installs, 1);
    let reader = tenant.test_reader();
    let figures = store.figures_by_network(&reader, tenant.app.id, (at(0), at(9_000)));
    let figures = figures.await.expect("figures are read");
    let seen: Vec<_> = figures
        .iter()
        .map(|(name, f)| (name.as_str(), f.installs, f.clicks))
        .collect();
    assert_eq!(seen, [("network_a", 3, 0)]);
    let unknown = store
        .device(&reader, tenant.app.id, device("device-2"))
        .await;
    assert!(unknown.is_ok(), "device-2 also called with the test key");
    assert_eq!(
        refusal(
            store
                .device(&tenant.reader, tenant.app.id, device("device-1"))
                .await
        ),
        Refusal::DeviceNotFound
    );
}

/// One candidate click from the same address is a probabilistic match; two equally good ones are
/// not.
pub async fn a_probabilistic_match_is_found_by_address(store: &SharedStore) {
    let tenant = tenant(store).await;
    let click = tenant.record_click(10).await;
    let one = tenant
        .call_configure(tenant.configure_from_address("device-1", 60))
        .await;
    assert_eq!(
        one.attribution.decision.match_type,
        MatchType::Probabilistic
    );
    assert_eq!(one.attribution.decision.click, Some(click.id));
    let none = tenant
        .call_configure(tenant.configure_from_address("device-2", 70))
        .await;
    assert_eq!(none.attribution.decision.match_type, MatchType::Organic);
    tenant.record_click(80).await;
    tenant.record_click(81).await;
    let two = tenant
        .call_configure(tenant.configure_from_address("device-3", 90))
        .await;
    assert_eq!(two.attribution.decision.match_type, MatchType::Organic);
    let ambiguous = two
        .attribution
        .decision
        .candidates
        .iter()
        .filter(|candidate| {
            candidate.rejection == Some(tributary_domain::attribution::Rejection::Ambiguous)
        });
    assert_eq!(ambiguous.count(), 2);
}

/// A click with the device's advertising id is found even if the address differs.
pub async fn a_click_is_found_by_advertising_id(store: &SharedStore) {
    use tributary_domain::vocabulary::digest::Digest;
    let tenant = tenant(store).await;
    let mut click = tenant.click(10);
    click.advertising_hash = Some(Digest::of(b"gaid"));
    store
        .record_click(click.clone())
        .await
        .expect("a click is recorded");
    let command = ConfigureCommand {
        advertising_hash: Some(Digest::of(b"gaid")),
        ..tenant.configure("device-1", 60)
    };
    let decision = tenant.call_configure(command).await.attribution.decision;
    assert_eq!(
        (decision.click, decision.confidence),
        (Some(click.id), Some(95))
    );
}

/// Better evidence replaces the decision, moves earlier events and figures, and releases the old
/// click.
pub async fn better_evidence_moves_decision_events_and_figures(store: &SharedStore) {
    let tenant = tenant(store).await;
    let nearby = tenant.record_click(10).await;
    let mut right = tenant.click(20);
    right.network = Some(tributary_domain::integration::Network::C);
    right.address_hash = None;
    store
        .record_click(right.clone())
        .await
        .expect("a click is recorded");
    let first = tenant
        .call_configure(tenant.configure_from_address("device-1", 60))
        .await;
    assert_eq!(first.attribution.decision.click, Some(nearby.id));
    let events = vec![event("e1", "sign_up", 70), payment("e2", "5", "USD", 71)];
    store
        .accept_sdk_events(tenant.arrival("device-1", 72), events)
        .await
        .expect("events are accepted");
    assert_eq!(
        tenant.figures_of("network_a").await.revenue_micros,
        5_000_000
    );

    let better = tenant
        .call_configure(tenant.configure_with_click("device-1", &right, 80))
        .await;
    assert!(!better.is_first_open);
    assert_eq!(better.attribution.id, first.attribution.id);
    assert_eq!(better.attribution.revision, 2);
    let superseded = better
        .attribution
        .supersedes
        .map(|earlier| earlier.match_type);
    assert_eq!(superseded, Some(MatchType::Probabilistic));
    let moved = Some("network_c".to_owned());
    let expected = ["purchase", "sign_up", "install"].map(|name| (name.to_owned(), moved.clone()));
    assert_eq!(tenant.log("device-1").await, expected);
    let (before, after) = (
        tenant.figures_of("network_a").await,
        tenant.figures_of("network_c").await,
    );
    assert_eq!(
        (
            before.clicks,
            before.installs,
            before.events,
            before.revenue_micros
        ),
        (1, 0, 0, 0)
    );
    assert_eq!(before.paying_devices, 0);
    assert_eq!(
        (
            after.clicks,
            after.installs,
            after.events,
            after.revenue_micros
        ),
        (1, 1, 3, 5_000_000)
    );
    assert_eq!(
        (after.sign_ups, after.purchases, after.paying_devices),
        (1, 1, 1)
    );
}

/// A released click can be claimed again. A deterministic decision is never replaced.
pub async fn a_deterministic_decision_is_not_replaced(store: &SharedStore) {
    let tenant = tenant(store).await;
    let nearby = tenant.record_click(10).await;
    let mut right = tenant.click(20);
    right.address_hash = None;
    store
        .record_click(right.clone())
        .await
        .expect("a click is recorded");
    tenant
        .call_configure(tenant.configure_from_address("device-1", 60))
        .await;
    let better = tenant
        .call_configure(tenant.configure_with_click("device-1", &right, 80))
        .await;
    let other = tenant
        .call_configure(tenant.configure_with_click("device-2", &nearby, 90))
        .await;
    assert_eq!(
        other.attribution.decision.click,
        Some(nearby.id),
        "the click is available again"
    );
    let unchanged = tenant
        .call_configure(tenant.configure_with_click("device-1", &nearby, 95))
        .await;
    let decided = |one: &tributary_domain::install::Attribution| (one.decision.click, one.revision);
    let (unchanged, better) = (&unchanged.attribution, &better.attribution);
    assert_eq!(
        decided(unchanged),
        decided(better),
        "a deterministic decision is never replaced"
    );
    let refused = unchanged
        .decision
        .candidates
        .last()
        .and_then(|one| one.rejection);
    let reason = refused.map(tributary_domain::attribution::Rejection::as_str);
    assert_eq!(reason, Some("duplicate_click"), "the rejection is recorded");
}

/// Events sent before the first `configure` call are credited by that call.
pub async fn events_before_the_first_call_are_credited_with_it(store: &SharedStore) {
    let tenant = tenant(store).await;
    store
        .accept_sdk_events(
            tenant.arrival("device-1", 20),
            vec![event("e1", "search", 20)],
        )
        .await
        .expect("events are accepted");
    assert_eq!(tenant.log("device-1").await, [("search".to_owned(), None)]);
    assert_eq!(tenant.figures_of("").await.events, 1);
    let click = tenant.record_click(10).await;
    tenant
        .call_configure(tenant.configure_with_click("device-1", &click, 60))
        .await;
    assert_eq!(tenant.figures_of("").await.events, 0);
    assert_eq!(tenant.figures_of("network_a").await.events, 2);
}

/// Every field of a device is stored, and fields that a later call omits keep their values.
pub async fn a_device_is_read_as_it_was_described(store: &SharedStore) {
    let tenant = tenant(store).await;
    let gaid = AdvertisingId::parse("6f9619ff-8b86-4011-b42d-00c04fc964ff");
    let consent = Consent {
        ad_user_data: Some(true),
        ad_personalization: Some(false),
        tracking: Some(Tracking::Authorized),
    };
    let traits = Traits {
        platform: Platform::Ios,
        os_version: Some("17.5".to_owned()),
        model: Some("iPhone15,2".to_owned()),
        manufacturer: Some("Apple".to_owned()),
        app_version: Some("1".to_owned()),
        bundle_id: Some("com.example".to_owned()),
        locale: Some("de_DE".to_owned()),
        timezone: Some("Europe/Berlin".to_owned()),
        screen: Screen::new(390, 844, 300),
        sdk_version: Some("0.1".to_owned()),
    };
    let command = ConfigureCommand {
        traits: traits.clone(),
        advertising_id: gaid.clone(),
        idfv: Some("idfv".to_owned()),
        consent,
        ..tenant.configure("device-1", 60)
    };
    let configured = tenant.call_configure(command).await;
    let details = tenant.device_details("device-1").await;
    assert_eq!(details.state.attribution, Some(configured.attribution));
    let found = details.state.device.expect("the device exists");
    assert_eq!(
        (&found.traits, &found.advertising_id, found.consent),
        (&traits, &gaid, consent)
    );
    assert_eq!((found.first_seen_at, found.last_seen_at), (at(60), at(60)));
    assert_eq!(
        (found.country.as_deref(), found.idfv.as_deref()),
        (Some("DE"), Some("idfv"))
    );
    assert_eq!(details.events.len(), 1);

    let silent = ConfigureCommand {
        traits: Traits {
            os_version: Some("18.0".to_owned()),
            model: None,
            ..tenant.configure("x", 0).traits
        },
        ..tenant.configure("device-1", 90)
    };
    tenant.call_configure(silent).await;
    let found = tenant
        .device_details("device-1")
        .await
        .state
        .device
        .expect("the device exists");
    let expected = (Platform::Ios, Some("18.0"), Some("iPhone15,2"));
    let traits = &found.traits;
    assert_eq!(
        (
            traits.platform,
            traits.os_version.as_deref(),
            traits.model.as_deref()
        ),
        expected
    );
    assert_eq!(
        found.advertising_id, None,
        "an id that is no longer sent is removed"
    );
    assert_eq!((found.first_seen_at, found.last_seen_at), (at(60), at(90)));
}

/// A web page with the SDK records no install and claims no click.
pub async fn a_web_page_records_no_install(store: &SharedStore) {
    let tenant = tenant(store).await;
    let click = tenant.record_click(10).await;
    let mut page = tenant.configure_with_click("page-1", &click, 60);
    page.traits.platform = Platform::Web;
    let configured = tenant.call_configure(page).await;
    assert_eq!(configured.attribution.decision.click, Some(click.id));
    assert!(tenant.log("page-1").await.is_empty());
    let phone = tenant
        .call_configure(tenant.configure_with_click("device-1", &click, 70))
        .await;
    assert_eq!(phone.attribution.decision.click, Some(click.id));
}

/// A link that opened the app without a redirect is recorded as a click and may win the
/// attribution.
pub async fn a_link_that_opened_the_app_is_a_click(store: &SharedStore) {
    let tenant = tenant(store).await;
    let opened = tenant.click(60);
    let command = ConfigureCommand {
        app_link_click: Some(opened.clone()),
        ..tenant.configure("device-1", 60)
    };
    let configured = tenant.call_configure(command).await;
    assert_eq!(configured.attribution.decision.click, Some(opened.id));
    assert_eq!(tenant.figures_of("network_a").await.clicks, 1);
}

/// Other organizations find no device, and an unknown device is not found.
pub async fn another_organization_finds_no_device(store: &SharedStore) {
    let tenant = tenant(store).await;
    tenant
        .call_configure(tenant.configure("device-1", 60))
        .await;
    let stranger = organization(store).await;
    let stranger: Authorized<AnalyticsRead> = Authorized::operator(stranger.organization());
    let read = store
        .device(&stranger, tenant.app.id, device("device-1"))
        .await;
    assert_eq!(refusal(read), Refusal::AppNotFound);
    let never = store
        .device(&tenant.reader, tenant.app.id, device("never"))
        .await;
    assert_eq!(refusal(never), Refusal::DeviceNotFound);
}
