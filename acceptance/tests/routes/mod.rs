//! Every route with the access that it needs and a valid request. A route without a row here fails
//! `openapi::every_route_is_described_and_tested`.

mod bodies;
mod fixture;
mod table;
mod request;

pub(crate) use fixture::RouteFixture;
pub(crate) use table::ROUTES;

use reqwest::Method;
use bodies::{
    challenge_body, configure_body, cost_source_body, costs_body, decision_body, decisions_body,
    enabled_body, evaluate_body, events_body, identify_body, links_body, name_body, retry_body,
    tried_rules_body, web_event_body, web_events_enabled_body,
};
use serde_json::Value;

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
