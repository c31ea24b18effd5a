//! Costs are imported from the networks' reports: pull, restated days, refused and throttled
//! requests. Imported and manual costs are never added together.

use crate::networks::ServerWithSimulator;
use crate::website::Website;
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tributary_simulator::SimulatedNetwork;
use tributary_testkit::on_both_engines;

/// Time limit for a pull. The worker looks for due sources every ten seconds.
const PULL_TIMEOUT: Duration = Duration::from_mins(1);
const TOKEN: &str = "EAABcanary0123456789";
const DEVELOPER: &str = "DEVcanary0123456789";
const REFRESH: &str = "1//canary0123456789";
const CLIENT: &str = "GOCSPXcanary0123456789";

/// Returns a day before today, as the networks write it.
fn day(ago: i64) -> String {
    let at = crate::networks::now_ms() - ago * 24 * 60 * 60 * 1_000;
    let at = tributary_domain::vocabulary::time::Timestamp::from_millis(at);
    tributary_domain::vocabulary::day::Day::of(at).to_string()
}

fn source(network: &str) -> Value {
    match network {
        "network_b" => json!({
            "settings": {"accountId": "123-456-7890", "loginAccountId": "9", "clientId": "5-x.apps.example"},
            "credentials": {"developerToken": DEVELOPER, "clientSecret": CLIENT, "refreshToken": REFRESH},
        }),
        _ => {
            json!({"settings": {"accountId": "1234567890"}, "credentials": {"accessToken": TOKEN}})
        }
    }
}

fn report(network: &str, rows: &[(i64, &str, i64)]) -> Value {
    let row = |(ago, campaign, micros): &(i64, &str, i64)| json!({"day": day(*ago), "campaignId": campaign, "campaignName": "Brand", "micros": micros});
    let rows: Vec<Value> = rows.iter().map(row).collect();
    let mut account = json!({"network": network, "accountId": "1234567890", "currency": "USD", "pageRows": 2, "rows": rows});
    match network {
        "network_b" => {
            account["developerToken"] = json!(DEVELOPER);
            account["loginAccountId"] = json!("9");
        }
        _ => account["accessToken"] = json!(TOKEN),
    }
    account
}

struct Spend {
    simulated: ServerWithSimulator,
    site: Website,
}

impl Spend {
    async fn start(engine: tributary_testkit::Engine) -> Self {
        let simulated = ServerWithSimulator::start(engine).await;
        let site = simulated.site(SimulatedNetwork::NetworkA).await;
        Self { simulated, site }
    }

    fn register(&self, network: &str, rows: &[(i64, &str, i64)]) {
        let control = self.simulated.simulator.control();
        control.register_report(report(network, rows)).unwrap();
    }

    fn fault(&self, network: &str, fault: &Value) {
        let injection =
            json!({"network": network, "endpoint": "reports", "fault": fault, "times": 1});
        self.simulated
            .simulator
            .control()
            .inject_fault(injection)
            .unwrap();
    }

    async fn source(&self, network: &str) -> Value {
        let list = self
            .site
            .call("GET", "/cost-sources", Value::Null)
            .await
            .expect(200)
            .data();
        let list = list.as_array().unwrap();
        list.iter()
            .find(|one| one["network"] == network)
            .unwrap()
            .clone()
    }

    async fn set(&self, network: &str, body: Value) -> Value {
        let before = self.source(network).await["lastPullAt"].clone();
        let path = format!("/cost-sources/{network}");
        self.site.call("PUT", &path, body).await.expect(200);
        self.pulled(network, &before).await
    }

    /// Pulls again at once, by storing the source again: a request does nothing so soon.
    async fn pull(&self, network: &str) -> Value {
        let before = self.source(network).await["nextPullAt"].clone();
        let path = format!("/cost-sources/{network}/pull");
        let requested = self.site.call("POST", &path, Value::Null).await.expect(200);
        assert_eq!(requested.data()["nextPullAt"], before, "too soon");
        self.set(network, source(network)).await
    }

    /// Waits until a pull has ended.
    async fn pulled(&self, network: &str, before: &Value) -> Value {
        let started = Instant::now();
        loop {
            let source = self.source(network).await;
            if source["lastPullAt"] != *before {
                return source;
            }
            assert!(started.elapsed() < PULL_TIMEOUT, "no pull: {source}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Returns the cost in the overview's totals of the last 30 days.
    async fn cost(&self) -> Value {
        let path = format!("/stats?groupBy=day&from={}&to={}", day(29), day(0));
        let stats = self.site.call("GET", &path, Value::Null).await.expect(200);
        stats.json()["meta"]["totals"]["cost"].clone()
    }
}

on_both_engines! {
    async fn costs_of_all_three_networks_are_imported_page_by_page(engine: Engine) {
        let spend = Spend::start(engine).await;
        for network in ["network_a", "network_b", "network_c"] {
            spend.register(network, &[
                (0, "7", 1_212_500_000), (0, "8", 250_000), (1, "7", 1_000_001), (40, "7", 5_000_000), (0, "9", 0),
            ]);
            let pulled = spend.set(network, source(network)).await;
            assert_eq!(pulled["status"], "active", "{pulled}");
            assert_eq!(pulled["importedUntil"], json!(day(0)));
            assert!(pulled["nextPullAt"].is_string());
        }
        let listed = spend.site.call("GET", "/costs?network=network_b", Value::Null).await.expect(200).data();
        let rows: Vec<(String, String, String)> = listed.as_array().unwrap().iter()
            .map(|row| (row["day"].as_str().unwrap().to_owned(), row["campaign"].as_str().unwrap().to_owned(), row["amount"].to_string()))
            .collect();
        assert_eq!(rows.len(), 4, "the first pull goes back 90 days: {rows:?}");
        assert!(rows.contains(&(day(1), "7".to_owned(), "1.000001".to_owned())), "exact to the millionth");
        assert!(listed.as_array().unwrap().iter().all(|row| row["source"] == "imported" && row["counted"] == true));
        assert_eq!(spend.cost().await, json!(3_641.250_003));
        let overview = spend.site.call("GET", &format!("/overview?from={}&to={}", day(29), day(0)), Value::Null).await.expect(200).data();
        assert!(overview.to_string().contains("3641.25"), "{overview}");
    }

    async fn a_restated_day_is_replaced_and_manual_costs_are_never_added(engine: Engine) {
        let spend = Spend::start(engine).await;
        let manual = |ago, amount| json!({"costs": [{"day": day(ago), "network": "network_a", "campaign": "7", "amount": amount}]});
        spend.site.call("PUT", "/costs", manual(2, 100)).await.expect(200);
        spend.register("network_a", &[(2, "7", 10_000_000), (3, "8", 4_000_000)]);
        spend.set("network_a", source("network_a")).await;
        assert_eq!(spend.cost().await, json!(14));
        spend.site.call("PUT", "/costs", manual(3, 50)).await.expect(200);
        assert_eq!(spend.cost().await, json!(14), "a manual cost does not add to the import");
        spend.register("network_a", &[(2, "7", 9_000_000), (2, "9", 2_000_000)]);
        spend.pull("network_a").await;
        assert_eq!(spend.cost().await, json!(61), "11 imported; the other day has only a manual cost again");
        let listed = spend.site.call("GET", "/costs", Value::Null).await.expect(200).data();
        let shadowed: Vec<&Value> = listed.as_array().unwrap().iter().filter(|row| row["counted"] == false).collect();
        assert_eq!(shadowed.len(), 1);
        assert_eq!(shadowed[0]["source"], "manual");
        spend.site.call("DELETE", "/cost-sources/network_a?removeCosts=true", Value::Null).await.expect(204);
        assert_eq!(spend.cost().await, json!(150));
    }

    async fn a_refused_token_pauses_and_a_throttled_request_is_retried(engine: Engine) {
        let spend = Spend::start(engine).await;
        spend.register("network_c", &[(0, "7", 5_000_000)]);
        let mut wrong = source("network_c");
        wrong["credentials"]["accessToken"] = json!("badTOKENcanary0123456789");
        let paused = spend.set("network_c", wrong).await;
        assert_eq!(paused["status"], "paused");
        assert_eq!(paused["nextPullAt"], Value::Null);
        let reason = paused["statusReason"].as_str().unwrap();
        assert!(reason.contains("40105") && reason.contains("Create a new access token"), "{reason}");
        let fixed = spend.set("network_c", source("network_c")).await;
        assert_eq!((&fixed["status"], spend.cost().await), (&json!("active"), json!(5)));

        spend.register("network_a", &[(0, "7", 1_000_000)]);
        let throttled = json!({"kind": "status", "status": 400, "body": {"error": {"code": 17, "message": format!("slow down {TOKEN}")}}});
        spend.fault("network_a", &throttled);
        let failed = spend.set("network_a", source("network_a")).await;
        assert_eq!(failed["status"], "error");
        let reason = failed["statusReason"].as_str().unwrap();
        assert!(reason.contains("17") && reason.contains("slow down ***") && !reason.contains(TOKEN), "{reason}");
        assert!(failed["nextPullAt"].is_string(), "it is tried again");
        assert_eq!(spend.pull("network_a").await["status"], "active");
        assert_eq!(spend.cost().await, json!(6));

        spend.register("network_b", &[(0, "7", 2_000_000)]);
        spend.set("network_b", source("network_b")).await;
        let expired = json!({"network": "network_b", "fault": {"kind": "expire_tokens"}});
        spend.simulated.simulator.control().inject_fault(expired).unwrap();
        assert_eq!(spend.pull("network_b").await["status"], "active", "a token is fetched for every pull");
        let denied = json!({"kind": "status", "status": 403, "body": {"error": {"code": 403, "status": "PERMISSION_DENIED", "message": DEVELOPER}}});
        spend.fault("network_b", &denied);
        assert_eq!(spend.pull("network_b").await["status"], "paused");

        let answers = format!("{}{}{}", spend.source("network_a").await, spend.source("network_b").await, spend.source("network_c").await);
        let log = spend.simulated.server.log();
        for secret in [TOKEN, DEVELOPER, REFRESH, CLIENT, "TOKENcanary"] {
            assert!(!answers.contains(secret) && !log.contains(secret), "{secret} is shown");
        }
    }

    async fn every_fault_of_a_cost_source_is_named(engine: Engine) {
        let spend = Spend::start(engine).await;
        let body = json!({"enabled": "yes", "settings": {"accountId": "x", "colour": "red", "apiVersion": "26"}, "credentials": {"accessToken": "", "password": "x"}});
        let refused = spend.site.call("PUT", "/cost-sources/network_a", body).await.expect(422);
        let details = refused.json()["error"]["details"].clone();
        let fields: Vec<&str> = details.as_array().unwrap().iter().map(|fault| fault["field"].as_str().unwrap()).collect();
        for field in ["enabled", "settings.accountId", "settings.apiVersion", "settings.colour", "credentials.accessToken", "credentials.password"] {
            assert!(fields.contains(&field), "{field} is missing in {fields:?}");
        }
        let refused = spend.site.call("PUT", "/cost-sources/network_b", json!({"settings": {"accountId": "1"}})).await.expect(422);
        assert_eq!(refused.json()["error"]["details"].as_array().unwrap().len(), 4);
        spend.site.call("PUT", "/cost-sources/network_d", json!({})).await.expect(404);
        spend.site.call("POST", "/cost-sources/network_a/pull", Value::Null).await.expect(422);
        spend.site.call("DELETE", "/cost-sources/network_a?removeCosts=maybe", Value::Null).await.expect(422);
        let off = spend.site.call("PUT", "/cost-sources/network_b", json!({"enabled": false})).await.expect(200).data();
        assert_eq!(off["status"], "not_configured");
    }
}
