//! The app under test, with a website: links to the website and to the app store, and a click.

use crate::child::{Server, full_key};
use crate::template::{ID_PLACEHOLDER, IdOrder, TIME_PLACEHOLDER, Template};
use anyhow::{Context as _, bail};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use tributary_testkit::TestDatabase;
use tributary_testkit::postbacks::APP_STORE_ID;

/// Bearer token of RevenueCat's webhook.
pub(crate) const WEBHOOK_SECRET: &str = "0123456789abcdef0123456789abcdef";

/// A phone browser's user agent.
const USER_AGENT: &str = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 \
     (KHTML, like Gecko) Version/26.1 Mobile/15E148 Safari/604.1";

/// The app and its ids.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct BenchSite {
    pub(crate) key: String,
    pub(crate) app: String,
    /// Link to the website.
    pub(crate) link: String,
    /// Click on the link to the website.
    pub(crate) click: String,
    /// Link to the app store.
    pub(crate) install_link: String,
    /// SDK key for live events.
    pub(crate) sdk_key: String,
}

impl BenchSite {
    /// Origin of the website.
    pub(crate) const SHOP: &str = "https://shop.example.com";

    /// Creates an app with its links and click over HTTP.
    pub(crate) fn open(server: &Server, database: &TestDatabase) -> anyhow::Result<Self> {
        Self::for_key(server, full_key(database)?, 0)
    }

    /// Creates an app with its links and click over HTTP, for the key's organization. Apps with
    /// different numbers have different ids in the app stores.
    pub(crate) fn for_key(server: &Server, key: String, number: u32) -> anyhow::Result<Self> {
        let visitor = ApiClient {
            server: server.address,
            key,
        };
        let app = created_id(&visitor.call("POST", "", &json!({"name": "Shop"}))?)?;
        let settings = json!({
            "webEvents": {"enabled": true},
            "ios": {"appStoreId": (APP_STORE_ID + i64::from(number)).to_string()},
            "android": {"packageName": format!("com.example.runner{number}")},
            "billing": {"revenuecat": {"secret": format!("Bearer {WEBHOOK_SECRET}")}},
        });
        let changed = visitor.call("PATCH", &format!("/{app}"), &settings)?;
        let sdk_key = changed["data"]["sdk"]["liveKey"].as_str();
        let sdk_key = sdk_key.context("no SDK key in the response")?.to_owned();
        let create_link = |link: Value| {
            anyhow::Ok(created_id(&visitor.call(
                "POST",
                &format!("/{app}/links"),
                &link,
            )?)?)
        };
        let link = create_link(json!({
            "name": "Funnel", "type": "web_funnel", "destinationUrl": format!("{}/start", Self::SHOP)
        }))?;
        let install_link = create_link(json!({"name": "Install", "network": "network_c"}))?;
        let click = visitor.tap(&link)?;
        Ok(Self {
            key: visitor.key,
            app,
            link,
            click,
            install_link,
            sdk_key,
        })
    }

    /// Returns the URL of the payment page.
    pub(crate) fn payment_url() -> String {
        format!("{}/paid", Self::SHOP)
    }

    /// Returns a request template for purchases, each from a different device.
    pub(crate) fn purchase(&self, host: &str, ids: IdOrder) -> Template {
        let body = json!({
            "eventId": ID_PLACEHOLDER, "arClickId": self.click, "deviceId": format!("visitor-{ID_PLACEHOLDER}"),
            "timestampMs": TIME_PLACEHOLDER, "eventType": "purchase", "revenue": 49.99, "currency": "USD",
            "sourceUrl": Self::payment_url(),
        });
        let path = format!("/api/v1/apps/{}/web-events", self.app);
        Template::post(host, &path, &self.key, &body.to_string(), ids)
    }

    /// Returns a tap on the link.
    pub(crate) fn tap_request(&self, server: SocketAddr) -> Template {
        let path = format!("/w/{}?fbclid=f1&campaign_id=238", self.link);
        let agent = format!("User-Agent: {USER_AGENT}\r\n");
        Template::get(&server.to_string(), &path, &agent, IdOrder::InOrder)
    }

    /// Calls the app's REST resource or a path below it, such as `/links`.
    pub(crate) fn call(
        &self,
        server: SocketAddr,
        method: &str,
        path: &str,
        body: &Value,
    ) -> anyhow::Result<Value> {
        let visitor = ApiClient {
            server,
            key: self.key.clone(),
        };
        visitor.call(method, &format!("/{}{path}", self.app), body)
    }
}

/// A REST client with a key.
#[derive(Debug)]
pub(crate) struct ApiClient {
    pub(crate) server: SocketAddr,
    pub(crate) key: String,
}

impl ApiClient {
    /// Calls a path below `/api/v1/apps` and returns the JSON response.
    pub(crate) fn call(&self, method: &str, path: &str, body: &Value) -> anyhow::Result<Value> {
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        let (key, length) = (&self.key, body.len());
        let headers = format!(
            "Authorization: Bearer {key}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n"
        );
        let (head, body) = send_request(
            self.server,
            method,
            &format!("/api/v1/apps{path}"),
            &headers,
            &body,
        )?;
        if !head.starts_with("HTTP/1.1 20") {
            bail!("{method} {path}: {body}");
        }
        Ok(serde_json::from_str(&body)?)
    }

    /// Follows a link and returns the click id that the website receives.
    fn tap(&self, link: &str) -> anyhow::Result<String> {
        let path = format!("/w/{link}?fbclid=f1&campaign_id=238");
        let agent = format!("User-Agent: {USER_AGENT}\r\n");
        let (head, _) = send_request(self.server, "GET", &path, &agent, "")?;
        let (_, rest) = head
            .split_once("ar_click_id=")
            .context("no click id in the redirect")?;
        let end = rest.find(['&', '\r']).unwrap_or(rest.len());
        Ok(rest[..end].to_owned())
    }
}

/// Sends one request on a new connection. Returns the response's head and body.
pub(crate) fn send_request(
    server: SocketAddr,
    method: &str,
    path: &str,
    headers: &str,
    body: &str,
) -> anyhow::Result<(String, String)> {
    let mut stream = TcpStream::connect(server)?;
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: {server}\r\nConnection: close\r\n{headers}\r\n{body}"
    )?;
    let mut response = String::new();
    stream.read_to_string(&mut response)?;
    let (head, body) = response
        .split_once("\r\n\r\n")
        .context("incomplete response")?;
    Ok((head.to_owned(), body.to_owned()))
}

/// Returns the id of a created resource.
pub(crate) fn created_id(response: &Value) -> anyhow::Result<String> {
    let id = response["data"]["id"].as_str();
    Ok(id.context("no id in the response")?.to_owned())
}
