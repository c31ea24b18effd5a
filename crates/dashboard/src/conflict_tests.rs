//! Two people change the same item: both keep their input, and a saved change is replaced only after it was shown.

use crate::testing::{PageResponse, TestDashboard, TestUser};
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

fn tag(page: &PageResponse) -> String {
    page.input("tag").attribute("value").unwrap().to_owned()
}

#[tokio::test]
async fn a_source_that_was_changed_meanwhile_is_not_removed() {
    let dashboard = TestDashboard::start().await;
    let owner = dashboard.sign_in_as(Role::Admin).await;
    let app = owner.create_app().await;
    let path = format!("/apps/{app}/costs/network_a");
    let remove = format!("{path}/remove");
    owner.post(&path, "settings.accountId=1001").await;
    let opened = owner.get(&path).await;
    let fields = opened.text.matches("name=\"tag\"").count();
    assert_eq!(fields, 2, "both forms carry the version");
    let old = tag(&opened);
    owner.post(&path, "settings.accountId=1002").await;

    let body = format!("tag={old}&removeCosts=on");
    let refused = owner.post(&remove, &body).await;
    assert_eq!(refused.status, StatusCode::CONFLICT);
    assert!(refused.text.contains("Not removed"), "{}", refused.text);
    assert!(refused.text.contains("value=\"1002\""));
    assert!(refused.input("removeCosts").has("checked"));
    let new = tag(&refused);
    assert_ne!(old, new);

    let removed = owner.post(&remove, &format!("tag={new}")).await;
    assert_eq!(removed.status, StatusCode::SEE_OTHER);
    let again = owner.post(&remove, &format!("tag={new}")).await;
    assert_eq!(again.status, StatusCode::CONFLICT);
    assert!(again.text.contains("was removed after you opened"));
    let form = format!("action=\"{remove}\"");
    assert!(!again.text.contains(&form), "nothing is left to remove");
}

#[tokio::test]
async fn a_form_does_not_bring_back_a_source_that_was_removed() {
    let dashboard = TestDashboard::start().await;
    let owner = dashboard.sign_in_as(Role::Admin).await;
    let app = owner.create_app().await;
    let path = format!("/apps/{app}/costs/network_a");
    owner.post(&path, "settings.accountId=1001").await;
    let old = tag(&owner.get(&path).await);
    owner
        .post(&format!("{path}/remove"), &format!("tag={old}"))
        .await;
    let mine = |tag: &str| format!("settings.accountId=1002&tag={tag}");
    let refused = owner.post(&path, &mine(&old)).await;
    assert_eq!(refused.status, StatusCode::CONFLICT);
    assert!(refused.text.contains("value=\"1002\""), "it stays typed");
    assert!(refused.text.contains("Saved meanwhile: <em>empty</em>"));
    let sources = owner.get(&path).await.text;
    assert!(!sources.contains("/remove\""), "nothing was stored");
    let saved = owner.post(&path, &mine(&tag(&refused))).await;
    assert_eq!(saved.status, StatusCode::SEE_OTHER);
}
