//! Tests that apply to all pages.

use crate::testing::{FORM, PASSWORD, PageResponse, SAME_ORIGIN, TestDashboard};
use axum::http::{Method, StatusCode};
use rstest::rstest;
use tributary_domain::access::person::Role;

/// URL-encoded markup for use in names.
const MARKUP: &str = "%3Cscript%3Ealert(1)%3C%2Fscript%3E%22%27%3Cimg%20src%3Dx%3E";

/// All forms for signed-in users: path, and the lowest role that may submit it.
pub(crate) const FORMS: &[(&str, Role)] = &[
    ("/sign-out", Role::Viewer),
    ("/account/password", Role::Viewer),
    ("/account/first-password", Role::Viewer),
    ("/account/sessions", Role::Viewer),
    ("/account/confirm", Role::Viewer),
    ("/account/authenticator", Role::Viewer),
    ("/account/passkeys", Role::Viewer),
    ("/account/recovery-codes", Role::Viewer),
    ("/account/factors/fct_0/remove", Role::Viewer),
    ("/team/second-factor", Role::Owner),
    ("/apps/{app}/views", Role::Viewer),
    ("/apps/{app}/views/viw_0/delete", Role::Viewer),
    ("/apps/{app}/shares", Role::Admin),
    ("/apps/{app}/shares/shr_0/revoke", Role::Admin),
    ("/apps/{app}/conversion-values/check", Role::Analyst),
    ("/apps/new", Role::Admin),
    ("/keys", Role::Admin),
    ("/keys/key_0/revoke", Role::Admin),
    ("/keys/key_0/rotate", Role::Admin),
    ("/keys/key_0/take-over", Role::Admin),
    ("/apps/{app}/links/new", Role::Admin),
    ("/apps/{app}/links/preview", Role::Admin),
    ("/apps/{app}/links/bulk", Role::Admin),
    ("/apps/{app}/links/lnk_0", Role::Admin),
    ("/apps/{app}/links/lnk_0/delete", Role::Admin),
    ("/apps/{app}/notices/new", Role::Admin),
    ("/apps/{app}/notices/preview", Role::Admin),
    ("/apps/{app}/notices/ntc_0", Role::Admin),
    ("/apps/{app}/notices/ntc_0/test", Role::Admin),
    ("/apps/{app}/notices/ntc_0/delete", Role::Admin),
    ("/apps/{app}/integrations/network_a", Role::Admin),
    ("/apps/{app}/integrations/network_a/test", Role::Admin),
    ("/apps/{app}/integrations/network_a/resume", Role::Admin),
    ("/apps/{app}/costs", Role::Admin),
    ("/apps/{app}/costs/network_a", Role::Admin),
    ("/apps/{app}/costs/network_a/pull", Role::Admin),
    ("/apps/{app}/costs/network_a/remove", Role::Admin),
    ("/apps/{app}/integrations/billing/revenuecat", Role::Admin),
    (
        "/apps/{app}/integrations/billing/revenuecat/secret",
        Role::Admin,
    ),
    ("/apps/{app}/settings", Role::Admin),
    ("/apps/{app}/settings/identity-secret", Role::Admin),
    ("/apps/{app}/settings/sdk-keys/rotate", Role::Admin),
    ("/apps/{app}/settings/sdk-keys/revoke", Role::Admin),
    ("/apps/{app}/settings/link-domain", Role::Admin),
    ("/apps/{app}/settings/mapping/network_a", Role::Admin),
    ("/apps/{app}/conversion-values", Role::Admin),
    ("/apps/{app}/conversion-values/edit", Role::Admin),
    ("/apps/{app}/conversion-values/preset", Role::Admin),
    ("/apps/{app}/deliveries/retry", Role::Admin),
    ("/apps/{app}/deliveries/dlv_0/retry", Role::Admin),
    ("/apps/{app}/devices/phone/erase", Role::Admin),
    ("/apps/{app}/held/decisions", Role::Admin),
    ("/apps/{app}/held/phone/decision", Role::Admin),
    ("/team/invite", Role::Owner),
    ("/team/single-sign-on", Role::Owner),
    ("/team/single-sign-on/test", Role::Owner),
    ("/team/single-sign-on/connect", Role::Owner),
    ("/team/single-sign-on/remove", Role::Owner),
    ("/team/usr_0/role", Role::Owner),
    ("/team/usr_0/remove", Role::Owner),
    ("/team/usr_0/sessions", Role::Owner),
    ("/team/invitations/00/withdraw", Role::Owner),
];

/// All pages for signed-in users: path, and the lowest role that may see it.
pub(crate) const PAGES: &[(&str, Role)] = &[
    ("/portfolio", Role::Analyst),
    ("/apps/{app}/undelivered", Role::Analyst),
    (
        "/apps/{app}/undelivered?network=network_c&event=purchase&days=30",
        Role::Analyst,
    ),
    ("/account", Role::Viewer),
    ("/account/authenticator", Role::Viewer),
    ("/account/passkeys", Role::Viewer),
    ("/team/single-sign-on", Role::Owner),
    ("/apps/{app}", Role::Viewer),
    (
        "/apps/{app}?range=today&stack=network&second=netRevenue&compare=year",
        Role::Viewer,
    ),
    (
        "/apps/{app}?network=network_a&country=DE&stack=campaign",
        Role::Viewer,
    ),
    ("/apps/{app}?from=2020-01-01&to=2026-01-01", Role::Viewer),
    ("/apps/{app}/explore", Role::Viewer),
    ("/apps/{app}/explore?groupBy=day&then=week", Role::Viewer),
    (
        "/apps/{app}/explore?column=installs&search=x&sort=installs&order=asc",
        Role::Viewer,
    ),
    (
        "/apps/{app}/explore?groupBy=network&then=link",
        Role::Viewer,
    ),
    (
        "/apps/{app}/explore?groupBy=network&then=country",
        Role::Viewer,
    ),
    ("/apps/{app}/cohorts", Role::Analyst),
    (
        "/apps/{app}/cohorts?show=revenue&interval=month",
        Role::Analyst,
    ),
    ("/apps/{app}/cohorts?by=network&interval=day", Role::Analyst),
    (
        "/apps/{app}/cohorts?show=paidRoas&by=country&network=network_a&platform=ios",
        Role::Analyst,
    ),
    (
        "/apps/{app}/explore?groupBy=hour&range=today&sort=roas",
        Role::Viewer,
    ),
    ("/apps/{app}/events", Role::Viewer),
    (
        "/apps/{app}/events?from=2026-01-01&to=2026-01-31&source=sdk",
        Role::Viewer,
    ),
    ("/apps/{app}/events?from=yesterday", Role::Viewer),
    ("/apps/{app}/events?userId=user-1", Role::Viewer),
    ("/apps/{app}/start", Role::Analyst),
    (
        "/apps/{app}/shares?range=7d&network=network_a",
        Role::Analyst,
    ),
    ("/apps/{app}/links", Role::Analyst),
    (
        "/apps/{app}/links?search=spring&tag=a&folder=b",
        Role::Analyst,
    ),
    ("/apps/{app}/integrations", Role::Analyst),
    ("/apps/{app}/integrations/network_a", Role::Analyst),
    ("/apps/{app}/integrations/network_b", Role::Analyst),
    ("/apps/{app}/deliveries", Role::Analyst),
    (
        "/apps/{app}/deliveries?from=yesterday&status=odd",
        Role::Analyst,
    ),
    ("/apps/{app}/held", Role::Analyst),
    ("/apps/{app}/held?state=rejected", Role::Analyst),
    ("/apps/{app}/costs", Role::Analyst),
    ("/apps/{app}/costs/network_a", Role::Analyst),
    ("/apps/{app}/costs/network_b", Role::Analyst),
    ("/apps/{app}/costs/network_c", Role::Analyst),
    ("/apps/{app}/settings", Role::Analyst),
    ("/apps/{app}/settings/mapping", Role::Analyst),
    ("/apps/{app}/settings/what-if", Role::Analyst),
    (
        "/apps/{app}/settings/what-if?try=on&attribution.clickWindowHours=24",
        Role::Analyst,
    ),
    ("/apps/{app}/conversion-values", Role::Analyst),
    ("/apps/{app}/conversion-values/postbacks", Role::Analyst),
    ("/apps/{app}/notices", Role::Analyst),
    ("/keys", Role::Analyst),
    ("/team", Role::Analyst),
    ("/audit-log", Role::Analyst),
    ("/apps/new", Role::Admin),
    ("/apps/{app}/links/new", Role::Admin),
    ("/apps/{app}/links/bulk", Role::Admin),
    ("/apps/{app}/notices/new", Role::Admin),
];

/// Returns whether `role` is at least `least`. Roles are listed with the most powerful first.
fn may(role: Role, least: Role) -> bool {
    let rank = |wanted: Role| Role::ALL.iter().position(|role| *role == wanted);
    rank(role) <= rank(least)
}

/// Requests every page that needs no sign-in, in each of its states.
async fn every_page(dashboard: &TestDashboard) -> Vec<PageResponse> {
    let token = dashboard.setup_link(|_| {}).await;
    let path = format!("/setup/{token}");
    let good = format!("email=you@example.com&password={PASSWORD}");
    let headers = [SAME_ORIGIN, FORM];
    vec![
        dashboard.get("/").await,
        dashboard.get(&path).await,
        dashboard.get("/setup/nonsense").await,
        dashboard.get("/reset/nonsense").await,
        dashboard.post(&path, &[FORM], &good).await,
        dashboard
            .post(&path, &headers, "email=you&password=short")
            .await,
        dashboard.post(&path, &headers, &good).await,
        dashboard.post(&path, &headers, &good).await,
        dashboard.get("/sign-in").await,
        dashboard.get("/forgot").await,
    ]
}

/// Requests every page as an owner, in an app whose items have markup in their names.
async fn every_page_of_an_owner(dashboard: &TestDashboard) -> Vec<PageResponse> {
    let owner = dashboard.sign_in_as(Role::Owner).await;
    let app = owner.create_app().await;
    let link =
        format!("name={MARKUP}&slug=spring&type=app_install&active=on&campaign.name={MARKUP}");
    let link = owner.post(&format!("/apps/{app}/links/new"), &link).await;
    assert_eq!(link.status, StatusCode::SEE_OTHER, "{}", link.text);
    let key = format!("name={MARKUP}&permission=full&environment=live");
    let secret = format!("/apps/{app}/integrations/billing/superwall/secret");
    let identity_secret = format!("/apps/{app}/settings/identity-secret");
    let mut pages = vec![
        owner.post(&identity_secret, "").await,
        owner.get(link.header("location")).await,
        owner.post("/keys", &key).await,
        owner.post(&secret, "").await,
        owner
            .post("/team/invite", "email=new@example.com&role=viewer")
            .await,
        owner
            .post(
                &format!("/apps/{app}/links/preview"),
                &format!("name=x&slug={MARKUP}"),
            )
            .await,
        owner
            .post(
                &format!("/apps/{app}/conversion-values/preset"),
                "kind=funnel",
            )
            .await,
        owner
            .get(&format!("/apps/{app}/events?name={MARKUP}"))
            .await,
        owner.get(&format!("/apps/{app}?environment=test")).await,
    ];
    for (path, _) in PAGES {
        pages.push(owner.get(&path.replace("{app}", &app)).await);
    }
    pages
}

#[tokio::test]
async fn the_environment_switch_stays_on_the_same_page() {
    let dashboard = TestDashboard::start().await;
    let owner = dashboard.sign_in_as(Role::Owner).await;
    let app = owner.create_app().await;
    for page in ["", "/events?name=x", "/links"] {
        let here = format!("/apps/{app}{page}");
        let text = owner.get(&here).await.text.replace("&#38;", "&");
        let mark = if page.contains('?') { '&' } else { '?' };
        for link in [here.clone(), format!("{here}{mark}environment=test")] {
            assert!(text.contains(&format!("href=\"{link}\"")), "{link}: {text}");
        }
    }
}

#[tokio::test]
async fn all_pages_have_the_security_headers() {
    let dashboard = TestDashboard::start().await;
    let pages = every_page(&dashboard).await;
    let statuses: Vec<u16> = pages.iter().map(|page| page.status.as_u16()).collect();
    assert_eq!(statuses, [200, 200, 404, 404, 403, 422, 200, 404, 200, 200]);
    let owner_pages = every_page_of_an_owner(&dashboard).await;
    for page in &owner_pages {
        assert_eq!(page.status, StatusCode::OK, "{}", page.text);
    }
    for page in pages.into_iter().chain(owner_pages) {
        assert_eq!(page.header("content-type"), "text/html; charset=utf-8");
        assert_eq!(page.header("cache-control"), "no-store");
        assert_eq!(page.header("referrer-policy"), "no-referrer");
        assert_eq!(
            page.header("content-security-policy"),
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
             connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
        );
    }
}

#[tokio::test]
async fn no_page_needs_inline_scripts_or_styles() {
    let dashboard = TestDashboard::start().await;
    let owner_pages = every_page_of_an_owner(&dashboard).await;
    for page in every_page(&dashboard).await.into_iter().chain(owner_pages) {
        let text = page.text.to_lowercase();
        for forbidden in ["<style", " style=", " onclick", " onload", "javascript:"] {
            assert!(!text.contains(forbidden), "{forbidden} in {text}");
        }
        assert_eq!(
            text.matches("<script").count(),
            text.matches("<script src=\"/static/").count()
        );
    }
}

#[tokio::test]
async fn no_page_has_secrets_in_its_headers() {
    let dashboard = TestDashboard::start().await;
    for page in every_page(&dashboard).await {
        let headers = format!("{:?}", page.headers);
        for secret in ["setup_", "ak_live_", PASSWORD] {
            assert!(!headers.contains(secret), "{secret} in {headers}");
        }
    }
}

#[tokio::test]
async fn static_files_of_all_pages_exist() {
    let dashboard = TestDashboard::start().await;
    let owner_pages = every_page_of_an_owner(&dashboard).await;
    for page in every_page(&dashboard).await.into_iter().chain(owner_pages) {
        let links = page
            .text
            .split('"')
            .filter(|part| part.starts_with("/static/"));
        for link in links {
            assert_eq!(dashboard.get(link).await.status, StatusCode::OK, "{link}");
        }
    }
}

#[tokio::test]
async fn opening_a_set_up_link_does_not_use_it() {
    let dashboard = TestDashboard::start().await;
    let path = format!("/setup/{}", dashboard.setup_link(|_| {}).await);
    for method in [Method::HEAD, Method::GET, Method::GET] {
        let response = dashboard.send(method, &path, &[], "").await;
        assert_eq!(response.status, StatusCode::OK);
    }
}

#[tokio::test]
async fn all_pages_escape_markup_in_names() {
    let dashboard = TestDashboard::start().await;
    let pages = every_page_of_an_owner(&dashboard).await;
    let planted = pages.iter().filter(|page| page.text.contains("alert(1)"));
    assert!(planted.count() >= 6, "the markup appears in several pages");
    for page in &pages {
        assert!(!page.text.contains("<script>"), "{}", page.text);
        assert!(!page.text.contains("<img src=x"), "{}", page.text);
    }
}

#[rstest]
#[case::missing("")]
#[case::made_up("formToken=00")]
#[case::of_another_session("formToken={other}")]
#[tokio::test]
async fn rejects_forms_without_a_valid_token(#[case] body: &str) {
    let dashboard = TestDashboard::start().await;
    let (owner, other) = (
        dashboard.sign_in_as(Role::Owner).await,
        dashboard.sign_in_as(Role::Admin).await,
    );
    let app = owner.create_app().await;
    let body = body.replace("{other}", &other.form_token);
    for (path, _) in FORMS {
        let path = path.replace("{app}", &app);
        let response = owner.post_without_token(&path, &body).await;
        assert_eq!(response.status, StatusCode::FORBIDDEN, "{path}");
        assert!(response.text.contains("This form has expired"), "{path}");
    }
}

#[tokio::test]
async fn rejects_cross_site_forms_even_with_a_valid_token() {
    let dashboard = TestDashboard::start().await;
    let owner = dashboard.sign_in_as(Role::Owner).await;
    let app = owner.create_app().await;
    let body = format!("formToken={}", owner.form_token);
    for (path, _) in FORMS {
        let headers = [
            ("cookie", owner.cookie.as_str()),
            FORM,
            ("sec-fetch-site", "cross-site"),
        ];
        let response = dashboard
            .post(&path.replace("{app}", &app), &headers, &body)
            .await;
        assert_eq!(response.status, StatusCode::FORBIDDEN, "{path}");
    }
}

#[rstest]
#[case(Role::Viewer)]
#[case(Role::Analyst)]
#[case(Role::Admin)]
#[tokio::test]
async fn roles_limit_pages_and_forms(#[case] role: Role) {
    let dashboard = TestDashboard::start().await;
    let owner = dashboard.sign_in_as(Role::Owner).await;
    let app = owner.create_app().await;
    let user = dashboard.sign_in_as(role).await;
    for (path, least) in PAGES {
        let response = user.get(&path.replace("{app}", &app)).await;
        let allowed = response.status == StatusCode::OK;
        assert_eq!(allowed, may(role, *least), "{path}: {}", response.status);
        assert!(
            allowed || response.status == StatusCode::FORBIDDEN,
            "{path}"
        );
    }
    for (path, least) in FORMS.iter().filter(|(_, least)| !may(role, *least)) {
        let response = user.post(&path.replace("{app}", &app), "name=x").await;
        assert_eq!(response.status, StatusCode::FORBIDDEN, "{path} {least:?}");
        assert!(
            response.text.contains("Your role does not allow this"),
            "{path}"
        );
    }
}

#[tokio::test]
async fn pages_and_forms_require_a_session() {
    let dashboard = TestDashboard::start().await;
    let app = dashboard.sign_in_as(Role::Owner).await.create_app().await;
    for (path, _) in PAGES {
        let path = path.replace("{app}", &app);
        let response = dashboard.get(&path).await;
        assert_eq!(response.status, StatusCode::SEE_OTHER, "{path}");
        let next: String = url::form_urlencoded::byte_serialize(path.as_bytes()).collect();
        assert_eq!(response.header("location"), format!("/sign-in?next={next}"));
    }
    for (path, _) in FORMS {
        let path = path.replace("{app}", &app);
        let response = dashboard
            .post(&path, &[SAME_ORIGIN, FORM], "formToken=0")
            .await;
        assert_eq!(response.status, StatusCode::SEE_OTHER, "{path}");
        // A form's target cannot be opened after sign-in.
        assert_eq!(response.header("location"), "/sign-in?next=%2Fhome");
    }
}

#[tokio::test]
async fn apps_of_other_organizations_are_not_found() {
    let mut dashboard = TestDashboard::start().await;
    let app = dashboard.sign_in_as(Role::Owner).await.create_app().await;
    dashboard.switch_to_new_organization().await;
    let stranger = dashboard.sign_in_as(Role::Owner).await;
    for (path, _) in PAGES.iter().filter(|(path, _)| path.contains("{app}")) {
        let response = stranger.get(&path.replace("{app}", &app)).await;
        assert_eq!(response.status, StatusCode::NOT_FOUND, "{path}");
    }
}

#[tokio::test]
async fn sign_out_ends_the_session() {
    let dashboard = TestDashboard::start().await;
    let owner = dashboard.sign_in_as(Role::Owner).await;
    assert_eq!(owner.get("/account").await.status, StatusCode::OK);
    let response = owner.post("/sign-out", "").await;
    assert!(response.header("set-cookie").contains("Max-Age=0"));
    assert_eq!(response.header("clear-site-data"), "\"storage\"");
    assert_eq!(owner.get("/account").await.status, StatusCode::SEE_OTHER);
}

#[tokio::test]
async fn sign_in_checks_the_password_and_slows_down_guessing() {
    let dashboard = TestDashboard::start().await;
    let path = format!("/setup/{}", dashboard.setup_link(|_| {}).await);
    let account = format!("email=you@example.com&password={PASSWORD}");
    let created = dashboard.post(&path, &[SAME_ORIGIN, FORM], &account).await;
    let cookie = created.header("set-cookie");
    assert!(cookie.contains("; HttpOnly; SameSite=Lax"), "{cookie}");
    let sign_in = async |password: &str, next: &str| {
        let body = format!("email=You@example.com&password={password}&next={next}");
        dashboard
            .post("/sign-in", &[SAME_ORIGIN, FORM], &body)
            .await
    };
    let right = sign_in(PASSWORD, "/keys").await;
    assert_eq!(
        (right.status, right.header("location")),
        (StatusCode::SEE_OTHER, "/keys")
    );
    for next in ["%2F%0B%2Fevil.test", "%2F%252Fevil.test"] {
        let elsewhere = sign_in(PASSWORD, next).await;
        assert_eq!(elsewhere.header("location"), "/home", "{next}");
    }
    let fresh = right.header("set-cookie");
    assert_ne!(fresh, cookie, "each sign-in has a new token");
    // The new account's password counts as the first guess.
    let mut statuses = Vec::new();
    for _ in 0..5 {
        statuses.push(sign_in("wrong", "").await.status.as_u16());
    }
    assert_eq!(statuses, [422, 422, 422, 422, 429]);
    let right = sign_in(PASSWORD, "").await;
    assert_eq!(right.status, StatusCode::TOO_MANY_REQUESTS);
    assert!(right.headers.contains_key("retry-after"));
}

#[tokio::test]
async fn the_cookie_is_bound_to_the_host_over_tls() {
    let dashboard = TestDashboard::at("https://t.example.com").await;
    let path = format!("/setup/{}", dashboard.setup_link(|_| {}).await);
    let account = format!("email=you@example.com&password={PASSWORD}");
    let created = dashboard.post(&path, &[SAME_ORIGIN, FORM], &account).await;
    let cookie = created.header("set-cookie");
    assert!(cookie.starts_with("__Host-tributary=session_"), "{cookie}");
    for attribute in ["; Path=/;", "; HttpOnly;", "; SameSite=Lax;"] {
        assert!(cookie.contains(attribute), "{cookie}");
    }
    assert!(cookie.ends_with("; Secure"), "{cookie}");
}
