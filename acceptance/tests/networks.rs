//! Helpers for the tests of forwarding: a server and the four simulated networks.

use crate::website::{BROWSER, Website};
use reqwest::RequestBuilder;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tributary_simulator::{RunningSimulator, SimulatedNetwork, Simulator, SimulatorConfig};
use tributary_testkit::{Engine, ServerProcess, TestDatabase};

/// The four networks with the URL parameter of their click ids.
pub(crate) const NETWORKS: [(SimulatedNetwork, &str); 4] = [
    (SimulatedNetwork::NetworkA, "fbclid"),
    (SimulatedNetwork::NetworkB, "gclid"),
    (SimulatedNetwork::NetworkC, "ttclid"),
    (SimulatedNetwork::NetworkD, "oppref"),
];
/// User agent of an Android phone, which gets its click id in the store URL.
const PHONE: &str = "Mozilla/5.0 (Linux; Android 14; Pixel 8) AppleWebKit/537.36 (KHTML, like Gecko) \
     Chrome/141.0.0.0 Mobile Safari/537.36";
/// Conversion actions of `network_b` by event.
const ACTIONS: [(&str, &str); 8] = [
    ("install", "101"),
    ("purchase", "102"),
    ("sign_up", "103"),
    ("start_trial", "104"),
    ("qualified_trial", "105"),
    ("subscribe", "106"),
    ("add_to_cart", "107"),
    ("view_content", "108"),
];

/// A server that forwards to a simulator.
pub(crate) struct ServerWithSimulator {
    pub(crate) server: ServerProcess,
    pub(crate) simulator: RunningSimulator,
    pub(crate) key: String,
    pub(crate) database: TestDatabase,
}

/// Returns the current time in milliseconds. The simulator also uses the system clock.
#[expect(
    clippy::disallowed_methods,
    reason = "the simulator uses the system clock"
)]
pub(crate) fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    i64::try_from(since.as_millis()).unwrap()
}

impl ServerWithSimulator {
    /// Starts a simulator and a server with a new database.
    pub(crate) async fn start(engine: Engine) -> Self {
        Self::start_on(TestDatabase::new(engine).await).await
    }

    /// Starts a simulator, and a server with this database.
    pub(crate) async fn start_on(database: TestDatabase) -> Self {
        let key = ServerProcess::full_key(&database);
        let simulator = Simulator::start(SimulatorConfig::default()).await.unwrap();
        let server = Self::serve(&database, &simulator).await;
        Self {
            server,
            simulator,
            key,
            database,
        }
    }

    /// Replaces the server by one that sends to a proxy at this URL, with additional settings.
    pub(crate) async fn restart_behind(&mut self, proxy: &str, more: &[(&str, &str)]) {
        let token = format!("{proxy}/token");
        let urls = [
            ("TRIBUTARY_NETWORKS__NETWORK_A__BASE_URL", proxy),
            ("TRIBUTARY_NETWORKS__NETWORK_B__BASE_URL", proxy),
            ("TRIBUTARY_NETWORKS__NETWORK_B__TOKEN_URL", &token),
            ("TRIBUTARY_NETWORKS__NETWORK_B__REPORTS_URL", proxy),
            ("TRIBUTARY_NETWORKS__NETWORK_C__BASE_URL", proxy),
            ("TRIBUTARY_NETWORKS__NETWORK_D__BASE_URL", proxy),
        ];
        let settings = [&urls[..], more].concat();
        self.server.kill_now();
        self.server = Self::serve_with(&self.database, &self.simulator, &settings).await;
    }

    /// Starts another server with the same database.
    pub(crate) async fn serve(
        database: &TestDatabase,
        simulator: &RunningSimulator,
    ) -> ServerProcess {
        Self::serve_with(database, simulator, &[]).await
    }

    /// Starts another server with the same database and additional settings.
    pub(crate) async fn serve_with(
        database: &TestDatabase,
        simulator: &RunningSimulator,
        more: &[(&str, &str)],
    ) -> ServerProcess {
        let base = simulator.base_url();
        let token = format!("{base}/token");
        let settings = [
            ("TRIBUTARY_NETWORKS__ALLOW_PRIVATE_ADDRESSES", "true"),
            ("TRIBUTARY_NETWORKS__NETWORK_A__BASE_URL", &base),
            ("TRIBUTARY_NETWORKS__NETWORK_B__BASE_URL", &base),
            ("TRIBUTARY_NETWORKS__NETWORK_B__TOKEN_URL", &token),
            ("TRIBUTARY_NETWORKS__NETWORK_B__REPORTS_URL", &base),
            ("TRIBUTARY_NETWORKS__NETWORK_C__BASE_URL", &base),
            ("TRIBUTARY_NETWORKS__NETWORK_D__BASE_URL", &base),
            ("TRIBUTARY_LIMITS__REQUESTS_PER_SECOND_PER_KEY", "0"),
            ("TRIBUTARY_LIMITS__REQUESTS_PER_SECOND_PER_ADDRESS", "0"),
        ];
        ServerProcess::start_with(database, &[&settings[..], more].concat()).await
    }

    /// Creates an app with a website and a click of this network.
    pub(crate) async fn site(&self, network: SimulatedNetwork) -> Website {
        let mut site = Website::open_at(self.server.base_url(), &self.key).await;
        let (_, parameter) = NETWORKS[network_index(network)];
        site.click = site.tap(&site.link, &format!("{parameter}=E.C.P.1")).await;
        site
    }

    /// Connects an app to a network with a new account. Returns the account id.
    pub(crate) async fn connect(
        &self,
        site: &Website,
        network: SimulatedNetwork,
        number: usize,
    ) -> String {
        let account = format!("90000{number}");
        let (settings, credentials) = match network {
            SimulatedNetwork::NetworkA => (
                json!({"pixelId": account}),
                json!({"accessToken": "EAAB0123456789abcdef"}),
            ),
            SimulatedNetwork::NetworkB => {
                let actions: BTreeMap<_, _> = ACTIONS.into_iter().collect();
                // A separate client id, because requests of one client are paced.
                let client = format!("{account}-x.apps.example");
                (
                    json!({"operatingAccountId": account, "clientId": client, "conversionActions": actions}),
                    json!({"clientSecret": "client-secret-12345", "refreshToken": "refresh-token-12345"}),
                )
            }
            SimulatedNetwork::NetworkC => (
                json!({"pixelCode": account}),
                json!({"accessToken": "c-token-0123456789"}),
            ),
            SimulatedNetwork::NetworkD => (
                json!({"pixelId": account}),
                json!({"apiKey": "d-key-0123456789"}),
            ),
        };
        let change = json!({"enabled": true, "settings": settings, "credentials": credentials});
        let path = format!("/integrations/{}", network.label());
        site.call("PATCH", &path, change).await.expect(200);
        account
    }

    /// Returns the conversions that the network received for an account.
    pub(crate) fn received(&self, network: SimulatedNetwork, account: &str) -> Vec<Value> {
        self.simulator
            .control()
            .conversions(network, Some(account), None, 100_000)
    }

    /// Returns the names of the received events.
    pub(crate) fn names(&self, network: SimulatedNetwork, account: &str) -> BTreeSet<String> {
        let event_name = |conversion: Value| {
            let name = conversion["eventName"].as_str().unwrap().to_owned();
            let key = ACTIONS.into_iter().find(|(_, action)| *action == name);
            match (network, key) {
                (SimulatedNetwork::NetworkB, Some((key, _))) => key.to_owned(),
                _ => name,
            }
        };
        self.received(network, account)
            .into_iter()
            .map(event_name)
            .collect()
    }

    /// Injects a fault for one account.
    pub(crate) fn inject_fault(
        &self,
        network: SimulatedNetwork,
        account: &str,
        fault: Value,
        times: Option<u32>,
    ) {
        let order = json!({
            "network": network.label(), "account": account, "fault": fault, "times": times,
        });
        self.simulator.control().inject_fault(order).unwrap();
    }
}

/// Returns the index of a network in [`NETWORKS`].
pub(crate) fn network_index(network: SimulatedNetwork) -> usize {
    NETWORKS
        .iter()
        .position(|(other, _)| *other == network)
        .unwrap()
}

/// Sets the time of a web event to now.
pub(crate) fn with_current_time(event: &Value) -> Value {
    crate::website::with(event, "timestampMs", now_ms())
}

/// Counts the deliveries of an app by status.
pub(crate) async fn delivery_counts(site: &Website) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for delivery in deliveries(site).await {
        let status = delivery["status"].as_str().unwrap().to_owned();
        *counts.entry(status).or_default() += 1;
    }
    counts
}

/// Returns every delivery of an app.
pub(crate) async fn deliveries(site: &Website) -> Vec<Value> {
    let (mut all, mut cursor) = (Vec::new(), String::new());
    loop {
        let path = format!("/deliveries?limit=500{cursor}");
        let page = site
            .call("GET", &path, Value::Null)
            .await
            .expect(200)
            .json();
        all.extend(page["data"].as_array().unwrap().iter().cloned());
        match page["meta"]["cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return all,
        }
    }
}

/// Waits until no delivery of an app is pending. Returns the counts by status.
pub(crate) async fn wait_until_settled(
    site: &Website,
    timeout: Duration,
) -> BTreeMap<String, usize> {
    let begun = Instant::now();
    loop {
        let counts = delivery_counts(site).await;
        if !counts.contains_key("pending") {
            return counts;
        }
        assert!(begun.elapsed() < timeout, "still pending: {counts:?}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// Configures a device whose install is attributed to a click of this network. Returns the SDK key.
pub(crate) async fn install_from_click(
    site: &Website,
    network: SimulatedNetwork,
    device: &str,
) -> String {
    let app = site.call("GET", "", Value::Null).await.expect(200).data();
    let sdk_key = app["sdk"]["liveKey"].as_str().unwrap().to_owned();
    let fallback = json!({"name": "L", "androidUrl": "https://play.google.com/store/apps/details?id=com.example"});
    let link = site.create_link(fallback).await;
    let (_, parameter) = NETWORKS[network_index(network)];
    let url = format!("{}/c/{link}?{parameter}=E.C.P.1", site.base);
    let tapped = site
        .client
        .get(url)
        .header("user-agent", PHONE)
        .send()
        .await
        .unwrap();
    let location = tapped.headers()["location"].to_str().unwrap().to_owned();
    let (_, rest) = location
        .split_once("ar_click_id%3D")
        .unwrap_or_else(|| panic!("{location}"));
    let click = rest.split('&').next().unwrap();
    let configure = json!({
        "deviceId": device, "platform": "android", "osVersion": "14", "model": "Pixel 8",
        "installReferrer": {"referrer": format!("ar_click_id={click}")},
    });
    let answer = track(site, &sdk_key, "configure", &configure).await;
    assert_eq!(
        answer["data"]["attribution"]["network"],
        network.label(),
        "{answer}"
    );
    sdk_key
}

/// Builds a call of an SDK endpoint.
pub(crate) fn track_request(
    site: &Website,
    sdk_key: &str,
    endpoint: &str,
    body: &Value,
) -> RequestBuilder {
    site.client
        .post(format!("{}/api/track/{endpoint}", site.base))
        .header("x-tributary-key", sdk_key)
        .header("user-agent", BROWSER)
        .header("content-type", "application/json")
        .body(body.to_string())
}

/// Calls an SDK endpoint.
pub(crate) async fn track(site: &Website, sdk_key: &str, endpoint: &str, body: &Value) -> Value {
    let request = track_request(site, sdk_key, endpoint, body);
    let answer = request.send().await.unwrap();
    assert!(
        answer.status().is_success(),
        "{endpoint}: {}",
        answer.status()
    );
    serde_json::from_str(&answer.text().await.unwrap()).unwrap()
}
