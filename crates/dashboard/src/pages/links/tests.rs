//! The pages about links, requested as a browser without scripts does.

use crate::testing::TestDashboard;
use axum::http::StatusCode;
use tributary_domain::access::person::Role;

const FUNNEL: &str = "name=Spring&type=web_funnel&active=on&slug=spring\
                      &destinationUrl=https%3A%2F%2Fe.com%2F%3Fa%3D1%23f";

#[tokio::test]
async fn utm_parameters_are_added_to_the_destination() {
    let dashboard = TestDashboard::start().await;
    let owner = dashboard.sign_in_as(Role::Owner).await;
    let app = owner.create_app().await;
    let new = format!("/apps/{app}/links/new");
    let created = owner.post(&new, &format!("{FUNNEL}&utm.source=a+b")).await;
    assert_eq!(created.status, StatusCode::SEE_OTHER, "{}", created.text);
    let page = owner.get(created.header("location")).await.text;
    let url = "https://e.com/?a=1&#38;utm_source=a%20b#f";
    assert!(page.contains(&format!("value=\"{url}\"")), "{page}");
    // Without a destination, the fault is shown at the URL and the parameter stays.
    let refused = owner
        .post(&new, "name=A&type=app_install&destinationUrl=&utm.source=x")
        .await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(refused.text.contains("Required for UTM parameters"));
    assert!(
        refused
            .text
            .contains("name=\"utm.source\" type=\"text\" value=\"x\"")
    );
}

#[tokio::test]
async fn a_link_is_duplicated_and_found_by_tag_and_folder() {
    let dashboard = TestDashboard::start().await;
    let owner = dashboard.sign_in_as(Role::Owner).await;
    let app = owner.create_app().await;
    let body = format!("{FUNNEL}&tags=q4,eu&folder=Spring+2026");
    let created = owner.post(&format!("/apps/{app}/links/new"), &body).await;
    let location = created.header("location");
    let id = location
        .rsplit('/')
        .next()
        .unwrap()
        .split('?')
        .next()
        .unwrap();
    let copy = owner
        .get(&format!("/apps/{app}/links/new?from={id}"))
        .await
        .text;
    for value in ["Spring (copy)", "q4, eu", "Spring 2026"] {
        assert!(
            copy.contains(&format!("value=\"{value}\"")),
            "{value}: {copy}"
        );
    }
    assert!(
        copy.contains("name=\"slug\" type=\"text\" value=\"\""),
        "{copy}"
    );
    let unknown = format!("/apps/{app}/links/new?from=lnk_01k9z3v7q8e4r9m2x5c6b7n8d1");
    assert_eq!(owner.get(&unknown).await.status, StatusCode::NOT_FOUND);
    for (query, is_found) in [
        ("tag=EU&folder=spring+2026&search=SPRI", true),
        ("tag=us", false),
        ("search=autumn", false),
    ] {
        let list = owner.get(&format!("/apps/{app}/links?{query}")).await.text;
        assert_eq!(list.contains(id), is_found, "{query}");
        assert_eq!(list.contains("No link matches"), !is_found, "{query}");
    }
    for kind in ["svg", "png"] {
        let file = owner
            .get(&format!("/apps/{app}/links/{id}/qr.{kind}"))
            .await;
        assert_eq!(file.status, StatusCode::OK);
        let name = format!("attachment; filename=\"spring.{kind}\"");
        assert_eq!(file.header("content-disposition"), name);
    }
}

#[tokio::test]
async fn links_are_created_from_csv_after_a_preview() {
    let dashboard = TestDashboard::start().await;
    let owner = dashboard.sign_in_as(Role::Owner).await;
    let app = owner.create_app().await;
    let bulk = format!("/apps/{app}/links/bulk");
    let body = |csv: &str, action: &str| {
        let csv: String = url::form_urlencoded::byte_serialize(csv.as_bytes()).collect();
        format!("links={csv}&action={action}")
    };
    let good = "name,slug\nOne,one-link\nTwo,two-link";
    let preview = owner.post(&bulk, &body(good, "preview")).await;
    assert_eq!(preview.status, StatusCode::OK);
    assert!(preview.text.contains("Create 2 links"), "{}", preview.text);
    for faulty in [
        "name,slug\nOne,No Slug",
        "name,slug\nA,aaa\nB,aaa",
        "color\nred",
        "",
    ] {
        let refused = owner.post(&bulk, &body(faulty, "create")).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{faulty}");
        assert!(!refused.text.contains("value=\"create\""), "{faulty}");
    }
    let created = owner.post(&bulk, &body(good, "create")).await;
    assert_eq!(created.status, StatusCode::SEE_OTHER, "{}", created.text);
    let again = owner.post(&bulk, &body(good, "create")).await;
    assert_eq!(again.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(
        again.text.contains("2 of 2 rows must be corrected"),
        "{}",
        again.text
    );
    let list = owner.get(&format!("/apps/{app}/links")).await.text;
    assert_eq!(list.matches("id=\"url-lnk_").count(), 2);
}

#[tokio::test]
async fn a_test_link_may_lead_to_the_own_computer() {
    let dashboard = TestDashboard::start().await;
    let owner = dashboard.sign_in_as(Role::Owner).await;
    let app = owner.create_app().await;
    let new = format!("/apps/{app}/links/new");
    let fields = "name=Trial&type=web_funnel&active=on&destinationUrl=http://localhost:3000/start";
    let form = owner.get(&new).await.text;
    assert!(form.contains("name=\"test\" type=\"checkbox\""), "{form}");
    let refused = owner.post(&new, fields).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(refused.text.contains("Only test links may lead to"));
    let created = owner.post(&new, &format!("{fields}&test=on")).await;
    assert_eq!(created.status, StatusCode::SEE_OTHER, "{}", created.text);
    let location = created.header("location").to_owned();
    let page = owner.get(&location).await.text;
    assert!(
        page.contains("<span class=\"tag\">test link</span>"),
        "{page}"
    );
    assert!(!page.contains("name=\"test\" type=\"checkbox\""), "{page}");
    let list = owner.get(&format!("/apps/{app}/links")).await.text;
    assert!(
        list.contains("<span class=\"tag\">test link</span>"),
        "{list}"
    );
    // The form of a stored link sends the mark along.
    let link = location.split('?').next().unwrap();
    let renamed = format!("{}&test=on", fields.replace("Trial", "Second"));
    let saved = owner.post(link, &renamed).await;
    assert_eq!(saved.status, StatusCode::SEE_OTHER, "{}", saved.text);
    let lost = owner.post(link, fields).await;
    assert_eq!(lost.status, StatusCode::UNPROCESSABLE_ENTITY);
}
