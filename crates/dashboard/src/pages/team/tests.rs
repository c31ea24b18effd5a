//! Tests for removing and demoting members, and for their keys.

use crate::testing::{PageResponse, TestDashboard, TestUser};
use axum::http::StatusCode;
use std::collections::BTreeMap;
use tributary_domain::access::Authorized;
use tributary_domain::access::key::ApiKey;
use tributary_domain::access::person::Role;
use tributary_domain::vocabulary::id::{AppId, UserId};

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

const NOTICE: &str = "&active=on&topic=daily_summary&hour=8&channel=email\
                      &recipients=private%40example.net";

/// Returns the ids of the notices that send messages, by name.
async fn active_notices(dashboard: &TestDashboard, app: &str) -> BTreeMap<String, String> {
    let caller = Authorized::operator(dashboard.organization);
    let app = AppId::parse(app).unwrap();
    let notices = dashboard.store.notices(&caller, app).await.unwrap();
    let active = notices.into_iter().filter(|one| one.settings.active);
    active
        .map(|one| (one.settings.name.as_str().to_owned(), one.id.to_string()))
        .collect()
}

#[tokio::test]
async fn a_removal_pauses_notices_and_keeps_those_ticked() {
    let dashboard = TestDashboard::start().await;
    let owner = dashboard.sign_in_as(Role::Owner).await;
    let admin = dashboard.sign_in_as(Role::Admin).await;
    create_key(&admin, "Exporter", "full").await;
    let id = owner_of(&dashboard, "Exporter").await;
    let app = owner.create_app().await;
    let new = format!("/apps/{app}/notices/new");
    for (user, name) in [(&admin, "Feed"), (&admin, "Team"), (&owner, "Mine")] {
        let created = user.post(&new, &format!("name={name}{NOTICE}")).await;
        assert_eq!(created.status, StatusCode::SEE_OTHER, "{}", created.text);
    }
    let path = format!("/team/{id}/remove");
    let shown = owner.post(&path, "").await;
    assert!(is_confirmation(&shown), "{}", shown.text);
    assert!(shown.text.contains("Keep Feed") && shown.text.contains("Keep Team"));
    assert!(shown.text.contains("private@example.net") && !shown.text.contains("Mine"));
    let team = &active_notices(&dashboard, &app).await["Team"];
    let form = format!("confirmed=on&keep.{team}=on");
    let removed = owner.post(&path, &form).await;
    assert_eq!(removed.status, StatusCode::SEE_OTHER, "{}", removed.text);
    let active = active_notices(&dashboard, &app).await;
    assert_eq!(active.keys().collect::<Vec<_>>(), ["Mine", "Team"]);
}

#[tokio::test]
async fn a_former_owner_cannot_come_back_with_an_invitation() {
    for change in ["remove", "role"] {
        let dashboard = TestDashboard::start().await;
        let owner = dashboard.sign_in_as(Role::Owner).await;
        let leaving = dashboard.sign_in_as(Role::Owner).await;
        create_key(&leaving, "Exporter", "full").await;
        let id = owner_of(&dashboard, "Exporter").await;
        let invited = leaving
            .post("/team/invite", "email=private%40example.net&role=owner")
            .await;
        assert_eq!(invited.status, StatusCode::OK, "{}", invited.text);
        let (_, link) = invited.text.split_once("/setup/").unwrap();
        let token = link.split(|c: char| !(c.is_alphanumeric() || c == '_'));
        let link = format!("/setup/{}", token.clone().next().unwrap());
        assert_eq!(dashboard.get(&link).await.status, StatusCode::OK);
        let path = format!("/team/{id}/{change}");
        let shown = owner.post(&path, "role=admin").await;
        assert!(is_confirmation(&shown), "{}", shown.text);
        assert!(shown.text.contains("private@example.net"), "{}", shown.text);
        let changed = owner.post(&path, "role=admin&confirmed=on").await;
        assert_eq!(changed.status, StatusCode::SEE_OTHER, "{}", changed.text);
        assert_eq!(dashboard.get(&link).await.status, StatusCode::NOT_FOUND);
    }
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
