//! Tests for passkeys: set-up, sign-in with one alone, and as second step and proof.

use crate::testing::{FORM, NOW, PASSWORD, PageResponse, SAME_ORIGIN, TestDashboard, TestUser};
use axum::http::{Method, StatusCode};
use std::time::Duration;
use tributary_domain::access::factor::passkey::samples::SamplePasskeyDevice;
use tributary_domain::access::factor::passkey::{
    ClientData, PasskeyChallenge, PasskeyExpectation, RelyingParty, check_registration,
    decode_field, encode_field,
};
use tributary_domain::access::factor::{Factor, FactorVerifier};
use tributary_domain::access::key::KeyKind;
use tributary_domain::access::password_reset::{MAILED_RESET_LIFETIME, PasswordReset};
use tributary_domain::access::person::{Email, Role, SetupLink, User};
use tributary_domain::access::proof::PROOF_LIFETIME;
use tributary_domain::access::{Actor, Environment};
use tributary_domain::vocabulary::id::{FactorId, UserId};
use tributary_domain::vocabulary::text::Name;
use tributary_store::NewPasswordReset;

const BASE_URL: &str = "http://localhost:8080";

async fn start() -> TestDashboard {
    TestDashboard::at(BASE_URL).await
}

fn here() -> RelyingParty {
    RelyingParty::of(BASE_URL).unwrap()
}

/// A challenge with its cookie.
struct Issued {
    challenge: PasskeyChallenge,
    new_user: UserId,
    cookie: String,
}

/// Asks for a challenge. The sample device gets it as the browser would.
async fn issue(dashboard: &TestDashboard) -> Issued {
    let response = dashboard
        .post("/passkey/challenge", &[SAME_ORIGIN], "")
        .await;
    assert_eq!(response.status, StatusCode::OK, "{}", response.text);
    let body: serde_json::Value = serde_json::from_str(&response.text).unwrap();
    let bytes = |name: &str| decode_field(body[name].as_str().unwrap()).unwrap();
    let cookie = response.header("set-cookie").split(';').next().unwrap();
    let random = bytes("challenge").try_into().unwrap();
    Issued {
        challenge: PasskeyChallenge::new(random, NOW),
        new_user: UserId::from_bytes(bytes("user").try_into().unwrap()),
        cookie: cookie.to_owned(),
    }
}

fn with_client_data(fields: &[(&str, &[u8])], client_data: &ClientData) -> String {
    let all = fields
        .iter()
        .copied()
        .chain([("clientData", client_data.json.as_slice())]);
    let pairs: Vec<String> = all
        .map(|(name, bytes)| format!("passkey.{name}={}", encode_field(bytes)))
        .collect();
    pairs.join("&")
}

/// Returns the fields of a new passkey.
fn created(device: &SamplePasskeyDevice, challenge: &PasskeyChallenge) -> String {
    let new = device.register(challenge);
    let fields = [("attestation", new.attestation_object.as_slice())];
    with_client_data(&fields, &new.client_data)
}

/// Returns the fields of a use.
fn used(device: &SamplePasskeyDevice, challenge: &PasskeyChallenge) -> String {
    let assertion = device.sign(challenge);
    let fields = [
        ("credential", assertion.credential.as_bytes()),
        ("authenticator", assertion.authenticator_data.as_slice()),
        ("signature", assertion.signature.as_slice()),
        ("user", assertion.user_handle.as_deref().unwrap_or_default()),
    ];
    with_client_data(&fields, &assertion.client_data)
}

/// Posts a user's form with the cookie of a challenge.
async fn post_with(
    dashboard: &TestDashboard,
    user: &TestUser<'_>,
    (path, issued): (&str, &Issued),
    fields: &str,
) -> PageResponse {
    let cookies = format!("{}; {}", user.cookie, issued.cookie);
    let headers = [SAME_ORIGIN, FORM, ("cookie", cookies.as_str())];
    let body = format!("formToken={}&{fields}", user.form_token);
    dashboard.post(path, &headers, &body).await
}

/// Returns the account of a signed-in user.
async fn account_of(dashboard: &TestDashboard, user: &TestUser<'_>) -> User {
    let page = user.get("/account/passkeys").await.text;
    let (_, rest) = page.split_once("class=\"app\" data-user=\"").unwrap();
    let email = Email::parse(rest.split('"').next().unwrap()).unwrap();
    let accounts = dashboard.store.users_by_email(&email).await.unwrap();
    accounts[0].0.clone()
}

/// Adds a passkey on its page.
async fn add(dashboard: &TestDashboard, user: &TestUser<'_>, number: u8) -> PageResponse {
    let account = account_of(dashboard, user).await;
    let page = user.get("/account/passkeys").await.text;
    let shown = format!("data-user=\"{}\"", encode_field(account.id.as_bytes()));
    assert!(page.contains(&shown), "{page}");
    let device = SamplePasskeyDevice::new(number, account.id, &here());
    let issued = issue(dashboard).await;
    let body = format!("name=Laptop&{}", created(&device, &issued.challenge));
    post_with(dashboard, user, ("/account/passkeys", &issued), &body).await
}

/// Stores a passkey that was added an hour ago. The clock of the tests is stopped, and a challenge must be
/// later than that of the set-up.
async fn stored(dashboard: &TestDashboard, user: &TestUser<'_>, number: u8) -> SamplePasskeyDevice {
    let account = account_of(dashboard, user).await;
    let device = SamplePasskeyDevice::new(number, account.id, &here());
    let before = NOW.minus(Duration::from_hours(1));
    let challenge = PasskeyChallenge::new([number; 32], before);
    let expected = PasskeyExpectation {
        challenge: &challenge,
        relying_party: &here(),
    };
    let passkey = check_registration(&device.register(&challenge), &expected).unwrap();
    let factor = Factor {
        id: FactorId::new(before, dashboard.source.random_bytes()),
        user: account.id,
        name: Name::parse("Laptop").unwrap(),
        created_at: before,
        last_used_at: None,
        verifier: FactorVerifier::Passkey(passkey),
    };
    let origin = dashboard.source.origin(Actor::User(account.id), None, None);
    let session = user.session_digest();
    let added = dashboard
        .store
        .add_factor(factor, session, Vec::new(), origin);
    added.await.unwrap();
    device
}

async fn owner(dashboard: &TestDashboard) -> TestUser<'_> {
    dashboard
        .signed_in_earlier(Role::Owner, Duration::ZERO)
        .await
}

async fn sign_in(dashboard: &TestDashboard, issued: &Issued, fields: &str) -> PageResponse {
    let headers = [SAME_ORIGIN, FORM, ("cookie", issued.cookie.as_str())];
    let body = format!("next=%2Fteam&{fields}");
    dashboard.post("/sign-in/passkey", &headers, &body).await
}

fn session(response: &PageResponse) -> Option<&str> {
    let cookies = response.headers.get_all("set-cookie").iter();
    let mut texts = cookies.filter_map(|one| one.to_str().ok()?.split(';').next());
    texts.find(|one| one.starts_with("tributary=session_"))
}

#[tokio::test]
async fn a_passkey_is_added_once() {
    let dashboard = start().await;
    let owner = owner(&dashboard).await;
    let added = add(&dashboard, &owner, 1).await;
    assert_eq!(added.status, StatusCode::OK, "{}", added.text);
    assert_eq!(added.element("codes").lines().count(), 10);
    let shown = owner.get("/account").await.text;
    assert!(shown.contains("<td>Laptop</td>") && shown.contains("Passkey, synced"));
    assert!(shown.contains("10 unused recovery codes"));
    let other = dashboard.sign_in_as(Role::Viewer).await;
    for user in [&owner, &other] {
        let same = add(&dashboard, user, 1).await;
        assert_eq!(same.status, StatusCode::CONFLICT, "{}", same.text);
    }
    let second = add(&dashboard, &owner, 2).await;
    assert_eq!(second.header("location"), "/account?notice=saved");
    let log = owner.get("/audit-log").await.text;
    assert!(log.contains("user.factor_added") && log.contains("passkey"));
}

#[tokio::test]
async fn a_passkey_signs_in_alone_and_once_for_each_challenge() {
    let dashboard = start().await;
    let owner = owner(&dashboard).await;
    let device = stored(&dashboard, &owner, 1).await;
    let issued = issue(&dashboard).await;
    let fields = used(&device, &issued.challenge);
    let right = sign_in(&dashboard, &issued, &fields).await;
    assert_eq!(right.status, StatusCode::SEE_OTHER, "{}", right.text);
    assert_eq!(right.header("location"), "/team");
    let own = [("cookie", session(&right).expect("a session"))];
    let page = dashboard.send(Method::GET, "/account", &own, "").await.text;
    assert!(
        page.contains("<span class=\"tag\">passkey</span>"),
        "{page}"
    );
    let replayed = sign_in(&dashboard, &issued, &fields).await;
    assert_eq!(replayed.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(session(&replayed), None);
}

#[tokio::test]
async fn a_new_account_needs_no_password() {
    let dashboard = start().await;
    let invited = |link: &mut SetupLink| {
        link.email = Email::parse("guest@example.com").ok();
        link.role = Role::Admin;
    };
    let path = format!("/setup/{}", dashboard.setup_link(invited).await);
    let page = dashboard.get(&path).await;
    assert!(page.text.contains("data-passkey=\"create\""));
    assert!(page.text.contains("Passkeys need JavaScript."));
    let issued = issue(&dashboard).await;
    let headers = [SAME_ORIGIN, FORM, ("cookie", issued.cookie.as_str())];
    let device = SamplePasskeyDevice::new(3, issued.new_user, &here());

    let elsewhere = SamplePasskeyDevice {
        origin: "http://localhost:8081".to_owned(),
        ..device.clone()
    };
    let fields = created(&elsewhere, &issued.challenge);
    let refused = dashboard.post(&path, &headers, &fields).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(
        refused.text.contains("at another address"),
        "{}",
        refused.text
    );
    let fields = created(&device, &issued.challenge);
    let without_cookie = dashboard.post(&path, &headers[..2], &fields).await;
    assert_eq!(without_cookie.status, StatusCode::UNPROCESSABLE_ENTITY);

    let done = dashboard.post(&path, &headers, &fields).await;
    assert_eq!(done.status, StatusCode::OK, "{}", done.text);
    let cookie = session(&done).expect("a session");
    let own = [("cookie", cookie)];
    let page = dashboard.send(Method::GET, "/account", &own, "").await.text;
    assert!(page.contains("You have no password."), "{page}");
    assert!(
        page.contains("<span class=\"tag\">passkey</span>"),
        "{page}"
    );
    let email = Email::parse("guest@example.com").unwrap();
    let accounts = dashboard.store.users_by_email(&email).await.unwrap();
    assert_eq!(accounts[0].0.id, issued.new_user);
    for password in ["", PASSWORD] {
        let body = format!("email=guest%40example.com&password={password}");
        let refused = dashboard
            .post("/sign-in", &[SAME_ORIGIN, FORM], &body)
            .await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    }
    let again = dashboard.post(&path, &headers, &fields).await;
    assert_eq!(again.status, StatusCode::NOT_FOUND, "the link is used");
}

/// Sets a first password with a link, like a person who lost the passkey.
async fn set_password(dashboard: &TestDashboard, email: &Email) {
    let token = dashboard.source.new_key(KeyKind::Reset, Environment::Live);
    let new = NewPasswordReset {
        reset: PasswordReset {
            email: email.clone(),
            expires_at: NOW.plus(MAILED_RESET_LIFETIME),
        },
        digest: token.digest(),
    };
    let origin = dashboard.source.origin(Actor::Service, None, None);
    let created = dashboard.store.create_password_reset(new, origin).await;
    created.unwrap();
    let (path, body) = (
        format!("/reset/{}", token.reveal()),
        format!("password={PASSWORD}"),
    );
    let done = dashboard.post(&path, &[SAME_ORIGIN, FORM], &body).await;
    assert_eq!(done.status, StatusCode::OK, "{}", done.text);
}

#[tokio::test]
async fn the_way_back_without_the_only_passkey_needs_a_recovery_code() {
    let dashboard = start().await;
    let path = format!("/setup/{}", dashboard.setup_link(|_| {}).await);
    let issued = issue(&dashboard).await;
    let headers = [SAME_ORIGIN, FORM, ("cookie", issued.cookie.as_str())];
    let device = SamplePasskeyDevice::new(3, issued.new_user, &here());
    let new = created(&device, &issued.challenge);
    let fields = format!("email=you%40example.com&{new}");
    let done = dashboard.post(&path, &headers, &fields).await;
    assert_eq!(done.status, StatusCode::OK, "{}", done.text);
    let codes: Vec<&str> = done.element("codes").lines().collect();
    assert_eq!(codes.len(), 10);
    assert!(done.element("key").starts_with("ak_live_"));

    set_password(&dashboard, &Email::parse("you@example.com").unwrap()).await;
    let body = format!("email=you%40example.com&password={PASSWORD}");
    let headers = [SAME_ORIGIN, FORM];
    let first = dashboard.post("/sign-in", &headers, &body).await;
    assert_eq!(session(&first), None, "the mailbox alone is not enough");
    let pending = first.header("set-cookie").split(';').next().unwrap();
    let headers = [SAME_ORIGIN, FORM, ("cookie", pending)];
    let body = format!("code={}", codes[0]);
    let back = dashboard.post("/sign-in/code", &headers, &body).await;
    assert_eq!(back.status, StatusCode::SEE_OTHER, "{}", back.text);
    assert!(session(&back).is_some());
}

#[tokio::test]
async fn forged_and_foreign_uses_are_refused_and_counted() {
    let dashboard = start().await;
    let owner = owner(&dashboard).await;
    let device = stored(&dashboard, &owner, 1).await;
    let issued = issue(&dashboard).await;
    let forged = SamplePasskeyDevice {
        key: 9,
        ..device.clone()
    };
    let unknown = SamplePasskeyDevice {
        credential: vec![9; 32],
        ..device.clone()
    };
    let elsewhere = SamplePasskeyDevice {
        origin: "https://evil.test".to_owned(),
        ..device.clone()
    };
    for wrong in [&forged, &unknown, &elsewhere] {
        let refused = sign_in(&dashboard, &issued, &used(wrong, &issued.challenge)).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
        assert_eq!(session(&refused), None);
    }
    for body in [
        "",
        "passkey.signature=%21",
        "passkey.credential=AA&passkey.signature=AA",
    ] {
        let refused = sign_in(&dashboard, &issued, body).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{body}");
    }
    let other_challenge = issue(&dashboard).await.challenge;
    for _ in 0..3 {
        let refused = sign_in(&dashboard, &issued, &used(&device, &other_challenge)).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    }
    let counted = sign_in(&dashboard, &issued, &used(&device, &other_challenge)).await;
    assert_eq!(counted.status, StatusCode::TOO_MANY_REQUESTS);
    assert!(counted.headers.contains_key("retry-after"));
    let cross_site = [FORM, ("sec-fetch-site", "cross-site")];
    for path in ["/sign-in/passkey", "/passkey/challenge"] {
        let refused = dashboard.post(path, &cross_site, "").await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN);
    }
}

#[tokio::test]
async fn a_passkey_is_the_second_step_after_the_password() {
    let dashboard = start().await;
    let owner = owner(&dashboard).await;
    let device = stored(&dashboard, &owner, 1).await;
    let other = dashboard.sign_in_as(Role::Viewer).await;
    let others_device = stored(&dashboard, &other, 2).await;
    let email = account_of(&dashboard, &owner).await.email;
    let body = format!("email={}&password={PASSWORD}&next=%2Fteam", email.as_str());
    let headers = [SAME_ORIGIN, FORM];
    let first = dashboard.post("/sign-in", &headers, &body).await;
    assert_eq!(first.header("location"), "/sign-in/code?next=%2Fteam");
    let pending = first.header("set-cookie").split(';').next().unwrap();
    let cookie = [("cookie", pending)];
    let page = dashboard
        .send(Method::GET, "/sign-in/code", &cookie, "")
        .await;
    assert!(page.text.contains("data-passkey=\"use\""));
    assert!(page.text.contains(">Recovery code<"), "{}", page.text);

    let issued = issue(&dashboard).await;
    let cookies = format!("{pending}; {}", issued.cookie);
    let headers = [SAME_ORIGIN, FORM, ("cookie", cookies.as_str())];
    let step = async |device: &SamplePasskeyDevice| {
        let body = format!("next=%2Fteam&{}", used(device, &issued.challenge));
        dashboard.post("/sign-in/code", &headers, &body).await
    };
    let refused = step(&others_device).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    let right = step(&device).await;
    assert_eq!(right.header("location"), "/team", "{}", right.text);
    assert!(session(&right).is_some());
    assert_eq!(step(&device).await.status, StatusCode::UNPROCESSABLE_ENTITY);
}

#[tokio::test]
async fn a_passkey_is_a_proof_before_sensitive_actions() {
    let dashboard = start().await;
    let late = dashboard
        .signed_in_earlier(Role::Viewer, PROOF_LIFETIME)
        .await;
    let none = late.get("/account/authenticator").await.text;
    assert!(!none.contains("data-passkey"), "the user has none");
    let device = stored(&dashboard, &late, 1).await;
    let asked = late.get("/account/passkeys").await;
    assert_eq!(asked.status, StatusCode::FORBIDDEN);
    assert!(asked.text.contains("data-passkey=\"use\""));
    let issued = issue(&dashboard).await;
    let confirm = async |fields: &str| {
        let body = format!("next=%2Faccount%2Fpasskeys&{fields}");
        post_with(&dashboard, &late, ("/account/confirm", &issued), &body).await
    };
    let wrong = confirm("passkey.signature=AA").await;
    assert_eq!(wrong.status, StatusCode::UNPROCESSABLE_ENTITY);
    let right = confirm(&used(&device, &issued.challenge)).await;
    assert_eq!(right.header("location"), "/account/passkeys");
    assert_eq!(late.get("/account/passkeys").await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_passkey_is_what_an_organization_may_require() {
    let dashboard = start().await;
    let owner = owner(&dashboard).await;
    let member = dashboard.sign_in_as(Role::Viewer).await;
    add(&dashboard, &owner, 1).await;
    let required = owner.post("/team/second-factor", "required=on").await;
    assert_eq!(required.header("location"), "/team?notice=saved");
    assert_eq!(owner.get("/team").await.status, StatusCode::OK);
    let led = member.get("/account").await;
    assert_eq!(led.header("location"), "/account/authenticator");
    let page = member.get("/account/passkeys").await;
    assert!(
        page.text.contains("requires a second factor"),
        "{}",
        page.text
    );
    add(&dashboard, &member, 2).await;
    assert_eq!(member.get("/account").await.status, StatusCode::OK);
}

#[tokio::test]
async fn passkeys_are_offered_on_a_host_name_only() {
    let dashboard = TestDashboard::start().await;
    let owner = dashboard.sign_in_as(Role::Owner).await;
    let page = owner.get("/account/passkeys").await;
    assert_eq!(page.status, StatusCode::OK);
    assert!(page.text.contains("Passkeys need a host name"));
    assert!(
        !dashboard
            .get("/sign-in")
            .await
            .text
            .contains("data-passkey")
    );
    let challenge = dashboard
        .post("/passkey/challenge", &[SAME_ORIGIN], "")
        .await;
    assert_eq!(challenge.status, StatusCode::NOT_FOUND);
    assert!(
        start()
            .await
            .get("/sign-in")
            .await
            .text
            .contains("data-passkey")
    );
}
