//! Tests for second factors: set-up, sign-in, recovery, and organizations that require one.

use crate::testing::{FORM, NOW, PASSWORD, PageResponse, SAME_ORIGIN, TestDashboard, TestUser};
use axum::http::{Method, StatusCode};
use std::time::Duration;
use tributary_domain::access::factor::pending::PENDING_SIGN_IN_LIFETIME;
use tributary_domain::access::factor::totp::TotpSecret;
use tributary_domain::access::key::KeyKind;
use tributary_domain::access::password_reset::{OPERATOR_RESET_LIFETIME, PasswordReset};
use tributary_domain::access::person::{Email, Role};
use tributary_domain::access::proof::PROOF_LIFETIME;
use tributary_domain::access::{Actor, Environment};
use tributary_domain::audit::AuditContext;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::NewPasswordReset;

const STEP: Duration = Duration::from_secs(30);

/// Reads the secret that the set-up page shows.
fn shown_secret(page: &PageResponse) -> TotpSecret {
    let letters = page
        .element("secret")
        .chars()
        .filter(char::is_ascii_alphanumeric);
    let values = letters.map(|letter| match letter {
        'A'..='Z' => u64::from(letter) - u64::from('A'),
        _ => u64::from(letter) - u64::from('2') + 26,
    });
    let values: Vec<u64> = values.collect();
    let bytes: Vec<u8> = values
        .chunks(8)
        .flat_map(|group| {
            let number = group.iter().fold(0, |number, value| (number << 5) | value);
            number.to_be_bytes()[3..].to_vec()
        })
        .collect();
    TotpSecret::from_slice(&bytes).unwrap()
}

async fn submit_code(user: &TestUser<'_>, page: &PageResponse, code: &str) -> PageResponse {
    let setup = page.input("setup").attribute("value").unwrap();
    let form = format!("setup={setup}&name=Phone&code={code}");
    user.post("/account/authenticator", &form).await
}

/// Sets up an authenticator app with the code of the step before. Returns its secret, and the page with
/// the recovery codes.
async fn set_up(user: &TestUser<'_>) -> (TotpSecret, PageResponse) {
    let page = user.get("/account/authenticator").await;
    let secret = shown_secret(&page);
    let code = secret.code_at(NOW.minus(STEP));
    let done = submit_code(user, &page, &code).await;
    assert_eq!(done.status, StatusCode::OK, "{}", done.text);
    (secret, done)
}

fn recovery_codes(page: &PageResponse) -> Vec<String> {
    page.element("codes").lines().map(str::to_owned).collect()
}

/// Creates an account with a password and a session. Returns the email address with it.
async fn account(dashboard: &TestDashboard) -> TestUser<'_> {
    dashboard
        .signed_in_earlier(Role::Owner, Duration::ZERO)
        .await
}

async fn email(user: &TestUser<'_>) -> String {
    let page = user.get("/account").await.text;
    let start = page.split_once("data-user=\"").unwrap().1;
    start.split_once('"').unwrap().0.to_owned()
}

/// Signs in with the password. Returns the response and the cookie of the pending sign-in.
async fn password_step(dashboard: &TestDashboard, email: &str) -> (PageResponse, String) {
    let body = format!("email={email}&password={PASSWORD}&next=%2Fteam");
    let page = dashboard
        .post("/sign-in", &[SAME_ORIGIN, FORM], &body)
        .await;
    let cookie = page.header("set-cookie").split(';').next().unwrap();
    let cookie = cookie.to_owned();
    (page, cookie)
}

async fn code_step(dashboard: &TestDashboard, cookie: &str, code: &str) -> PageResponse {
    let headers = [SAME_ORIGIN, FORM, ("cookie", cookie)];
    let body = format!("next=%2Fteam&code={code}");
    dashboard.post("/sign-in/code", &headers, &body).await
}

#[tokio::test]
async fn a_sign_in_needs_a_code_after_the_set_up() {
    let dashboard = TestDashboard::start().await;
    let owner = account(&dashboard).await;
    let email = email(&owner).await;
    let (secret, done) = set_up(&owner).await;
    assert_eq!(recovery_codes(&done).len(), 10);
    let shown = owner.get("/account").await.text;
    assert!(shown.contains("<td>Phone</td>") && shown.contains("10 unused recovery codes"));

    let (first, cookie) = password_step(&dashboard, &email).await;
    assert_eq!(first.status, StatusCode::SEE_OTHER);
    assert_eq!(first.header("location"), "/sign-in/code?next=%2Fteam");
    assert!(
        cookie.starts_with("tributary-pending="),
        "no session: {cookie}"
    );
    let none = [("cookie", cookie.as_str())];
    let no_session = dashboard.send(Method::GET, "/account", &none, "").await;
    assert_eq!(no_session.status, StatusCode::SEE_OTHER);
    let page = dashboard
        .send(Method::GET, "/sign-in/code", &none, "")
        .await;
    assert_eq!(page.status, StatusCode::OK);
    assert_eq!(
        page.input("code").attribute("autocomplete"),
        Some("one-time-code")
    );

    let wrong = code_step(&dashboard, &cookie, "000000").await;
    assert_eq!(wrong.status, StatusCode::UNPROCESSABLE_ENTITY);
    let old = code_step(&dashboard, &cookie, &secret.code_at(NOW.minus(STEP))).await;
    assert_eq!(
        old.status,
        StatusCode::UNPROCESSABLE_ENTITY,
        "used by the set-up"
    );
    let right = code_step(&dashboard, &cookie, &secret.code_at(NOW)).await;
    assert_eq!(right.status, StatusCode::SEE_OTHER, "{}", right.text);
    assert_eq!(right.header("location"), "/team");
    let cookies: Vec<&str> = right
        .headers
        .get_all("set-cookie")
        .iter()
        .map(|one| one.to_str().unwrap())
        .collect();
    assert!(cookies[0].starts_with("tributary=session_"), "{cookies:?}");
    assert!(
        cookies[2].starts_with("tributary-pending=; "),
        "{cookies:?}"
    );
    let again = code_step(&dashboard, &cookie, &secret.code_at(NOW)).await;
    assert_eq!(again.status, StatusCode::UNPROCESSABLE_ENTITY, "replayed");
}

#[tokio::test]
async fn the_set_up_signs_out_other_browsers() {
    let dashboard = TestDashboard::start().await;
    let owner = account(&dashboard).await;
    let body = format!("email={}&password={PASSWORD}", email(&owner).await);
    let headers = [SAME_ORIGIN, FORM];
    let other = dashboard.post("/sign-in", &headers, &body).await;
    let other = other.header("set-cookie").split(';').next().unwrap();
    let account = async || {
        let headers = [("cookie", other)];
        let page = dashboard.send(Method::GET, "/account", &headers, "").await;
        page.status
    };
    assert_eq!(account().await, StatusCode::OK);
    let (_, done) = set_up(&owner).await;
    assert!(done.text.contains("were signed out"), "{}", done.text);
    assert_eq!(account().await, StatusCode::SEE_OTHER);
    assert_eq!(owner.get("/account").await.status, StatusCode::OK);
    let replaced = owner.post("/account/recovery-codes", "").await;
    assert!(!replaced.text.contains("were signed out"));
}

#[tokio::test]
async fn guesses_of_codes_are_limited() {
    let dashboard = TestDashboard::start().await;
    let owner = account(&dashboard).await;
    let email = email(&owner).await;
    let (secret, _) = set_up(&owner).await;
    let (_, cookie) = password_step(&dashboard, &email).await;
    for _ in 0..5 {
        let wrong = code_step(&dashboard, &cookie, "000000").await;
        assert_eq!(wrong.status, StatusCode::UNPROCESSABLE_ENTITY);
    }
    for code in ["000000", &secret.code_at(NOW), "0410-6105-0r3g-g28a"] {
        let refused = code_step(&dashboard, &cookie, code).await;
        assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS);
        assert!(refused.headers.contains_key("retry-after"));
    }
}

#[tokio::test]
async fn codes_from_one_network_are_counted_together() {
    let dashboard = TestDashboard::start().await;
    let mut pending = Vec::new();
    for _ in 0..2 {
        let owner = account(&dashboard).await;
        let email = email(&owner).await;
        set_up(&owner).await;
        pending.push(password_step(&dashboard, &email).await.1);
    }
    let guess = async |address: &str, cookie: &str| {
        let headers = [SAME_ORIGIN, FORM, ("cookie", cookie)];
        let client = dashboard.client(address);
        let guessed = dashboard.post_from(client, "/sign-in/code", &headers, "code=000000");
        guessed.await.status
    };
    for address in ["2001:db8::1", "2001:db8::2"].into_iter().cycle().take(5) {
        let status = guess(address, &pending[0]).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    }
    let other_user = guess("2001:db8::3", &pending[1]).await;
    assert_eq!(other_user, StatusCode::TOO_MANY_REQUESTS);
    let elsewhere = guess("2001:db8:0:1::1", &pending[1]).await;
    assert_eq!(elsewhere, StatusCode::UNPROCESSABLE_ENTITY);
}

#[tokio::test]
async fn a_forgotten_browser_shares_the_guesses_of_others() {
    let dashboard = TestDashboard::start().await;
    let owner = account(&dashboard).await;
    let email = email(&owner).await;
    let (_, done) = set_up(&owner).await;
    let (_, pending) = password_step(&dashboard, &email).await;
    let signed_in = code_step(&dashboard, &pending, &recovery_codes(&done)[0]).await;
    let set = signed_in.headers.get_all("set-cookie").iter();
    let pairs = set.map(|one| one.to_str().unwrap().split(';').next().unwrap());
    // The browser drops the cookie of the pending sign-in, which is empty.
    let kept = pairs.filter(|one| !one.ends_with('='));
    let browser = kept.fold(String::new(), |all, one| format!("{one}; {all}"));
    let browser = format!("{browser}{pending}");
    while code_step(&dashboard, &pending, "000000").await.status != StatusCode::TOO_MANY_REQUESTS {}
    let known = code_step(&dashboard, &browser, "000000").await;
    assert_eq!(known.status, StatusCode::UNPROCESSABLE_ENTITY);

    let email = Email::parse(&email).unwrap();
    let accounts = dashboard.store.users_by_email(&email).await.unwrap();
    let new = NewPasswordReset {
        reset: PasswordReset {
            email,
            expires_at: NOW.plus(OPERATOR_RESET_LIFETIME),
        },
        digest: dashboard
            .source
            .new_key(KeyKind::Reset, Environment::Live)
            .digest(),
    };
    let origin = AuditContext {
        at: NOW.plus(Duration::from_secs(1)),
        ..dashboard.source.origin(Actor::Operator, None, None)
    };
    // The same password, so that the pending sign-in continues.
    let same = accounts[0].1.clone();
    let reset = dashboard.store.reset_accounts(new, same, origin).await;
    reset.unwrap();
    let forgotten = code_step(&dashboard, &browser, "000000").await;
    assert_eq!(forgotten.status, StatusCode::TOO_MANY_REQUESTS);
}

#[tokio::test]
async fn the_second_step_needs_the_first_one() {
    let dashboard = TestDashboard::start().await;
    let owner = account(&dashboard).await;
    let email = email(&owner).await;
    let (secret, _) = set_up(&owner).await;
    let (_, cookie) = password_step(&dashboard, &email).await;
    let code = secret.code_at(NOW);
    let (name, value) = cookie.split_once('=').unwrap();
    let forged = format!("{name}={}", value.replace('0', "1"));
    for cookie in [
        "",
        "tributary-pending=",
        &forged,
        &format!("{cookie}; {cookie}"),
    ] {
        let refused = code_step(&dashboard, cookie, &code).await;
        assert_eq!(refused.header("location"), "/sign-in?next=%2Fteam");
    }
    let cross_site = [
        ("cookie", cookie.as_str()),
        FORM,
        ("sec-fetch-site", "cross-site"),
    ];
    let body = format!("code={code}");
    let refused = dashboard.post("/sign-in/code", &cross_site, &body).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN);
    assert_eq!(PENDING_SIGN_IN_LIFETIME, Duration::from_mins(5));
}

#[tokio::test]
async fn a_recovery_code_signs_in_once() {
    let dashboard = TestDashboard::start().await;
    let owner = account(&dashboard).await;
    let email = email(&owner).await;
    let (_, done) = set_up(&owner).await;
    let code = recovery_codes(&done).remove(3).to_uppercase();
    let (_, cookie) = password_step(&dashboard, &email).await;
    let right = code_step(&dashboard, &cookie, &code).await;
    assert_eq!(right.status, StatusCode::SEE_OTHER, "{}", right.text);
    let again = code_step(&dashboard, &cookie, &code).await;
    assert_eq!(again.status, StatusCode::UNPROCESSABLE_ENTITY);
    let shown = owner.get("/account").await.text;
    assert!(shown.contains("9 unused recovery codes"), "{shown}");
    let replaced = owner.post("/account/recovery-codes", "").await;
    assert_eq!(recovery_codes(&replaced).len(), 10);
    let old = recovery_codes(&done).remove(4);
    let refused = code_step(&dashboard, &cookie, &old).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    let log = owner.get("/audit-log").await.text;
    for action in [
        "factor_added",
        "recovery_code_used",
        "recovery_codes_replaced",
    ] {
        assert!(log.contains(&format!("user.{action}")), "{action}");
    }
}

#[tokio::test]
async fn the_set_up_needs_the_right_code_and_a_recent_proof() {
    let dashboard = TestDashboard::start().await;
    let owner = account(&dashboard).await;
    let page = owner.get("/account/authenticator").await;
    let secret = shown_secret(&page);
    let wrong = submit_code(&owner, &page, "000000").await;
    assert_eq!(wrong.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(shown_secret(&wrong), secret, "the QR code stays");
    let other = account(&dashboard).await;
    let stolen = submit_code(&other, &page, &secret.code_at(NOW)).await;
    assert_eq!(
        stolen.status,
        StatusCode::FORBIDDEN,
        "the secret of another session"
    );
    let done = submit_code(&owner, &wrong, &secret.code_at(NOW)).await;
    assert_eq!(done.status, StatusCode::OK, "{}", done.text);
    let second = submit_code(&owner, &page, &secret.code_at(NOW)).await;
    assert_eq!(second.status, StatusCode::CONFLICT);

    let late = dashboard
        .signed_in_earlier(Role::Viewer, PROOF_LIFETIME)
        .await;
    let asked = late.get("/account/authenticator").await;
    assert_eq!(asked.status, StatusCode::FORBIDDEN);
    assert!(asked.text.contains("Confirm that it is you"));
}

#[tokio::test]
async fn a_code_is_a_proof_and_the_factor_is_removed_after_one() {
    let dashboard = TestDashboard::start().await;
    let owner = dashboard
        .signed_in_earlier(Role::Owner, PROOF_LIFETIME)
        .await;
    let proof = format!("next=%2Faccount%2Fauthenticator&proof.password={PASSWORD}");
    owner.post("/account/confirm", &proof).await;
    let (secret, _) = set_up(&owner).await;
    let confirm = async |code: &str| {
        let form = format!("next=%2Faccount&proof.code={code}");
        owner.post("/account/confirm", &form).await
    };
    let wrong = confirm("000000").await;
    assert_eq!(wrong.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(wrong.text.contains("proof.code"), "{}", wrong.text);
    let right = confirm(&secret.code_at(NOW)).await;
    assert_eq!(right.header("location"), "/account");
    let replayed = confirm(&secret.code_at(NOW)).await;
    assert_eq!(replayed.status, StatusCode::UNPROCESSABLE_ENTITY);

    let page = owner.get("/account").await.text;
    let (_, rest) = page.split_once("/account/factors/").unwrap();
    let factor = rest.split('/').next().unwrap();
    let removed = owner
        .post(&format!("/account/factors/{factor}/remove"), "")
        .await;
    assert_eq!(removed.header("location"), "/account?notice=removed");
    let page = owner.get("/account").await.text;
    assert!(!page.contains("/account/factors/") && page.contains("Set up an authenticator app"));
}

#[tokio::test]
async fn a_required_factor_comes_before_everything_else() {
    let dashboard = TestDashboard::start().await;
    let owner = account(&dashboard).await;
    let member = dashboard.sign_in_as(Role::Admin).await;
    let app = owner.create_app().await;
    let refused = owner.post("/team/second-factor", "required=on").await;
    assert_eq!(refused.status, StatusCode::CONFLICT, "{}", refused.text);
    set_up(&owner).await;
    let required = owner.post("/team/second-factor", "required=on").await;
    assert_eq!(required.header("location"), "/team?notice=saved");
    let team = owner.get("/team").await.text;
    assert_eq!(team.matches("pill-good\">set up").count(), 1, "{team}");

    let overview = format!("/apps/{app}");
    for path in ["/account", "/team", "/home", "/keys", overview.as_str()] {
        let led = member.get(path).await;
        assert_eq!(led.header("location"), "/account/authenticator", "{path}");
        let own = owner.get(path).await.text;
        assert!(!own.contains("requires a second"), "{path}");
    }
    let form = "name=x&permission=full&environment=live";
    let led = member.post("/keys", form).await;
    assert_eq!(led.header("location"), "/account/authenticator");
    let page = member.get("/account/authenticator").await;
    assert!(page.text.contains("Example requires a second factor."));
    assert!(!page.text.contains("Runner"), "no names of apps");
    let unknown = member.get("/nothing").await;
    assert!(!unknown.text.contains("Runner"));
    set_up(&member).await;
    assert_eq!(member.get("/keys").await.status, StatusCode::OK);
    let free = dashboard.sign_in_as(Role::Viewer).await;
    assert_eq!(
        free.post("/sign-out", "").await.header("location"),
        "/sign-in"
    );

    let released = owner.post("/team/second-factor", "").await;
    assert_eq!(released.status, StatusCode::SEE_OTHER);
    let late = dashboard.sign_in_as(Role::Viewer).await;
    assert_eq!(late.get("/account").await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_password_change_ends_a_pending_sign_in() {
    let dashboard = TestDashboard::start().await;
    let owner = account(&dashboard).await;
    let email = email(&owner).await;
    let (secret, _) = set_up(&owner).await;
    let (_, cookie) = password_step(&dashboard, &email).await;
    let new = "a+lazy+fox+jumps+over";
    let form = format!("current={PASSWORD}&password={new}");
    let changed = owner.post("/account/password", &form).await;
    assert_eq!(changed.status, StatusCode::SEE_OTHER, "{}", changed.text);
    let later: Timestamp = NOW.plus(STEP);
    let refused = code_step(&dashboard, &cookie, &secret.code_at(later)).await;
    assert_eq!(refused.header("location"), "/sign-in?next=%2Fteam");
}
