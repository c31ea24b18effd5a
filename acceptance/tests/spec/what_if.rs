//! Other attribution rules, tried on recorded installs:
//! `POST /api/v1/apps/{appId}/attribution/what-if` and the page beside the settings.

use super::track::SdkFixture;
use reqwest::Method;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;
use tributary_domain::access::person::Role;
use tributary_testkit::{Engine, on_both_engines};

/// Starts a server and records traffic under these rules: an install 30 hours after its click, one
/// minutes after its click, one without a click id from the address of a click, and an organic one.
async fn record(engine: Engine, rules: &Value) -> SdkFixture {
    let sdk = SdkFixture::start(engine).await;
    sdk.change_app(rules.clone()).await;
    let hours = |hours| sdk.server.clock.advance(Duration::from_hours(hours));
    let campaign = |id: &str| json!({"id": id, "name": format!("Campaign {id}")});
    sdk.link(
        "spring",
        json!({"network": "network_a", "campaign": campaign("c1")}),
    )
    .await;
    sdk.link(
        "autumn",
        json!({"network": "network_b", "campaign": campaign("c2")}),
    )
    .await;
    let early = sdk.tap("/c/spring?fbclid=f1").await;
    hours(30);
    let late = sdk.tap("/c/autumn?gclid=g1").await;
    sdk.configure("late", json!({"arClickId": early})).await;
    sdk.configure("soon", json!({"arClickId": late})).await;
    hours(30);
    sdk.tap("/c/spring?fbclid=f2").await;
    hours(2);
    sdk.configure("near", json!({})).await;
    hours(30);
    sdk.configure("alone", json!({})).await;
    for (device, revenue) in [
        ("late", "20"),
        ("soon", "10"),
        ("near", "5"),
        ("alone", "1"),
    ] {
        let paid = json!([{
            "eventId": format!("paid-{device}"), "name": "purchase", "revenue": revenue, "currency": "USD",
        }]);
        sdk.send(device, paid).await;
    }
    sdk
}

async fn try_rules(sdk: &SdkFixture, rules: &Value) -> Value {
    let path = format!("{}/attribution/what-if", sdk.app);
    let answer = sdk.server.post(&path, &sdk.key, rules.clone()).await;
    answer.expect(200).data()
}

/// Figures of a network: installs, organic installs, held installs, and revenue as text.
type NetworkFigures = BTreeMap<String, (i64, i64, i64, String)>;

fn read_figures(rows: &Value, figures: impl Fn(&Value) -> Value) -> NetworkFigures {
    let rows = rows.as_array().unwrap().iter().map(|row| {
        let figures = figures(row);
        let count = |name: &str| figures[name].as_i64().unwrap();
        let counts = (
            count("installs"),
            count("organicInstalls"),
            count("heldInstalls"),
        );
        let revenue = format!("{:.2}", figures["revenue"].as_f64().unwrap());
        let network = row["network"].as_str().unwrap().to_owned();
        (network, (counts.0, counts.1, counts.2, revenue))
    });
    rows.filter(|(_, (installs, _, held, _))| installs + held > 0)
        .collect()
}

/// Returns the figures of the app's report.
async fn reported(sdk: &SdkFixture) -> NetworkFigures {
    let path = format!("{}/stats?groupBy=network", sdk.app);
    let rows = sdk.server.get(&path, &sdk.key).await.expect(200).data();
    read_figures(&rows, Value::clone)
}

/// Returns everything that a replay could have changed: figures, devices, events and the audit log.
async fn stored(sdk: &SdkFixture) -> Vec<Value> {
    let mut found = vec![json!(sdk.log("").await)];
    let app = &sdk.app;
    let paths = [
        app.clone(),
        format!("{app}/stats?groupBy=network"),
        format!("{app}/devices/late"),
        format!("{app}/devices/near"),
        "/api/v1/audit-log?limit=500".to_owned(),
    ];
    for path in paths {
        found.push(sdk.server.get(&path, &sdk.key).await.expect(200).data());
    }
    found
}

on_both_engines! {
    async fn a_replay_equals_an_app_that_has_the_rules(engine: Engine) {
        let present = json!({"attribution": {"fraud": "flag"}});
        let one = record(engine, &present).await;
        let before = stored(&one).await;
        let same = try_rules(&one, &json!({})).await;
        assert_eq!((&same["moved"], &same["installs"], &same["gaps"]), (&json!(0), &json!(4), &json!([])), "{same}");
        assert_eq!(same["currentRules"], same["triedRules"]);
        let now = |row: &Value| row["now"].clone();
        assert_eq!(read_figures(&same["networks"], now), reported(&one).await);
        let cases = [
            (json!({"attribution": {"clickWindowHours": 24, "probabilistic": {"android": false}}}), 2),
            (json!({"attribution": {"probabilistic": {"android": false}}}), 1),
            (json!({"attribution": {"probabilistic": {"windowHours": 1}, "fraud": "refuse"}}), 1),
        ];
        for (rules, moved) in cases {
            let tried = try_rules(&one, &rules).await;
            assert_eq!((&tried["moved"], &tried["gaps"]), (&json!(moved), &json!([])), "{tried}");
            let mut changed = rules.clone();
            if changed["attribution"]["fraud"].is_null() {
                changed["attribution"]["fraud"] = json!("flag");
            }
            let other = record(engine, &changed).await;
            let then = |row: &Value| row["then"].clone();
            assert_eq!(read_figures(&tried["networks"], then), reported(&other).await, "{rules}");
        }
        assert_eq!(stored(&one).await, before, "a replay changes nothing");
    }

    async fn moves_name_both_places_and_the_devices(engine: Engine) {
        let one = record(engine, &json!({"attribution": {"fraud": "flag"}})).await;
        let cost = json!({"costs": [{"day": "2026-01-03", "network": "network_a", "campaign": "c1", "amount": 50}]});
        let costs = format!("{}/costs", one.app);
        one.server.call("PUT", &costs, &one.key, Some(cost)).await.expect(200);
        let rules = json!({"attribution": {"clickWindowHours": 24, "probabilistic": {"android": false}}});
        let tried = try_rules(&one, &rules).await;
        let moved = &tried["moves"][0];
        assert_eq!(moved["from"], json!({"network": "network_a", "campaignId": "c1", "hold": null}));
        assert_eq!(moved["to"], json!({"network": "organic", "campaignId": null, "hold": null}));
        assert_eq!((&moved["installs"], moved["netRevenue"].as_f64()), (&json!(2), Some(25.0)));
        let examples = moved["examples"].as_array().unwrap();
        let devices: Vec<_> = examples.iter().map(|example| example["deviceId"].as_str().unwrap()).collect();
        assert_eq!(devices, ["late", "near"]);
        assert!(examples[0]["reason"].as_str().unwrap().contains("24 hours"));
        let campaigns = tried["campaigns"].as_array().unwrap();
        let spring = campaigns.iter().find(|row| row["campaignId"] == "c1").unwrap();
        assert_eq!(spring["campaignName"], "Campaign c1");
        assert_eq!((spring["now"]["cpi"].as_f64(), spring["now"]["roas"].as_f64()), (Some(25.0), Some(0.5)));
        assert_eq!((&spring["then"]["cpi"], spring["then"]["roas"].as_f64()), (&json!(null), Some(0.0)));
        // Without the switch, another click from the address could match, which is not known.
        let tried = try_rules(&one, &json!({"attribution": {"clickWindowHours": 24}})).await;
        assert_eq!(tried["gaps"], json!([{"reason": "address_unknown", "installs": 1, "unknown": true}]));
        assert_eq!(tried["moves"][0]["to"]["network"], "unknown");
    }

    async fn figures_of_the_period_equal_those_of_the_overview(engine: Engine) {
        let one = record(engine, &json!({"attribution": {"fraud": "flag"}})).await;
        // These installs are older than the replayed days. One of them pays again.
        one.server.clock.advance(Duration::from_hours(24 * 40));
        let click = one.tap("/c/spring?fbclid=f9").await;
        one.server.clock.advance(Duration::from_hours(30));
        one.configure("new", json!({"arClickId": click})).await;
        for (device, revenue) in [("late", "100"), ("new", "7")] {
            let paid = json!([{
                "eventId": format!("again-{device}"), "name": "purchase", "revenue": revenue, "currency": "USD",
            }]);
            one.send(device, paid).await;
        }
        let rules = json!({"attribution": {"clickWindowHours": 24, "probabilistic": {"android": false}}});
        let days = try_rules(&one, &rules).await;
        let cost = json!({"costs": [{"day": days["to"], "network": "network_a", "campaign": "c1", "amount": 50}]});
        let costs = format!("{}/costs", one.app);
        one.server.call("PUT", &costs, &one.key, Some(cost)).await.expect(200);
        let tried = try_rules(&one, &rules).await;
        assert_eq!((&tried["installs"], &tried["moved"]), (&json!(1), &json!(1)));
        let query = format!("from={}&to={}", days["from"].as_str().unwrap(), days["to"].as_str().unwrap());
        let read = async |path: &str| {
            let path = format!("{}/{path}{query}", one.app);
            one.server.get(&path, &one.key).await.expect(200).data()
        };
        let kpis = read("overview?").await["kpis"].clone();
        let value = |name: &str| kpis[name]["value"].clone();
        assert_eq!(tried["total"]["now"]["periodNetRevenue"], value("netRevenue"));
        assert_eq!(tried["paid"]["now"]["periodRoas"], value("paidRoas"));
        let number = |of: &Value, name: &str| of[name].as_f64();
        let rows = tried["networks"].as_array().unwrap();
        for reported in read("stats?groupBy=network&").await.as_array().unwrap() {
            let row = rows.iter().find(|row| row["network"] == reported["network"]).unwrap();
            for (period, name) in [("periodNetRevenue", "netRevenue"), ("periodRoas", "roas")] {
                assert_eq!(row["now"][period], reported[name], "{row}");
            }
        }
        let row = |network: &str| rows.iter().find(|row| row["network"] == network).unwrap();
        let (meta, organic) = (row("network_a"), row("organic"));
        assert_eq!((number(&meta["now"], "periodNetRevenue"), number(&meta["now"], "periodRoas")), (Some(107.0), Some(2.14)));
        assert_eq!((number(&meta["then"], "periodNetRevenue"), number(&meta["then"], "periodRoas")), (Some(100.0), Some(2.0)));
        assert_eq!(number(&organic["then"], "periodNetRevenue"), Some(7.0));
        assert_eq!(number(&meta["now"], "roas"), Some(0.14), "of the replayed install only");
        let campaign = tried["campaigns"].as_array().unwrap().iter().find(|row| row["campaignId"] == "c1").unwrap();
        assert_eq!(number(&campaign["then"], "periodNetRevenue"), Some(100.0));
    }

    async fn names_every_faulty_field(engine: Engine) {
        let sdk = SdkFixture::start(engine).await;
        let path = format!("{}/attribution/what-if", sdk.app);
        let body = json!({"attribution": {
            "clickWindowHours": 0, "fraud": "odd", "probabilistic": {"windowHours": 99, "ios": "yes"},
        }});
        let refused = sdk.server.post(&path, &sdk.key, body).await.expect(422);
        let mut fields: Vec<String> = refused.faults().into_iter().map(|(field, _)| field).collect();
        fields.sort();
        assert_eq!(fields, [
            "attribution.clickWindowHours", "attribution.fraud", "attribution.probabilistic.ios",
            "attribution.probabilistic.windowHours",
        ]);
        let secret = json!({"attribution": {"socialReferrerKey": "x"}});
        let refused = sdk.server.post(&path, &sdk.key, secret).await;
        assert_eq!(refused.code(), "unknown_field");
        assert_eq!(sdk.server.post(&path, &sdk.analytics_key, json!({})).await.code(), "insufficient_permission");
    }

    async fn the_page_shows_the_moves(engine: Engine) {
        let one = record(engine, &json!({"attribution": {"fraud": "flag"}})).await;
        let app = one.app.trim_start_matches("/api/v1");
        let organization = one.server.store.key_by_digest(
            tributary_domain::access::key::KeyText::parse(&one.key).unwrap().digest(),
        ).await.unwrap().unwrap().organization;
        let cookie = one.server.sign_in_as(organization, Role::Analyst).await;
        let query = "try=on&attribution.clickWindowHours=24&attribution.probabilistic.windowHours=24&attribution.fraud=flag";
        let request = one.server.request(Method::GET, &format!("{app}/settings/what-if?{query}"));
        let page = one.server.send(request.header("cookie", cookie)).await.expect(200).text;
        assert!(page.contains("Meta · Campaign c1 → Organic: 2 installs, $25.00"), "{page}");
        assert!(page.contains("0 of 4 installs replayed") && page.contains("/devices/late"), "{page}");
        assert!(page.contains("Nothing was saved") && page.trim_end().ends_with("</html>"), "{page}");
    }
}
