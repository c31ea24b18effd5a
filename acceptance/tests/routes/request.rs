//! Requests to a route.

use super::{DEVICE, Needs, Route, RouteFixture, USER};
use reqwest::Method;
use serde_json::Value;
use tributary_testkit::{TestResponse, TestServer};

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
            .replace("{keyId}", &fixture.key)
            .replace("{network}", "network_a")
            .replace("{provider}", "revenuecat")
            .replace("{deliveryId}", &fixture.delivery)
            .replace("{deviceId}", DEVICE)
            .replace("{userId}", USER)
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
