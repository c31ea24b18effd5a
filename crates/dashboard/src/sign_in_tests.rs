//! Guesses of passwords at sign-in, and browsers that are known.

use crate::testing::{FORM, KEYRING, NOW, PASSWORD, PageResponse, SAME_ORIGIN, TestDashboard};
use axum::http::{Method, StatusCode};
use std::time::Duration;
use tributary_domain::access::credential::SignInCredential;
use tributary_domain::access::known_browser::{
    KNOWN_BROWSER_LIFETIME, KnownBrowser, KnownBrowsers,
};
use tributary_domain::access::person::{Email, Role};
use tributary_domain::access::session::SESSIONS_LISTED_MAX;
use tributary_domain::access::{Actor, AppsRead, Authorized};
use tributary_domain::audit::{Action, AuditEntry};
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::id::{OrganizationId, UserId};
use tributary_domain::vocabulary::page::{Limit, PageRequest};
use tributary_store::NewSession;

/// Creates an account. Returns its cookies, each as a request sends it.
async fn account(dashboard: &TestDashboard, email: &str) -> Vec<String> {
    let path = format!("/setup/{}", dashboard.setup_link(|_| {}).await);
    let body = format!("email={email}&password={PASSWORD}");
    let created = dashboard.post(&path, &[SAME_ORIGIN, FORM], &body).await;
    assert_eq!(created.status, StatusCode::OK);
    cookies(&created)
}

async fn user(dashboard: &TestDashboard, email: &str) -> UserId {
    let email = Email::parse(email).unwrap();
    let accounts = dashboard.store.users_by_email(&email).await.unwrap();
    accounts[0].0.id
}

fn cookies(response: &PageResponse) -> Vec<String> {
    let cookies = response.headers.get_all("set-cookie").iter();
    let pair = |text: &str| text.split(';').next().unwrap().to_owned();
    cookies.map(|one| pair(one.to_str().unwrap())).collect()
}

async fn sign_in(dashboard: &TestDashboard, password: &str, cookie: &str) -> PageResponse {
    let headers = [SAME_ORIGIN, FORM, ("cookie", cookie)];
    let body = format!("email=you@example.com&password={password}");
    dashboard.post("/sign-in", &headers, &body).await
}

async fn entries(dashboard: &TestDashboard, organization: OrganizationId) -> Vec<AuditEntry> {
    let page = PageRequest {
        limit: Limit::DEFAULT,
        before: None,
    };
    let caller: Authorized<AppsRead> = Authorized::operator(organization);
    let log = dashboard.store.audit_log(&caller, None, page).await;
    log.unwrap().items
}

async fn lock_out(dashboard: &TestDashboard) {
    while sign_in(dashboard, "wrong", "").await.status != StatusCode::TOO_MANY_REQUESTS {}
}

#[tokio::test]
async fn a_known_browser_signs_in_while_strangers_guess() {
    let dashboard = TestDashboard::start().await;
    let cookies_of_owner = account(&dashboard, "you@example.com").await;
    let browser = &cookies_of_owner[1];
    assert!(
        browser.starts_with("tributary-browser=browser_"),
        "{browser}"
    );
    lock_out(&dashboard).await;
    let right = sign_in(&dashboard, PASSWORD, browser).await;
    assert_eq!(right.status, StatusCode::SEE_OTHER);
    assert_eq!(&cookies(&right)[1], browser, "the browser stays the same");

    let twice = format!("{browser}; {browser}");
    let forged = browser.replace("browser_", "browser_0");
    for cookie in [&twice, &forged, &cookies_of_owner[0]] {
        let refused = sign_in(&dashboard, PASSWORD, cookie).await;
        assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS, "{cookie}");
    }
    for _ in 0..5 {
        let wrong = sign_in(&dashboard, "wrong", browser).await;
        assert_eq!(wrong.status, StatusCode::UNPROCESSABLE_ENTITY);
    }
    let refused = sign_in(&dashboard, PASSWORD, browser).await;
    assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS);
}

#[tokio::test]
async fn a_browser_is_known_to_its_own_user_only() {
    let mut dashboard = TestDashboard::start().await;
    account(&dashboard, "you@example.com").await;
    dashboard.switch_to_new_organization().await;
    let stranger = account(&dashboard, "other@example.com").await;
    lock_out(&dashboard).await;
    let refused = sign_in(&dashboard, PASSWORD, &stranger[1]).await;
    assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS);
}

#[tokio::test]
async fn guesses_at_the_same_time_are_limited() {
    let dashboard = TestDashboard::start().await;
    account(&dashboard, "you@example.com").await;
    let pages: [PageResponse; 8] = tokio::join!(
        sign_in(&dashboard, "a", ""),
        sign_in(&dashboard, "b", ""),
        sign_in(&dashboard, "c", ""),
        sign_in(&dashboard, "d", ""),
        sign_in(&dashboard, "e", ""),
        sign_in(&dashboard, "f", ""),
        sign_in(&dashboard, "g", ""),
        sign_in(&dashboard, "h", ""),
    )
    .into();
    let checked = pages
        .iter()
        .filter(|page| page.status == StatusCode::UNPROCESSABLE_ENTITY);
    // The password of the new account counts as the first guess.
    assert_eq!(checked.count(), 4);
}

#[tokio::test]
async fn failed_sign_ins_are_in_the_audit_log() {
    let dashboard = TestDashboard::start().await;
    account(&dashboard, "you@example.com").await;
    let client = dashboard.client("2001:db8::7");
    let body = "email=you@example.com&password=wrong";
    let headers = [SAME_ORIGIN, FORM];
    let wrong = dashboard.post_from(client, "/sign-in", &headers, body);
    assert_eq!(wrong.await.status, StatusCode::UNPROCESSABLE_ENTITY);
    // The response does not wait for the entry.
    let failed = loop {
        let entries = entries(&dashboard, dashboard.organization).await;
        let mut entries = entries.into_iter();
        match entries.find(|one| one.action == Action::UserSignInFailed) {
            Some(entry) => break entry,
            None => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    };
    let user = user(&dashboard, "you@example.com").await;
    assert_eq!(failed.target, user.to_string());
    assert_eq!(failed.address.as_deref(), Some("2001:db8::7"));
    assert_eq!(failed.request_id, Some(client.request_id.to_string()));
    let owner = dashboard.sign_in_as(Role::Owner).await;
    let log = owner.get("/audit-log").await.text;
    assert!(log.contains("you@example.com"), "{log}");
}

/// A client with one IPv6 address usually has its whole /64.
#[tokio::test]
async fn guesses_from_one_network_are_counted_together() {
    let dashboard = TestDashboard::start().await;
    let guess = async |address: &str, account: usize| {
        let body = format!("email=a{account}@example.com&password=wrong");
        let (client, headers) = (dashboard.client(address), [SAME_ORIGIN, FORM]);
        let guessed = dashboard.post_from(client, "/sign-in", &headers, &body);
        guessed.await.status
    };
    for account in 0..5 {
        let address = ["2001:db8::1", "2001:db8::2"][account % 2];
        let status = guess(address, account).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{account}");
    }
    for address in ["2001:db8::1", "2001:db8::2", "2001:db8::3"] {
        let status = guess(address, 5).await;
        assert_eq!(status, StatusCode::TOO_MANY_REQUESTS, "{address}");
    }
    let elsewhere = guess("2001:db8:0:1::1", 6).await;
    assert_eq!(elsewhere, StatusCode::UNPROCESSABLE_ENTITY);
}

#[tokio::test]
async fn signing_in_again_ends_the_session_of_this_browser() {
    let dashboard = TestDashboard::start().await;
    account(&dashboard, "you@example.com").await;
    let sign_in = async |cookie: &str| {
        let headers = [SAME_ORIGIN, FORM, ("cookie", cookie)];
        let body = format!("email=you@example.com&password={PASSWORD}");
        cookies(&dashboard.post("/sign-in", &headers, &body).await).remove(0)
    };
    let status = async |cookie: &str| {
        let headers = [("cookie", cookie)];
        let page = dashboard.send(Method::GET, "/account", &headers, "");
        page.await.status
    };
    let (elsewhere, first) = (sign_in("").await, sign_in("").await);
    let second = sign_in(&first).await;
    assert_eq!(status(&first).await, StatusCode::SEE_OTHER, "it ended");
    assert_eq!(status(&second).await, StatusCode::OK);
    assert_eq!(status(&elsewhere).await, StatusCode::OK, "another browser");
}

#[tokio::test]
async fn the_session_of_another_person_ends_in_its_own_organization() {
    let mut dashboard = TestDashboard::start().await;
    let first = account(&dashboard, "first@example.com").await;
    let organization = dashboard.organization;
    dashboard.switch_to_new_organization().await;
    account(&dashboard, "you@example.com").await;
    let replaced = sign_in(&dashboard, PASSWORD, &first[0]).await;
    assert_eq!(replaced.status, StatusCode::SEE_OTHER);
    let user = user(&dashboard, "first@example.com").await;
    let entries = entries(&dashboard, organization).await;
    let ended = entries
        .iter()
        .find(|one| one.action == Action::UserSignedOut);
    let ended = ended.expect("the session ended");
    assert_eq!(ended.actor, Actor::User(user));
    assert_eq!(ended.target, user.to_string());
}

#[tokio::test]
async fn a_browser_stays_known_for_a_time_after_each_sign_in() {
    let dashboard = TestDashboard::start().await;
    account(&dashboard, "you@example.com").await;
    let known = KnownBrowser {
        user: user(&dashboard, "you@example.com").await,
        since: NOW.minus(KNOWN_BROWSER_LIFETIME),
        random: [5; 16],
    };
    let browsers = KnownBrowsers::new(&KEYRING);
    let cookie = |known: &KnownBrowser| format!("tributary-browser={}", browsers.sign(known));
    lock_out(&dashboard).await;
    let expired = sign_in(&dashboard, PASSWORD, &cookie(&known)).await;
    assert_eq!(expired.status, StatusCode::TOO_MANY_REQUESTS);
    let younger = known.renewed(known.since.plus(Duration::from_secs(1)));
    let right = sign_in(&dashboard, PASSWORD, &cookie(&younger)).await;
    assert_eq!(right.status, StatusCode::SEE_OTHER);
    assert_eq!(cookies(&right)[1], cookie(&known.renewed(NOW)));
}

#[tokio::test]
async fn all_other_sessions_end_even_if_they_are_not_listed() {
    let dashboard = TestDashboard::start().await;
    let owner = dashboard.sign_in_as(Role::Owner).await;
    let current = owner.session_digest();
    let found = dashboard.store.session(current).await.unwrap().unwrap();
    let user = found.user.id;
    let (_, hash) = dashboard.store.account(user).await.unwrap().unwrap();
    for number in 0..=SESSIONS_LISTED_MAX {
        let session = NewSession {
            session: found.session.clone(),
            digest: Digest::of(&number.to_be_bytes()),
            credential: SignInCredential::Password {
                hash: hash.clone(),
                has_second_step: false,
            },
        };
        let origin = dashboard.source.origin(Actor::User(user), None, None);
        let begun = dashboard.store.begin_session(session, origin);
        begun.await.unwrap();
    }
    let ended = owner.post("/account/sessions", "session=").await;
    assert_eq!(ended.status, StatusCode::SEE_OTHER);
    let left = dashboard.store.sessions_of(user).await.unwrap();
    assert!(left.iter().map(|(digest, _)| *digest).eq([current]));
}

#[tokio::test]
async fn a_user_sees_and_ends_own_sessions() {
    let dashboard = TestDashboard::start().await;
    account(&dashboard, "you@example.com").await;
    let sign_in = async |agent: &str| {
        let headers = [SAME_ORIGIN, FORM, ("user-agent", agent)];
        let body = format!("email=you@example.com&password={PASSWORD}");
        cookies(&dashboard.post("/sign-in", &headers, &body).await).remove(0)
    };
    let here = sign_in("Mozilla/5.0 (X11; Linux x86_64) Firefox/131.0").await;
    let there = sign_in("Mozilla/5.0 (Windows NT 10.0) Chrome/130.0 Safari/537.36").await;
    let page = async |cookie: &str| {
        let headers = [("cookie", cookie)];
        dashboard.send(Method::GET, "/account", &headers, "").await
    };
    let shown = page(&here).await;
    assert!(
        shown
            .text
            .contains("Firefox on Linux <span class=\"tag\">this browser")
    );
    assert!(shown.text.contains("Chrome on Windows"));
    let token = shown
        .input("formToken")
        .attribute("value")
        .unwrap()
        .to_owned();
    let end = async |session: &str| {
        let headers = [SAME_ORIGIN, FORM, ("cookie", here.as_str())];
        let body = format!("formToken={token}&session={session}");
        let ended = dashboard.post("/account/sessions", &headers, &body).await;
        assert_eq!(ended.status, StatusCode::SEE_OTHER);
    };
    end("0000000000000000").await;
    assert_eq!(page(&there).await.status, StatusCode::OK, "an unknown name");
    let name = shown.input("session").attribute("value").unwrap();
    end(name).await;
    let again = sign_in("curl/8").await;
    end("").await;
    assert_eq!(page(&here).await.status, StatusCode::OK);
    for ended in [there, again] {
        assert_eq!(page(&ended).await.status, StatusCode::SEE_OTHER);
    }
}
