//! Tests for the page of API keys.

use crate::testing::{TestDashboard, TestUser};
use axum::http::StatusCode;
use tributary_domain::access::key::{ApiKey, KeyText};
use tributary_domain::access::person::Role;

async fn keys(dashboard: &TestDashboard) -> Vec<ApiKey> {
    dashboard.store.keys(dashboard.organization).await.unwrap()
}

async fn create(user: &TestUser<'_>, fields: &str) -> String {
    let form = format!("name=Exporter&permission=full&environment=live{fields}");
    let created = user.post("/keys", &form).await;
    assert_eq!(created.status, StatusCode::OK, "{}", created.text);
    created.element("key").to_owned()
}

#[tokio::test]
async fn a_key_shows_its_owner_and_limits() {
    let dashboard = TestDashboard::start().await;
    let admin = dashboard.sign_in_as(Role::Admin).await;
    let app = admin.create_app().await;
    let fields = format!("&expires=30&app.{app}=on&addresses=192.0.2.0%2F24%0A198.51.100.7");
    let text = create(&admin, &fields).await;
    let key = keys(&dashboard).await.pop().unwrap();
    assert_eq!(key.hint, KeyText::parse(&text).unwrap().hint());
    assert_eq!(key.limits.apps.apps().unwrap().len(), 1);
    let ranges = key.limits.addresses.ranges().unwrap();
    assert_eq!(ranges, ["192.0.2.0/24", "198.51.100.7/32"]);
    assert!(key.expires_at.is_some());
    let range = "203.0.113.0/24".to_owned();
    let used = dashboard
        .store
        .note_key_use(key.id, dashboard.source.now(), range);
    used.await.unwrap();
    for page in ["/keys", "/account"] {
        let shown = admin.get(page).await.text.replace("&#x2f;", "/");
        for part in ["Exporter", "203.0.113.0/24", "192.0.2.0/24"] {
            assert!(shown.contains(part), "{page}: {part}");
        }
        assert!(!shown.contains(&text));
    }
    let owner = dashboard.sign_in_as(Role::Owner).await;
    let shown = owner.get("/keys").await.text;
    assert!(
        shown.contains("admin-") && shown.contains("/take-over"),
        "{shown}"
    );
    assert!(!owner.get("/account").await.text.contains("Exporter"));
}

#[tokio::test]
async fn faulty_limits_are_shown_beside_their_fields() {
    let dashboard = TestDashboard::start().await;
    let admin = dashboard.sign_in_as(Role::Admin).await;
    let form = "name=Exporter&permission=full&environment=live&addresses=office";
    let refused = admin.post("/keys", form).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(refused.element("addresses-fault").contains("192.0.2.7"));
    assert!(refused.text.contains("office"), "typed text is kept");
    assert_eq!(keys(&dashboard).await, []);
}

#[tokio::test]
async fn a_rotated_key_is_replaced_and_cannot_be_rotated_again() {
    let dashboard = TestDashboard::start().await;
    let admin = dashboard.sign_in_as(Role::Admin).await;
    let first = create(&admin, "").await;
    let old = keys(&dashboard).await.pop().unwrap();
    let path = format!("/keys/{}/rotate", old.id);
    let rotated = admin.post(&path, "overlap=168&expires=90").await;
    assert_eq!(rotated.status, StatusCode::OK, "{}", rotated.text);
    assert_ne!(rotated.element("key"), first);
    let found = keys(&dashboard).await;
    let old = found.iter().find(|key| key.id == old.id).unwrap();
    let new = found.iter().find(|key| key.id != old.id).unwrap();
    assert_eq!(old.successor, Some(new.id));
    assert!(old.expires_at < new.expires_at && old.is_valid(dashboard.source.now()));
    let again = admin.post(&path, "overlap=0").await;
    assert_eq!(again.status, StatusCode::CONFLICT, "{}", again.text);
}

#[tokio::test]
async fn a_member_takes_over_and_revokes_a_key() {
    let dashboard = TestDashboard::start().await;
    let admin = dashboard.sign_in_as(Role::Admin).await;
    let owner = dashboard.sign_in_as(Role::Owner).await;
    create(&admin, "").await;
    let key = keys(&dashboard).await.pop().unwrap();
    let taken = owner.post(&format!("/keys/{}/take-over", key.id), "").await;
    assert_eq!(taken.status, StatusCode::SEE_OTHER, "{}", taken.text);
    let found = keys(&dashboard).await.pop().unwrap();
    assert!(found.owner.is_some() && found.owner != key.owner);
    assert!(owner.get("/account").await.text.contains("Exporter"));
    let revoked = owner.post(&format!("/keys/{}/revoke", key.id), "").await;
    assert_eq!(revoked.status, StatusCode::SEE_OTHER, "{}", revoked.text);
    assert!(!owner.get("/keys").await.text.contains("Exporter"));
    assert!(owner.get("/keys?ended=1").await.text.contains("revoked"));
}
