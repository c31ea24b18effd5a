//! Tests for the proof that sensitive actions ask for.

use crate::testing::{PASSWORD, PageResponse, TestDashboard, TestUser};
use crate::tests::FORMS;
use axum::http::StatusCode;
use std::time::Duration;
use tributary_domain::access::person::Role;
use tributary_domain::access::proof::{
    FormCondition, PROOF_LIFETIME, SENSITIVE_ACTIONS, StoredField,
};

const NEW_KEY: &str = "name=Exporter+%26+Co&permission=full&environment=live";

fn is_question(page: &PageResponse) -> bool {
    page.text.contains("<h1>Confirm that it is you</h1>")
}

/// Returns whether a route's path leads to this request's path. The router prefers a route with one of
/// these words to one with a parameter in the same place.
fn leads_to(route: &str, path: &str) -> bool {
    let (route, path) = (route.split('/'), path.split('/'));
    let same = |(route, path): (&str, &str)| {
        route == path || (route.starts_with('{') && !["new", "preview"].contains(&path))
    };
    route.clone().count() == path.clone().count() && route.zip(path).all(same)
}

/// Submits the form of a page that asks, with this password.
async fn answer(
    user: &TestUser<'_>,
    target: &str,
    page: &PageResponse,
    word: &str,
) -> PageResponse {
    let form = page.input("proof.form").attribute("value").unwrap();
    let body = format!("proof.form={form}&proof.password={word}");
    user.post(target, &body).await
}

#[tokio::test]
async fn a_sensitive_form_continues_after_the_password() {
    let dashboard = TestDashboard::start().await;
    let owner = dashboard.signed_in_earlier(Role::Owner, PROOF_LIFETIME);
    let owner = owner.await;
    let asked = owner.post("/keys", NEW_KEY).await;
    assert_eq!(asked.status, StatusCode::FORBIDDEN, "{}", asked.text);
    assert!(is_question(&asked) && asked.text.contains("to create an API key"));
    assert!(!asked.text.contains("Exporter"), "the form is encrypted");
    let keys = async || dashboard.store.keys(dashboard.organization).await.unwrap();
    assert!(keys().await.is_empty());

    let wrong = answer(&owner, "/keys", &asked, "wrong").await;
    assert_eq!(wrong.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(is_question(&wrong) && wrong.text.contains("This is not your password"));
    let elsewhere = answer(&owner, "/team/invite", &wrong, PASSWORD).await;
    assert_eq!(elsewhere.status, StatusCode::FORBIDDEN);
    assert!(elsewhere.text.contains("This form has expired"));
    let created = answer(&owner, "/keys", &wrong, PASSWORD).await;
    assert_eq!(created.status, StatusCode::OK, "{}", created.text);
    assert_eq!(keys().await[0].name, "Exporter & Co");

    let next = owner.post("/keys", NEW_KEY).await;
    assert_eq!(next.status, StatusCode::OK, "the proof lasts a while");
    let log = owner.get("/audit-log").await.text;
    assert!(log.contains("user.sign_in_failed"), "{log}");
}

#[tokio::test]
async fn a_recent_sign_in_is_a_proof() {
    let dashboard = TestDashboard::start().await;
    let ago = PROOF_LIFETIME.checked_sub(Duration::from_secs(1)).unwrap();
    let owner = dashboard.signed_in_earlier(Role::Owner, ago).await;
    assert_eq!(owner.post("/keys", NEW_KEY).await.status, StatusCode::OK);
}

#[tokio::test]
async fn the_form_of_another_session_does_not_continue() {
    let dashboard = TestDashboard::start().await;
    let one = dashboard
        .signed_in_earlier(Role::Owner, PROOF_LIFETIME)
        .await;
    let other = dashboard
        .signed_in_earlier(Role::Owner, PROOF_LIFETIME)
        .await;
    let asked = one.post("/keys", NEW_KEY).await;
    let stolen = answer(&other, "/keys", &asked, PASSWORD).await;
    assert!(stolen.text.contains("This form has expired"));
}

#[tokio::test]
async fn guesses_are_limited_and_do_not_lock_others_out() {
    let dashboard = TestDashboard::start().await;
    let owner = dashboard
        .signed_in_earlier(Role::Owner, PROOF_LIFETIME)
        .await;
    let other = dashboard
        .signed_in_earlier(Role::Owner, PROOF_LIFETIME)
        .await;
    let asked = owner.post("/keys", NEW_KEY).await;
    for _ in 0..5 {
        let wrong = answer(&owner, "/keys", &asked, "wrong").await;
        assert_eq!(wrong.status, StatusCode::UNPROCESSABLE_ENTITY);
    }
    for word in ["wrong", PASSWORD] {
        let refused = answer(&owner, "/keys", &asked, word).await;
        assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS);
        assert!(refused.text.contains("Try again in 11 seconds."));
    }
    let asked = other.post("/keys", NEW_KEY).await;
    let created = answer(&other, "/keys", &asked, PASSWORD).await;
    assert_eq!(created.status, StatusCode::OK);
}

#[tokio::test]
async fn a_sensitive_page_continues_after_the_password() {
    let dashboard = TestDashboard::start().await;
    let owner = dashboard
        .signed_in_earlier(Role::Owner, PROOF_LIFETIME)
        .await;
    let app = owner.create_app().await;
    let path = format!("/apps/{app}/users/someone/data?environment=test");
    let asked = owner.get(&path).await;
    assert_eq!(asked.status, StatusCode::FORBIDDEN);
    assert!(is_question(&asked) && asked.text.contains("export the data of a person"));
    assert_eq!(asked.input("next").attribute("value"), Some(path.as_str()));
    let confirm = async |next: &str, word: &str| {
        let body = format!("next={next}&proof.password={word}");
        owner.post("/account/confirm", &body).await
    };
    let wrong = confirm("/keys", "wrong").await;
    assert_eq!(wrong.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(wrong.input("next").attribute("value"), Some("/keys"));
    let right = confirm("/keys", PASSWORD).await;
    assert_eq!(right.header("location"), "/keys");
    let foreign = confirm("https://evil.test/", PASSWORD).await;
    assert_eq!(foreign.header("location"), "/home");
    // Nothing is stored about this user.
    assert_eq!(owner.get(&path).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_save_asks_only_if_it_sends_figures_elsewhere() {
    let dashboard = TestDashboard::start().await;
    let recent = dashboard.sign_in_as(Role::Owner).await;
    let app = recent.create_app().await;
    let (settings, notices) = (
        format!("/apps/{app}/settings"),
        format!("/apps/{app}/notices"),
    );
    let saved = |name: &str, url: &str| format!("name={name}&timezone=UTC&alertWebhookUrl={url}");
    let notice = |name: &str, recipients: &str, url: &str| {
        format!(
            "name={name}&topic=daily_summary&hour=8&channel=email&recipients={recipients}&url={url}"
        )
    };
    let (hook, both) = ("https://one.example.com/hook", "b@x.test%0D%0Aa@x.test");
    let stored = recent.post(&settings, &saved("Runner", hook)).await;
    assert_eq!(stored.status, StatusCode::SEE_OTHER, "{}", stored.text);
    let daily = notice("Daily", both, "");
    let created = recent.post(&format!("{notices}/new"), &daily).await;
    assert_eq!(created.status, StatusCode::SEE_OTHER, "{}", created.text);
    let path = created.header("location").split('?').next().unwrap();

    let owner = dashboard.signed_in_earlier(Role::Owner, PROOF_LIFETIME);
    let owner = owner.await;
    let other = "https://two.example.com/hook";
    for (path, form, is_asked) in [
        (settings.as_str(), saved("Walker", hook), false),
        (settings.as_str(), saved("Walker", other), true),
        (settings.as_str(), saved("Walker", ""), true),
        (path, notice("Every+day", both, ""), false),
        (
            path,
            notice("Every+day", "a@x.test%0D%0Ab@x.test", ""),
            false,
        ),
        (path, notice("Every+day", "a@x.test", ""), true),
        (path, notice("Every+day", both, other), true),
    ] {
        let page = owner.post(path, &form).await;
        assert_eq!(is_question(&page), is_asked, "{form}");
        assert!(is_asked || page.status == StatusCode::SEE_OTHER, "{form}");
    }
}

#[tokio::test]
async fn every_sensitive_form_asks_and_no_other_does() {
    let dashboard = TestDashboard::start().await;
    let owner = dashboard
        .signed_in_earlier(Role::Owner, PROOF_LIFETIME)
        .await;
    let app = owner.create_app().await;
    let mut tested = 0;
    for (path, _) in FORMS.iter().filter(|(path, _)| *path != "/sign-out") {
        let action = SENSITIVE_ACTIONS
            .iter()
            .find(|action| !action.is_page && leads_to(action.path, path));
        let target = path.replace("{app}", &app);
        let fields: Vec<&str> = match action.map(|action| action.condition) {
            Some(FormCondition::Fields { filled, changed }) => {
                let asked = owner.post(&target, "name=x").await;
                assert!(!is_question(&asked), "{path}");
                let changed = changed.map(StoredField::as_str);
                filled.iter().copied().chain(changed).collect()
            }
            _ => vec!["x"],
        };
        for field in fields {
            let asked = owner.post(&target, &format!("{field}=y")).await;
            // `/account/confirm` continues a page, and this request names none, so it asks again.
            let expected = action.is_some() || *path == "/account/confirm";
            assert_eq!(is_question(&asked), expected, "{path} {field}");
        }
        tested += usize::from(action.is_some());
    }
    let forms = SENSITIVE_ACTIONS.iter().filter(|action| !action.is_page);
    assert_eq!(tested, forms.count());
}
