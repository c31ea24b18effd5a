//! The secret key and its rotation.

use super::fixtures::{SharedStore, app, at, first_page, organization, origin};
use crate::records::{CellKey, SEALED_COLUMNS};
use crate::{KeyReplaced, ReencryptRequest, ReencryptedRows, RotationEnd, StoreError};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tributary_domain::access::{AppsWrite, Authorized};
use tributary_domain::app::{AppChange, AppSecret};
use tributary_domain::audit::Action;
use tributary_domain::integration::{Credential, IntegrationChange, Network};
use tributary_domain::keyring::alert::{AlertSecret, AlertSecretRotation};
use tributary_domain::keyring::rotation::{KeyHolder, StoredCheck, StoredKeys};
use tributary_domain::keyring::seal::SealedSecret;
use tributary_domain::keyring::secret_scope::{APP_SECRET_SCOPE, SecretScope};
use tributary_domain::keyring::{Keyring, KnownKeys, SecretKeyId};
use tributary_domain::refusal::Refusal;
use tributary_domain::vocabulary::change::Change;
use tributary_domain::vocabulary::id::{AppId, OrganizationId};
use tributary_domain::vocabulary::revision::Precondition;

const OLD: [u8; 32] = [1; 32];
const NEW: [u8; 32] = [2; 32];
const NONCE: [u8; 24] = [5; 24];
const SECRET: AppSecret = AppSecret::SocialReferrerKey;
const FIELD: &str = "accessToken";
const DAY: Duration = Duration::from_hours(24);

/// Opens the keyring of a node that knows both keys.
async fn node(store: &SharedStore) -> Keyring {
    let known = KnownKeys {
        current: OLD,
        next: Some(NEW),
    };
    let stored = store.stored_keys().await.expect("the stored keys");
    Keyring::for_database(known, &stored, at(0)).expect("both keys are known")
}

fn seal(keyring: &Keyring, of: (OrganizationId, AppId), owner: &str, field: &str) -> SealedSecret {
    let scope = SecretScope::new(of.0, of.1, owner, field);
    keyring.seal(&scope.parts(), NONCE, field.as_bytes())
}

/// An organization and its app.
type Tenant = (OrganizationId, AppId);

/// Creates an organization with an app. Returns their ids and a caller for the app.
async fn tenant(store: &SharedStore) -> (Tenant, Authorized<AppsWrite>) {
    let caller = organization(store).await;
    let app = app(store, &caller).await;
    ((caller.organization(), app.id), caller)
}

fn secret_change(sealed: SealedSecret) -> AppChange {
    AppChange {
        secrets: vec![(SECRET, Change::Set(sealed))],
        ..AppChange::default()
    }
}

/// Encrypts all stored values again. Returns the number of changed values and of unreadable rows.
async fn reencrypt_all(store: &SharedStore, keyring: &Keyring) -> (u64, usize) {
    let (mut changed, mut unreadable) = (0, 0);
    for (column, sealed) in SEALED_COLUMNS.iter().enumerate() {
        let mut after = Some(sealed.first_key());
        while let Some(from) = after {
            let rows = reencrypt(store, keyring, column, from).await;
            changed += rows.changed;
            unreadable += rows.unreadable.len();
            after = rows.last;
        }
    }
    (changed, unreadable)
}

async fn reencrypt(
    store: &SharedStore,
    keyring: &Keyring,
    column: usize,
    after: CellKey,
) -> ReencryptedRows {
    let keyring = keyring.clone();
    let request = ReencryptRequest {
        column,
        after,
        key: SecretKeyId::of(&NEW),
        reencrypt: Arc::new(move |scope, sealed| keyring.reencrypt(scope, NONCE, sealed)),
    };
    store.reencrypt(request).await.expect("rows")
}

/// The first key is stored, and a second one does not replace it.
pub async fn the_first_key_is_adopted(store: &SharedStore) {
    let stored = store.stored_keys().await.expect("nothing");
    assert_eq!(
        (stored.check, stored.rotation, stored.kept),
        (None, None, None)
    );
    for key in [OLD, NEW] {
        let check = StoredCheck::of_first_key(&key);
        store.adopt_key(check).await.expect("a check value");
    }
    let stored = store.stored_keys().await.expect("a check value");
    assert_eq!(stored.check, Some(StoredCheck::of_first_key(&OLD)));
}

/// A rotation begins once, only with the expected key.
pub async fn a_rotation_begins_once(store: &SharedStore) {
    let first = StoredCheck::of_first_key(&OLD);
    let keyring = node(store).await;
    let start = keyring.begin_rotation(at(7), NONCE).expect("a next key");
    let begun = store.begin_key_rotation(start.clone(), origin(7)).await;
    assert!(!begun.expect("no key is stored"));
    store.adopt_key(first).await.expect("a check value");
    let begun = store.begin_key_rotation(start.clone(), origin(7)).await;
    assert!(begun.expect("a rotation"));
    let begun = store.begin_key_rotation(start.clone(), origin(7)).await;
    assert!(!begun.expect("it has begun"));
    let stored = store.stored_keys().await.expect("a rotation");
    assert_eq!(stored.check, Some(start.check));
    assert_eq!(stored.rotation, Some(start.rotation));
    assert_eq!(stored.kept, Some(start.kept));
}

/// Stores a secret of the app, a credential of a network and an alert secret.
async fn store_secrets(
    store: &SharedStore,
    keyring: &Keyring,
    of: Tenant,
    caller: &Authorized<AppsWrite>,
) {
    let sealed = seal(keyring, of, APP_SECRET_SCOPE, SECRET.as_str());
    let any = Precondition::None;
    let changed = store
        .update_app(caller, of.1, secret_change(sealed), any.clone(), origin(2))
        .await;
    changed.expect("a secret");
    let credential = Credential {
        sealed: seal(keyring, of, Network::A.as_str(), FIELD),
        hint: None,
    };
    let change = IntegrationChange {
        credentials: BTreeMap::from([(FIELD, Change::Set(credential))]),
        ..IntegrationChange::default()
    };
    let changed = store
        .update_integration(caller, of.1, Network::A, change, any, origin(3))
        .await;
    changed.expect("a credential");
    let secret = AlertSecret::from_bytes([9; 32]);
    let sealed = keyring.seal_alert_secret(of, NONCE, &secret);
    let kept = store.keep_alert_secret(of.1, sealed.clone()).await;
    assert_eq!(kept.expect("a secret"), sealed);
    let rotation = AlertSecretRotation {
        derived: sealed,
        successor: keyring.seal_alert_secret(of, NONCE, &AlertSecret::from_bytes([10; 32])),
        overlap: DAY,
    };
    let rotated = store.rotate_alert_secret(caller, of.1, rotation, origin(4));
    rotated.await.expect("a new secret");
}

/// Expects that the new key opens these secrets, and the old one does not.
async fn expect_reencrypted(
    store: &SharedStore,
    keyring: &Keyring,
    of: Tenant,
    caller: &Authorized<AppsWrite>,
) {
    let reader = caller.read_access();
    let secret = store.app_secret(&reader, of.1, SECRET).await;
    let secret = secret.expect("a lookup").expect("a secret");
    let scope = SecretScope::new(of.0, of.1, APP_SECRET_SCOPE, SECRET.as_str());
    assert!(keyring.open(&scope.parts(), &secret).is_ok());
    assert!(Keyring::new(OLD).open(&scope.parts(), &secret).is_err());
    let integrations = store.integrations(&reader, of.1).await;
    let integrations = integrations.expect("a list");
    let found = integrations
        .iter()
        .find(|one| one.network == Network::A)
        .expect("A");
    let scope = SecretScope::new(of.0, of.1, Network::A.as_str(), FIELD);
    assert!(
        keyring
            .open(&scope.parts(), &found.credentials[FIELD].sealed)
            .is_ok()
    );
    let (organization, stored) = store.alert_secrets(of.1).await.expect("secrets");
    let opened = keyring.alert_secrets((organization, of.1), stored.as_ref(), at(5));
    let opened = opened.expect("readable secrets");
    assert_eq!(opened.current, AlertSecret::from_bytes([10; 32]));
    let previous = opened.previous.map(|(secret, _)| secret);
    assert_eq!(previous, Some(AlertSecret::from_bytes([9; 32])));
}

/// All stored values are encrypted again, those that another command changed meanwhile are kept, and
/// the rotation ends when none is left. Both organizations find its begin and end in their audit logs.
pub async fn a_rotation_encrypts_all_stored_values(store: &SharedStore) {
    let check = StoredCheck::of_first_key(&OLD);
    store.adopt_key(check).await.expect("a check value");
    let keyring = node(store).await;
    let mut tenants = Vec::new();
    for _ in 0..2 {
        let (of, caller) = tenant(store).await;
        store_secrets(store, &keyring, of, &caller).await;
        tenants.push((of, caller));
    }
    let start = keyring.begin_rotation(at(7), NONCE).expect("a next key");
    assert!(
        store
            .begin_key_rotation(start, origin(7))
            .await
            .expect("a rotation")
    );
    let stored = store.stored_keys().await.expect("a rotation");
    assert_eq!(keyring.follow(&stored), Ok(true));
    let count = store.count_outdated_rows(SecretKeyId::of(&NEW)).await;
    assert_eq!(count.expect("a number"), 8);
    let early = store.finish_key_rotation(0, origin(8)).await;
    assert_eq!(early.expect("a refusal"), RotationEnd::Remaining(8));
    assert_eq!(reencrypt_all(store, &keyring).await, (8, 0));
    assert_eq!(reencrypt_all(store, &keyring).await, (0, 0));
    let rotation = store.stored_keys().await.expect("a rotation").rotation;
    assert_eq!(rotation.map(|it| it.reencrypted), Some(8));
    let renewed = Keyring::for_database(
        KnownKeys {
            current: NEW,
            next: None,
        },
        &StoredKeys {
            rotation: None,
            ..store.stored_keys().await.expect("a rotation")
        },
        at(9),
    )
    .expect("the new key");
    for (of, caller) in &tenants {
        expect_reencrypted(store, &renewed, *of, caller).await;
    }
    for expected in [RotationEnd::Finished, RotationEnd::NotRotating] {
        let end = store.finish_key_rotation(0, origin(10)).await;
        assert_eq!(end.expect("an end"), expected);
    }
    for (of, _) in &tenants {
        let reader = Authorized::operator(of.0);
        let log = store
            .audit_log(&reader, None, first_page("50"))
            .await
            .expect("a log");
        for action in [Action::SecretKeyRotationBegun, Action::SecretKeyRotated] {
            let entries = log.items.iter().filter(|entry| entry.action == action);
            assert_eq!(entries.count(), 1, "{action:?}");
        }
    }
}

/// From the begin of a rotation on, no value is stored that is encrypted with the old key, but other
/// changes to the same rows are possible.
pub async fn a_node_that_does_not_follow_stores_nothing(store: &SharedStore) {
    let check = StoredCheck::of_first_key(&OLD);
    store.adopt_key(check).await.expect("a check value");
    let (of, caller) = tenant(store).await;
    let (behind, ahead) = (node(store).await, node(store).await);
    let start = ahead.begin_rotation(at(7), NONCE).expect("a next key");
    assert!(
        store
            .begin_key_rotation(start, origin(7))
            .await
            .expect("a rotation")
    );
    let stored = store.stored_keys().await.expect("a rotation");
    assert_eq!(ahead.follow(&stored), Ok(true));
    for (keyring, is_stored) in [(&behind, false), (&ahead, true)] {
        let sealed = seal(keyring, of, APP_SECRET_SCOPE, SECRET.as_str());
        let change = secret_change(sealed);
        let changed = store
            .update_app(&caller, of.1, change, Precondition::None, origin(8))
            .await;
        match changed {
            Ok(_) => assert!(is_stored),
            Err(StoreError::Unavailable { source, .. }) => {
                assert!(!is_stored && source.is::<KeyReplaced>());
            }
            Err(error) => panic!("{error}"),
        }
        let secret = AlertSecret::from_bytes([9; 32]);
        let sealed = keyring.seal_alert_secret(of, NONCE, &secret);
        let kept = store.keep_alert_secret(of.1, sealed).await;
        assert_eq!(kept.is_ok(), is_stored);
    }
    assert_eq!(reencrypt_all(store, &ahead).await, (0, 0));
}

/// A value that no key decrypts is reported in every pass. The rotation ends without it only if the
/// caller accepts that.
pub async fn unreadable_values_do_not_hold_up_the_others(store: &SharedStore) {
    let check = StoredCheck::of_first_key(&OLD);
    store.adopt_key(check).await.expect("a check value");
    let (keyring, foreign) = (node(store).await, Keyring::new([3; 32]));
    for keyring in [&foreign, &keyring] {
        let (of, caller) = tenant(store).await;
        let sealed = seal(keyring, of, APP_SECRET_SCOPE, SECRET.as_str());
        let (change, any) = (secret_change(sealed), Precondition::None);
        let changed = store
            .update_app(&caller, of.1, change, any, origin(2))
            .await;
        changed.expect("a secret");
    }
    let start = keyring.begin_rotation(at(7), NONCE).expect("a next key");
    assert!(
        store
            .begin_key_rotation(start, origin(7))
            .await
            .expect("a rotation")
    );
    let stored = store.stored_keys().await.expect("a rotation");
    assert_eq!(keyring.follow(&stored), Ok(true));
    assert_eq!(reencrypt_all(store, &keyring).await, (1, 1));
    assert_eq!(reencrypt_all(store, &keyring).await, (0, 1));
    for (accepted, expected) in [(0, RotationEnd::Remaining(1)), (1, RotationEnd::Finished)] {
        let end = store.finish_key_rotation(accepted, origin(9)).await;
        assert_eq!(end.expect("an end"), expected);
    }
}

/// Nodes note which keys they know until they stop.
pub async fn nodes_note_the_keys_that_they_know(store: &SharedStore) {
    let holder = |id: u8, keys: &[[u8; 32]], seconds| KeyHolder {
        id: [id; 16],
        name: format!("node-{id}"),
        keys: keys.iter().map(SecretKeyId::of).collect(),
        seen_at: at(seconds),
    };
    let day = 24 * 60 * 60;
    for noted in [
        holder(1, &[OLD], 1),
        holder(2, &[OLD], 2),
        holder(3, &[OLD], 3),
        holder(1, &[OLD, NEW], day),
    ] {
        store.note_key_holder(noted).await.expect("a note");
    }
    store.forget_key_holder([3; 16]).await.expect("a removal");
    let holders = store.key_holders().await.expect("a list");
    assert_eq!(holders, [holder(1, &[OLD, NEW], day), holder(2, &[OLD], 2)]);
    let last = holder(4, &[NEW], day + 3);
    store.note_key_holder(last.clone()).await.expect("a note");
    let holders = store.key_holders().await.expect("a list");
    assert_eq!(holders, [holder(1, &[OLD, NEW], day), last]);
}

/// The stored secret of an app's alerts stays the first one. Apps without one are listed by id.
pub async fn alert_secrets_are_stored_once(store: &SharedStore) {
    let mut apps = Vec::new();
    for _ in 0..3 {
        apps.push(tenant(store).await.0);
    }
    apps.sort_by_key(|(_, app)| *app);
    let list = |after| store.apps_without_alert_secret(after, 2);
    let first = AppId::from_bytes([0; 16]);
    assert_eq!(list(first).await.expect("a list"), apps[..2]);
    assert_eq!(list(apps[1].1).await.expect("a list"), apps[2..]);
    let found = store.alert_secrets(apps[0].1).await.expect("no secret");
    assert_eq!(found, (apps[0].0, None));
    let sealed = |byte| SealedSecret::from_bytes(vec![byte]);
    for byte in [1, 2] {
        let kept = store.keep_alert_secret(apps[0].1, sealed(byte)).await;
        assert_eq!(kept.expect("a secret"), sealed(1));
    }
    let found = store.alert_secrets(apps[0].1).await.expect("a secret");
    assert_eq!(found.0, apps[0].0);
    let stored = found.1.map(|stored| (stored.current, stored.previous));
    assert_eq!(stored, Some((sealed(1), None)));
    assert_eq!(list(first).await.expect("a list"), apps[1..]);
    store.alert_secrets(first).await.expect_err("no such app");
}

/// A rotation keeps the secret that was in use, derived or stored, until its end. It is in the audit
/// log, and refused for apps of other organizations and for values of a replaced key.
pub async fn alert_secrets_are_rotated_with_an_overlap(store: &SharedStore) {
    let ((organization, app), caller) = tenant(store).await;
    let keyring = Keyring::new(OLD);
    let seal = |byte| {
        let secret = AlertSecret::from_bytes([byte; 32]);
        keyring.seal_alert_secret((organization, app), NONCE, &secret)
    };
    let rotation = |successor, overlap| AlertSecretRotation {
        derived: seal(1),
        successor: seal(successor),
        overlap,
    };
    let rotate = async |rotation, seconds| {
        let rotated = store.rotate_alert_secret(&caller, app, rotation, origin(seconds));
        rotated.await
    };
    let day = i64::try_from(DAY.as_secs()).expect("seconds of a day");
    for (successor, overlap, time, previous) in [
        (2, DAY, 10, Some(1)),
        (4, Duration::ZERO, 30, None),
        (5, DAY, 40, Some(4)),
        (6, DAY, 40 + day, Some(5)),
    ] {
        let rotated = rotate(rotation(successor, overlap), time).await;
        let rotated = rotated.expect("a rotation");
        let previous = previous.map(|byte| (seal(byte), at(time + day)));
        assert_eq!(
            (&rotated.current, &rotated.previous),
            (&seal(successor), &previous)
        );
        let found = store.alert_secrets(app).await.expect("secrets");
        assert_eq!(found, (organization, Some(rotated)));
        if previous.is_some() {
            let again = rotate(rotation(9, DAY), time + 1).await;
            assert!(matches!(
                again,
                Err(StoreError::Refused(Refusal::AlertSecretRotated))
            ));
        }
    }
    let reader = caller.read_access();
    let log = store.audit_log(&reader, Some(app), first_page("50")).await;
    let log = log.expect("a log");
    let fields = log.items.iter().flat_map(|entry| &entry.changes);
    let fields = fields.filter(|change| change.field == "alertWebhookSecret");
    assert_eq!(fields.count(), 4);
    let (_, stranger) = tenant(store).await;
    let refused = store.rotate_alert_secret(&stranger, app, rotation(6, DAY), origin(50));
    assert!(matches!(
        refused.await,
        Err(StoreError::Refused(Refusal::AppNotFound))
    ));
}
