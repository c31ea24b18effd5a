//! The pages about notices, requested as a browser without scripts does.

use crate::testing::TestDashboard;
use axum::http::StatusCode;
use tributary_domain::access::person::Role;

/// What a browser sends: the fields of all topics and channels.
const DAILY: &str = "name=Every+morning&topic=daily_summary&hour=8&weekday=monday&metric=installs\
                     &condition=over&value=&window=day&network=&channel=email\
                     &recipients=team%40example.com%0D%0Aads%40example.com&url=&active=on";

fn with(changes: &[(&str, &str)]) -> String {
    let fields = DAILY.split('&').map(|field| {
        let (name, value) = field.split_once('=').unwrap();
        let changed = changes.iter().find(|one| one.0 == name);
        format!("{name}={}", changed.map_or(value, |one| one.1))
    });
    fields.collect::<Vec<_>>().join("&")
}

#[tokio::test]
async fn a_notice_is_created_changed_tested_and_deleted() {
    let dashboard = TestDashboard::start().await;
    let owner = dashboard.sign_in_as(Role::Owner).await;
    let app = owner.create_app().await;
    let list = format!("/apps/{app}/notices");
    assert!(
        owner
            .get(&list)
            .await
            .text
            .contains("No reports or alerts yet")
    );
    let created = owner.post(&format!("{list}/new"), DAILY).await;
    assert_eq!(created.status, StatusCode::SEE_OTHER, "{}", created.text);
    let path = created
        .header("location")
        .split('?')
        .next()
        .unwrap()
        .to_owned();
    let shown = owner.get(&list).await.text;
    for part in [
        "Every morning",
        "Every day at 08:00",
        "team@example.com and 1 more",
        "Cannot be sent",
        "E-mail is not set up on this server",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let page = owner.get(&path).await.text;
    assert!(
        page.contains("A subject &#60;b&#62;"),
        "the preview is escaped: {page}"
    );
    let limit = with(&[
        ("topic", "threshold"),
        ("value", "500"),
        ("metric", "cost"),
        ("network", "network_a"),
    ]);
    let saved = owner.post(&path, &limit).await;
    assert_eq!(saved.status, StatusCode::SEE_OTHER, "{}", saved.text);
    let shown = owner.get(&list).await.text;
    assert!(
        shown.contains("Spend of Meta over $500.00 on a day"),
        "{shown}"
    );
    let tested = owner.post(&format!("{path}/test"), "").await.text;
    assert!(tested.contains("Tests send nothing."), "{tested}");
    let deleted = owner.post(&format!("{path}/delete"), "").await;
    assert_eq!(deleted.status, StatusCode::SEE_OTHER);
    assert_eq!(owner.get(&path).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn faults_are_shown_at_their_fields_and_nothing_typed_is_lost() {
    let dashboard = TestDashboard::start().await;
    let owner = dashboard.sign_in_as(Role::Owner).await;
    let app = owner.create_app().await;
    let new = format!("/apps/{app}/notices/new");
    let wrong = with(&[
        ("topic", "threshold"),
        ("value", "many"),
        ("recipients", "nobody"),
    ]);
    let refused = owner.post(&new, &wrong).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    for part in [
        "value-fault",
        "recipients-fault",
        "value=\"many\"",
        "nobody",
    ] {
        assert!(refused.text.contains(part), "{part}: {}", refused.text);
    }
}

#[tokio::test]
async fn a_stored_url_is_kept_and_never_shown() {
    let dashboard = TestDashboard::start().await;
    let owner = dashboard.sign_in_as(Role::Owner).await;
    let app = owner.create_app().await;
    let new = format!("/apps/{app}/notices/new");
    let secret = "https%3A%2F%2Fhooks.slack.com%2Fservices%2Fcanary";
    let created = owner
        .post(&new, &with(&[("channel", "slack"), ("url", secret)]))
        .await;
    let path = created
        .header("location")
        .split('?')
        .next()
        .unwrap()
        .to_owned();
    let page = owner.get(&path).await.text;
    assert!(
        page.contains("Stored: https://hooks.slack.com/…") && !page.contains("canary"),
        "{page}"
    );
    let saved = owner
        .post(&path, &with(&[("channel", "slack"), ("hour", "9")]))
        .await;
    assert_eq!(saved.status, StatusCode::SEE_OTHER, "{}", saved.text);
    let missing = owner.post(&path, &with(&[("channel", "webhook")])).await;
    assert_eq!(missing.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(missing.text.contains("url-fault"));
}

#[tokio::test]
async fn the_preview_needs_no_name_or_recipient() {
    let dashboard = TestDashboard::start().await;
    let owner = dashboard.sign_in_as(Role::Owner).await;
    let app = owner.create_app().await;
    let path = format!("/apps/{app}/notices/preview");
    let early = with(&[("name", ""), ("recipients", "")]);
    let preview = owner.post(&path, &early).await.text;
    assert!(preview.contains("daily_summary"), "{preview}");
    let half = with(&[("topic", "threshold"), ("value", "")]);
    let preview = owner.post(&path, &half).await.text;
    assert!(preview.contains("when the form is complete"), "{preview}");
    let wrong = with(&[("topic", "threshold"), ("value", "much")]);
    let preview = owner.post(&path, &wrong).await.text;
    assert!(preview.contains("Limit: "), "{preview}");
}

#[tokio::test]
async fn a_conflict_shows_both_versions_and_no_secret() {
    let dashboard = TestDashboard::start().await;
    let owner = dashboard.sign_in_as(Role::Owner).await;
    let app = owner.create_app().await;
    let created = owner.post(&format!("/apps/{app}/notices/new"), DAILY).await;
    let (path, _) = created.header("location").split_once('?').unwrap();
    let opened = owner.get(path).await;
    let tag = opened.input("tag").attribute("value").unwrap().to_owned();
    let post = async |changes: &[(&str, &str)]| {
        let form = format!("{}&tag={tag}", with(changes));
        owner.post(path, &form).await
    };
    let saved = post(&[("name", "Theirs")]).await;
    assert_eq!(saved.status, StatusCode::SEE_OTHER, "{}", saved.text);
    let url = ("url", "https%3A%2F%2Fhooks.slack.com%2Fservices%2Fcanary");
    // A missing name is filled in, so that only a long one is a fault.
    let long = "x".repeat(201);
    let faulty = post(&[("name", &long), ("channel", "slack"), url]).await;
    assert_eq!(faulty.status, StatusCode::UNPROCESSABLE_ENTITY);
    let kept = faulty.input("tag").attribute("value");
    assert_eq!(
        kept,
        Some(tag.as_str()),
        "an error does not hide a conflict"
    );
    let refused = post(&[("name", "Mine"), ("channel", "slack"), url]).await;
    assert_eq!(refused.status, StatusCode::CONFLICT);
    for part in [
        "another change was saved",
        "Saved meanwhile: <q>Theirs</q>",
        "value=\"Mine\"",
    ] {
        assert!(refused.text.contains(part), "{part}: {}", refused.text);
    }
    for page in [&faulty, &refused] {
        assert!(!page.text.contains("canary"), "{}", page.text);
    }
    let new = refused.input("tag").attribute("value");
    assert_ne!(new, Some(tag.as_str()));
}

#[tokio::test]
async fn a_suggestion_fills_in_the_form_and_the_destination_is_remembered() {
    let dashboard = TestDashboard::start().await;
    let owner = dashboard.sign_in_as(Role::Owner).await;
    let app = owner.create_app().await;
    let new = format!("/apps/{app}/notices/new");
    let list = owner.get(&format!("/apps/{app}/notices")).await.text;
    let start = "Integration paused</a>";
    let (before, _) = list.split_once(start).unwrap();
    let (_, href) = before.rsplit_once("href=\"").unwrap();
    let href = href.split('"').next().unwrap().replace("&#38;", "&");
    let form = owner.get(&href).await;
    assert!(
        form.text.contains("value=\"Integration paused\""),
        "{}",
        form.text
    );
    assert!(
        form.text
            .contains("<option value=\"integration_paused\" selected>")
    );
    let created = owner.post(&new, DAILY).await;
    assert_eq!(created.status, StatusCode::SEE_OTHER, "{}", created.text);
    let form = owner.get(&new).await;
    assert!(
        form.text.contains("team@example.com\nads@example.com"),
        "{}",
        form.text
    );
    // A URL cannot choose who gets the messages.
    let led = owner
        .get(&format!("{new}?recipients=other%40example.com&active="))
        .await;
    assert!(!led.text.contains("other@example.com"));
}

#[tokio::test]
async fn a_notice_without_a_name_is_named_after_what_it_sends() {
    let dashboard = TestDashboard::start().await;
    let owner = dashboard.sign_in_as(Role::Owner).await;
    let app = owner.create_app().await;
    let new = format!("/apps/{app}/notices/new");
    let limit = [
        ("name", ""),
        ("topic", "threshold"),
        ("metric", "paidRoas"),
        ("condition", "under"),
        ("value", "1"),
        ("window", "week"),
        ("network", "network_a"),
    ];
    let created = owner.post(&new, &with(&limit)).await;
    assert_eq!(created.status, StatusCode::SEE_OTHER, "{}", created.text);
    let list = owner.get(&format!("/apps/{app}/notices")).await.text;
    let name = "ROAS (paid) of Meta under 1.00 in seven days</a>";
    assert!(list.contains(name), "{list}");
}
