//! The app under load: its keys, links, integrations and billing secret.

use crate::requests::now_ms;
use reqwest::{Response, StatusCode};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};
use tributary_simulator::SimulatedNetwork;

/// Value of the `Authorization` header of billing notifications.
pub const BILLING_SECRET: &str = "Bearer of the billing provider, 0123456789";
/// User agent of a phone, whose taps lead to a store.
pub const PHONE: &str = "Mozilla/5.0 (Linux; Android 14; Pixel 8) AppleWebKit/537.36 (KHTML, like Gecko) \
     Chrome/141.0.0.0 Mobile Safari/537.36";
/// Origin of the website.
pub const SHOP: &str = "https://shop.example.com";
/// Longest time for one request. The server's own limit is 30 seconds.
const REQUEST_MAX: Duration = Duration::from_secs(40);
/// Longest wait until the server has room for an export, and the pause between attempts.
const EXPORT_WAIT_MAX: Duration = Duration::from_mins(1);
const EXPORT_PAUSE: Duration = Duration::from_millis(250);
/// The networks with the URL parameters of their click ids.
pub const NETWORKS: [(SimulatedNetwork, &str); 4] = [
    (SimulatedNetwork::NetworkA, "fbclid"),
    (SimulatedNetwork::NetworkB, "gclid"),
    (SimulatedNetwork::NetworkC, "ttclid"),
    (SimulatedNetwork::NetworkD, "oppref"),
];
/// Account of the app at every network. Each instance has its own simulator.
pub const ACCOUNT: &str = "900001";

/// An app with a website, a store link, billing, and four connected networks.
#[derive(Debug, Clone)]
pub struct Site {
    /// Sends requests. Redirects are not followed.
    pub client: reqwest::Client,
    /// Full key of the organization.
    pub key: String,
    /// API path of the app.
    pub app: String,
    /// Id of the app.
    pub id: String,
    /// SDK key of the live environment.
    pub sdk_key: String,
    /// SDK key of the test environment.
    pub test_sdk_key: String,
    /// Id of the link to the website.
    pub funnel: String,
    /// Id of the link to the store.
    pub store_link: String,
    /// Ids of a click per network, for web events.
    pub clicks: Vec<String>,
    /// How far the clocks of the clients are ahead, in milliseconds. They agree with the server's.
    pub ahead_ms: Arc<AtomicI64>,
}

/// Creates a client for requests to servers under test.
pub fn client() -> reqwest::Client {
    reqwest::Client::builder()
        .timeout(REQUEST_MAX)
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .build()
        .unwrap()
}

impl Site {
    /// Creates the app on the server at `base`, and its integrations with a simulator.
    pub async fn create(base: &str, key: &str) -> Self {
        let mut site = Self {
            client: client(),
            key: key.to_owned(),
            app: "/api/v1/apps".to_owned(),
            id: String::new(),
            sdk_key: String::new(),
            test_sdk_key: String::new(),
            funnel: String::new(),
            store_link: String::new(),
            clicks: Vec::new(),
            ahead_ms: Arc::default(),
        };
        // Clients install within seconds of a tap, which the default policy would hold.
        let app = json!({"name": "Faults", "attribution": {"fraud": "refuse"}});
        let app = site.set_up(base, "POST", "", app).await;
        site.id = text(&app["id"]);
        site.app = format!("/api/v1/apps/{}", site.id);
        site.sdk_key = text(&app["sdk"]["liveKey"]);
        site.test_sdk_key = text(&app["sdk"]["testKey"]);
        let settings = json!({
            "webEvents": {"enabled": true},
            "billing": {"revenuecat": {"secret": BILLING_SECRET}},
        });
        site.set_up(base, "PATCH", "", settings).await;
        let funnel =
            json!({"name": "Web", "type": "web_funnel", "destinationUrl": format!("{SHOP}/start")});
        site.funnel = text(&site.set_up(base, "POST", "/links", funnel).await["id"]);
        let store = "https://play.google.com/store/apps/details?id=com.example";
        let store = json!({"name": "Store", "androidUrl": store});
        site.store_link = text(&site.set_up(base, "POST", "/links", store).await["id"]);
        for (network, parameter) in NETWORKS {
            let path = format!("/integrations/{}", network.label());
            site.set_up(base, "PATCH", &path, integration(network))
                .await;
            let link = format!("/w/{}?{parameter}=E.C.P.1", site.funnel);
            let click = site.tap(base, &link).await;
            site.clicks.push(click.expect("a click id"));
        }
        site
    }

    /// Returns the time of the clients' clocks in milliseconds.
    pub fn now_ms(&self) -> i64 {
        now_ms() + self.ahead_ms.load(Ordering::Relaxed)
    }

    /// Calls an endpoint below the app's path, which must succeed. Returns the data.
    async fn set_up(&self, base: &str, method: &str, path: &str, body: Value) -> Value {
        let (status, answer) = self.call(base, method, path, Some(body)).await.unwrap();
        assert!((200..300).contains(&status), "{method} {path}: {answer}");
        answer["data"].clone()
    }

    /// Calls an endpoint below the app's path. Returns the status and the body, or `None` without a
    /// complete response.
    pub async fn call(
        &self,
        base: &str,
        method: &str,
        path: &str,
        body: Option<Value>,
    ) -> Option<(u16, Value)> {
        let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
        let url = format!("{base}{}{path}", self.app);
        let mut request = self.client.request(method, url).bearer_auth(&self.key);
        if let Some(body) = body {
            let request_with_type = request.header("content-type", "application/json");
            request = request_with_type.body(body.to_string());
        }
        let response = request.send().await.ok()?;
        let status = response.status().as_u16();
        let text = response.text().await.ok()?;
        Some((status, serde_json::from_str(&text).unwrap_or(Value::Null)))
    }

    /// Reads an export. Returns its lines. Waits if all exports of the server are in use, as they may
    /// be right after an overload.
    pub async fn export(&self, base: &str, kind: &str) -> Option<Vec<Value>> {
        let url = format!("{base}{}/export?kind={kind}&format=ndjson", self.app);
        let begun = Instant::now();
        let response = loop {
            let request = self.client.get(&url).bearer_auth(&self.key);
            let response = request.send().await.ok()?;
            if !is_busy(&response) || begun.elapsed() > EXPORT_WAIT_MAX {
                break response;
            }
            tokio::time::sleep(EXPORT_PAUSE).await;
        };
        if !response.status().is_success() {
            return None;
        }
        let text = response.text().await.ok()?;
        text.lines()
            .map(|line| serde_json::from_str(line).ok())
            .collect()
    }

    /// Taps a link. Returns the click id in the redirect.
    pub async fn tap(&self, base: &str, path: &str) -> Option<String> {
        let request = self.client.get(format!("{base}{path}"));
        let response = request.header("user-agent", PHONE).send().await.ok()?;
        let location = response.headers().get("location")?.to_str().ok()?;
        click_id(location).map(str::to_owned)
    }
}

/// Returns whether the server asks to repeat the request later.
fn is_busy(response: &Response) -> bool {
    let is_temporary = matches!(
        response.status(),
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE
    );
    is_temporary && response.headers().contains_key("retry-after")
}

/// Finds the click id in the target of a redirect. In a store's URL, it is inside an encoded
/// parameter.
pub fn click_id(location: &str) -> Option<&str> {
    let (_, rest) = location
        .split_once("ar_click_id=")
        .or_else(|| location.split_once("ar_click_id%3D"))?;
    rest.split(['&', '%']).next()
}

fn text(value: &Value) -> String {
    value.as_str().expect("a string").to_owned()
}

/// Returns the settings and credentials of an integration.
fn integration(network: SimulatedNetwork) -> Value {
    let (settings, credentials) = match network {
        SimulatedNetwork::NetworkA => (
            json!({"pixelId": ACCOUNT}),
            json!({"accessToken": "EAAB0123456789abcdef"}),
        ),
        SimulatedNetwork::NetworkB => (
            json!({
                "operatingAccountId": ACCOUNT, "clientId": "faults.apps.example",
                "conversionActions": {"install": "101", "purchase": "102"},
            }),
            json!({"clientSecret": "client-secret-12345", "refreshToken": "refresh-token-12345"}),
        ),
        SimulatedNetwork::NetworkC => (
            json!({"pixelCode": ACCOUNT}),
            json!({"accessToken": "c-token-0123456789"}),
        ),
        SimulatedNetwork::NetworkD => (
            json!({"pixelId": ACCOUNT}),
            json!({"apiKey": "d-key-0123456789"}),
        ),
    };
    json!({"enabled": true, "settings": settings, "credentials": credentials})
}

#[cfg(test)]
mod tests {
    use super::click_id;

    #[test]
    fn finds_the_click_id_in_both_kinds_of_redirects() {
        let website = "https://shop.example.com/start?ar_click_id=clk_1-x&ar_link_id=2";
        assert_eq!(click_id(website), Some("clk_1-x"));
        let store = "https://play.example.com/?id=a&referrer=ar_click_id%3Dclk_2%26utm%3D1";
        assert_eq!(click_id(store), Some("clk_2"));
        assert_eq!(click_id("https://shop.example.com/start"), None);
    }
}
