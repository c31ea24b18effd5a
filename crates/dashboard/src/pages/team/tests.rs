//! Tests for removing and demoting members, and for their keys.

use crate::testing::{PageResponse, TestDashboard, TestUser};
use axum::http::StatusCode;
use tributary_domain::access::key::ApiKey;
use tributary_domain::access::person::Role;
use tributary_domain::vocabulary::id::UserId;

async fn keys(dashboard: &TestDashboard) -> Vec<ApiKey> {
    dashboard.store.keys(dashboard.organization).await.unwrap()
}

async fn create_key(user: &TestUser<'_>, name: &str, permission: &str) {
    let form = format!("name={name}&permission={permission}&environment=live");
    let created = user.post("/keys", &form).await;
    assert_eq!(created.status, StatusCode::OK, "{}", created.text);
}

/// Returns the member with a role who owns a key.
async fn owner_of(dashboard: &TestDashboard, name: &str) -> UserId {
    let keys = keys(dashboard).await;
    let key = keys.iter().find(|key| key.name == name).unwrap();
    key.owner.unwrap()
}

async fn valid(dashboard: &TestDashboard) -> Vec<String> {
    let keys = keys(dashboard).await;
    let now = dashboard.source.now();
    let valid = keys.into_iter().filter(|key| key.is_valid(now));
    let mut names: Vec<String> = valid.map(|key| key.name).collect();
    names.sort();
    names
}

fn is_confirmation(page: &PageResponse) -> bool {
    page.status == StatusCode::OK && page.text.contains("name=\"confirmed\"")
}

#[tokio::test]
async fn a_removal_lists_the_keys_and_keeps_those_taken_over() {
    let dashboard = TestDashboard::start().await;
    let owner = dashboard.sign_in_as(Role::Owner).await;
    let admin = dashboard.sign_in_as(Role::Admin).await;
    create_key(&owner, "Owners", "full").await;
    create_key(&admin, "Exporter", "full").await;
    create_key(&admin, "Reader", "read_only").await;
    let id = owner_of(&dashboard, "Exporter").await;
    let path = format!("/team/{id}/remove");
    let shown = owner.post(&path, "").await;
    assert!(is_confirmation(&shown), "{}", shown.text);
    assert!(shown.text.contains("Exporter") && shown.text.contains("Reader"));
    assert!(!shown.text.contains("Owners"));
    assert_eq!(valid(&dashboard).await, ["Exporter", "Owners", "Reader"]);
    let stored = keys(&dashboard).await;
    let exporter = stored.iter().find(|key| key.name == "Exporter").unwrap().id;
    let removed = owner
        .post(&path, &format!("confirmed=on&take.{exporter}=on"))
        .await;
    assert_eq!(removed.status, StatusCode::SEE_OTHER, "{}", removed.text);
    assert_eq!(valid(&dashboard).await, ["Exporter", "Owners"]);
    let owners = owner_of(&dashboard, "Owners").await;
    assert_eq!(owner_of(&dashboard, "Exporter").await, owners);
    let signed_out = admin.get("/keys").await;
    assert_eq!(
        signed_out.status,
        StatusCode::SEE_OTHER,
        "{}",
        signed_out.text
    );
}

#[tokio::test]
async fn a_lower_role_revokes_stronger_keys_after_a_confirmation() {
    let dashboard = TestDashboard::start().await;
    let owner = dashboard.sign_in_as(Role::Owner).await;
    let admin = dashboard.sign_in_as(Role::Admin).await;
    create_key(&admin, "Exporter", "full").await;
    create_key(&admin, "Reader", "read_only").await;
    let path = format!("/team/{}/role", owner_of(&dashboard, "Reader").await);
    let shown = owner.post(&path, "role=analyst").await;
    assert!(is_confirmation(&shown), "{}", shown.text);
    assert!(shown.text.contains("Exporter") && !shown.text.contains("Reader"));
    let changed = owner.post(&path, "role=analyst&confirmed=on").await;
    assert_eq!(changed.status, StatusCode::SEE_OTHER, "{}", changed.text);
    assert_eq!(valid(&dashboard).await, ["Reader"]);
    // A change that costs no key needs no confirmation.
    let raised = owner.post(&path, "role=admin").await;
    assert_eq!(raised.status, StatusCode::SEE_OTHER, "{}", raised.text);
}

#[tokio::test]
async fn an_owner_signs_a_member_out_everywhere() {
    let dashboard = TestDashboard::start().await;
    let owner = dashboard.sign_in_as(Role::Owner).await;
    let admin = dashboard.sign_in_as(Role::Admin).await;
    create_key(&admin, "Exporter", "full").await;
    let id = owner_of(&dashboard, "Exporter").await;
    let ended = owner.post(&format!("/team/{id}/sessions"), "").await;
    assert_eq!(ended.header("location"), "/team?notice=sessions");
    assert_eq!(admin.get("/team").await.status, StatusCode::SEE_OTHER);
    assert_eq!(owner.get("/team").await.status, StatusCode::OK);
    assert_eq!(valid(&dashboard).await, ["Exporter"], "keys go on");
}
