//! Integrations.

use super::fixtures::{SharedStore, app, at, organization, origin, refusal};
use std::collections::BTreeMap;
use tributary_domain::integration::{
    Credential, EventScope, Integration, IntegrationChange, MappingRow, Network, SettingValue,
};
use tributary_domain::keyring::seal::SealedSecret;
use tributary_domain::refusal::Refusal;
use tributary_domain::vocabulary::change::Change;
use tributary_domain::vocabulary::revision::Precondition;

fn everything() -> IntegrationChange {
    let map = BTreeMap::from([("purchase".to_owned(), "123".to_owned())]);
    let credential = Credential {
        sealed: SealedSecret::from_bytes(vec![0, 255, 7]),
        hint: Some("9f2c".to_owned()),
    };
    IntegrationChange {
        enabled: Change::Set(true),
        scope: Change::Set(EventScope::All),
        settings: BTreeMap::from([
            (
                "operatingAccountId",
                Change::Set(SettingValue::Text("42".to_owned())),
            ),
            ("userDataEnabled", Change::Set(SettingValue::Flag(true))),
            ("maxEventAge", Change::Set(SettingValue::Number(24))),
            ("conversionActions", Change::Set(SettingValue::Map(map))),
        ]),
        credentials: BTreeMap::from([("refreshToken", Change::Set(credential))]),
        event_mapping: Change::Set(vec![MappingRow {
            event: "boss_defeated".to_owned(),
            network_event: "Böss".to_owned(),
            enabled: false,
        }]),
    }
}

/// The list always contains all four networks.
pub async fn every_app_has_four_default_integrations(store: &SharedStore) {
    let caller = organization(store).await;
    let app = app(store, &caller).await;
    let found = store
        .integrations(&caller.read_access(), app.id)
        .await
        .expect("a list");
    assert_eq!(
        found,
        Network::ALL.map(|network| Integration::new(app.id, network))
    );
}

/// Every field is stored, and the other three integrations do not change.
pub async fn a_change_is_read_as_it_was_stored(store: &SharedStore) {
    let caller = organization(store).await;
    let app = app(store, &caller).await;
    let changed = store
        .update_integration(
            &caller,
            app.id,
            Network::B,
            everything(),
            Precondition::None,
            origin(4),
        )
        .await
        .expect("the integration is changed");
    assert_eq!(
        (changed.updated_at, changed.tag()),
        (Some(at(4)), "1".to_owned())
    );
    assert_eq!((changed.settings.len(), changed.credentials.len()), (4, 1));
    let found = store
        .integrations(&caller.read_access(), app.id)
        .await
        .expect("a list");
    assert_eq!(found[1], changed);
    for untouched in [&found[0], &found[2], &found[3]] {
        assert_eq!(untouched, &Integration::new(app.id, untouched.network));
    }
}

/// A second change keeps the settings of the first one.
pub async fn unmentioned_settings_stay(store: &SharedStore) {
    let caller = organization(store).await;
    let app = app(store, &caller).await;
    let off = IntegrationChange {
        enabled: Change::Set(false),
        ..IntegrationChange::default()
    };
    for change in [everything(), off] {
        let outcome = store
            .update_integration(
                &caller,
                app.id,
                Network::B,
                change,
                Precondition::None,
                origin(4),
            )
            .await;
        outcome.expect("the integration is changed");
    }
    let found = store
        .integrations(&caller.read_access(), app.id)
        .await
        .expect("a list");
    assert!(!found[1].enabled);
    assert_eq!(found[1].settings.len(), 4);
    assert_eq!(found[1].tag(), "2");
}

/// A change with an outdated `If-Match` is refused. An integration that was never changed has
/// version 0.
pub async fn an_outdated_version_is_refused(store: &SharedStore) {
    let caller = organization(store).await;
    let app = app(store, &caller).await;
    let update = |tag: &str| {
        let precondition = Precondition::AnyOf(vec![tag.to_owned()]);
        store.update_integration(
            &caller,
            app.id,
            Network::A,
            everything(),
            precondition,
            origin(4),
        )
    };
    assert_eq!(refusal(update("1").await), Refusal::VersionConflict);
    update("0").await.expect("the integration is changed");
    assert_eq!(refusal(update("0").await), Refusal::VersionConflict);
}

/// Integrations of other organizations are not found.
pub async fn another_organization_finds_no_integration(store: &SharedStore) {
    let (owner, stranger) = (organization(store).await, organization(store).await);
    let app = app(store, &owner).await;
    let read = store.integrations(&stranger.read_access(), app.id).await;
    assert_eq!(refusal(read), Refusal::AppNotFound);
    let outcome = store
        .update_integration(
            &stranger,
            app.id,
            Network::A,
            everything(),
            Precondition::None,
            origin(4),
        )
        .await;
    assert_eq!(refusal(outcome), Refusal::AppNotFound);
    let found = store
        .integrations(&owner.read_access(), app.id)
        .await
        .expect("a list");
    assert_eq!(found[0], Integration::new(app.id, Network::A));
}
