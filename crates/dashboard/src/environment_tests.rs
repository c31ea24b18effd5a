//! Pages, forms and redirects stay in the environment that the user chose.

use crate::testing::{PageResponse, TestDashboard, TestUser};
use crate::tests::{FORMS, PAGES};
use axum::http::StatusCode;
use std::path::Path;
use tributary_domain::access::person::Role;

const TEST: &str = "environment=test";

/// Returns the id after a part of a URL in a text.
fn id_after<'a>(text: &'a str, prefix: &str) -> &'a str {
    let (_, rest) = text.split_once(prefix).expect(prefix);
    let end = rest.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    end.map_or(rest, |end| &rest[..end])
}

/// An app with a link, a notice, a saved view and a shared overview. Returns its id, and replaces
/// the placeholders of [`FORMS`] with the ids of these items.
async fn app_with_items(owner: &TestUser<'_>) -> (String, impl Fn(&str) -> String) {
    let app = owner.create_app().await;
    let post = async |page: &str, body: &str| {
        let created = owner.post(&format!("/apps/{app}/{page}"), body).await;
        let location = created.headers.get("location");
        location.map_or(created.text.clone(), |url| url.to_str().unwrap().to_owned())
    };
    let link = post("links/new", "name=Spring&type=app_install&active=on").await;
    let notice = post("notices/new", NOTICE).await;
    let share = post("shares", SHARE).await;
    post("views", VIEW).await;
    post("integrations/network_a", "scope=all").await;
    let overview = owner.get(&format!("/apps/{app}")).await.text;
    let ids = [
        ("lnk_0", id_after(&link, "/links/").to_owned()),
        ("ntc_0", id_after(&notice, "/notices/").to_owned()),
        ("shr_0", id_after(&share, "/shares/").to_owned()),
        ("viw_0", id_after(&overview, "/views/").to_owned()),
        ("{app}", app.clone()),
    ];
    let filled = move |path: &str| {
        let mut path = path.to_owned();
        for (placeholder, id) in &ids {
            path = path.replace(placeholder, id);
        }
        path
    };
    (app, filled)
}

const NOTICE: &str = "name=Daily&topic=daily_summary&hour=8&channel=slack&enabled=on\
                      &url=https%3A%2F%2Fhooks.slack.com%2Fservices%2FT0%2FB0%2Fx";
const SHARE: &str = "name=Board&days=7&query=";
const VIEW: &str = "name=Mine&page=overview&query=environment%3Dtest";

/// Returns a body that the form accepts.
fn body_of(form: &str) -> &'static str {
    match form.trim_start_matches("/apps/{app}/") {
        "views" => VIEW,
        "links/new" | "links/lnk_0" => "name=Spring&type=app_install&active=on",
        "links/bulk" => "links=name%0AOne&action=create",
        "notices/new" | "notices/ntc_0" => NOTICE,
        "integrations/network_a" => "scope=all",
        "costs" => "costs=2026-09-01%2Cnetwork_a%2C%2C12.50%2CUSD",
        "costs/network_a" => "settings.accountId=1001",
        "settings" => "name=Runner&timezone=UTC",
        "held/decisions" => "decision=release",
        "settings/sdk-keys/rotate" => "environment=test&overlapDays=7",
        "integrations/billing/revenuecat" => "billing.revenuecat.secret=0123456789abcdef",
        _ => "",
    }
}

/// Forms whose answer is a page or a part of one, or whose item is missing in this test.
const WITHOUT_REDIRECT: &[&str] = &[
    "/apps/{app}/shares",
    "/apps/{app}/conversion-values/check",
    "/apps/{app}/links/preview",
    "/apps/{app}/notices/preview",
    "/apps/{app}/notices/ntc_0/test",
    "/apps/{app}/integrations/network_a/test",
    "/apps/{app}/integrations/billing/revenuecat/secret",
    "/apps/{app}/settings/identity-secret",
    "/apps/{app}/settings/sdk-keys/revoke",
    "/apps/{app}/settings/link-domain",
    "/apps/{app}/conversion-values",
    "/apps/{app}/conversion-values/edit",
    "/apps/{app}/conversion-values/preset",
    "/apps/{app}/deliveries/dlv_0/retry",
    "/apps/{app}/devices/phone/erase",
    "/apps/{app}/held/phone/decision",
];

fn is_page(response: &PageResponse) -> bool {
    response.text.contains("<nav aria-label=\"Main\">")
}

#[tokio::test]
async fn forms_of_test_data_lead_to_test_data() {
    let dashboard = TestDashboard::start().await;
    let owner = dashboard.sign_in_as(Role::Owner).await;
    let (_, filled) = app_with_items(&owner).await;
    let mut without_redirect = Vec::new();
    for (form, _) in FORMS.iter().filter(|(form, _)| form.contains("{app}")) {
        let path = format!("{}?{TEST}", filled(form));
        let mut redirects = false;
        for body in ["", body_of(form)] {
            let answer = owner.post(&path, body).await;
            if let Some(location) = answer.headers.get("location") {
                let location = location.to_str().unwrap();
                assert!(location.contains(TEST), "{form}: {location}");
            } else if is_page(&answer) {
                let banner = "Test data: events sent with test keys";
                assert!(answer.text.contains(banner), "{form}: {}", answer.text);
            }
            redirects |= answer.status == StatusCode::SEE_OTHER;
        }
        if !redirects {
            without_redirect.push(*form);
        }
    }
    assert_eq!(without_redirect, WITHOUT_REDIRECT);
}

/// Returns the values of an attribute.
fn values<'a>(text: &'a str, attribute: &str) -> impl Iterator<Item = &'a str> {
    let start = format!(" {attribute}=\"");
    let parts: Vec<&str> = text.split(&start).skip(1).collect();
    parts
        .into_iter()
        .map(|part| part.split('"').next().unwrap_or(part))
}

#[tokio::test]
async fn forms_on_pages_with_test_data_submit_to_test_data() {
    let dashboard = TestDashboard::start().await;
    let owner = dashboard.sign_in_as(Role::Owner).await;
    let (app, filled) = app_with_items(&owner).await;
    let items = ["/apps/{app}/links/lnk_0", "/apps/{app}/notices/ntc_0"];
    let pages = PAGES.iter().map(|(page, _)| *page).chain(items);
    let base = format!("/apps/{app}");
    for page in pages.filter(|page| page.contains("{app}")) {
        let mark = if page.contains('?') { '&' } else { '?' };
        let path = format!("{}{mark}{TEST}", filled(page));
        let text = owner.get(&path).await.text;
        // The switch leads to live data.
        let (before, rest) = text.split_once("<nav class=\"worlds\"").expect(page);
        let (_, after) = rest.split_once("</nav>").unwrap();
        for part in [before, after] {
            for attribute in ["action", "formaction", "hx-get", "hx-post"] {
                for url in values(part, attribute).filter(|url| url.starts_with(&base)) {
                    assert!(url.contains(TEST), "{page}: {attribute}=\"{url}\"");
                }
            }
        }
        for form in text.split("<form").skip(1) {
            let (head, fields) = form.split_once('>').unwrap();
            let fields = fields.split("</form>").next().unwrap();
            let keeps = fields.contains("name=\"environment\" value=\"test\"");
            assert!(!head.contains("method=\"get\"") || keeps, "{page}: {form}");
        }
    }
}

#[test]
fn templates_build_urls_of_an_app_through_the_shell() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("templates");
    let mut found = 0;
    for file in folder.read_dir().unwrap() {
        let file = file.unwrap().path();
        let text = std::fs::read_to_string(&file).unwrap();
        for url in text.split("\"/apps/").skip(1) {
            let url = url.split('"').next().unwrap();
            // Pages without an environment: a new app, and the list of all apps.
            let is_free = ["new", "{{ row.id }}", "{{ app.id }}"];
            let is_free = is_free.iter().any(|free| url.starts_with(free));
            assert!(is_free, "{}: /apps/{url}", file.display());
        }
        found += text.matches("shell.app_url(").count();
    }
    assert!(found > 50, "{found}");
}
