//! What a set-up link makes, and what it does not.

use crate::testing::{BASE_URL, FORM, PASSWORD, PageResponse, SAME_ORIGIN, TestDashboard};
use argon2::Argon2;
use argon2::password_hash::PasswordVerifier;
use argon2::password_hash::phc::PasswordHash;
use axum::http::StatusCode;
use rstest::rstest;
use tributary_domain::access::key::KeyText;
use tributary_domain::access::person::{Email, Role, SetupLink, User};
use tributary_domain::access::{Actor, Authorized, Environment, Permission};
use tributary_domain::audit::Action;
use tributary_domain::vocabulary::page::{Limit, PageRequest};

async fn send(service: &TestDashboard, token: &str, email: &str, password: &str) -> PageResponse {
    let body = url::form_urlencoded::Serializer::new(String::new())
        .append_pair("email", email)
        .append_pair("password", password)
        .finish();
    let path = format!("/setup/{token}");
    service.post(&path, &[SAME_ORIGIN, FORM], &body).await
}

async fn account(service: &TestDashboard, email: &str) -> Option<(User, String)> {
    let email = Email::parse(email).unwrap();
    service.store.user_by_email(&email).await.unwrap()
}

#[tokio::test]
async fn a_link_makes_an_account_whose_password_is_hashed() {
    let service = TestDashboard::start().await;
    let token = service.setup_link(|_| {}).await;
    let reply = send(&service, &token, " You@Example.com", PASSWORD).await;
    assert_eq!(reply.status, StatusCode::OK);
    assert!(!reply.text.contains(PASSWORD));
    assert!(!reply.text.contains(&token));

    let (user, hash) = account(&service, "you@example.com").await.unwrap();
    assert_eq!(
        (user.organization, user.role),
        (service.organization, Role::Owner)
    );
    assert!(
        hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"),
        "{hash}"
    );
    assert!(!hash.contains(PASSWORD));
    let parsed = PasswordHash::new(&hash).unwrap();
    let verified = Argon2::default().verify_password(PASSWORD.as_bytes(), &parsed);
    assert!(verified.is_ok());
}

#[tokio::test]
async fn the_key_that_is_shown_is_the_key_that_is_stored() {
    let service = TestDashboard::start().await;
    let token = service.setup_link(|_| {}).await;
    let reply = send(&service, &token, "you@example.com", PASSWORD).await;
    let shown = KeyText::parse(reply.element("key")).unwrap();
    let stored = service
        .store
        .key_by_digest(shown.digest())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(stored.organization, service.organization);
    assert_eq!(stored.name, "First key");
    assert_eq!(stored.permission, Permission::Full);
    assert_eq!(stored.environment, Environment::Live);
    assert_eq!(stored.hint, shown.hint());
    assert_eq!((stored.expires_at, stored.revoked_at), (None, None));
    assert!(stored.is_valid(service.source.now()));
    assert_eq!(
        service
            .store
            .keys(service.organization)
            .await
            .unwrap()
            .len(),
        1
    );
}

#[tokio::test]
async fn the_audit_log_says_that_the_person_did_it() {
    let service = TestDashboard::start().await;
    let token = service.setup_link(|_| {}).await;
    send(&service, &token, "you@example.com", PASSWORD).await;
    let (user, _) = account(&service, "you@example.com").await.unwrap();
    let page = PageRequest {
        limit: Limit::DEFAULT,
        before: None,
    };
    let caller = Authorized::operator(service.organization);
    let lines = service
        .store
        .audit_log(&caller, None, page)
        .await
        .unwrap()
        .items;
    for action in [Action::UserCreated, Action::KeyCreated] {
        let line = lines.iter().find(|line| line.action == action).unwrap();
        assert_eq!(line.actor, Actor::User(user.id));
    }
}

#[tokio::test]
async fn the_page_shows_how_to_go_on() {
    let service = TestDashboard::start().await;
    let token = service.setup_link(|_| {}).await;
    let reply = send(&service, &token, "you@example.com", PASSWORD).await;
    let key = reply.element("key");
    for (id, path) in [
        ("create-app", "/apps\""),
        ("create-link", "/apps/APP_ID/links\""),
    ] {
        let command = reply
            .element(id)
            .replace("&#34;", "\"")
            .replace("&#39;", "'");
        assert!(
            command.starts_with(&format!("curl \"{BASE_URL}/api/v1{path}")),
            "{command}"
        );
        assert!(
            command.contains(&format!("Authorization: Bearer {key}")),
            "{command}"
        );
    }
    assert!(reply.text.contains("href=\"/api/v1/docs\""));
}

#[rstest]
#[case::owner(Role::Owner, Permission::Full)]
#[case::admin(Role::Admin, Permission::Full)]
#[case::analyst(Role::Analyst, Permission::ReadOnly)]
#[case::viewer(Role::Viewer, Permission::Analytics)]
#[tokio::test]
async fn a_key_may_do_no_more_than_the_person(#[case] role: Role, #[case] permission: Permission) {
    let service = TestDashboard::start().await;
    let token = service.setup_link(|link| link.role = role).await;
    let reply = send(&service, &token, "you@example.com", PASSWORD).await;
    assert_eq!(reply.status, StatusCode::OK);
    let shown = KeyText::parse(reply.element("key")).unwrap();
    let stored = service
        .store
        .key_by_digest(shown.digest())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(stored.permission, permission);
    let shows_commands = reply.text.contains("create-app");
    assert_eq!(shows_commands, permission == Permission::Full);
}

#[tokio::test]
async fn a_link_works_once() {
    let service = TestDashboard::start().await;
    let token = service.setup_link(|_| {}).await;
    assert_eq!(
        send(&service, &token, "you@example.com", PASSWORD)
            .await
            .status,
        StatusCode::OK
    );
    let again = send(&service, &token, "me@example.com", PASSWORD).await;
    assert_eq!(again.status, StatusCode::NOT_FOUND);
    assert!(!again.text.contains("ak_live_"));
    assert!(account(&service, "me@example.com").await.is_none());
}

#[tokio::test]
async fn a_link_works_once_even_for_two_at_a_time() {
    let service = TestDashboard::start().await;
    let token = service.setup_link(|_| {}).await;
    let (one, two) = tokio::join!(
        send(&service, &token, "one@example.com", PASSWORD),
        send(&service, &token, "two@example.com", PASSWORD)
    );
    let mut statuses = [one.status.as_u16(), two.status.as_u16()];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 404]);
}

#[rstest]
#[case::eleven(11, false)]
#[case::twelve(12, true)]
#[case::the_most(256, true)]
#[case::one_more(257, false)]
#[tokio::test]
async fn a_password_has_12_to_256_characters(#[case] chars: usize, #[case] accepted: bool) {
    let service = TestDashboard::start().await;
    let token = service.setup_link(|_| {}).await;
    let password: String = "zwölf schöne Zeichen "
        .chars()
        .cycle()
        .take(chars)
        .collect();
    let reply = send(&service, &token, "you@example.com", &password).await;
    assert_eq!(reply.status.is_success(), accepted);
    assert_eq!(
        account(&service, "you@example.com").await.is_some(),
        accepted
    );
    if !accepted {
        assert!(
            reply
                .input("password")
                .attribute("aria-describedby")
                .unwrap()
                .contains("password-fault")
        );
        assert!(!reply.text.contains(&password));
    }
}

#[tokio::test]
async fn the_largest_form_there_can_be_is_read() {
    let service = TestDashboard::start().await;
    let token = service.setup_link(|_| {}).await;
    let email = format!("{}@example.com", "😀".repeat(242));
    let reply = send(&service, &token, &email, &"😀".repeat(256)).await;
    assert_eq!(reply.status, StatusCode::OK);
}

#[tokio::test]
async fn all_faults_are_shown_and_the_address_is_kept() {
    let service = TestDashboard::start().await;
    let token = service.setup_link(|_| {}).await;
    let reply = send(&service, &token, "you@localhost", "canary").await;
    assert_eq!(reply.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(
        reply
            .element("email-fault")
            .contains("Must be an e-mail address")
    );
    assert!(reply.element("password-fault").contains("at least 12"));
    for name in ["email", "password"] {
        assert_eq!(reply.input(name).attribute("aria-invalid"), Some("true"));
    }
    assert_eq!(
        reply.input("email").attribute("value"),
        Some("you@localhost")
    );
    assert_eq!(reply.input("password").attribute("value"), None);
    assert!(
        !reply.text.contains("canary"),
        "a password is never sent back"
    );
    assert_eq!(
        service.get(&format!("/setup/{token}")).await.status,
        StatusCode::OK,
        "the link is still good"
    );
}

#[tokio::test]
async fn a_good_field_is_not_said_to_be_wrong() {
    let service = TestDashboard::start().await;
    let token = service.setup_link(|_| {}).await;
    let reply = send(&service, &token, "you@example.com", "short").await;
    assert_eq!(reply.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(reply.input("email").attribute("aria-invalid"), None);
    assert!(!reply.text.contains("email-fault"));
}

#[tokio::test]
async fn a_common_password_is_refused() {
    let service = TestDashboard::start().await;
    let token = service.setup_link(|_| {}).await;
    let reply = send(&service, &token, "you@example.com", "Password1234").await;
    assert_eq!(reply.status, StatusCode::UNPROCESSABLE_ENTITY);
}

#[tokio::test]
async fn markup_in_the_address_is_inert() {
    let service = TestDashboard::start().await;
    let token = service.setup_link(|_| {}).await;
    let email = "\"><script>alert(1)</script>";
    let reply = send(&service, &token, email, "short").await;
    assert_eq!(reply.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(!reply.text.contains("<script>"));
    assert_eq!(
        reply.input("email").attribute("value"),
        Some("&#34;&#62;&#60;script&#62;alert(1)&#60;/script&#62;")
    );
    // An address may hold markup and still be one; the page that shows it is safe as well.
    let reply = send(&service, &token, "<b>@example.com", PASSWORD).await;
    assert_eq!(reply.status, StatusCode::OK);
    assert!(!reply.text.contains("<b>"));
    assert!(reply.text.contains("&#60;b&#62;@example.com"));
}

#[tokio::test]
async fn a_link_that_names_an_address_takes_no_other() {
    let service = TestDashboard::start().await;
    let named = |link: &mut SetupLink| link.email = Email::parse("named@example.com").ok();
    let token = service.setup_link(named).await;
    let refused = send(&service, &token, "other@example.com", "short").await;
    assert_eq!(
        refused.input("email").attribute("value"),
        Some("named@example.com")
    );
    let reply = send(&service, &token, "other@example.com", PASSWORD).await;
    assert_eq!(reply.status, StatusCode::OK);
    assert!(account(&service, "other@example.com").await.is_none());
    assert!(account(&service, "named@example.com").await.is_some());
}

#[tokio::test]
async fn an_address_that_is_taken_leaves_the_link_as_it_was() {
    let service = TestDashboard::start().await;
    let one = service.setup_link(|_| {}).await;
    send(&service, &one, "you@example.com", PASSWORD).await;
    // Made afterwards: the first use of such a link ends the others.
    let two = service.setup_link(|_| {}).await;
    let reply = send(&service, &two, "you@example.com", PASSWORD).await;
    assert_eq!(reply.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(reply.element("email-fault").contains("Another account"));
    assert!(!reply.text.contains(PASSWORD));
    assert_eq!(
        send(&service, &two, "me@example.com", PASSWORD)
            .await
            .status,
        StatusCode::OK
    );
}

#[tokio::test]
async fn without_a_database_nothing_is_promised() {
    let service = TestDashboard::start().await;
    let token = service.setup_link(|_| {}).await;
    service.store.close().await;
    let reply = send(&service, &token, "you@example.com", PASSWORD).await;
    assert_eq!(reply.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(reply.header("retry-after"), "5");
    assert!(!reply.text.contains("ak_live_"));
}
