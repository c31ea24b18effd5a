//! Roles in the dashboard and permissions of keys: every page and every GET endpoint.

use crate::routes::{Needs, ROUTES, Route, RouteFixture};
use reqwest::Method;
use tributary_domain::access::person::Role;
use tributary_domain::access::resource::RESOURCES;
use tributary_domain::access::{Environment, Permission};
use tributary_testkit::{TestServer, on_both_engines};

/// Roles with the permission that reads the same.
const PAIRS: [(Role, Permission); 4] = [
    (Role::Viewer, Permission::Analytics),
    (Role::Analyst, Permission::ReadOnly),
    (Role::Admin, Permission::Full),
    (Role::Owner, Permission::Full),
];

/// Pages that need no role.
const PUBLIC_PAGES: [&str; 11] = [
    "/",
    "/forgot",
    "/setup/{token}",
    // Needs the token of a link for a new password.
    "/reset/{token}",
    // Needs the token of a share link.
    "/shared/{token}",
    "/static/{file}",
    "/sign-in",
    // Needs the cookie of a sign-in with the right password.
    "/sign-in/code",
    "/sign-in/sso/{organization}",
    "/sign-in/sso/{organization}/callback",
    // Redirects to a page that the role may open; `pages/home.rs` tests it.
    "/home",
];

/// Pages for owners. They manage members, which no key may; `spec/single_sign_on.rs` tests the roles.
const OWNER_PAGES: [&str; 1] = ["/team/single-sign-on"];

/// Returns the dashboard's GET routes, read from its router.
fn dashboard_pages() -> Vec<String> {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../crates/dashboard/src/lib.rs"
    );
    let source = std::fs::read_to_string(path).unwrap();
    let (organization, apps) = source.split_once("fn app_routes").unwrap();
    let mut pages = Vec::new();
    for (text, prefix) in [(organization, ""), (apps, "/apps/{app}")] {
        for route in text.split(".route(").skip(1) {
            let path = route.split('"').nth(1).unwrap();
            let handlers = route.split_once('"').unwrap().1.split_once('"').unwrap().1;
            if handlers
                .trim_start_matches([',', ' ', '\n'])
                .starts_with("get(")
            {
                let path = if prefix.is_empty() || path != "/" {
                    path
                } else {
                    ""
                };
                pages.push(format!("{prefix}{path}"));
            }
        }
    }
    assert!(pages.len() > 25, "{pages:?}");
    pages
}

fn is_readable_endpoint(route: &Route) -> bool {
    route.method == "GET" && !matches!(route.needs, Needs::Nothing | Needs::SdkKey)
}

#[test]
fn every_page_and_every_get_endpoint_is_a_listed_resource() {
    for route in ROUTES.iter().filter(|route| is_readable_endpoint(route)) {
        let listed = RESOURCES
            .iter()
            .any(|one| one.endpoints.contains(&route.path));
        assert!(
            listed,
            "{} is missing in domain::access::resource",
            route.path
        );
    }
    for page in dashboard_pages() {
        let listed = RESOURCES
            .iter()
            .any(|one| one.pages.contains(&page.as_str()));
        let is_other =
            PUBLIC_PAGES.contains(&page.as_str()) || OWNER_PAGES.contains(&page.as_str());
        assert!(
            listed != is_other,
            "{page} is missing in domain::access::resource"
        );
    }
}

on_both_engines! {
    async fn roles_and_permissions_read_the_same_resources(engine: Engine) {
        let server = TestServer::start(engine).await;
        let organization = server.organization("Example").await;
        let owner = server.key(organization, Permission::Full, Environment::Live).await;
        let fixture = RouteFixture::with_website(&server, &owner).await;
        let events = format!("/api/v1/apps/{}/events?limit=1", fixture.app);
        let event = server.get(&events, &owner).await.expect(200).data()[0]["id"].as_str().unwrap().to_owned();
        let pages = dashboard_pages();
        for (role, permission) in PAIRS {
            let key = server.key(organization, permission, Environment::Live).await;
            let cookie = server.sign_in_as(organization, role).await;
            for resource in RESOURCES {
                let expected = if role.grants(resource.scope) { 200 } else { 403 };
                for endpoint in resource.endpoints {
                    let route = ROUTES.iter().filter(|route| is_readable_endpoint(route)).find(|route| route.path == *endpoint);
                    let route = route.unwrap_or_else(|| panic!("{endpoint} does not exist"));
                    let answer = route.call(&server, &fixture, &key, None).await;
                    assert_eq!(answer.status.as_u16(), expected, "{permission:?} {endpoint}: {answer:?}");
                }
                for page in resource.pages {
                    assert!(pages.iter().any(|one| one == page), "{page} does not exist");
                    let path = page
                        .replace("{app}", &fixture.app)
                        .replace("{event}", &event)
                        .replace("{link}", &fixture.link)
                        .replace("{notice}", &fixture.notice)
                        .replace("{network}", "network_a")
                        .replace("{device}", crate::routes::DEVICE)
                        .replace("{user}", crate::routes::USER);
                    let request = server.request(Method::GET, &path).header("cookie", &cookie);
                    let answer = server.send(request).await;
                    assert_eq!(answer.status.as_u16(), expected, "{role:?} {page}: {}", answer.text);
                }
            }
        }
    }
}
