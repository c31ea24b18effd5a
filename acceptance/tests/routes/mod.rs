//! Every route with the access that it needs and a valid request. A route without a row here fails
//! `openapi::every_route_is_described_and_tested`.

mod bodies;
mod fixture;
mod table;

pub(crate) use fixture::RouteFixture;
pub(crate) use table::ROUTES;

use bodies::{
    challenge_body, configure_body, costs_body, decision_body, decisions_body, enabled_body,
    evaluate_body, events_body, identify_body, links_body, name_body, notice_body, retry_body,
    challenge_body, configure_body, cost_source_body, costs_body, decision_body, decisions_body,
    enabled_body, evaluate_body, events_body, identify_body, links_body, name_body, retry_body,
    tried_rules_body, web_event_body, web_events_enabled_body,
};
use reqwest::Method;
use serde_json::Value;
use tributary_testkit::{TestResponse, TestServer};

/// Access that a route needs.
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
    /// `apps:read`, for data that only live events have; a test key gets 404.
    DeliveryRead,
    /// `apps:write`, and a live key.
    AppsWrite,
    /// `apps:write`, with a key of either environment.
    PeopleErase,
}

/// A route and how to call it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Route {
    pub(crate) method: &'static str,
    pub(crate) path: &'static str,
    pub(crate) needs: Needs,
    /// Builds a valid body.
    body: Option<fn() -> Value>,
    /// Status of a successful response.
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

/// Every route in the OpenAPI description.
pub(crate) const ROUTES: &[Route] = &[
    route("GET", "/api/v1/apps", Needs::AppsRead, None, 200),
    route(
        "POST",
        "/api/v1/apps",
        Needs::AppsWrite,
        Some(name_body),
        201,
    ),
    route("GET", "/api/v1/apps/{appId}", Needs::AppsRead, None, 200),
    route(
        "GET",
        "/api/v1/apps/{appId}/alert-webhook",
        Needs::AppsWrite,
        None,
        200,
    ),
    route(
        "POST",
        "/api/v1/apps/{appId}/link-domain/verify",
        Needs::AppsWrite,
        None,
        200,
    ),
    route(
        "POST",
        "/api/v1/apps/{appId}/identity/secret",
        Needs::AppsWrite,
        None,
        201,
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
        Some(web_events_enabled_body),
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
        Some(name_body),
        201,
    ),
    route(
        "POST",
        "/api/v1/apps/{appId}/links/bulk",
        Needs::AppsWrite,
        Some(links_body),
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
        "GET",
        "/api/v1/apps/{appId}/links/{linkId}/qr.svg",
        Needs::AppsRead,
        None,
        200,
    ),
    route(
        "GET",
        "/api/v1/apps/{appId}/links/{linkId}/qr.png",
        Needs::AppsRead,
        None,
        200,
    ),
    route(
        "PATCH",
        "/api/v1/apps/{appId}/links/{linkId}",
        Needs::AppsWrite,
        Some(name_body),
        200,
    ),
    route(
        "GET",
        "/api/v1/apps/{appId}/notices",
        Needs::AppsRead,
        None,
        200,
    ),
    route(
        "POST",
        "/api/v1/apps/{appId}/notices",
        Needs::AppsWrite,
        Some(notice_body),
        201,
    ),
    route(
        "POST",
        "/api/v1/apps/{appId}/notices/preview",
        Needs::AppsWrite,
        Some(notice_body),
        200,
    ),
    route(
        "GET",
        "/api/v1/apps/{appId}/notices/{noticeId}",
        Needs::AppsRead,
        None,
        200,
    ),
    route(
        "PUT",
        "/api/v1/apps/{appId}/notices/{noticeId}",
        Needs::AppsWrite,
        Some(notice_body),
        200,
    ),
    route(
        "POST",
        "/api/v1/apps/{appId}/notices/{noticeId}/test",
        Needs::AppsWrite,
        None,
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
        Some(enabled_body),
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
        Some(retry_body),
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
        Some(enabled_body),
        200,
    ),
    route(
        "PATCH",
        "/api/v1/apps/{appId}/skan",
        Needs::AppsWrite,
        Some(enabled_body),
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
        Some(costs_body),
        200,
    ),
    route(
        "GET",
        "/api/v1/apps/{appId}/cost-sources",
        Needs::AppsRead,
        None,
        200,
    ),
    route(
        "PUT",
        "/api/v1/apps/{appId}/cost-sources/{network}",
        Needs::AppsWrite,
        Some(cost_source_body),
        200,
    ),
    route(
        "POST",
        "/api/v1/apps/{appId}/cost-sources/{network}/pull",
        Needs::AppsWrite,
        None,
        200,
    ),
    route(
        "DELETE",
        "/api/v1/apps/{appId}/cost-sources/{network}",
        Needs::AppsWrite,
        None,
        204,
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
        Some(evaluate_body),
        200,
    ),
    route(
        "POST",
        "/api/v1/apps/{appId}/attribution/what-if",
        Needs::AppsRead,
        Some(tried_rules_body),
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
        Some(web_event_body),
        202,
    ),
    route(
        "GET",
        "/api/v1/apps/{appId}/devices/{deviceId}",
        Needs::AppsRead,
        None,
        200,
    ),
    route(
        "GET",
        "/api/v1/apps/{appId}/held",
        Needs::AppsRead,
        None,
        200,
    ),
    route(
        "POST",
        "/api/v1/apps/{appId}/held/{deviceId}/decision",
        Needs::PeopleErase,
        Some(decision_body),
        200,
    ),
    route(
        "POST",
        "/api/v1/apps/{appId}/held/decisions",
        Needs::PeopleErase,
        Some(decisions_body),
        200,
    ),
    route("GET", "/api/v1/audit-log", Needs::AppsRead, None, 200),
    route(
        "POST",
        "/api/track/configure",
        Needs::SdkKey,
        Some(configure_body),
        200,
    ),
    route(
        "POST",
        "/api/track/events",
        Needs::SdkKey,
        Some(events_body),
        202,
    ),
    route(
        "POST",
        "/api/track/identify",
        Needs::SdkKey,
        Some(identify_body),
        204,
    ),
    route("GET", "/api/track/skan", Needs::SdkKey, None, 200),
    route(
        "POST",
        "/api/track/attestation-challenge",
        Needs::SdkKey,
        Some(challenge_body),
        200,
    ),
    route("GET", "/healthz", Needs::Nothing, None, 200),
    route("GET", "/readyz", Needs::Nothing, None, 200),
    // Last, because they delete the notice, the device and the link.
    route(
        "DELETE",
        "/api/v1/apps/{appId}/notices/{noticeId}",
        Needs::AppsWrite,
        None,
        204,
    ),
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

/// Device of every [`RouteFixture`], live and test.
pub(crate) const DEVICE: &str = "6f9619ff-8b86-4011-b42d-00c04fc964ff";

impl Route {
    /// Returns a valid body for the fixture.
    pub(crate) fn body(&self, fixture: &RouteFixture) -> Option<Value> {
        self.body.map(|body| fixture.fill(body()))
    }

    /// Returns the path with the ids of the fixture.
    pub(crate) fn path_for(&self, fixture: &RouteFixture) -> String {
        self.path
            .replace("{appId}", &fixture.app)
            .replace("{linkId}", &fixture.link)
            .replace("{noticeId}", &fixture.notice)
            .replace("{network}", "network_a")
            .replace("{provider}", "revenuecat")
            .replace("{deliveryId}", &fixture.delivery)
            .replace("{deviceId}", DEVICE)
    }

    /// Returns the key that the route accepts: the private key, or the SDK key of the fixture.
    pub(crate) fn key<'a>(&self, fixture: &'a RouteFixture, private: &'a str) -> &'a str {
        if self.needs == Needs::SdkKey {
            &fixture.sdk_keys[0]
        } else {
            private
        }
    }

    /// Builds a request with the key in the header that the route expects.
    pub(crate) fn request(
        &self,
        server: &TestServer,
        fixture: &RouteFixture,
        key: &str,
    ) -> reqwest::RequestBuilder {
        let method = Method::from_bytes(self.method.as_bytes()).unwrap();
        let request = server.request(method, &self.path_for(fixture));
        if self.needs == Needs::SdkKey {
            request.header("x-tributary-key", key)
        } else {
            request.bearer_auth(key)
        }
    }

    /// Calls the route with a key and a body.
    pub(crate) async fn call(
        &self,
        server: &TestServer,
        fixture: &RouteFixture,
        key: &str,
        body: Option<Value>,
    ) -> TestResponse {
        let mut request = self.request(server, fixture, key);
        if let Some(body) = body {
            request = request
                .header("content-type", "application/json")
                .body(body.to_string());
        }
        server.send(request).await
    }
}
