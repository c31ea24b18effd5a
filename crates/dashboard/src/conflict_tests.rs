//! Two people change the same item: both keep their input, and a saved change is replaced only after it was shown.

use crate::testing::{TestDashboard, TestUser};
use axum::http::StatusCode;
use rstest::rstest;
use tributary_domain::access::person::Role;

/// Creates a link and returns its path.
async fn create_link(owner: &TestUser<'_>, app: &str) -> String {
    let new = format!("/apps/{app}/links/new");
    let created = owner
        .post(&new, "name=Spring&type=app_install&active=on")
        .await;
    assert_eq!(created.status, StatusCode::SEE_OTHER, "{}", created.text);
    let (path, _) = created.header("location").split_once('?').unwrap();
    path.to_owned()
}

#[rstest]
#[case::settings("settings", "name=Theirs&timezone=UTC", "name=Mine&timezone=UTC")]
#[case::link("links", "name=Theirs&type=app_install", "name=Mine&type=app_install")]
#[case::integration("integrations/network_a", "scope=all", "scope=attributed")]
#[case::cost_source(
    "costs/network_a",
    "settings.accountId=1001",
    "settings.accountId=1002"
)]
#[tokio::test]
async fn a_conflict_shows_both_versions(
    #[case] page: &str,
    #[case] theirs: &str,
    #[case] mine: &str,
) {
    let dashboard = TestDashboard::start().await;
    let owner = dashboard.sign_in_as(Role::Admin).await;
    let app = owner.create_app().await;
    let path = match page {
        "links" => create_link(&owner, &app).await,
        page => format!("/apps/{app}/{page}"),
    };
    let tag = |text: &str| format!("&tag={}", text.replace('"', "%22"));
    let opened = owner.get(&path).await;
    let old = tag(opened.input("tag").attribute("value").unwrap());
    let saved = owner.post(&path, &format!("{theirs}{old}")).await;
    assert_eq!(saved.status, StatusCode::SEE_OTHER, "{}", saved.text);

    let refused = owner.post(&path, &format!("{mine}{old}")).await;
    assert_eq!(refused.status, StatusCode::CONFLICT);
    for part in ["another change was saved", "aved meanwhile"] {
        assert!(refused.text.contains(part), "{part}: {}", refused.text);
    }
    let new = tag(refused.input("tag").attribute("value").unwrap());
    assert_ne!(old, new);
    let again = owner.post(&path, &format!("{mine}{new}")).await;
    assert_eq!(again.status, StatusCode::SEE_OTHER, "{}", again.text);
}

#[tokio::test]
async fn a_conflict_of_mappings_shows_both_versions() {
    let dashboard = TestDashboard::start().await;
    let owner = dashboard.sign_in_as(Role::Admin).await;
    let app = owner.create_app().await;
    let page = format!("/apps/{app}/settings/mapping");
    let form = format!("{page}/network_a");
    let opened = owner.get(&page).await;
    let tag = opened.input("tag").attribute("value").unwrap().to_owned();
    let body = |event: &str| {
        format!(
            "tag={tag}&eventMapping[0].event={event}&eventMapping[0].networkEvent=Purchase\
             &eventMapping[0].enabled=on"
        )
    };
    let saved = owner.post(&form, &body("their_event")).await;
    assert_eq!(saved.status, StatusCode::SEE_OTHER, "{}", saved.text);
    let refused = owner.post(&form, &body("my_event")).await;
    assert_eq!(refused.status, StatusCode::CONFLICT);
    for version in ["their_event", "my_event"] {
        assert!(refused.text.contains(version), "{version}");
    }
}

#[tokio::test]
async fn correcting_an_error_does_not_hide_a_conflict() {
    let dashboard = TestDashboard::start().await;
    let owner = dashboard.sign_in_as(Role::Admin).await;
    let app = owner.create_app().await;
    let path = format!("/apps/{app}/settings");
    let tag = owner.get(&path).await;
    let tag = tag.input("tag").attribute("value").unwrap().to_owned();
    let post = async |name: &str| {
        let form = format!("name={name}&timezone=UTC&tag={tag}");
        owner.post(&path, &form).await
    };
    assert_eq!(post("Theirs").await.status, StatusCode::SEE_OTHER);
    let faulty = post("").await;
    assert_eq!(faulty.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(faulty.input("tag").attribute("value"), Some(tag.as_str()));
    assert!(faulty.input("name").has("autofocus"), "{}", faulty.text);
    assert!(faulty.text.contains("href=\"#name\""));
    assert_eq!(post("Mine").await.status, StatusCode::CONFLICT);
}
