//! Every route, once: what it needs, and how to call it. A route that is added without a row here fails
//! `openapi::every_route_has_a_row`.

mod place;

pub(crate) use place::Place;

use reqwest::Method;
use serde_json::{Value, json};
use tributary_testkit::{TestResponse, TestServer};

/// What a route asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Needs {
    /// No key.
    Nothing,
    /// The app's own SDK key, live or test.
    SdkKey,
    /// `analytics:read`.
    AnalyticsRead,
    /// `apps:read`.
    AppsRead,
    /// `apps:read`; of what only live events have, so that a test key finds nothing.
    DeliveryRead,
    /// `apps:write`, and a live key.
    AppsWrite,
    /// `apps:write`, with a key of either environment.
    PeopleErase,
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
        "GET",
        "/api/v1/apps/{appId}/alert-webhook",
        Needs::AppsWrite,
        None,
        200,
    ),
    route(
        "GET",
        "/api/v1/apps/{appId}/billing",
        Needs::AppsRead,
        None,
        200,
    ),
    route(
        "POST",
        "/api/v1/apps/{appId}/billing/{provider}/secret",
        Needs::AppsWrite,
        None,
        201,
    ),
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
        "POST",
        "/api/v1/apps/{appId}/integrations/{network}/test",
        Needs::AppsWrite,
        None,
        200,
    ),
    route(
        "POST",
        "/api/v1/apps/{appId}/integrations/{network}/resume",
        Needs::AppsWrite,
        None,
        200,
    ),
    route(
        "GET",
        "/api/v1/apps/{appId}/deliveries",
        Needs::AppsRead,
        None,
        200,
    ),
    route(
        "GET",
        "/api/v1/apps/{appId}/deliveries/{deliveryId}",
        Needs::DeliveryRead,
        None,
        200,
    ),
    route(
        "POST",
        "/api/v1/apps/{appId}/deliveries/{deliveryId}/retry",
        Needs::AppsWrite,
        None,
        200,
    ),
    route(
        "POST",
        "/api/v1/apps/{appId}/deliveries/retry",
        Needs::AppsWrite,
        Some(failed),
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
    route(
        "GET",
        "/api/v1/apps/{appId}/skan/versions",
        Needs::AppsRead,
        None,
        200,
    ),
    route(
        "GET",
        "/api/v1/apps/{appId}/skan/postbacks",
        Needs::AppsRead,
        None,
        200,
    ),
    route(
        "GET",
        "/api/v1/apps/{appId}/stats",
        Needs::AnalyticsRead,
        None,
        200,
    ),
    route(
        "GET",
        "/api/v1/apps/{appId}/overview",
        Needs::AnalyticsRead,
        None,
        200,
    ),
    route(
        "GET",
        "/api/v1/apps/{appId}/cohorts",
        Needs::AppsRead,
        None,
        200,
    ),
    route(
        "GET",
        "/api/v1/apps/{appId}/costs",
        Needs::AppsRead,
        None,
        200,
    ),
    route(
        "PUT",
        "/api/v1/apps/{appId}/costs",
        Needs::AppsWrite,
        Some(spent),
        200,
    ),
    route(
        "GET",
        "/api/v1/apps/{appId}/export",
        Needs::AppsRead,
        None,
        200,
    ),
    route("GET", "/api/v1/portfolio", Needs::AppsRead, None, 200),
    route(
        "GET",
        "/api/v1/apps/{appId}/skan/stats",
        Needs::AnalyticsRead,
        None,
        200,
    ),
    route(
        "POST",
        "/api/v1/apps/{appId}/skan/evaluate",
        Needs::AppsRead,
        Some(tried),
        200,
    ),
    route("GET", "/api/v1/skan/presets", Needs::AppsRead, None, 200),
    route(
        "GET",
        "/api/v1/apps/{appId}/events",
        Needs::AnalyticsRead,
        None,
        200,
    ),
    route(
        "POST",
        "/api/v1/apps/{appId}/web-events",
        Needs::AppsWrite,
        Some(web_event),
        202,
    ),
    route(
        "GET",
        "/api/v1/apps/{appId}/devices/{deviceId}",
        Needs::AppsRead,
        None,
        200,
    ),
    route("GET", "/api/v1/audit-log", Needs::AppsRead, None, 200),
    route(
        "POST",
        "/api/track/configure",
        Needs::SdkKey,
        Some(device),
        200,
    ),
    route(
        "POST",
        "/api/track/events",
        Needs::SdkKey,
        Some(events),
        202,
    ),
    route(
        "POST",
        "/api/track/identify",
        Needs::SdkKey,
        Some(person),
        204,
    ),
    route("GET", "/api/track/skan", Needs::SdkKey, None, 200),
    route("GET", "/healthz", Needs::Nothing, None, 200),
    route("GET", "/readyz", Needs::Nothing, None, 200),
    // Last, since they take the device and the link away.
    route(
        "DELETE",
        "/api/v1/apps/{appId}/devices/{deviceId}",
        Needs::PeopleErase,
        None,
        204,
    ),
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

/// Without its click: that is the place's.
fn web_event() -> Value {
    json!({
        "eventId": "order-1", "arClickId": "clk_", "deviceId": DEVICE, "timestampMs": 1_767_225_600_000_i64,
        "eventType": "purchase", "revenue": 49.99, "currency": "USD", "sourceUrl": "https://shop.example.com/paid",
    })
}

fn enabled() -> Value {
    json!({"enabled": true})
}

fn spent() -> Value {
    json!({"costs": [{"day": "2026-01-01", "network": "network_a", "amount": 12.5}]})
}

fn tried() -> Value {
    json!({"events": [{"name": "purchase", "revenue": 9.99}]})
}

fn failed() -> Value {
    json!({"status": "failed"})
}

fn device() -> Value {
    json!({"deviceId": DEVICE, "platform": "android"})
}

fn events() -> Value {
    json!({"deviceId": DEVICE, "events": [{"name": "sign_up"}]})
}

fn person() -> Value {
    json!({"deviceId": DEVICE, "userId": "user-42"})
}

/// The device that every app of a [`Place`] has, live and test.
const DEVICE: &str = "6f9619ff-8b86-4011-b42d-00c04fc964ff";

impl Route {
    /// The body it is called with.
    pub(crate) fn body(&self, place: &Place) -> Option<Value> {
        self.body.map(|body| place.fill(body()))
    }

    /// The path with these ids in it.
    pub(crate) fn at(&self, place: &Place) -> String {
        self.path
            .replace("{appId}", &place.app)
            .replace("{linkId}", &place.link)
            .replace("{network}", "network_a")
            .replace("{provider}", "revenuecat")
            .replace("{deliveryId}", &place.delivery)
            .replace("{deviceId}", DEVICE)
    }

    /// A key that opens it: the private one, or the SDK's own.
    pub(crate) fn key<'a>(&self, place: &'a Place, private: &'a str) -> &'a str {
        if self.needs == Needs::SdkKey {
            &place.sdk_keys[0]
        } else {
            private
        }
    }

    /// A request with a key, presented as the route wants to have it.
    pub(crate) fn request(
        &self,
        server: &TestServer,
        place: &Place,
        key: &str,
    ) -> reqwest::RequestBuilder {
        let method = Method::from_bytes(self.method.as_bytes()).unwrap();
        let request = server.request(method, &self.at(place));
        if self.needs == Needs::SdkKey {
            request.header("x-tributary-key", key)
        } else {
            request.bearer_auth(key)
        }
    }

    /// Calls it with a key and a body.
    pub(crate) async fn call(
        &self,
        server: &TestServer,
        place: &Place,
        key: &str,
        body: Option<Value>,
    ) -> TestResponse {
        let mut request = self.request(server, place, key);
        if let Some(body) = body {
            request = request
                .header("content-type", "application/json")
                .body(body.to_string());
        }
        server.send(request).await
    }
}
