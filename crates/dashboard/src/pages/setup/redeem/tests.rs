//! Tests for redeeming a setup link.

use crate::password::salt_of;
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

async fn send(dashboard: &TestDashboard, token: &str, email: &str, password: &str) -> PageResponse {
    let body = url::form_urlencoded::Serializer::new(String::new())
        .append_pair("email", email)
        .append_pair("password", password)
        .finish();
    let path = format!("/setup/{token}");
    dashboard.post(&path, &[SAME_ORIGIN, FORM], &body).await
}

async fn account(dashboard: &TestDashboard, email: &str) -> Option<(User, String)> {
    let email = Email::parse(email).unwrap();
    let accounts = dashboard.store.users_by_email(&email).await.unwrap();
    let mut own = accounts
        .into_iter()
        .filter(|(user, _)| user.organization == dashboard.organization);
    own.next()
}

#[tokio::test]
async fn creates_an_account_with_a_hashed_password() {
    let dashboard = TestDashboard::start().await;
    let token = dashboard.setup_link(|_| {}).await;
    let response = send(&dashboard, &token, " You@Example.com", PASSWORD).await;
    assert_eq!(response.status, StatusCode::OK);
    assert!(!response.text.contains(PASSWORD));
    assert!(!response.text.contains(&token));

    let (user, hash) = account(&dashboard, "you@example.com").await.unwrap();
    assert_eq!(
        (user.organization, user.role),
        (dashboard.organization, Role::Owner)
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
async fn the_displayed_key_is_stored() {
    let dashboard = TestDashboard::start().await;
    let token = dashboard.setup_link(|_| {}).await;
    let response = send(&dashboard, &token, "you@example.com", PASSWORD).await;
    let shown = KeyText::parse(response.element("key")).unwrap();
    let stored = dashboard
        .store
        .key_by_digest(shown.digest())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(stored.organization, dashboard.organization);
    assert_eq!(stored.name, "First key");
    assert_eq!(stored.permission, Permission::Full);
    assert_eq!(stored.environment, Environment::Live);
    assert_eq!(stored.hint, shown.hint());
    assert_eq!((stored.expires_at, stored.revoked_at), (None, None));
    assert!(stored.is_valid(dashboard.source.now()));
    assert_eq!(
        dashboard
            .store
            .keys(dashboard.organization)
            .await
            .unwrap()
            .len(),
        1
    );
}

#[tokio::test]
async fn an_invited_member_gets_no_key() {
    let dashboard = TestDashboard::start().await;
    let named = |link: &mut SetupLink| link.email = Email::parse("named@example.com").ok();
    let token = dashboard.setup_link(named).await;
    let response = send(&dashboard, &token, "named@example.com", PASSWORD).await;
    assert_eq!(response.status, StatusCode::OK);
    assert!(!response.text.contains("ak_live_"));
    let keys = dashboard.store.keys(dashboard.organization).await.unwrap();
    assert_eq!(keys, []);
}

#[tokio::test]
async fn the_audit_log_names_the_new_user() {
    let dashboard = TestDashboard::start().await;
    let token = dashboard.setup_link(|_| {}).await;
    send(&dashboard, &token, "you@example.com", PASSWORD).await;
    let (user, _) = account(&dashboard, "you@example.com").await.unwrap();
    let page = PageRequest {
        limit: Limit::DEFAULT,
        before: None,
    };
    let caller = Authorized::operator(dashboard.organization);
    let lines = dashboard
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
async fn the_page_shows_next_steps() {
    let dashboard = TestDashboard::start().await;
    let token = dashboard.setup_link(|_| {}).await;
    let response = send(&dashboard, &token, "you@example.com", PASSWORD).await;
    let key = response.element("key");
    for (id, path) in [
        ("create-app", "/apps\""),
        ("create-link", "/apps/APP_ID/links\""),
    ] {
        let command = response
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
    assert!(response.text.contains("href=\"/api/v1/docs\""));
}

#[rstest]
#[case::owner(Role::Owner, Permission::Full)]
#[case::admin(Role::Admin, Permission::Full)]
#[case::analyst(Role::Analyst, Permission::ReadOnly)]
#[case::viewer(Role::Viewer, Permission::Analytics)]
#[tokio::test]
async fn the_first_key_matches_the_role(#[case] role: Role, #[case] permission: Permission) {
    let dashboard = TestDashboard::start().await;
    let token = dashboard.setup_link(|link| link.role = role).await;
    let response = send(&dashboard, &token, "you@example.com", PASSWORD).await;
    assert_eq!(response.status, StatusCode::OK);
    let shown = KeyText::parse(response.element("key")).unwrap();
    let stored = dashboard
        .store
        .key_by_digest(shown.digest())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(stored.permission, permission);
    let shows_commands = response.text.contains("create-app");
    assert_eq!(shows_commands, permission == Permission::Full);
}

#[tokio::test]
async fn a_link_works_once() {
    let dashboard = TestDashboard::start().await;
    let token = dashboard.setup_link(|_| {}).await;
    assert_eq!(
        send(&dashboard, &token, "you@example.com", PASSWORD)
            .await
            .status,
        StatusCode::OK
    );
    let again = send(&dashboard, &token, "me@example.com", PASSWORD).await;
    assert_eq!(again.status, StatusCode::NOT_FOUND);
    assert!(!again.text.contains("ak_live_"));
    assert!(account(&dashboard, "me@example.com").await.is_none());
}

#[tokio::test]
async fn a_link_works_once_for_concurrent_requests() {
    let dashboard = TestDashboard::start().await;
    let token = dashboard.setup_link(|_| {}).await;
    let (one, two) = tokio::join!(
        send(&dashboard, &token, "one@example.com", PASSWORD),
        send(&dashboard, &token, "two@example.com", PASSWORD)
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
    let dashboard = TestDashboard::start().await;
    let token = dashboard.setup_link(|_| {}).await;
    let password: String = "zwölf schöne Zeichen "
        .chars()
        .cycle()
        .take(chars)
        .collect();
    let response = send(&dashboard, &token, "you@example.com", &password).await;
    assert_eq!(response.status.is_success(), accepted);
    assert_eq!(
        account(&dashboard, "you@example.com").await.is_some(),
        accepted
    );
    if !accepted {
        assert!(
            response
                .input("password")
                .attribute("aria-describedby")
                .unwrap()
                .contains("password-fault")
        );
        assert!(!response.text.contains(&password));
    }
}

#[tokio::test]
async fn accepts_the_longest_address_and_password() {
    let dashboard = TestDashboard::start().await;
    let token = dashboard.setup_link(|_| {}).await;
    let email = format!("{}@example.com", "😀".repeat(242));
    let letter = |n: u32| char::from_u32(0x4E00 + n * n * 7 % 20_000).unwrap();
    let password: String = (0..256).map(letter).collect();
    let response = send(&dashboard, &token, &email, &password).await;
    assert_eq!(response.status, StatusCode::OK);
}

#[tokio::test]
async fn shows_all_errors_and_keeps_the_address() {
    let dashboard = TestDashboard::start().await;
    let token = dashboard.setup_link(|_| {}).await;
    let response = send(&dashboard, &token, "you@localhost", "canary").await;
    assert_eq!(response.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(
        response
            .element("email-fault")
            .contains("Must be an email address")
    );
    assert!(response.element("password-fault").contains("at least 12"));
    for name in ["email", "password"] {
        assert_eq!(response.input(name).attribute("aria-invalid"), Some("true"));
    }
    assert_eq!(
        response.input("email").attribute("value"),
        Some("you@localhost")
    );
    assert_eq!(response.input("password").attribute("value"), None);
    assert!(
        !response.text.contains("canary"),
        "the password is not sent back"
    );
    assert_eq!(
        dashboard.get(&format!("/setup/{token}")).await.status,
        StatusCode::OK,
        "the link is still valid"
    );
}

#[tokio::test]
async fn a_valid_field_shows_no_error() {
    let dashboard = TestDashboard::start().await;
    let token = dashboard.setup_link(|_| {}).await;
    let response = send(&dashboard, &token, "you@example.com", "short").await;
    assert_eq!(response.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(response.input("email").attribute("aria-invalid"), None);
    assert!(!response.text.contains("email-fault"));
}

#[tokio::test]
async fn rejects_a_common_password() {
    let dashboard = TestDashboard::start().await;
    let token = dashboard.setup_link(|_| {}).await;
    let response = send(&dashboard, &token, "you@example.com", "Password1234").await;
    assert_eq!(response.status, StatusCode::UNPROCESSABLE_ENTITY);
}

#[tokio::test]
async fn escapes_markup_in_the_address() {
    let dashboard = TestDashboard::start().await;
    let token = dashboard.setup_link(|_| {}).await;
    let email = "\"><script>alert(1)</script>";
    let response = send(&dashboard, &token, email, "short").await;
    assert_eq!(response.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(!response.text.contains("<script>"));
    assert_eq!(
        response.input("email").attribute("value"),
        Some("&#34;&#62;&#60;script&#62;alert(1)&#60;/script&#62;")
    );
    // A valid address may contain markup; the next page escapes it too.
    let response = send(&dashboard, &token, "<b>@example.com", PASSWORD).await;
    assert_eq!(response.status, StatusCode::OK);
    assert!(!response.text.contains("<b>"));
    assert!(response.text.contains("&#60;b&#62;@example.com"));
}

#[tokio::test]
async fn an_address_in_the_link_cannot_be_changed() {
    let dashboard = TestDashboard::start().await;
    let named = |link: &mut SetupLink| link.email = Email::parse("named@example.com").ok();
    let token = dashboard.setup_link(named).await;
    let refused = send(&dashboard, &token, "other@example.com", "short").await;
    assert_eq!(
        refused.input("email").attribute("value"),
        Some("named@example.com")
    );
    let response = send(&dashboard, &token, "other@example.com", PASSWORD).await;
    assert_eq!(response.status, StatusCode::OK);
    assert!(account(&dashboard, "other@example.com").await.is_none());
    assert!(account(&dashboard, "named@example.com").await.is_some());
}

#[tokio::test]
async fn a_taken_address_does_not_use_the_link() {
    let dashboard = TestDashboard::start().await;
    let one = dashboard.setup_link(|_| {}).await;
    send(&dashboard, &one, "you@example.com", PASSWORD).await;
    // Created afterwards, because redeeming the first link invalidates the others.
    let two = dashboard.setup_link(|_| {}).await;
    let response = send(&dashboard, &two, "you@example.com", PASSWORD).await;
    assert_eq!(response.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(response.element("email-fault").contains("Another member"));
    assert!(!response.text.contains(PASSWORD));
    assert_eq!(
        send(&dashboard, &two, "me@example.com", PASSWORD)
            .await
            .status,
        StatusCode::OK
    );
}

#[tokio::test]
async fn an_account_elsewhere_is_not_revealed() {
    let mut dashboard = TestDashboard::start().await;
    let token = dashboard.setup_link(|_| {}).await;
    send(&dashboard, &token, "you@example.com", PASSWORD).await;
    let (_, first) = account(&dashboard, "you@example.com").await.unwrap();
    dashboard.switch_to_new_organization().await;
    for email in ["you@example.com", "new@example.com"] {
        let token = dashboard.setup_link(|_| {}).await;
        let response = send(&dashboard, &token, email, "another-long-password").await;
        assert_eq!(response.status, StatusCode::OK, "{email}");
    }
    let (_, second) = account(&dashboard, "you@example.com").await.unwrap();
    assert_ne!(first, second, "each account has its own password");
    assert_eq!(
        salt_of(&first),
        salt_of(&second),
        "one computation verifies both"
    );
}

#[tokio::test]
async fn reports_an_unavailable_database() {
    let dashboard = TestDashboard::start().await;
    let token = dashboard.setup_link(|_| {}).await;
    dashboard.store.close().await;
    let response = send(&dashboard, &token, "you@example.com", PASSWORD).await;
    assert_eq!(response.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(response.header("retry-after"), "5");
    assert!(!response.text.contains("ak_live_"));
}
