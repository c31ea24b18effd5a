//! Conversion-value configurations.

use super::fixtures::{SharedStore, app, at, organization, origin, refusal};
use tributary_domain::access::Environment;
use tributary_domain::app::{App, AppChange};
use tributary_domain::refusal::Refusal;
use tributary_domain::skan::{
    CoarseValue, Condition, Configuration, ConversionValue, Document, LockOn, Window,
};
use tributary_domain::vocabulary::change::Change;
use tributary_domain::vocabulary::currency::Currency;
use tributary_domain::vocabulary::money::Amount;
use tributary_domain::vocabulary::revision::Precondition;

pub(super) fn document(fine_value: u8) -> Document {
    let condition = Condition {
        event: "purchase \"é\"".to_owned(),
        min_count: Some(1),
        max_count: None,
        min_revenue: Some(Amount::from_micros(9_007_199_254_740_993)),
        max_revenue: None,
    };
    let value = |fine_value| ConversionValue {
        name: "Paid".to_owned(),
        fine_value,
        coarse_value: CoarseValue::High,
        lock: true,
        conditions: vec![condition.clone()],
    };
    let window = |index, lock_on, fine_value| Window {
        index,
        enabled: index != 2,
        lock_on,
        values: vec![value(fine_value)],
    };
    Document {
        enabled: true,
        currency: Currency::parse("JPY").expect("a currency"),
        accept_test_signals: false,
        windows: vec![
            window(0, Some(LockOn::FineValue(63)), Some(fine_value)),
            window(1, Some(LockOn::CoarseValue(CoarseValue::Medium)), None),
            window(2, Some(LockOn::Event("search".to_owned())), None),
        ],
    }
}

/// An app that was never configured has a disabled document without windows, with version 0.
pub async fn never_configured_is_version_zero(store: &SharedStore) {
    let caller = organization(store).await;
    let app = app(store, &caller).await;
    let found = store
        .skan(&caller.read_access(), app.id)
        .await
        .expect("a configuration");
    assert_eq!(found, Configuration::never_configured());
}

/// Every field is stored, with amounts in micro-units.
pub async fn a_document_is_read_as_it_was_stored(store: &SharedStore) {
    let caller = organization(store).await;
    let app = app(store, &caller).await;
    let put = store
        .put_skan(&caller, app.id, document(40), Precondition::None, origin(3))
        .await
        .expect("the document is stored");
    assert_eq!(put.document, document(40));
    assert_eq!((put.version, put.updated_at), (1, Some(at(3))));
    assert_eq!(
        store
            .skan(&caller.read_access(), app.id)
            .await
            .expect("a configuration"),
        put
    );
}

/// A currency from an older currency list stays readable.
pub async fn an_unlisted_currency_is_still_readable(store: &SharedStore) {
    let caller = organization(store).await;
    let app = app(store, &caller).await;
    let document = Document {
        currency: Currency::from_stored("BGN").expect("three letters"),
        ..document(40)
    };
    store
        .put_skan(&caller, app.id, document, Precondition::None, origin(3))
        .await
        .expect("the document is stored");
    let found = store.skan(&caller.read_access(), app.id).await;
    let found = found.expect("a configuration");
    assert_eq!(found.document.currency.as_str(), "BGN");
}

/// A changed document creates a version with its time; an unchanged document creates none.
pub async fn versions_are_kept_and_an_equal_document_creates_none(store: &SharedStore) {
    let caller = organization(store).await;
    let app = app(store, &caller).await;
    for (seconds, fine) in [(3, 40), (4, 40), (5, 41)] {
        let outcome = store
            .put_skan(
                &caller,
                app.id,
                document(fine),
                Precondition::None,
                origin(seconds),
            )
            .await;
        outcome.expect("the document is stored");
    }
    let versions = store
        .skan_versions(&caller.read_access(), app.id)
        .await
        .expect("a list");
    assert_eq!(versions, [(1, at(3)), (2, at(5))]);
    let off = store
        .patch_skan(
            &caller,
            app.id,
            Change::Set(false),
            Change::Keep,
            Precondition::None,
            origin(6),
        )
        .await
        .expect("the switch is set");
    assert_eq!((off.version, off.document.enabled), (2, false));
    let versions = store
        .skan_versions(&caller.read_access(), app.id)
        .await
        .expect("a list");
    assert_eq!(versions.len(), 2, "a switch creates no version");
}

/// A change with an outdated `If-Match` is refused.
pub async fn an_outdated_version_is_refused(store: &SharedStore) {
    let caller = organization(store).await;
    let app = app(store, &caller).await;
    let put = |fine, tag: &str| {
        let precondition = Precondition::AnyOf(vec![tag.to_owned()]);
        store.put_skan(&caller, app.id, document(fine), precondition, origin(3))
    };
    put(40, "0").await.expect("never configured is version 0");
    assert_eq!(refusal(put(41, "0").await), Refusal::VersionConflict);
    put(41, "1").await.expect("the current version");
    let stored = store
        .skan(&caller.read_access(), app.id)
        .await
        .expect("a configuration");
    assert_eq!(stored.document, document(41));
}

/// The app and the configuration endpoints show and change the same setting.
pub async fn test_signals_are_one_setting_under_two_names(store: &SharedStore) {
    let caller = organization(store).await;
    let app = app(store, &caller).await;
    let shown = async || {
        let app_shows = store
            .app(&caller.read_access(), app.id)
            .await
            .expect("the app");
        let skan_shows = store
            .skan(&caller.read_access(), app.id)
            .await
            .expect("a configuration");
        (
            app_shows.skan_test_signals,
            skan_shows.document.accept_test_signals,
        )
    };
    assert_eq!(shown().await, (false, false));

    let put = Document {
        accept_test_signals: true,
        ..document(40)
    };
    let outcome = store
        .put_skan(&caller, app.id, put, Precondition::None, origin(3))
        .await;
    assert!(
        outcome
            .expect("the document is stored")
            .document
            .accept_test_signals
    );
    assert_eq!(shown().await, (true, true));

    let change = AppChange {
        skan_test_signals: Change::Set(false),
        ..AppChange::default()
    };
    let outcome = store
        .update_app(&caller, app.id, change, Precondition::None, origin(4))
        .await;
    outcome.expect("the app is changed");
    assert_eq!(shown().await, (false, false));

    let outcome = store
        .patch_skan(
            &caller,
            app.id,
            Change::Keep,
            Change::Set(true),
            Precondition::None,
            origin(5),
        )
        .await;
    outcome.expect("the switch is set");
    assert_eq!(shown().await, (true, true));
}

/// Devices get the configuration of the app that their SDK key belongs to, without disabled
/// windows.
pub async fn devices_read_the_configuration_of_their_app(store: &SharedStore) {
    let caller = organization(store).await;
    let (configured, other) = (app(store, &caller).await, app(store, &caller).await);
    let put = store
        .put_skan(
            &caller,
            configured.id,
            document(40),
            Precondition::None,
            origin(3),
        )
        .await
        .expect("the document is stored");
    let read = async |app: App| {
        let read = store.skan_for_device(app, Environment::Live, None, at(4));
        read.await.expect("a document")
    };
    let sdk_key = &configured.sdk.live_key;
    let found = store.sdk_app(sdk_key).await.expect("keys are read");
    assert_eq!(found.expect("an app").skan, put);
    let document_for_device = read(configured).await;
    let mut shown = put;
    shown.document.windows.retain(|window| window.enabled);
    assert_eq!(document_for_device.configuration, shown);
    let codes: Vec<&str> = document_for_device
        .rates
        .iter()
        .map(|(code, _)| code.as_str())
        .collect();
    assert!(
        codes.contains(&"EUR") && !codes.contains(&"JPY"),
        "{codes:?}"
    );
    let document_for_device = read(other).await;
    assert_eq!(
        document_for_device.configuration,
        Configuration::never_configured()
    );
    assert!(document_for_device.rates.is_empty() && document_for_device.server.is_empty());
}

/// Configurations of other organizations are not found.
pub async fn another_organization_finds_no_configuration(store: &SharedStore) {
    let (owner, stranger) = (organization(store).await, organization(store).await);
    let app = app(store, &owner).await;
    let read = store.skan(&stranger.read_access(), app.id).await;
    assert_eq!(refusal(read), Refusal::AppNotFound);
    let put = store
        .put_skan(
            &stranger,
            app.id,
            document(40),
            Precondition::None,
            origin(3),
        )
        .await;
    assert_eq!(refusal(put), Refusal::AppNotFound);
    let patch = store
        .patch_skan(
            &stranger,
            app.id,
            Change::Set(true),
            Change::Keep,
            Precondition::None,
            origin(3),
        )
        .await;
    assert_eq!(refusal(patch), Refusal::AppNotFound);
    let versions = store.skan_versions(&stranger.read_access(), app.id).await;
    assert_eq!(refusal(versions), Refusal::AppNotFound);
    let found = store
        .skan(&owner.read_access(), app.id)
        .await
        .expect("a configuration");
    assert_eq!(found, Configuration::never_configured());
}
