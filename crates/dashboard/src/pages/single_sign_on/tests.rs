//! Pages of single sign-on with a provider that answers as the test says. Whole sign-ins are in
//! `acceptance/tests/spec/single_sign_on.rs`.

use crate::testing::{FORM, SAME_ORIGIN, TestDashboard};
use axum::http::{Method, StatusCode};
use tributary_domain::access::person::Role;

const FIELDS: &str = "issuer=https%3A%2F%2Flogin.example.com&clientId=client&clientSecret=secret\
                      &emailDomains=example.com&defaultRole=viewer";

#[tokio::test]
async fn the_sign_in_page_names_organization_and_provider() {
    let dashboard = TestDashboard::start().await;
    let path = format!("/sign-in/sso/{}", dashboard.organization);
    assert_eq!(dashboard.get(&path).await.status, StatusCode::NOT_FOUND);
    let owner = dashboard.sign_in_as(Role::Owner).await;
    let saved = owner.post("/team/single-sign-on", FIELDS).await;
    assert_eq!(saved.status, StatusCode::SEE_OTHER, "{}", saved.text);
    let page = dashboard.get(&format!("{path}?next=//evil.test")).await;
    assert_eq!(page.status, StatusCode::OK);
    assert!(page.text.contains("login.example.com") && page.text.contains("Example"));
    assert_eq!(page.input("next").attribute("value"), Some("/home"));
    assert!(
        !page.text.contains("client"),
        "only owners see the settings"
    );
}

#[tokio::test]
async fn a_sign_in_leads_to_the_provider() {
    let dashboard = TestDashboard::start().await;
    let owner = dashboard.sign_in_as(Role::Owner).await;
    owner.post("/team/single-sign-on", FIELDS).await;
    let path = format!("/sign-in/sso/{}", dashboard.organization);
    let begun = dashboard
        .post(&path, &[SAME_ORIGIN, FORM], "next=/account")
        .await;
    assert_eq!(begun.status, StatusCode::OK);
    let refresh = begun.header("refresh");
    let start = "0; url=https://login.example.com/in?response_type=code&scope=openid+email";
    assert!(refresh.starts_with(start), "{refresh}");
    let cookie = begun.header("set-cookie");
    assert!(cookie.starts_with("tributary-sign-on="), "{cookie}");
    for part in ["HttpOnly", "SameSite=Lax", "Max-Age=600"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    let elsewhere = [("sec-fetch-site", "cross-site"), FORM];
    let refused = dashboard.post(&path, &elsewhere, "").await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn an_answer_that_nobody_asked_for_is_refused() {
    let dashboard = TestDashboard::start().await;
    let owner = dashboard.sign_in_as(Role::Owner).await;
    owner.post("/team/single-sign-on", FIELDS).await;
    let path = format!("/sign-in/sso/{}/callback", dashboard.organization);
    for cookie in [
        "",
        "tributary-sign-on=",
        "tributary-sign-on=00ff",
        "tributary-sign-on=x",
    ] {
        for query in ["", "?code=x&state=y", "?error=%3Cscript%3E", "?code=%ff"] {
            let headers = [("cookie", cookie)];
            let path = format!("{path}{query}");
            let response = dashboard.send(Method::GET, &path, &headers, "").await;
            assert_eq!(response.status, StatusCode::BAD_REQUEST, "{cookie} {query}");
            assert!(!response.text.contains("<script>"));
        }
    }
}

#[tokio::test]
async fn an_outdated_form_does_not_overwrite_another_change() {
    let dashboard = TestDashboard::start().await;
    let owner = dashboard.sign_in_as(Role::Owner).await;
    owner.post("/team/single-sign-on", FIELDS).await;
    let page = owner.get("/team/single-sign-on").await;
    let tag = page.input("tag").attribute("value").unwrap().to_owned();
    let form = format!("{FIELDS}&tag={tag}");
    let first = owner.post("/team/single-sign-on", &form).await;
    assert_eq!(first.status, StatusCode::SEE_OTHER);
    let second = owner.post("/team/single-sign-on", &form).await;
    assert_eq!(second.status, StatusCode::CONFLICT);
}
