//! Every route, once: what it needs, and how to call it. A route that is added without a row here fails
//! `openapi::every_route_has_a_row`.

use serde_json::{Value, json};
use tributary_testkit::TestServer;

/// What a route asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Needs {
    /// No key.
    Nothing,
    /// `apps:read`.
    AppsRead,
    /// `apps:write`, and a live key.
    AppsWrite,
}

/// One route.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Route {
    pub(crate) method: &'static str,
    pub(crate) path: &'static str,
    pub(crate) needs: Needs,
    /// A body that is accepted.
    body: Option<fn() -> Value>,
    /// The status of a success.
    pub(crate) success: u16,
}

const fn route(
    method: &'static str,
    path: &'static str,
    needs: Needs,
    body: Option<fn() -> Value>,
    success: u16,
) -> Route {
    Route {
        method,
        path,
        needs,
        body,
        success,
    }
}

/// Every route of the described interface.
pub(crate) const ROUTES: &[Route] = &[
    route("GET", "/api/v1/apps", Needs::AppsRead, None, 200),
    route("POST", "/api/v1/apps", Needs::AppsWrite, Some(named), 201),
    route("GET", "/api/v1/apps/{appId}", Needs::AppsRead, None, 200),
    route(
        "PATCH",
        "/api/v1/apps/{appId}",
        Needs::AppsWrite,
        Some(web_events),
        200,
    ),
    route(
        "GET",
        "/api/v1/apps/{appId}/links",
        Needs::AppsRead,
        None,
        200,
    ),
    route(
        "POST",
        "/api/v1/apps/{appId}/links",
        Needs::AppsWrite,
        Some(named),
        201,
    ),
    route(
        "GET",
        "/api/v1/apps/{appId}/links/{linkId}",
        Needs::AppsRead,
        None,
        200,
    ),
    route(
        "PATCH",
        "/api/v1/apps/{appId}/links/{linkId}",
        Needs::AppsWrite,
        Some(named),
        200,
    ),
    route(
        "GET",
        "/api/v1/apps/{appId}/integrations",
        Needs::AppsRead,
        None,
        200,
    ),
    route(
        "GET",
        "/api/v1/apps/{appId}/integrations/{network}",
        Needs::AppsRead,
        None,
        200,
    ),
    route(
        "PATCH",
        "/api/v1/apps/{appId}/integrations/{network}",
        Needs::AppsWrite,
        Some(enabled),
        200,
    ),
    route(
        "GET",
        "/api/v1/apps/{appId}/skan",
        Needs::AppsRead,
        None,
        200,
    ),
    route(
        "PUT",
        "/api/v1/apps/{appId}/skan",
        Needs::AppsWrite,
        Some(enabled),
        200,
    ),
    route(
        "PATCH",
        "/api/v1/apps/{appId}/skan",
        Needs::AppsWrite,
        Some(enabled),
        200,
    ),
    route("GET", "/api/v1/audit-log", Needs::AppsRead, None, 200),
    route("GET", "/healthz", Needs::Nothing, None, 200),
    route("GET", "/readyz", Needs::Nothing, None, 200),
    // Last, since it takes the link away.
    route(
        "DELETE",
        "/api/v1/apps/{appId}/links/{linkId}",
        Needs::AppsWrite,
        None,
        204,
    ),
];

fn named() -> Value {
    json!({"name": "Spring"})
}

fn web_events() -> Value {
    json!({"webEvents": {"enabled": true}})
}

fn enabled() -> Value {
    json!({"enabled": true})
}

impl Route {
    /// The body it is called with.
    pub(crate) fn body(&self) -> Option<Value> {
        self.body.map(|body| body())
    }

    /// The path with these ids in it.
    pub(crate) fn at(&self, place: &Place) -> String {
        self.path
            .replace("{appId}", &place.app)
            .replace("{linkId}", &place.link)
            .replace("{network}", "network_a")
    }
}

/// An app with a link, to call routes on.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) app: String,
    pub(crate) link: String,
}

impl Place {
    /// Makes them.
    pub(crate) async fn new(server: &TestServer, key: &str) -> Self {
        let path = server.app(key).await;
        let link = server
            .post(&format!("{path}/links"), key, json!({"name": "Spring"}))
            .await;
        let link = link.expect(201).data()["id"].as_str().unwrap().to_owned();
        let app = path.rsplit('/').next().unwrap().to_owned();
        Self { app, link }
    }
}
