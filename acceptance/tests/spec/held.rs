//! Flagged installs are not paid for: `GET …/held` and the decisions about held installs.

use crate::networks::{
    ServerWithSimulator, delivery_counts, install_from_click, now_ms, track, wait_until_settled,
};
use crate::outbox::{Outcome, connect, settle};
use crate::website::Website;
use reqwest::Method;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;
use tributary_domain::access::person::Role;
use tributary_simulator::SimulatedNetwork;
use tributary_testkit::{TestResponse, TestServer, on_both_engines};

/// Time limit for sending all deliveries of one app.
const SETTLE_TIMEOUT: Duration = Duration::from_mins(2);
const NETWORK: SimulatedNetwork = SimulatedNetwork::NetworkA;

/// Sets the default policy: these tests create apps with another one.
async fn hold_flagged(site: &Website) {
    let default = json!({"attribution": {"fraud": null}});
    let app = site.call("PATCH", "", default).await.expect(200).data();
    assert_eq!(
        app["attribution"]["fraud"], "hold",
        "the default for new apps"
    );
}

async fn pay(site: &Website, sdk_key: &str, device: &str, id: &str) {
    let event = json!({
        "eventId": id, "name": "purchase", "revenue": "20", "currency": "USD", "timestampMs": now_ms(),
    });
    let body = json!({"deviceId": device, "events": [event]});
    track(site, sdk_key, "events", &body).await;
}

async fn decide(site: &Website, device: &str, decision: &str) -> TestResponse {
    let path = format!("/held/{device}/decision");
    site.call("POST", &path, json!({"decision": decision}))
        .await
}

async fn get(site: &Website, path: &str) -> Value {
    site.call("GET", path, Value::Null).await.expect(200).json()
}

/// Returns a count or an amount without cents.
fn whole(figure: &Value) -> i64 {
    let text = figure.to_string();
    text.strip_suffix(".0").unwrap_or(&text).parse().unwrap()
}

/// Returns installs, revenue, held installs and held revenue as every report shows them. The
/// reports must agree.
async fn counted(site: &Website) -> [i64; 4] {
    const NAMES: [&str; 4] = ["installs", "revenue", "heldInstalls", "heldRevenue"];
    let read = |figures: &Value| NAMES.map(|name| whole(&figures[name]));
    let sum = |rows: &Value| {
        let rows = rows["data"].as_array().unwrap().iter().map(read);
        rows.fold([0; 4], |sum, row| {
            [0, 1, 2, 3].map(|column| sum[column] + row[column])
        })
    };
    let totals = read(&get(site, "/stats").await["meta"]["totals"]);
    for group_by in ["network", "link", "country", "event", "ad"] {
        let rows = get(site, &format!("/stats?groupBy={group_by}")).await;
        assert_eq!(sum(&rows), totals, "{group_by}");
    }
    let overview = get(site, "/overview").await;
    let kpis = NAMES.map(|name| whole(&overview["data"]["kpis"][name]["value"]));
    assert_eq!(kpis, totals, "overview");
    totals
}

/// Counts the installs in all cohorts.
async fn cohort_installs(site: &Website) -> i64 {
    let cohorts = get(site, "/cohorts").await;
    let rows = cohorts["data"].as_array().unwrap().iter();
    rows.map(|row| row["installs"].as_i64().unwrap()).sum()
}

/// Returns the `hold` column of every exported event.
async fn exported_holds(site: &Website) -> Vec<String> {
    let csv = site.call("GET", "/export?kind=events", Value::Null).await;
    let text = csv.expect(200).text.clone();
    let mut lines = text.lines();
    assert!(lines.next().unwrap().ends_with(",hold"));
    let hold = |line: &str| line.rsplit(',').next().unwrap().to_owned();
    lines.map(hold).collect()
}

/// Rejects a released install whose event was sent.
pub(super) async fn reject_forwarded(server: &TestServer) -> TestResponse {
    let site = Website::open(server).await;
    connect(&site).await;
    hold_flagged(&site).await;
    install_from_click(&site, NETWORK, "phone-1").await;
    decide(&site, "phone-1", "release").await.expect(200);
    assert_eq!(
        settle(server, &site.app, &Outcome::DELIVERED).await.len(),
        1
    );
    decide(&site, "phone-1", "reject").await
}

on_both_engines! {
    async fn a_flagged_install_is_neither_counted_nor_sent_until_it_is_released(engine: Engine) {
        let simulated = ServerWithSimulator::start(engine).await;
        let site = simulated.site(NETWORK).await;
        let account = simulated.connect(&site, NETWORK, 0).await;
        hold_flagged(&site).await;
        // The app opens within a second of the click, as a script does.
        let sdk_key = install_from_click(&site, NETWORK, "phone-1").await;
        pay(&site, &sdk_key, "phone-1", "order-1").await;
        assert_eq!(counted(&site).await, [0, 0, 1, 20]);
        assert_eq!(cohort_installs(&site).await, 0);
        assert_eq!(exported_holds(&site).await, ["held", "held"]);
        assert_eq!(delivery_counts(&site).await, BTreeMap::new());
        let event = site.logged_event("order-1").await;
        assert_eq!(event["attribution"]["hold"], "held");
        assert_eq!(event["deliveries"][0]["reason"], "fraud");

        let held = get(&site, "/held?flag=short_ctit").await;
        let item = &held["data"][0];
        assert_eq!((&item["deviceId"], &item["hold"]["state"]), (&json!("phone-1"), &json!("held")));
        assert_eq!((&item["network"], &item["hold"]["decidedBy"]), (&json!("network_a"), &json!(null)));
        assert_eq!(get(&site, "/held?flag=install_burst").await["data"], json!([]));
        let device = get(&site, "/devices/phone-1").await;
        assert_eq!(device["data"]["attribution"]["hold"]["state"], "held");

        let released = decide(&site, "phone-1", "release").await.expect(200).data();
        assert_eq!(released["hold"]["state"], "released");
        assert_eq!(released["hold"]["decidedBy"]["kind"], "key");
        let again = decide(&site, "phone-1", "release").await.expect(200).data();
        assert_eq!(again, released, "a repeated decision changes nothing");
        assert_eq!(counted(&site).await, [1, 20, 0, 0]);
        let statuses = wait_until_settled(&site, SETTLE_TIMEOUT).await;
        assert_eq!(statuses, BTreeMap::from([("delivered".to_owned(), 2)]));
        let names = simulated.names(NETWORK, &account);
        assert_eq!(names, ["Lead", "Purchase"].map(str::to_owned).into());
        assert_eq!(exported_holds(&site).await, ["released", "released"]);

        let refused = decide(&site, "phone-1", "reject").await.expect(409);
        assert_eq!(refused.code(), "install_forwarded");
        pay(&site, &sdk_key, "phone-1", "order-2").await;
        assert_eq!(counted(&site).await, [1, 40, 0, 0], "later events count at once");
    }

    async fn rejected_installs_count_nowhere_and_a_rule_decides_about_many(engine: Engine) {
        let server = TestServer::start(engine).await;
        let site = Website::open(&server).await;
        connect(&site).await;
        hold_flagged(&site).await;
        let mut sdk_key = String::new();
        for device in ["phone-1", "phone-2", "phone-3"] {
            sdk_key = install_from_click(&site, NETWORK, device).await;
            pay(&site, &sdk_key, device, &format!("order-{device}")).await;
        }
        assert_eq!(counted(&site).await, [0, 0, 3, 60]);
        let page = get(&site, "/held?limit=2").await;
        let devices = |page: &Value| {
            let items = page["data"].as_array().unwrap().iter();
            items.map(|one| one["deviceId"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(devices(&page), ["phone-3", "phone-2"]);
        let cursor = page["meta"]["cursor"].as_str().unwrap();
        assert_eq!(devices(&get(&site, &format!("/held?limit=2&cursor={cursor}")).await), ["phone-1"]);

        decide(&site, "phone-1", "reject").await.expect(200);
        let link = get(&site, "/held").await["data"][0]["linkId"].clone();
        let rule = json!({"decision": "reject", "linkId": link});
        let decided = site.call("POST", "/held/decisions", rule).await.expect(200).data();
        assert_eq!(decided, json!({"decided": 1, "hasMore": false}), "each install has its own link");
        let rule = json!({"decision": "release", "flag": "short_ctit", "from": "2026-01-01", "to": "2026-01-01"});
        let decided = site.call("POST", "/held/decisions", rule).await.expect(200).data();
        assert_eq!(decided, json!({"decided": 1, "hasMore": false}));
        assert_eq!(counted(&site).await, [1, 20, 0, 0]);
        pay(&site, &sdk_key, "phone-1", "late").await;
        assert_eq!(counted(&site).await, [1, 20, 0, 0], "rejected for good");
        assert_eq!(get(&site, "/held?state=rejected").await["data"].as_array().unwrap().len(), 2);
        decide(&site, "phone-1", "release").await.expect(200);
        assert_eq!(counted(&site).await, [2, 60, 0, 0], "nothing was sent, so the decision may change");
        let log = server.get("/api/v1/audit-log?limit=5", &site.key).await.expect(200).data();
        let actions: Vec<&str> = log.as_array().unwrap().iter().map(|entry| entry["action"].as_str().unwrap()).collect();
        assert_eq!(actions[..4], ["held.released", "held.released", "held.rejected", "held.rejected"]);

        for (body, field) in [
            (json!({"decision": "release"}), "body"), (json!({"flag": "short_ctit"}), "decision"),
            (json!({"decision": "keep", "flag": "short_ctit"}), "decision"), (json!({"decision": "release", "flag": "odd"}), "flag"),
        ] {
            let answer = site.call("POST", "/held/decisions", body).await.expect(422);
            assert_eq!(answer.json()["error"]["details"][0]["field"], field, "{answer:?}");
        }
        decide(&site, "unknown", "release").await.expect(404);
        assert_eq!(reject_forwarded(&server).await.expect(409).code(), "install_forwarded");
    }

    async fn the_page_decides_about_the_install_in_the_row(engine: Engine) {
        let server = TestServer::start(engine).await;
        let (site, reader) = Website::open_with_reader(&server).await;
        hold_flagged(&site).await;
        // A device id is chosen by its sender, who would rather have another install rejected.
        for device in ["phone-1", "../held/phone-1"] {
            install_from_click(&site, NETWORK, device).await;
        }
        let cookie = server.sign_in_as(reader.organization(), Role::Admin).await;
        let app = site.app.rsplit('/').next().unwrap();
        let path = format!("/apps/{app}/held");
        let request = server.request(Method::GET, &path).header("cookie", &cookie);
        let page = server.send(request).await.expect(200).text;
        let action = format!("{path}/..%2Fheld%2Fphone-1/decision");
        assert!(page.contains(&format!("action=\"{action}\"")), "{page}");
        let (_, token) = page.split_once("name=\"formToken\" value=\"").unwrap();
        let token = token.split('"').next().unwrap();
        let request = server.request(Method::POST, &action)
            .header("cookie", &cookie)
            .header("sec-fetch-site", "same-origin")
            .header("content-type", "application/x-www-form-urlencoded")
            .body(format!("formToken={token}&decision=reject"));
        server.send(request).await.expect(303);
        let devices = async |state: &str| {
            let list = get(&site, &format!("/held?state={state}")).await;
            list["data"].as_array().unwrap().iter().map(|item| item["deviceId"].clone()).collect::<Vec<_>>()
        };
        assert_eq!(devices("held").await, [json!("phone-1")]);
        assert_eq!(devices("rejected").await, [json!("../held/phone-1")]);
    }
}
